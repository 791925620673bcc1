package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"golang.org/x/sys/unix"
)

var mountCoherenceTests = []mountTest{
	{"a change from outside is seen at once", "the command line and the mount must never disagree", (*mountSuite).outsideChange},
	{"a change through the mount is seen outside at once", "a checkpoint takes what the programs wrote", (*mountSuite).insideChange},
	{"names from outside", "a file that was missing a moment ago must be found, one that went must not", (*mountSuite).outsideNames},
	{"a reader sees later writes", "tail -f must go on after the file was changed", (*mountSuite).laterWrites},
	{"overwriting leaves no old bytes", "a cache that keeps the old bytes gives programs a mixture", (*mountSuite).noStalePages},
	{"same size, same time, new content", "rsync and build caches set times back; the bytes must be the new ones", (*mountSuite).sameStamp},
	{"a restore is seen at once", "after an undo every program must read the old state", (*mountSuite).restored},
	{"replaced from outside while open", "a restore or the command line replaces files that programs have open", (*mountSuite).outsideReplace},
	{"another type from outside", "a checkpoint may hold a directory where there is a file now", (*mountSuite).outsideRetype},
	{"saving while programs write", "checkpoints are taken in the middle of work, and each must be a state that was there", (*mountSuite).saveDuringLoad},
	{"mixed load in parallel", "tools in parallel must not get stuck or lose files", (*mountSuite).mixedLoad},
}

// outsideFile is a file as the engine has it, without the mount.
type outsideFile struct {
	h *engine.File
}

func (f outsideFile) write(t *testing.T, content string, off int64) {
	t.Helper()
	_, err := f.h.WriteAt(t.Context(), []byte(content), off)
	mustDo(t, err)
}

// outside opens name in a directory of the mount through the engine, made if need be.
func (s *mountSuite) outside(t *testing.T, dir, name string, fn func(outsideFile)) {
	t.Helper()
	d, err := s.vault.Resolve(t.Context(), filepath.Base(dir), false)
	mustDo(t, err)
	h, _, err := s.vault.Create(t.Context(), d.Ino, name, 0o644, engine.Owner{}, engine.OpenRead|engine.OpenWrite, false)
	mustDo(t, err)
	fn(outsideFile{h})
	mustDo(t, h.Close())
}

func (s *mountSuite) outsideChange(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	putFile(t, f, "one")
	wantFile(t, f, "one")
	fd := openFD(t, f, unix.O_RDONLY, 0)
	equal(t, "by descriptor", preadFD(t, fd, 20, 0), "one")
	for i := range 20 {
		content := fmt.Sprintf("two-longer-%d", i)
		s.outside(t, dir, "f", func(f outsideFile) { f.write(t, content, 0) })
		equal(t, "by descriptor", preadFD(t, fd, 20, 0), content)
		wantFile(t, f, content)
		equal(t, "size", lstatOf(t, f).Size, int64(len(content)))
	}
	s.outside(t, dir, "f", func(f outsideFile) { mustDo(t, f.h.Truncate(t.Context(), 3)) })
	equal(t, "size after shrinking", fstatOf(t, fd).Size, 3)
	wantFile(t, f, "two")
	equal(t, "by descriptor after shrinking", preadFD(t, fd, 20, 0), "two")
}

func (s *mountSuite) insideChange(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	for i := range 20 {
		content := fmt.Sprint("version ", i)
		putFile(t, f, content)
		s.outside(t, dir, "f", func(f outsideFile) {
			p := make([]byte, 100)
			n, err := f.h.ReadAt(t.Context(), p, 0)
			mustDo(t, err)
			equal(t, "outside", string(p[:n]), content)
		})
	}
}

func (s *mountSuite) outsideNames(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	d, err := s.vault.Resolve(t.Context(), filepath.Base(dir), false)
	mustDo(t, err)
	for range 10 {
		_, err := os.Lstat(f)
		wantErrno(t, "before", err, unix.ENOENT)
		s.outside(t, dir, "f", func(f outsideFile) { f.write(t, "here", 0) })
		wantFile(t, f, "here")
		wantListed(t, dir, "f")
		mustDo(t, s.vault.Rename(t.Context(), d.Ino, "f", d.Ino, "g", 0))
		_, err = os.Lstat(f)
		wantErrno(t, "after a rename", err, unix.ENOENT)
		wantFile(t, f[:len(f)-1]+"g", "here")
		mustDo(t, s.vault.Unlink(t.Context(), d.Ino, "g"))
		wantListed(t, dir)
	}
}

