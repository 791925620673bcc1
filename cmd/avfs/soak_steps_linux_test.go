package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// soakSteps are what is done in each round, in any order. Each leaves as many files
// as it found.
var soakSteps = []func(*soak){
	(*soak).execs, (*soak).badExecs, (*soak).edits, (*soak).history, (*soak).forks, (*soak).mounts, (*soak).mappings, (*soak).files, (*soak).crowd,
}

// execs runs commands that work on files, some with much output.
func (s *soak) execs() {
	s.avfs("exec", "--", "sh", "-c", "mkdir d; cd d; for i in $(seq 40); do echo $i > f$i; done; mv f1 g1; ln f2 g2; ln -s f3 g3; cat f*; rm f4")
	s.avfs("exec", "--json", "--", "sh", "-c", "head -c 2000000 /dev/urandom | od -v > out; cat out; rm -r d out")
}

// badExecs runs commands that do not end as they should.
func (s *soak) badExecs() {
	for code, args := range map[int][]string{
		3:   {"--", "sh", "-c", "setsid sleep 100 & exit 3"},
		77:  {"--", "rm", "-rf", "/"},
		124: {"--timeout", "100ms", "--", "sleep", "100"},
		127: {"--", "no-such-program"},
	} {
		_, err := s.try(append([]string{"exec"}, args...)...)
		if got := exitCodeOf(err); got != code {
			s.t.Fatalf("round %d: exec %q: exit code %d: %v", s.round, args, got, err)
		}
	}
	// One whose caller is killed in the middle.
	cmd := exec.Command("avfs", "exec", "--", "sh", "-c", "echo begun > begun; sleep 100")
	cmd.Env = s.env
	s.check(cmd.Start())
	begun := filepath.Join(s.point, "begun")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(begun); err == nil {
			break
		} else if time.Now().After(deadline) {
			s.t.Fatal("the command does not begin")
		}
	}
	s.check(cmd.Process.Kill())
	_ = cmd.Wait()                      // it was killed
	s.avfs("exec", "--", "rm", "begun") // its turn comes when the other is recorded
}

func exitCodeOf(err error) int {
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode()
	}
	return -1
}

// edits changes files without a mount.
func (s *soak) edits() {
	s.avfs("mkdir", "/e")
	s.avfs("write", "/e/a")
	s.avfs("cp", "/e/a", "/e/b")
	s.avfs("mv", "/e/b", "/e/c")
	s.avfs("grep", "input", "/e")
	s.avfs("undo")
	s.avfs("rm", "-r", "/e")
}

// history saves, compares, restores and deletes states.
func (s *soak) history() {
	path := filepath.Join(s.point, "h")
	s.check(os.WriteFile(path, []byte("one"), 0o644))
	s.avfs("checkpoint", "save", "before")
	s.check(os.WriteFile(path, []byte("three"), 0o644))
	s.avfs("checkpoint", "diff", "before")
	s.avfs("checkpoint", "restore", "before")
	s.avfs("checkpoint", "delete", "before")
	s.avfs("log")
	s.check(os.Remove(path))
}

// forks makes a fork, works in it, and throws it away.
func (s *soak) forks() {
	s.avfs("vault", "fork", "v", "w")
	s.avfs("--vault", "w", "exec", "--", "sh", "-c", "seq 1000 > n; mkdir x; cp n x")
	point := filepath.Join(s.dir, "w")
	s.avfs("mount", "w", point)
	s.check(os.WriteFile(filepath.Join(point, "more"), make([]byte, 300_000), 0o644))
	s.avfs("--vault", "w", "diff")
	s.avfs("unmount", point)
	s.avfs("vault", "delete", "--yes", "w")
}

// mounts ends the vault's mount and makes it again, with a second one beside it.
func (s *soak) mounts() {
	second := filepath.Join(s.dir, "ro")
	s.avfs("mount", "--read-only", "v", second) // so that the owner stays
	s.avfs("unmount", s.point)
	s.avfs("mount", "v", s.point)
	if _, err := os.ReadDir(second); err != nil {
		s.t.Fatal(err)
	}
	s.avfs("unmount", second)
}

// mappings writes to a mapped file while states are taken.
func (s *soak) mappings() {
	const size = 1 << 20
	path := filepath.Join(s.point, "mapped")
	f, err := os.Create(path)
	s.check(err)
	s.check(f.Truncate(size))
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	s.check(err)
	for i := 0; i < size; i += 4096 {
		m[i] = byte(s.round)
	}
	s.avfs("checkpoint", "save", "mapped")
	m[0]++
	s.avfs("checkpoint", "delete", "mapped")
	s.check(unix.Munmap(m))
	s.check(f.Close())
	s.check(os.Remove(path))
}

// files does with files what programs do, among it what leaves something without
// a name.
func (s *soak) files() {
	dir := filepath.Join(s.point, "files")
	s.check(os.Mkdir(dir, 0o755))
	for i := range 100 {
		path := filepath.Join(dir, strconv.Itoa(i))
		s.check(os.WriteFile(path, bytes.Repeat([]byte{byte(s.rng.Uint32())}, s.rng.IntN(20_000)), 0o644))
		s.check(os.Rename(path, path+"n"))
	}
	big := s.random(3 << 20)
	f, err := os.Create(filepath.Join(dir, "big"))
	s.check(err)
	_, err = f.Write(big)
	s.check(err)
	s.check(os.Remove(f.Name()))
	s.check(f.Truncate(1000))
	s.check(f.Sync())
	s.check(f.Close())
	s.check(os.WriteFile(filepath.Join(dir, "x"), nil, 0o644))
	s.check(unix.Setxattr(filepath.Join(dir, "x"), "user.x", big[:100], 0))
	_, err = os.ReadDir(dir)
	s.check(err)
	s.check(os.RemoveAll(dir))
}

// crowd has many commands and programs at once.
func (s *soak) crowd() {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			path := filepath.Join(s.point, fmt.Sprint("crowd", i))
			for range 50 {
				s.crowdCheck(os.WriteFile(path, []byte(path), 0o644))
				_, err := os.ReadFile(path)
				s.crowdCheck(err)
			}
			_, err := s.try("exec", "--", "rm", filepath.Base(path))
			s.crowdCheck(err)
			_, err = s.try("ls", "/")
			s.crowdCheck(err)
		})
	}
	wg.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

func (s *soak) crowdCheck(err error) {
	if err != nil {
		s.t.Errorf("round %d: %v", s.round, err)
	}
}

func (s *soak) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("round %d: %v", s.round, err)
	}
}
