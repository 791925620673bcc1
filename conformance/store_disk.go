package conformance

import (
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
)

// smallDiskMiB is the size of the disk for these tests, in MiB. It leaves some room
// beside kv.Reserve for stores that allocate in large pieces.
const smallDiskMiB = 64

// diskTests fill a disk.
var diskTests = []storeTest{
	{"FullDisk", "a full disk is ENOSPC, old data stays intact, and deleting still works", (*storeSuite).testFullDisk},
	{"FreeSpace", "what is refused in time, where a program sees it, is refused by what a store says is left", (*storeSuite).testFreeSpace},
	{"DiskFilledByOthers", "another program may take the last byte; nothing may be damaged, and all works again afterwards", (*storeSuite).testForeignFull},
}

func (s *storeSuite) testFullDisk(t *testing.T) {
	s.needsFile(t)
	st, path := s.createAt(t, storetest.SmallDisk(t, smallDiskMiB).Dir)
	put(t, st, tblBlob, []byte("old"), []byte("data"))
	n := fillDisk(t, st)
	t.Logf("%d MiB fitted", n>>4)

	for id := uint64(1); id <= n; id++ {
		wantValue(t, st, tblIDs, kv.ID(id), bigValue(id))
	}
	if err := verify(st); err != nil {
		t.Error(err)
	}
	for id := uint64(1); id <= n; id += 32 { // 2 MiB each
		err := st.Update(t.Context(), kv.Reclaim|kv.Mode(id>>5&1), func(w kv.Writer) error {
			for i := id; i < id+32 && i <= n; i++ {
				if i%16 != 0 {
					if err := w.Delete(tblIDs, kv.ID(i)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("deleting from %d on a full disk: %v", id, err)
		}
	}
	wantNone(t, st, tblIDs, kv.ID(1))
	const more = 20 * 16 // 20 MiB, less than half of what was deleted
	for id := uint64(1001); id <= 1000+more; id += 16 {
		err := st.Update(t.Context(), kv.Durable, func(w kv.Writer) error {
			for i := id; i < id+16; i++ {
				if err := w.Put(tblIDs, kv.ID(i), bigValue(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("writing %d after space was freed: %v", id, err)
		}
	}
	mustClose(t, st)
	st = s.reopen(t, path)
	wantValue(t, st, tblBlob, []byte("old"), []byte("data"))
	for id := uint64(1001); id <= 1000+more; id++ {
		wantValue(t, st, tblIDs, kv.ID(id), bigValue(id))
	}
	wantValue(t, st, tblIDs, kv.ID(16), bigValue(16))
	wantNone(t, st, tblIDs, kv.ID(17))
}

// fillDisk puts values of 64 KiB, 1 MiB an update, until there is no more room. It
// returns how many are in the store.
func fillDisk(t *testing.T, st kv.Store) (n uint64) {
	t.Helper()
	for range 200 {
		err := st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
			for id := n + 1; id <= n+16; id++ {
				if err := w.Put(tblIDs, kv.ID(id), bigValue(id)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			wantErr(t, "Update on a full disk", err, kv.ErrNoSpace)
			if n < 64 {
				t.Fatalf("only %d MiB fitted on the disk", n>>4)
			}
			return n
		}
		n += 16
	}
	t.Fatal("200 MiB fitted on the small disk")
	return 0
}

func (s *storeSuite) testForeignFull(t *testing.T) {
	s.needsFile(t)
	disk := storetest.SmallDisk(t, smallDiskMiB)
	st, path := s.createAt(t, disk.Dir)
	putMany(t, st, 8<<20)
	write := func(mode kv.Mode, id uint64) error {
		return st.Update(t.Context(), mode, func(w kv.Writer) error { return w.Put(tblIDs, kv.ID(id), bigValue(id)) })
	}
	var err error
	freeUp := func() {}
	for range 5 { // the store may at first find something of its own to give back
		freeUp()
		freeUp = disk.TakeAllBut(kv.Reserve / 2)
		if err = write(kv.Relaxed, 1000); err != nil {
			break
		}
	}
	wantErr(t, "Update with half the reserve free", err, kv.ErrNoSpace)
	err = st.Update(t.Context(), kv.Reclaim, func(w kv.Writer) error { return w.Delete(tblIDs, kv.ID(1)) })
	if err != nil {
		t.Errorf("Reclaim with half the reserve free: %v", err)
	}
	freeUp()
	freeUp = disk.TakeAllBut(0)
	for id := uint64(1001); id < 1201; id++ { // 12 MiB: more than any slack
		if err = write(kv.Reclaim, id); err != nil {
			break
		}
	}
	wantErr(t, "Update that may use the reserve where there is none", err, kv.ErrNoSpace)
	wantErr(t, "Update without a free byte", write(kv.Durable, 1200), kv.ErrNoSpace)
	_, err = s.driver.Open(t.Context(), path+".new", kv.Options{Tables: allTables, Create: true})
	wantErr(t, "Create without a free byte", err, kv.ErrNoSpace)
	for id := uint64(2); id <= 128; id++ {
		wantValue(t, st, tblIDs, kv.ID(id), bigValue(id))
	}
	freeUp()
	if err := write(kv.Durable, 1000); err != nil {
		t.Errorf("with space again: %v", err)
	}
	put(t, s.open(t, path+".new", kv.Options{Tables: allTables, Create: true}), tblBlob, []byte("k"), nil)
	mustClose(t, st)
	st = s.reopen(t, path)
	wantValue(t, st, tblIDs, kv.ID(1000), bigValue(1000))
	wantValue(t, st, tblIDs, kv.ID(128), bigValue(128))
	wantNone(t, st, tblIDs, kv.ID(1))
}

func (s *storeSuite) testFreeSpace(t *testing.T) {
	s.needsFile(t)
	st, _ := s.createAt(t, storetest.SmallDisk(t, smallDiskMiB).Dir)
	f := ability[kv.FreeSpacer](t, st, "say how much is left")
	left := func() int64 {
		t.Helper()
		n, err := f.FreeSpace()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	putMany(t, st, 4<<20)
	promised := left()
	if promised > smallDiskMiB<<20 {
		t.Errorf("%d bytes are left on a disk of %d MiB", promised, smallDiskMiB)
	}
	// Three quarters allow for what a database takes beside the values.
	putMany(t, st, int(promised-kv.Reserve)*3/4)
	n := fillDisk(t, st)
	if now := left(); now > kv.Reserve+4<<20 {
		t.Errorf("an update of 1 MiB was refused, and %d bytes are left", now)
	}
	for id := uint64(1); id <= n; id += 32 {
		err := st.Update(t.Context(), kv.Reclaim, func(w kv.Writer) error {
			for i := id; i < id+32 && i <= n; i++ {
				if err := w.Delete(tblIDs, kv.ID(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	update(t, st, func(kv.Writer) error { return nil }) // which makes room of what was deleted
	if now := left(); now < kv.Scarce || now < promised/2 {
		t.Errorf("%d bytes are left after all was deleted, %d at first", now, promised)
	}
}