func (s *mountSuite) laterWrites(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "one\n")
	fd := openFD(t, f, unix.O_RDONLY, 0)
	equal(t, "first", readFD(t, fd), "one\n")
	w := openFD(t, f, unix.O_WRONLY|unix.O_APPEND, 0)
	_, err := unix.Write(w, []byte("two\n"))
	mustDo(t, err)
	equal(t, "later", readFD(t, fd), "two\n")
}

func (s *mountSuite) noStalePages(t *testing.T) {
	dir := s.dir(t)
	f, twin := filepath.Join(dir, "f"), filepath.Join(dir, "twin")
	for range 20 {
		putFile(t, f, "a-long-first-version")
		wantFile(t, f, "a-long-first-version")
		wantFile(t, f, "a-long-first-version")
		putFile(t, f, "s")
		wantFile(t, f, "s")
	}
	mustDo(t, os.Link(f, twin))
	for i := range 20 {
		putFile(t, f, fmt.Sprintf("%02d", i))
		wantFile(t, twin, fmt.Sprintf("%02d", i))
		wantFile(t, twin, fmt.Sprintf("%02d", i))
		wantFile(t, f, fmt.Sprintf("%02d", i))
	}
}

func (s *mountSuite) sameStamp(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	stamp := time.Unix(1000, 0)
	put := func(content string) {
		putFile(t, f, content)
		mustDo(t, os.Chtimes(f, stamp, stamp))
	}
	put("aaa")
	wantFile(t, f, "aaa")
	wantFile(t, f, "aaa")
	put("bbb")
	wantFile(t, f, "bbb")
	wantFile(t, f, "bbb")
	mtime := stamp.UnixNano()
	s.outside(t, dir, "f", func(f outsideFile) {
		f.write(t, "ccc", 0)
		_, err := f.h.SetAttr(t.Context(), engine.SetAttr{Mtime: &mtime})
		mustDo(t, err)
	})
	wantFile(t, f, "ccc")
	wantFile(t, f, "ccc")
}

func (s *mountSuite) restored(t *testing.T) {
	point, v, _ := s.alone(t, nil)
	f := filepath.Join(point, "f")
	putFile(t, f, "old")
	mustDo(t, os.Chtimes(f, time.Unix(1000, 0), time.Unix(1000, 0)))
	wantFile(t, f, "old")
	cp, err := v.Checkpoint(t.Context(), engine.CheckpointOptions{Name: "before"})
	mustDo(t, err)
	putFile(t, f, "new")
	mustDo(t, os.Chtimes(f, time.Unix(1000, 0), time.Unix(1000, 0)))
	putFile(t, filepath.Join(point, "later"), "1")
	wantFile(t, f, "new")
	res, err := v.Restore(t.Context(), cp.Root, nil)
	mustDo(t, err)
	wantFile(t, f, "old")
	wantListed(t, point, "f")
	undo, err := v.FindCheckpoint(t.Context(), res.UndoCheckpoint)
	mustDo(t, err)
	_, err = v.Restore(t.Context(), undo.Root, nil)
	mustDo(t, err)
	wantFile(t, f, "new")
	wantListed(t, point, "f", "later")
}

func (s *mountSuite) outsideReplace(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	d, err := s.vault.Resolve(t.Context(), filepath.Base(dir), false)
	mustDo(t, err)
	putFile(t, f, "version 0")
	for i := 1; i <= 20; i++ {
		was, is := fmt.Sprint("version ", (i-1)%10), fmt.Sprint("version ", i%10)
		fd := openFD(t, f, unix.O_RDWR, 0)
		equal(t, "before", preadFD(t, fd, 20, 0), was)
		s.outside(t, dir, "new", func(f outsideFile) { f.write(t, is, 0) })
		mustDo(t, s.vault.Rename(t.Context(), d.Ino, "new", d.Ino, "f", 0))
		wantFile(t, f, is)
		equal(t, "by the old descriptor", preadFD(t, fd, 20, 0), was)
		_, err := unix.Pwrite(fd, []byte("VERSION"), 0)
		mustDo(t, err)
		wantFile(t, f, is)
		mustDo(t, unix.Close(fd))
	}
}

