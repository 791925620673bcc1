package conformance

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
)

// abilityTests are the rules of what only some databases can do.
var abilityTests = []storeTest{
	{"Durability", "the three databases have different defaults; the promise is what is in force, not what was asked for", (*storeSuite).testDurability},
	{"Size", "people are told how much room a store takes", (*storeSuite).testSize},
	{"Compact", "a deleted vault should give its room back", (*storeSuite).testCompact},
	{"Backup", "a backup is taken while the store is in use and must be one moment", (*storeSuite).testBackup},
	{"Verify", "fsck starts with the database's own structure", (*storeSuite).testVerify},
}

// ability finds T in st or skips the test.
func ability[T any](t *testing.T, st kv.Store, name string) T {
	t.Helper()
	a, ok := kv.As[T](st)
	if !ok {
		t.Skipf("SKIP: this back end cannot %s", name)
	}
	return a
}

func (s *storeSuite) testDurability(t *testing.T) {
	st := s.create(t)
	d := ability[kv.Durabler](t, st, "say how durable it is")
	check := func(modes ...kv.Mode) {
		t.Helper()
		for _, mode := range modes {
			setting, holds, err := d.Durability(t.Context(), mode)
			if err != nil || !holds {
				t.Errorf("mode %d: %q holds %v, %v", mode, setting, holds, err)
			}
			if setting == "" {
				t.Errorf("mode %d: no setting is named", mode)
			}
			t.Logf("mode %d: %s", mode, setting)
		}
	}
	check(kv.Relaxed, kv.Durable, kv.Relaxed|kv.Reclaim, kv.Durable|kv.Reclaim)
	// The answer must not depend on what ran before.
	for _, mode := range []kv.Mode{kv.Durable, kv.Relaxed} {
		err := st.Update(t.Context(), mode, func(w kv.Writer) error { return w.Put(tblBlob, []byte("k"), nil) })
		if err != nil {
			t.Fatal(err)
		}
		check(kv.Durable, kv.Relaxed)
	}
}

func (s *storeSuite) testSize(t *testing.T) {
	st := s.create(t)
	z := ability[kv.Sizer](t, st, "say its size")
	before, err := z.Size()
	if err != nil || before < 0 {
		t.Fatalf("size of an empty store: %d, %v", before, err)
	}
	putMany(t, st, 8<<20)
	after, err := z.Size()
	if err != nil || after < before+8<<20 || after > before+64<<20 {
		t.Errorf("8 MiB made the size go from %d to %d, %v", before, after, err)
	}
}

// putMany puts size bytes in values of 64 KiB under increasing ids, 1 MiB an update.
func putMany(t *testing.T, st kv.Store, size int) {
	t.Helper()
	for id := 0; id < size/(64<<10); id += 16 {
		update(t, st, func(w kv.Writer) error {
			for i := range 16 {
				if err := w.Put(tblIDs, kv.ID(uint64(id+i+1)), bigValue(uint64(id+i+1))); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// bigValue is 64 KiB that depend on id.
func bigValue(id uint64) []byte { return bytes.Repeat(kv.ID(id*0x9E3779B97F4A7C15), 8<<10) }

func (s *storeSuite) testCompact(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	c := ability[kv.Compacter](t, st, "compact")
	putMany(t, st, 16<<20)
	update(t, st, func(w kv.Writer) error {
		for id := uint64(2); id <= 256; id++ {
			if err := w.Delete(tblIDs, kv.ID(id)); err != nil {
				return err
			}
		}
		return nil
	})
	var before int64
	z, sized := kv.As[kv.Sizer](st)
	if sized {
		before, _ = z.Size()
	}
	freed, err := c.Compact(t.Context())
	if err != nil || freed < 12<<20 {
		t.Errorf("Compact gave back %d bytes of 16 MiB, %v", freed, err)
	}
	if sized {
		if after, err := z.Size(); err != nil || before-after != freed {
			t.Errorf("Compact says %d, the size went from %d to %d, %v", freed, before, after, err)
		}
	}
	wantValue(t, st, tblIDs, kv.ID(1), bigValue(1))
	putMany(t, st, 1<<20)
	view(t, st, func(r kv.Reader) error {
		update(t, st, func(w kv.Writer) error { return w.Delete(tblIDs, kv.ID(16)) })
		if _, err := c.Compact(t.Context()); err != nil {
			t.Errorf("Compact under a reader: %v", err)
		}
		v, _, err := r.Get(tblIDs, kv.ID(16))
		if string(v) != string(bigValue(16)) {
			t.Error("Compact took the data of a reader's snapshot away")
		}
		return err
	})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Compact(cancelled)
	wantErr(t, "Compact under a cancelled context", err, context.Canceled)
	mustClose(t, st)
	wantValue(t, s.reopen(t, path), tblIDs, kv.ID(1), bigValue(1))
}

func (s *storeSuite) testBackup(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	b := ability[kv.Backuper](t, st, "back itself up")
	putMany(t, st, 4<<20)
	stop := keepWriting(t, st)
	defer stop()
	for i := range 3 {
		dest := path + ".copy" + string(rune('0'+i))
		if err := b.Backup(t.Context(), dest); err != nil {
			t.Fatalf("backup: %v", err)
		}
		wantErr(t, "Backup over a file", b.Backup(t.Context(), dest), fs.ErrExist)
		if !s.driver.Recognise(dest) {
			t.Error("the copy is not recognised")
		}
		cp := s.reopen(t, dest)
		view(t, cp, sameInBoth)
		wantValue(t, cp, tblIDs, kv.ID(64), bigValue(64))
		put(t, cp, tblBlob, []byte("own"), []byte("life"))
		mustClose(t, cp)
	}
	stop()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "Backup under a cancelled context", b.Backup(cancelled, path+".no"), context.Canceled)
	wantErr(t, "Backup over the store", b.Backup(t.Context(), path), fs.ErrExist)
	if left, err := filepath.Glob(path + ".no*"); err != nil || len(left) != 0 {
		t.Errorf("a cancelled backup left %v, %v", left, err)
	}
	wantNone(t, st, tblBlob, []byte("own"))
}

// keepWriting changes two tables together, again and again, until stop is called.
// The first change is made when it returns.
func keepWriting(t *testing.T, st kv.Store) (stop func()) {
	t.Helper()
	pair := func(i uint64) error {
		return st.Update(context.Background(), kv.Relaxed, func(w kv.Writer) error {
			return errors.Join(w.Put(tblBlob, []byte("pair"), kv.ID(i)), w.Put(tblIDs, kv.ID(7), kv.ID(i)))
		})
	}
	if err := pair(1); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := uint64(2); ; i++ {
			select {
			case <-stopped:
				return
			default:
			}
			if err := pair(i); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stopped)
		wg.Wait()
	})
}

func (s *storeSuite) testVerify(t *testing.T) {
	st := s.create(t)
	v := ability[kv.Verifier](t, st, "verify itself")
	putMany(t, st, 4<<20)
	if err := v.Verify(t.Context()); err != nil {
		t.Errorf("a sound store: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "Verify under a cancelled context", v.Verify(cancelled), context.Canceled)
}
