package storetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Disk is a small file system in memory.
type Disk struct {
	Dir string
	t   *testing.T
}

// SmallDisk mounts an empty file system of mib MiB for the time of the test, or skips
// the test where it may not.
func SmallDisk(t *testing.T, mib int) *Disk {
	t.Helper()
	d := &Disk{Dir: t.TempDir(), t: t}
	if err := unix.Mount("tmpfs", d.Dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("SKIP, THE FULL DISK IS NOT TESTED: mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.Dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", d.Dir, err)
		}
	})
	return d
}

// Path is that of a store on the disk.
func (d *Disk) Path() string { return filepath.Join(d.Dir, "store.avfs") }

// Free is how many bytes are free.
func (d *Disk) Free() int64 {
	d.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(d.Dir, &st); err != nil {
		d.t.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize
}

// TakeAllBut fills the disk with a file, as another program would, until leave bytes
// are free. The function that it returns removes the file.
func (d *Disk) TakeAllBut(leave int64) (freeUp func()) {
	d.t.Helper()
	f, err := os.CreateTemp(d.Dir, "foreign")
	if err != nil {
		d.t.Fatal(err)
	}
	page := make([]byte, 4096)
	for err == nil && (leave == 0 || d.Free() > leave) {
		_, err = f.Write(page)
	}
	if errors.Is(err, unix.ENOSPC) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		d.t.Fatal(err)
	}
	return func() {
		d.t.Helper()
		if err := os.Remove(f.Name()); err != nil {
			d.t.Error(err)
		}
	}
}
