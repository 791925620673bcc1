package conformance

import (
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts an empty, small file system in memory for the
// time of the test and returns its folder.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, smallDiskOptions); err != nil {
		t.Skipf("SKIP, THE FULL DISK IS NOT TESTED: mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}
