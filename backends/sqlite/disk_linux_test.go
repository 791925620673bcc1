package sqlite_test

import (
	"errors"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
)

// TestOneUpdateLeavesTheReserve checks that an update which begins with room enough,
// but would not leave the reserve free, is refused whole and gives back what it took.
func TestOneUpdateLeavesTheReserve(t *testing.T) {
	disk := storetest.SmallDisk(t, 16)
	st := kit.Open(t, disk.Path(), kv.Options{Create: true})
	for _, tc := range []struct {
		mib  uint64
		want error
	}{{1, nil}, {7, kv.ErrNoSpace}, {1, nil}, {7, kv.ErrNoSpace}} {
		if err := kit.Put(t, st, kv.Relaxed, 1, tc.mib, 1<<20); !errors.Is(err, tc.want) {
			t.Errorf("an update of %d MiB on a disk of 16 MiB: %v, want %v", tc.mib, err, tc.want)
		}
		if n := disk.Free(); n < kv.Reserve {
			t.Errorf("after an update of %d MiB only %d bytes are free", tc.mib, n)
		}
	}
	kit.WantRows(t, st, 1)
}

// TestReclaimShrinksTheFile checks that on a nearly full disk deleted data is given
// back to the file system, so that writing goes on.
func TestReclaimShrinksTheFile(t *testing.T) {
	disk := storetest.SmallDisk(t, 40)
	st := kit.Open(t, disk.Path(), kv.Options{Create: true})
	// Closing leaves no log whose room could be given back instead.
	kit.MustPut(t, st, 1, 7, 1<<20)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = kit.Open(t, disk.Path(), kv.Options{})
	disk.TakeAllBut(5 << 20)
	if err := kit.Delete(t, st, kv.Reclaim, 2, 7); err != nil {
		t.Fatal(err)
	}
	file := size(t, disk.Path())
	if n := disk.Free(); n < kv.Reserve || file > 2<<20 {
		t.Errorf("after deleting 6 of 7 MiB the file has %d bytes and %d are free", file, n)
	}
	kit.MustPut(t, st, 1, 1, 1<<20)
}

// TestFreePagesAreRoom checks that an update is not refused while it fits the free
// pages of the file, although the log, where it goes first, would eat into the reserve;
// and that FreeSpace counts those pages.
func TestFreePagesAreRoom(t *testing.T) {
	disk := storetest.SmallDisk(t, 64)
	st := kit.Open(t, disk.Path(), kv.Options{Create: true})
	for id := uint64(1); id <= 28; id += 7 {
		kit.MustPut(t, st, id, id+6, 1<<20)
	}
	if err := st.Close(); err != nil { // leaves no log
		t.Fatal(err)
	}
	st = kit.Open(t, disk.Path(), kv.Options{})
	// With room enough nothing is given back: the pages stay in the file.
	if err := kit.Delete(t, st, kv.Relaxed, 8, 28); err != nil {
		t.Fatal(err)
	}
	disk.TakeAllBut(kv.Reserve + 2<<20)
	left := freeSpace(t, st)
	if n := disk.Free(); left < n+20<<20 {
		t.Errorf("%d bytes are left, with %d free on the disk and 21 MiB in the file", left, n)
	}
	for id := uint64(101); id <= 114; id += 7 {
		if err := kit.Put(t, st, kv.Relaxed, id, id+6, 1<<20); err != nil {
			t.Fatalf("putting 7 MiB where free pages are: %v", err)
		}
	}
	if n := freeSpace(t, st); n > left-13<<20 {
		t.Errorf("%d bytes are left after 14 MiB of %d were put", n, left)
	}
	kit.WantRows(t, st, 7+14)
}

// freeSpace returns what the store says is left.
func freeSpace(t *testing.T, st kv.Store) int64 {
	t.Helper()
	n, err := st.(kv.FreeSpacer).FreeSpace()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
