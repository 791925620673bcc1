package sqlite_test

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

// putMiB puts n values of 1 MiB under the ids from 1 in one update.
func putMiB(t *testing.T, st kv.Store, n int) error {
	return st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
		for i := range n {
			if err := w.Put(nodes, kv.ID(uint64(i+1)), make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestOneUpdateLeavesTheReserve checks that an update which begins with room enough,
// but would not leave the reserve free, is refused whole and gives back what it took.
func TestOneUpdateLeavesTheReserve(t *testing.T) {
	st, _, free := smallDisk(t, 16)
	for _, tc := range []struct {
		mib  int
		want error
	}{{1, nil}, {7, kv.ErrNoSpace}, {1, nil}, {7, kv.ErrNoSpace}} {
		if err := putMiB(t, st, tc.mib); !errors.Is(err, tc.want) {
			t.Errorf("an update of %d MiB on a disk of 16 MiB: %v, want %v", tc.mib, err, tc.want)
		}
		if n := free(); n < kv.Reserve {
			t.Errorf("after an update of %d MiB only %d bytes are free", tc.mib, n)
		}
	}
	wantRows(t, st, 1)
}

// TestReclaimShrinksTheFile checks that on a nearly full disk deleted data is given
// back to the file system, so that writing goes on.
func TestReclaimShrinksTheFile(t *testing.T) {
	st, dir, free := smallDisk(t, 40)
	// Closing leaves no log whose room could be given back instead.
	if err := errors.Join(putMiB(t, st, 7), st.Close()); err != nil {
		t.Fatal(err)
	}
	st = open(t, filepath.Join(dir, "store.avfs"), kv.Options{})
	foreign := make([]byte, 1<<20)
	for i := 0; free() > 5<<20; i++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("foreign", i)), foreign, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := st.Update(t.Context(), kv.Reclaim, func(w kv.Writer) error {
		for id := uint64(2); id <= 7; id++ {
			if err := w.Delete(nodes, kv.ID(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	file := size(t, filepath.Join(dir, "store.avfs"))
	if n := free(); n < kv.Reserve || file > 2<<20 {
		t.Errorf("after deleting 6 of 7 MiB the file has %d bytes and %d are free", file, n)
	}
	if err := putMiB(t, st, 1); err != nil {
		t.Errorf("writing after deleting: %v", err)
	}
}
