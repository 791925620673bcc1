package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"golang.org/x/sys/unix"
)

var mountOpenTests = []mountTest{
	{"open flags", "O_TRUNC, O_EXCL and the access mode are promises to the program", (*mountSuite).openFlags},
	{"write, close, reopen", "the size and content after close are what the next open finds", (*mountSuite).reopen},
	{"fsync survives power loss", "databases and editors order their writes by fsync", (*mountSuite).fsyncDurable},
	{"a failed save is told", "a program that is not told that its data was lost deletes the original", (*mountSuite).failedSave},
	{"a failed read is told", "what cannot be read must not reach a program as zeros", (*mountSuite).failedRead},
	{"a restore cuts off old handles", "a server that goes on writing must not write into the restored tree", (*mountSuite).staleHandle},
}

func (s *mountSuite) openFlags(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	putFile(t, f, "content")
	fd := openFD(t, f, unix.O_WRONLY|unix.O_TRUNC, 0)
	equal(t, "size after O_TRUNC", fstatOf(t, fd).Size, 0)
	_, err := unix.Pread(fd, make([]byte, 1), 0)
	wantErrno(t, "read from a descriptor for writing", err, unix.EBADF)
	_, err = unix.Write(fd, []byte("abc"))
	mustDo(t, err)
	ro := openFD(t, f, unix.O_RDONLY, 0)
	_, err = unix.Write(ro, []byte("x"))
	wantErrno(t, "write to a descriptor for reading", err, unix.EBADF)
	wantErrno(t, "truncate a descriptor for reading", unix.Ftruncate(ro, 0), unix.EINVAL)
	rw := openFD(t, f, unix.O_RDWR|unix.O_CREAT, 0o777)
	equal(t, "mode after opening what exists", fstatOf(t, rw).Mode&0o777, 0o644)
	equal(t, "content", preadFD(t, rw, 10, 0), "abc")
	path := openFD(t, f, unix.O_PATH, 0)
	equal(t, "inode of a path descriptor", fstatOf(t, path).Ino, fstatOf(t, rw).Ino)
	excl := openFD(t, f+"2", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o400)
	_, err = unix.Write(excl, []byte("made for reading, open for writing"))
	mustDo(t, err)
}

func (s *mountSuite) reopen(t *testing.T) {
	f := filepath.Join(s.dir(t), "f")
	for i := range 50 {
		content := strings.Repeat("x", i*700%5000)
		putFile(t, f, content)
		equal(t, "size", lstatOf(t, f).Size, int64(len(content)))
		wantFile(t, f, content)
	}
}

// alone mounts a vault of its own for a test that breaks its store or looks at it.
func (s *mountSuite) alone(t *testing.T, wrap func(kv.Store) kv.Store) (point string, v *engine.Vault, memory *memkv.Store) {
	t.Helper()
	_, v, memory = newMemoryVault(t, wrap)
	return s.mount(t, v), v, memory
}

