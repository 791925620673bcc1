package badger_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/engine/kv"
	"golang.org/x/sys/unix"
)

// smallDisk mounts an empty file system of mib MiB in memory. free says how many
// bytes are left.
func smallDisk(t *testing.T, mib int) (dir string, free func() int64) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("SKIP, THE FULL DISK IS NOT TESTED: mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func() int64 {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Bavail) * st.Bsize
	}
}

// takeAll fills the disk with a file until nothing is free.
func takeAll(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoBusErrorOnAFullDisk checks that no call ends the process where others have
// taken the last byte of the disk: updates of any size, making a store, closing one
// and opening what a crash left. All of them would write through a memory map. The
// data is there once there is room again.
func TestNoBusErrorOnAFullDisk(t *testing.T) {
	dir, free := smallDisk(t, 64)
	path := filepath.Join(dir, "store.avfs")
	st, err := badger.Driver{}.Open(t.Context(), path, kv.Options{Tables: []kv.Table{nodes, digests}, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(1); id <= 10; id++ {
		mustPut(t, st, id, id, 1<<20)
	}
	closed := filepath.Join(dir, "closed.avfs")
	if err := open(t, closed, kv.Options{Create: true}).Close(); err != nil {
		t.Fatal(err)
	}
	unused := open(t, filepath.Join(dir, "unused.avfs"), kv.Options{Create: true})
	if err := unused.Close(); err != nil {
		t.Fatal(err)
	}
	unused = open(t, filepath.Join(dir, "unused.avfs"), kv.Options{})
	takeAll(t, filepath.Join(dir, "foreign"))
	if n := free(); n != 0 {
		t.Fatalf("%d bytes are free", n)
	}
	wantFull := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, kv.ErrNoSpace) {
			t.Errorf("%s on a full disk: %v, want ErrNoSpace", what, err)
		}
	}
	wantFull("Update", put(t, st, kv.Durable, 11, 11, 1<<20))
	wantFull("large Update with Reclaim", put(t, st, kv.Reclaim, 11, 11, 1<<20))
	wantFull("small Update with Reclaim", put(t, st, kv.Reclaim, 11, 11, 1))
	_, err = badger.Driver{}.Open(t.Context(), filepath.Join(dir, "new.avfs"), kv.Options{Create: true})
	wantFull("Create", err)
	_, err = badger.Driver{}.Open(t.Context(), closed, kv.Options{Tables: []kv.Table{nodes, digests}})
	wantFull("Open", err)
	wantRows(t, open(t, closed, kv.Options{ReadOnly: true}), 0)
	if err := unused.Close(); err != nil {
		t.Errorf("Close of a store without changes: %v", err)
	}
	_, err = st.(kv.Compacter).Compact(t.Context())
	wantFull("Compact", err)
	wantFull("Backup", st.(kv.Backuper).Backup(t.Context(), filepath.Join(dir, "backup.avfs")))
	wantRows(t, st, 10)
	wantFull("Close", st.Close())
	if err := st.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	// The store is still locked by this process, and a crash would end that.
	if err := os.Remove(filepath.Join(dir, "foreign")); err != nil {
		t.Fatal(err)
	}
	wantRows(t, open(t, copyStore(t, path), kv.Options{}), 10)
}

// TestOpenNeedsRoom checks that a store which was not closed is refused while the
// disk has no room for its log to become a table, instead of ending the process.
func TestOpenNeedsRoom(t *testing.T) {
	st, path := create(t)
	for id := uint64(1); id <= 10; id++ {
		mustPut(t, st, id, id, 1<<20)
	}
	dir, free := smallDisk(t, 160)
	crashed := filepath.Join(dir, "crashed.avfs")
	if err := os.CopyFS(crashed, os.DirFS(path)); err != nil { // the log without its holes: 128 MiB
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	takeAll(t, foreign)
	if _, err := (badger.Driver{}).Open(t.Context(), crashed, kv.Options{}); !errors.Is(err, kv.ErrNoSpace) {
		t.Errorf("Open with %d bytes free: %v, want ErrNoSpace", free(), err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if err := punchHoles(filepath.Join(crashed, "00001.mem"), 16<<20); err != nil {
		t.Fatal(err)
	}
	wantRows(t, open(t, crashed, kv.Options{}), 10)
}

// punchHoles makes the file a hole from offset on.
func punchHoles(path string, offset int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return errors.Join(os.Truncate(path, offset), os.Truncate(path, info.Size()))
}

// TestManyOpensOnATightDisk checks that a store whose newest tables are due to be
// merged, which Badger begins by itself soon after it opens, does not end the process
// where the disk has no room for that.
func TestManyOpensOnATightDisk(t *testing.T) {
	dir, free := smallDisk(t, 64)
	path := filepath.Join(dir, "store.avfs")
	st := open(t, path, kv.Options{Create: true})
	id := uint64(1)
	for ; put(t, st, kv.Relaxed, id, id, 1<<20) == nil; id++ {
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := make([]byte, 1<<20)
	for i := 0; free() > 3<<20; i++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("foreign", i)), foreign, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		st = open(t, path, kv.Options{})
		if err := put(t, st, kv.Reclaim, id, id, 1000); err != nil {
			t.Fatal(err)
		}
		id++
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	st = open(t, path, kv.Options{})
	time.Sleep(1500 * time.Millisecond) // Badger begins within a second
	wantRows(t, st, int(id-1))
}