func (s *mountSuite) outsideRetype(t *testing.T) {
	dir := s.dir(t)
	f := filepath.Join(dir, "f")
	d, err := s.vault.Resolve(t.Context(), filepath.Base(dir), false)
	mustDo(t, err)
	for range 5 {
		putFile(t, f, "file")
		wantFile(t, f, "file")
		mustDo(t, s.vault.Unlink(t.Context(), d.Ino, "f"))
		_, err := s.vault.Mkdir(t.Context(), d.Ino, "f", 0o755, engine.Owner{})
		mustDo(t, err)
		putFile(t, filepath.Join(f, "inside"), "dir")
		wantListed(t, f, "inside")
		mustDo(t, s.vault.RemoveAll(t.Context(), filepath.Base(dir)+"/f"))
		_, err = s.vault.Symlink(t.Context(), d.Ino, "f", "target", engine.Owner{})
		mustDo(t, err)
		target, err := os.Readlink(f)
		mustDo(t, err)
		equal(t, "target", target, "target")
		mustDo(t, s.vault.Unlink(t.Context(), d.Ino, "f"))
	}
}

func (s *mountSuite) saveDuringLoad(t *testing.T) {
	point, v, _ := s.alone(t, nil)
	mustDo(t, os.Mkdir(filepath.Join(point, "d"), 0o755))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends when stop is closed
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := v.Checkpoint(t.Context(), engine.CheckpointOptions{Name: fmt.Sprint(i)}); err != nil {
				t.Error(err)
				return
			}
			if _, err := v.Commit(t.Context(), true); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i := range 200 {
		f := filepath.Join(point, "d", fmt.Sprint(i%10))
		fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 0o600)
		_, err := unix.Write(fd, bytes.Repeat([]byte{byte(i)}, 300_000))
		mustDo(t, err)
		if i%3 == 0 {
			mustDo(t, os.Remove(f))
		}
		got := preadFD(t, fd, 300_001, 0)
		if got != strings.Repeat(string([]byte{byte(i)}), 300_000) {
			t.Fatalf("round %d: %d bytes differ from what was written", i, len(got))
		}
		mustDo(t, unix.Close(fd))
	}
	close(stop)
	<-stopped
	wantSound(t, v.Store())
}

func (s *mountSuite) mixedLoad(t *testing.T) {
	dir := s.dir(t)
	var wg sync.WaitGroup
	const workers, rounds = 8, 60
	for w := range workers {
		wg.Go(func() {
			d := filepath.Join(dir, fmt.Sprint(w), "o")
			for i := range rounds {
				if err := mixedRound(dir, d, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for w := range workers {
		equal(t, "files", len(listNames(t, filepath.Join(dir, fmt.Sprint(w), "o"))), rounds)
		equal(t, "directories", len(listNames(t, filepath.Join(dir, fmt.Sprint(w)))), 1)
	}
}

// mixedRound makes, copies, renames, lists and removes.
func mixedRound(top, d string, i int) error {
	if err := os.MkdirAll(d, 0o755); err != nil {
		return err
	}
	f, copied := filepath.Join(d, fmt.Sprint(i)), filepath.Join(filepath.Dir(d), fmt.Sprint("g", i))
	if err := os.WriteFile(f, fmt.Appendf(nil, "%d", i), 0o644); err != nil {
		return err
	}
	got, err := os.ReadFile(f)
	if err != nil {
		return err
	}
	if string(got) != fmt.Sprint(i) {
		return fmt.Errorf("read %q in round %d", got, i)
	}
	if err := os.WriteFile(copied+".tmp", got, 0o644); err != nil {
		return err
	}
	if err := os.Rename(copied+".tmp", copied); err != nil {
		return err
	}
	if _, err := os.ReadDir(top); err != nil {
		return err
	}
	return os.Remove(copied)
}
