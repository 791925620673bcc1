package bbolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"golang.org/x/sys/unix"
)

// smallDisk mounts an empty file system of mib MiB in memory, with a store in it. free
// says how many bytes are left.
func smallDisk(t *testing.T, mib int) (st kv.Store, dir string, free func() int64) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("SKIP, THE RESERVE IS NOT TESTED: mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return open(t, filepath.Join(dir, "store.avfs"), kv.Options{Create: true}), dir, func() int64 {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Bavail) * st.Bsize
	}
}

// TestOneUpdateLeavesTheReserve checks that an update which begins with room enough,
// but would not leave the reserve free, is refused whole.
func TestOneUpdateLeavesTheReserve(t *testing.T) {
	st, _, free := smallDisk(t, 16)
	for _, tc := range []struct {
		mib  uint64
		want error
	}{{1, nil}, {7, kv.ErrNoSpace}, {1, nil}, {7, kv.ErrNoSpace}} {
		if err := put(t, st, 1, tc.mib, 1<<20); !errors.Is(err, tc.want) {
			t.Errorf("an update of %d MiB on a disk of 16 MiB: %v, want %v", tc.mib, err, tc.want)
		}
		if n := free(); n < kv.Reserve {
			t.Errorf("after an update of %d MiB only %d bytes are free", tc.mib, n)
		}
	}
	wantRows(t, st, 1)
}

// TestFreedRoomIsUsedAgain checks that on a disk that others have filled up, an
// update writes to the room that a delete has made inside the file.
func TestFreedRoomIsUsedAgain(t *testing.T) {
	st, dir, free := smallDisk(t, 64)
	for id := uint64(1); id <= 30; id++ {
		mustPut(t, st, id, id, 1<<20)
	}
	foreign := make([]byte, 1<<20)
	for i := 0; free() > 3<<20; i++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("foreign", i)), foreign, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := uint64(30) // the file may have grown ahead of what is in it
	for ; last < 60; last++ {
		if err := put(t, st, last+1, last+1, 1<<20); errors.Is(err, kv.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if last == 60 {
		t.Fatal("the disk is full, and nothing is refused")
	}
	for id := uint64(1); id <= 20; id++ {
		err := st.Update(t.Context(), kv.Reclaim, func(w kv.Writer) error { return w.Delete(nodes, kv.ID(id)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	before := free()
	for id := uint64(101); id <= 110; id++ {
		mustPut(t, st, id, id, 1<<20)
	}
	if n := free(); n < before {
		t.Errorf("the updates took %d bytes of the disk, where %d were free", before-n, before)
	}
	wantRows(t, st, int(last)-20+10)
}
