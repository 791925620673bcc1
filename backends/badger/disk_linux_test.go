package badger_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
)

// TestNoBusErrorOnAFullDisk checks that no call ends the process where others have
// taken the last byte of the disk: updates of any size, making a store, closing one
// and opening what a crash left. All of them would write through a memory map. The
// data is there once there is room again.
func TestNoBusErrorOnAFullDisk(t *testing.T) {
	disk := storetest.SmallDisk(t, 64)
	dir, path := disk.Dir, disk.Path()
	st, err := badger.Driver{}.Open(t.Context(), path, kv.Options{Tables: []kv.Table{nodes, digests}, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(1); id <= 10; id++ {
		kit.MustPut(t, st, id, id, 1<<20)
	}
	closed := filepath.Join(dir, "closed.avfs")
	if err := kit.Open(t, closed, kv.Options{Create: true}).Close(); err != nil {
		t.Fatal(err)
	}
	unused := kit.Open(t, filepath.Join(dir, "unused.avfs"), kv.Options{Create: true})
	if err := unused.Close(); err != nil {
		t.Fatal(err)
	}
	unused = kit.Open(t, filepath.Join(dir, "unused.avfs"), kv.Options{})
	freeUp := disk.TakeAllBut(0)
	if n := disk.Free(); n != 0 {
		t.Fatalf("%d bytes are free", n)
	}
	wantFull := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, kv.ErrNoSpace) {
			t.Errorf("%s on a full disk: %v, want ErrNoSpace", what, err)
		}
	}
	wantFull("Update", kit.Put(t, st, kv.Durable, 11, 11, 1<<20))
	wantFull("large Update with Reclaim", kit.Put(t, st, kv.Reclaim, 11, 11, 1<<20))
	wantFull("small Update with Reclaim", kit.Put(t, st, kv.Reclaim, 11, 11, 1))
	_, err = badger.Driver{}.Open(t.Context(), filepath.Join(dir, "new.avfs"), kv.Options{Create: true})
	wantFull("Create", err)
	_, err = badger.Driver{}.Open(t.Context(), closed, kv.Options{Tables: []kv.Table{nodes, digests}})
	wantFull("Open", err)
	kit.WantRows(t, kit.Open(t, closed, kv.Options{ReadOnly: true}), 0)
	if err := unused.Close(); err != nil {
		t.Errorf("Close of a store without changes: %v", err)
	}
	_, err = st.(kv.Compacter).Compact(t.Context())
	wantFull("Compact", err)
	wantFull("Backup", st.(kv.Backuper).Backup(t.Context(), filepath.Join(dir, "backup.avfs")))
	kit.WantRows(t, st, 10)
	wantFull("Close", st.Close())
	if err := st.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	// The store is still locked by this process, and a crash would end that.
	freeUp()
	kit.WantRows(t, kit.Open(t, copyStore(t, path), kv.Options{}), 10)
}

// TestOpenNeedsRoom checks that a store which was not closed is refused while the
// disk has no room for its log to become a table, instead of ending the process.
func TestOpenNeedsRoom(t *testing.T) {
	st, path := kit.Create(t)
	for id := uint64(1); id <= 10; id++ {
		kit.MustPut(t, st, id, id, 1<<20)
	}
	disk := storetest.SmallDisk(t, 160)
	crashed := filepath.Join(disk.Dir, "crashed.avfs")
	if err := os.CopyFS(crashed, os.DirFS(path)); err != nil { // the log without its holes: 128 MiB
		t.Fatal(err)
	}
	freeUp := disk.TakeAllBut(0)
	if _, err := (badger.Driver{}).Open(t.Context(), crashed, kv.Options{}); !errors.Is(err, kv.ErrNoSpace) {
		t.Errorf("Open with %d bytes free: %v, want ErrNoSpace", disk.Free(), err)
	}
	freeUp()
	if err := punchHoles(filepath.Join(crashed, "00001.mem"), 16<<20); err != nil {
		t.Fatal(err)
	}
	kit.WantRows(t, kit.Open(t, crashed, kv.Options{}), 10)
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
	disk := storetest.SmallDisk(t, 64)
	path := disk.Path()
	st := kit.Open(t, path, kv.Options{Create: true})
	id := uint64(1)
	for ; kit.Put(t, st, kv.Relaxed, id, id, 1<<20) == nil; id++ {
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	disk.TakeAllBut(3 << 20)
	for range 10 {
		st = kit.Open(t, path, kv.Options{})
		if err := kit.Put(t, st, kv.Reclaim, id, id, 1000); err != nil {
			t.Fatal(err)
		}
		id++
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	st = kit.Open(t, path, kv.Options{})
	time.Sleep(1500 * time.Millisecond) // Badger begins within a second
	kit.WantRows(t, st, int(id-1))
}
