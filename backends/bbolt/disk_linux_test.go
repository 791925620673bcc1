package bbolt_test

import (
	"errors"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
)

// TestOneUpdateLeavesTheReserve checks that an update which begins with room enough,
// but would not leave the reserve free, is refused whole.
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

// TestFreedRoomIsUsedAgain checks that on a disk that others have filled up, an
// update writes to the room that a delete has made inside the file.
func TestFreedRoomIsUsedAgain(t *testing.T) {
	disk := storetest.SmallDisk(t, 64)
	st := kit.Open(t, disk.Path(), kv.Options{Create: true})
	for id := uint64(1); id <= 30; id++ {
		kit.MustPut(t, st, id, id, 1<<20)
	}
	disk.TakeAllBut(3 << 20)
	last := uint64(30) // the file may have grown ahead of what is in it
	for ; last < 60; last++ {
		if err := kit.Put(t, st, kv.Relaxed, last+1, last+1, 1<<20); errors.Is(err, kv.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if last == 60 {
		t.Fatal("the disk is full, and nothing is refused")
	}
	for id := uint64(1); id <= 20; id++ {
		if err := kit.Delete(t, st, kv.Reclaim, id, id); err != nil {
			t.Fatal(err)
		}
	}
	before := disk.Free()
	for id := uint64(101); id <= 110; id++ {
		kit.MustPut(t, st, id, id, 1<<20)
	}
	if n := disk.Free(); n < before {
		t.Errorf("the updates took %d bytes of the disk, where %d were free", before-n, before)
	}
	kit.WantRows(t, st, int(last)-20+10)
}
