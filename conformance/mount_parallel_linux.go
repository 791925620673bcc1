package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
	"golang.org/x/sys/unix"
)

var mountParallelTests = []mountTest{
	{"locks between processes", "a lock that holds in one process only lets a second one ruin the database", (*mountSuite).processLocks},
	{"a stuck reader of a fifo", "a pipe that nobody writes to must stop its reader and nobody else", (*mountSuite).stuckFIFO},
	{"nothing waits behind a commit", "a slow disk must stop who asked for it, not every editor and compiler", (*mountSuite).slowCommit},
	{"git in parallel", "agents work in one repository at a time, and git trusts its lock files", (*mountSuite).parallelGit},
}

// tryLocks is the role of a process that tries for what another has locked, and for
// what it has not. It succeeds if it gets exactly the latter.
func tryLocks(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	record := func(start int64) error {
		return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: 10})
	}
	if err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("flock of what is locked: %w", err)
	}
	if err := record(5); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("record lock over a locked one: %w", err)
	}
	return errors.Join(record(10), unix.Close(fd))
}

func (s *mountSuite) processLocks(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, strings.Repeat("x", 100))
	fd := openFD(t, f, unix.O_RDWR, 0)
	mustDo(t, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
	mustDo(t, unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 10}))
	s.child(t, "try locks", f)
	mustDo(t, unix.Flock(fd, unix.LOCK_UN))
	holder := s.childCommand("hold locks", f)
	out, err := holder.StdoutPipe()
	mustDo(t, err)
	mustDo(t, holder.Start())
	_, err = fmt.Fscan(out, new(string))
	wantErrno(t, "flock of what another process has", unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
	mustDo(t, errors.Join(err, holder.Process.Kill()))
	_ = holder.Wait() // it was killed
	soon(t, "the lock of a killed process", func() bool { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil })
}

// holdLocks locks a file and stays.
func holdLocks(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX)
	}
	if err != nil {
		return err
	}
	fmt.Println("locked")
	time.Sleep(childLifetime)
	return errors.New("nobody ended it")
}

// readFIFO waits for a writer.
func readFIFO(path string) error {
	fmt.Println("waiting")
	got, err := os.ReadFile(path)
	if err == nil && string(got) != "at last" {
		err = fmt.Errorf("read %q", got)
	}
	return err
}

func (s *mountSuite) stuckFIFO(t *testing.T) {
	dir := s.dir(t)
	fifo, f := filepath.Join(dir, "p"), filepath.Join(dir, "f")
	mustDo(t, unix.Mkfifo(fifo, 0o600))
	reader := s.childCommand("read fifo", fifo)
	out, err := reader.StdoutPipe()
	mustDo(t, err)
	mustDo(t, reader.Start())
	_, err = fmt.Fscan(out, new(string))
	mustDo(t, err)
	for i := range 50 {
		putFile(t, f, fmt.Sprint(i))
		wantFile(t, f, fmt.Sprint(i))
		wantListed(t, dir, "f", "p")
		lstatOf(t, fifo)
	}
	mustDo(t, os.Rename(fifo, fifo+"2"))
	_, err = s.vault.Commit(t.Context(), true)
	mustDo(t, err)
	fd := openFD(t, fifo+"2", unix.O_WRONLY, 0) // waits for the reader, if it must
	_, err = unix.Write(fd, []byte("at last"))
	mustDo(t, errors.Join(err, unix.Close(fd), reader.Wait()))
}

const slowCommitTime = 20 * time.Second

// slowDB holds up every transaction that writes while it is told to.
type slowDB struct {
	kv.Store
	gate    sync.RWMutex
	waiting chan struct{} // holds a value once a transaction waits
}

// Unwrap lets abilities through.
func (d *slowDB) Unwrap() kv.Store { return d.Store }

// Update implements kv.Store.
func (d *slowDB) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	if !d.gate.TryRLock() {
		select {
		case d.waiting <- struct{}{}:
		default: // it is known
		}
		d.gate.RLock()
	}
	defer d.gate.RUnlock()
	return d.Store.Update(ctx, mode, fn)
}

func (s *mountSuite) slowCommit(t *testing.T) {
	db := &slowDB{waiting: make(chan struct{}, 1)}
	point, _, _ := s.alone(t, func(inner kv.Store) kv.Store {
		db.Store = inner
		return db
	})
	a, b := filepath.Join(point, "a"), filepath.Join(point, "b")
	putFile(t, a, strings.Repeat("a", 300_000))
	putFile(t, b, "b")
	fd := openFD(t, a, unix.O_RDWR, 0)
	db.gate.Lock()
	open := sync.OnceFunc(db.gate.Unlock)
	late := time.AfterFunc(slowCommitTime, open) // what waits all the same must end
	synced := make(chan error, 1)
	go func() { synced <- unix.Fsync(fd) }() // ends when the gate is open
	select {
	case <-db.waiting:
	case <-time.After(slowCommitTime):
		open()
		t.Fatalf("nothing is being saved, %v", <-synced)
	}
	for i := range 50 { // a write to the same file waits, in the kernel
		equal(t, "the file that is being saved", preadFD(t, fd, 3, 200_000), "aaa")
		putFile(t, b, fmt.Sprint(i))
		wantFile(t, b, fmt.Sprint(i))
		mustDo(t, os.Rename(b, b+"2"))
		mustDo(t, os.Rename(b+"2", b))
		wantListed(t, point, "a", "b")
	}
	if !late.Stop() {
		t.Errorf("50 rounds did not end within %v", slowCommitTime)
	}
	select {
	case err := <-synced:
		t.Errorf("fsync returned before anything was saved: %v", err)
	default:
	}
	open()
	mustDo(t, <-synced)
	wantFile(t, b, "49")
}

func (s *mountSuite) parallelGit(t *testing.T) {
	needsProgram(t, "git")
	dir := s.dir(t)
	// Adding a worktree may meet another's lock and be refused, anywhere.
	script := `set -e; git init -q -b main r; cd r; git config user.email a@x; git config user.name a; git config gc.auto 0
		for i in $(seq 20); do mkdir d$i; for j in 1 2 3; do echo $i > d$i/f$j; done; done; git add -A; git commit -qm 0; cd ..
		for i in $(seq 20); do (until git -C r worktree add -q -f -B w$i ../t$i main 2>/dev/null; do sleep 0.1; done
			cd t$i; for n in 1 2 3; do echo $n >> d$i/f1; echo $i > new$n; git add -A; git commit -qm $n; git status -s; done) & done; wait
		cd r; for i in $(seq 20); do git rev-list --count w$i; done | sort -u; git fsck --full 2>&1 | grep -v dangling || true
		find .git -name '*.lock'; git worktree list | wc -l`
	wantOutput(t, shellIn(t, dir, script), "4\n21\n")
}