func (s *mountSuite) fsyncDurable(t *testing.T) {
	point, _, memory := s.alone(t, nil)
	f := filepath.Join(point, "f")
	fd := openFD(t, f, unix.O_RDWR|unix.O_CREAT, 0o640)
	_, err := unix.Write(fd, []byte("precious"))
	mustDo(t, err)
	mustDo(t, unix.Fsync(fd))
	wantAfterPowerLoss(t, memory, "f", "precious")
	mustDo(t, os.Rename(f, filepath.Join(point, "g")))
	dir := openFD(t, point, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	mustDo(t, unix.Fsync(dir))
	wantAfterPowerLoss(t, memory, "g", "precious")
	_, err = unix.Pwrite(fd, []byte("P"), 0)
	mustDo(t, err)
	mustDo(t, unix.Fdatasync(fd))
	wantAfterPowerLoss(t, memory, "g", "Precious")
	mustDo(t, unix.Close(fd))
	mustDo(t, unix.Close(dir))
}

// wantAfterPowerLoss opens what power loss at this moment would leave.
func wantAfterPowerLoss(t *testing.T, memory *memkv.Store, name, want string) {
	t.Helper()
	store, err := engine.Open(t.Context(), memory.Clone(memkv.PowerLoss, 0), nil)
	mustDo(t, err)
	v, err := store.Vault(t.Context(), "work")
	mustDo(t, err)
	a, err := v.Lookup(t.Context(), engine.RootIno, name)
	if err != nil {
		t.Errorf("%s after power loss: %v", name, err)
	} else {
		h, err := v.Open(t.Context(), a.Ino, engine.OpenRead)
		mustDo(t, err)
		p := make([]byte, 100)
		n, err := h.ReadAt(t.Context(), p, 0)
		mustDo(t, err)
		equal(t, name+" after power loss", string(p[:n]), want)
		mustDo(t, h.Close())
	}
	mustDo(t, store.Close())
}

func (s *mountSuite) failedSave(t *testing.T) {
	var faults *faultkv.Store
	point, _, _ := s.alone(t, func(db kv.Store) kv.Store {
		faults = faultkv.Wrap(db, faultkv.Config{})
		return faults
	})
	f := filepath.Join(point, "f")
	putFile(t, f, "safe")
	fd := openFD(t, f, unix.O_RDWR, 0)
	mustDo(t, unix.Fsync(fd))
	faults.Arm(faultkv.Rule{Op: faultkv.Commit, Sticky: true, Err: kv.ErrNoSpace})
	_, err := unix.Pwrite(fd, []byte("lost"), 0)
	mustDo(t, err)
	wantErrno(t, "fsync on a full disk", unix.Fsync(fd), unix.ENOSPC)
	equal(t, "content meanwhile", preadFD(t, fd, 10, 0), "lost")
	second := openFD(t, f, unix.O_RDWR, 0)
	wantErrno(t, "close after a failed save", unix.Close(second), unix.ENOSPC)
	faults.Arm()
	mustDo(t, unix.Fsync(fd))
	mustDo(t, unix.Close(fd))
	wantFile(t, f, "lost")
}

func (s *mountSuite) failedRead(t *testing.T) {
	ctx := t.Context()
	db := memkv.New(engine.Tables()...)
	store, err := engine.Create(ctx, db, repairOptions())
	mustDo(t, err)
	t.Cleanup(func() { mustDo(t, store.Close()) })
	v, err := store.CreateVault(ctx, "work")
	mustDo(t, err)
	_, err = v.WriteFile(ctx, "/f", strings.NewReader(repairText(1)+strings.Repeat("-", 300_000)), &engine.WriteOptions{})
	mustDo(t, err)
	mustDo(t, v.Sync(ctx))
	n, err := spoil(ctx, db, storedTable("chunks"), 1, func(v []byte) int { return len(v) / 2 })
	if err != nil || n == 0 {
		t.Fatalf("%d chunks, %v", n, err)
	}
	point := s.mount(t, v)
	f := filepath.Join(point, "f")
	for range 2 { // the second time nothing may have stayed in a cache
		got, err := os.ReadFile(f)
		wantErrno(t, "read the whole file", err, unix.EIO)
		equal(t, "bytes read", len(got), 0)
		_, err = unix.Pread(openFD(t, f, unix.O_RDONLY, 0), make([]byte, 4096), 200_000)
		wantErrno(t, "read a page", err, unix.EIO)
	}
	if out := shellIn(t, point, "cat f > /dev/null && echo fine"); !strings.Contains(out, "Input/output error") {
		t.Errorf("cat: %q", out)
	}
}

func (s *mountSuite) staleHandle(t *testing.T) {
	point, v, _ := s.alone(t, nil)
	f := filepath.Join(point, "log")
	putFile(t, f, "a")
	cp, err := v.Checkpoint(t.Context(), engine.CheckpointOptions{Name: "before"})
	mustDo(t, err)
	fd := openFD(t, f, unix.O_RDWR|unix.O_APPEND, 0)
	_, err = unix.Write(fd, []byte("b"))
	mustDo(t, err)
	if _, err := v.Restore(t.Context(), cp.Root, nil); err != nil {
		if engine.KindOf(err) == engine.Busy {
			return // refusing while files are open is as good
		}
		t.Fatal(err)
	}
	// The old handle is asked first: what it gets must not stay in a cache that
	// other readers see.
	var errno syscall.Errno
	_, err = unix.Pread(fd, make([]byte, 10), 0)
	if !errors.As(err, &errno) || errno != unix.ESTALE && errno != unix.EBADF {
		t.Errorf("a read after the restore: %v, want ESTALE", err)
	}
	wantFile(t, f, "a")
	_, err = unix.Write(fd, []byte("late"))
	if !errors.As(err, &errno) || errno != unix.ESTALE && errno != unix.EBADF {
		t.Errorf("a write after the restore: %v, want ESTALE", err)
	}
	wantFile(t, f, "a")
	_ = unix.Close(fd) // may report what the write did
	putFile(t, f, "new")
	wantFile(t, f, "new")
}
