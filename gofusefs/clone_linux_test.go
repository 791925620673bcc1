package gofusefs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/view/viewtest"
	"golang.org/x/sys/unix"
)

// TestCopySharesChunks copies a large file as cp does. Next to nothing is written,
// and it takes a fraction of reading and writing, which "--reflink=never" makes cp do.
func TestCopySharesChunks(t *testing.T) {
	size := int64(500 << 20)
	if testing.Short() {
		size = 64 << 20
	}
	v := viewtest.NewVault(t)
	w := viewtest.MountAt(t, binding, v, nil)
	a, b, c := filepath.Join(w.Point(), "a"), filepath.Join(w.Point(), "b"), filepath.Join(w.Point(), "c")
	if err := fillFile(a, size); err != nil {
		t.Fatal(err)
	}
	store := v.Store().Unwrap()
	before := sizeAfterCommit(t, w.Point(), store)
	shared := timed(t, "cp", a, b)
	if grown := sizeAfterCommit(t, w.Point(), store) - before; grown > size/500 {
		t.Errorf("a copy of %d bytes added %d to the store", size, grown)
	}
	if out, err := exec.Command("cmp", a, b).CombinedOutput(); err != nil {
		t.Errorf("the copy differs: %s", out)
	}
	copied := timed(t, "cp", "--reflink=never", a, c)
	t.Logf("%d MiB: shared in %v, copied in %v", size>>20, shared, copied)
	if !testing.Short() && shared > copied/3 {
		t.Errorf("sharing took %v, and copying %v", shared, copied)
	}
}

// fillFile makes a file of chunks that differ.
func fillFile(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	p := make([]byte, 1<<20)
	state := uint64(1)
	for done := int64(0); err == nil && done < size; done += int64(len(p)) {
		for i := range p {
			state = state*6364136223846793005 + 1442695040888963407
			p[i] = byte(state >> 56)
		}
		_, err = f.Write(p)
	}
	return errors.Join(err, f.Close())
}

// sizeAfterCommit is the size of a store with all that programs wrote.
func sizeAfterCommit(t *testing.T, point string, store kv.Store) int64 {
	t.Helper()
	fd, err := unix.Open(point, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Fsync(fd)
	sizer, _ := kv.As[kv.Sizer](store)
	size, serr := sizer.Size()
	if err := errors.Join(err, unix.Close(fd), serr); err != nil {
		t.Fatal(err)
	}
	return size
}

// timed runs a program outside the mount.
func timed(t *testing.T, name string, args ...string) time.Duration {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return time.Since(start)
}
