package conformance

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
)

// limitTests are the rules of sizes and tables, each on both sides of its limit.
var limitTests = []storeTest{
	{"EmptyAndMaximalKeys", "a limit that is lower than promised loses a file; a higher one breaks on the next back end", (*storeSuite).testKeyLimits},
	{"EmptyAndMaximalValues", "an empty value is not a missing one, and a chunk must fit", (*storeSuite).testValueLimits},
	{"IDs", "an id outside the range would wrap into another one's place", (*storeSuite).testIDs},
	{"TxBytes", "a transaction that a database cannot hold must fail whole, and the same on every one", (*storeSuite).testTxBytes},
	{"TxOps", "some databases end a transaction at a number of operations, whatever their size", (*storeSuite).testTxOps},
	{"TextTables", "people query the audit log with the database's own tools", (*storeSuite).testText},
	{"UnknownTable", "a misspelt table must not silently be an empty one", (*storeSuite).testUnknownTable},
	{"TableNames", "a name that only some databases take would tie a store to one of them", (*storeSuite).testTableNames},
	{"TablesAreApart", "one key in two tables is two keys", (*storeSuite).testTablesApart},
}

func (s *storeSuite) testKeyLimits(t *testing.T) {
	st := s.create(t)
	longest := bytes.Repeat([]byte{0xff}, kv.MaxKey)
	for _, key := range [][]byte{{0}, {0xff}, longest, bytes.Repeat([]byte{0}, kv.MaxKey)} {
		put(t, st, tblBlob, key, []byte("v"))
		wantValue(t, st, tblBlob, key, []byte("v"))
		update(t, st, func(w kv.Writer) error { return w.Delete(tblBlob, key) })
		wantNone(t, st, tblBlob, key)
	}
	put(t, st, tblBlob, longest, nil)
	for _, bad := range [][]byte{nil, {}, append(longest, 0)} {
		s.wantKeyRefused(t, st, tblBlob, bad)
	}
	view(t, st, func(r kv.Reader) error {
		keys, err := keysOf(r, tblBlob, longest, nil)
		above, err2 := keysOf(r, tblBlob, nil, append(longest, 0))
		below, err3 := keysOf(r, tblBlob, nil, longest)
		if len(keys) != 1 || len(above) != 0 || len(below) != 1 {
			t.Errorf("scans around the longest key passed %d, %d, %d keys, want 1, 0, 1", len(keys), len(above), len(below))
		}
		return errors.Join(err, err2, err3)
	})
}

// wantKeyRefused checks that no operation takes key, and that the update goes on.
func (s *storeSuite) wantKeyRefused(t *testing.T, st kv.Store, tb kv.Table, key []byte) {
	t.Helper()
	update(t, st, func(w kv.Writer) error {
		_, _, err := w.Get(tb, key)
		wantErr(t, "Get of a bad key", err, kv.ErrLimit)
		wantErr(t, "Put of a bad key", w.Put(tb, key, nil), kv.ErrLimit)
		wantErr(t, "Delete of a bad key", w.Delete(tb, key), kv.ErrLimit)
		return w.Put(tblOther, []byte("still works"), nil)
	})
	wantValue(t, st, tblOther, []byte("still works"), nil)
}

func (s *storeSuite) testValueLimits(t *testing.T) {
	st := s.create(t)
	largest := bytes.Repeat([]byte("0123456789abcdef"), kv.MaxValue/16)
	for _, tb := range allTables {
		key := kv.ID(5)
		for _, value := range [][]byte{nil, {}, []byte("x"), largest, {}} {
			put(t, st, tb, key, value)
			wantValue(t, st, tb, key, value)
		}
		err := st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
			err := w.Put(tb, key, append(largest, 'x'))
			wantErr(t, "Put of a value that is too long", err, kv.ErrLimit)
			return err
		})
		wantErr(t, "Update", err, kv.ErrLimit)
		wantValue(t, st, tb, key, nil)
	}
}

func (s *storeSuite) testIDs(t *testing.T) {
	st := s.create(t)
	ids := []uint64{1, 2, 255, 256, 1<<32 - 1, 1 << 32, kv.MaxID - 1, kv.MaxID}
	for i := len(ids) - 1; i >= 0; i-- {
		put(t, st, tblIDs, kv.ID(ids[i]), kv.ID(ids[i]))
	}
	for _, id := range ids {
		wantValue(t, st, tblIDs, kv.ID(id), kv.ID(id))
	}
	for _, bad := range [][]byte{nil, {1}, kv.ID(1)[:7], append(kv.ID(1), 0), kv.ID(0), kv.ID(kv.MaxID + 1), kv.ID(1<<64 - 1)} {
		s.wantKeyRefused(t, st, tblIDs, bad)
	}
	view(t, st, func(r kv.Reader) error {
		i := 0
		err := r.Scan(tblIDs, nil, nil, func(k, _ []byte) error {
			if i >= len(ids) || !bytes.Equal(k, kv.ID(ids[i])) {
				t.Errorf("key %d of the scan is %x", i, k)
			}
			i++
			return nil
		})
		if i != len(ids) {
			t.Errorf("the scan passed %d ids, want %d", i, len(ids))
		}
		above, err2 := keysOf(r, tblIDs, nil, kv.ID(kv.MaxID+1))
		if len(above) != 0 {
			t.Errorf("there are keys above the largest id: %x", above)
		}
		return errors.Join(err, err2)
	})
}

func (s *storeSuite) testTxBytes(t *testing.T) {
	st := s.create(t)
	// Each put counts 8 + size bytes, so that all together are the limit.
	const size = 512<<10 - 8
	fillTx := func(w kv.Writer) error {
		for id := uint64(1); id <= kv.MaxTxBytes/(size+8); id++ {
			if err := w.Put(tblIDs, kv.ID(id), make([]byte, size)); err != nil {
				return err
			}
		}
		return nil
	}
	update(t, st, fillTx)
	wantValue(t, st, tblIDs, kv.ID(16), make([]byte, size))

	marker := []byte("m")
	err := st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
		if err := fillTx(w); err != nil {
			return err
		}
		return w.Put(tblBlob, marker, nil)
	})
	wantErr(t, "Update one byte past the limit", err, kv.ErrTxTooLarge)
	err = st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
		if err := w.Put(tblOther, marker, nil); err != nil {
			return err
		}
		_ = fillTx(w) // a function that overlooks the error must not commit a part
		return nil
	})
	wantErr(t, "Update that overlooks the limit", err, kv.ErrTxTooLarge)
	wantNone(t, st, tblBlob, marker)
	wantNone(t, st, tblOther, marker)
}

func (s *storeSuite) testTxOps(t *testing.T) {
	st := s.create(t)
	ops := func(n int) func(kv.Writer) error {
		return func(w kv.Writer) error {
			for id := 1; id <= n; id++ {
				if err := w.Put(tblIDs, kv.ID(uint64(id)), nil); err != nil {
					return err
				}
			}
			return nil
		}
	}
	update(t, st, ops(kv.MaxTxOps))
	wantValue(t, st, tblIDs, kv.ID(kv.MaxTxOps), nil)
	err := st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
		return errors.Join(w.Put(tblBlob, []byte("m"), nil), ops(kv.MaxTxOps)(w))
	})
	wantErr(t, "Update one operation past the limit", err, kv.ErrTxTooLarge)
	wantNone(t, st, tblBlob, []byte("m"))
	update(t, st, func(w kv.Writer) error { // deletes count as well, up to the same limit
		for id := 1; id <= kv.MaxTxOps; id++ {
			if err := w.Delete(tblIDs, kv.ID(uint64(id))); err != nil {
				return err
			}
		}
		return nil
	})
	wantNone(t, st, tblIDs, kv.ID(1))
}

func (s *storeSuite) testText(t *testing.T) {
	st := s.create(t)
	for i, text := range []string{"", "{\"a\": \"\u00e4\u20ac\U0001d11e\"}", "line\nbreak\ttab", "nul\x00inside", strings.Repeat("x", 100_000)} {
		put(t, st, tblText, kv.ID(uint64(i+1)), []byte(text))
		wantValue(t, st, tblText, kv.ID(uint64(i+1)), []byte(text))
		put(t, st, tblNames, []byte{0xff, byte(i)}, []byte(text)) // keys need not be text
		wantValue(t, st, tblNames, []byte{0xff, byte(i)}, []byte(text))
	}
	err := st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
		return w.Put(tblText, kv.ID(99), []byte("bad \xff byte"))
	})
	wantErr(t, "Put of bytes that are no text", err, kv.ErrLimit)
	wantNone(t, st, tblText, kv.ID(99))
}

func (s *storeSuite) testUnknownTable(t *testing.T) {
	st := s.create(t)
	for _, tb := range []kv.Table{{Name: "nodez"}, {Name: ""}, {Name: tblIDs.Name}, {Name: tblBlob.Name, Text: true}} {
		update(t, st, func(w kv.Writer) error {
			_, _, err := w.Get(tb, kv.ID(1))
			wantErr(t, "Get", err, kv.ErrNoTable)
			err = w.Scan(tb, nil, nil, func(_, _ []byte) error { return nil })
			wantErr(t, "Scan", err, kv.ErrNoTable)
			wantErr(t, "Put", w.Put(tb, kv.ID(1), nil), kv.ErrNoTable)
			wantErr(t, "Delete", w.Delete(tb, kv.ID(1)), kv.ErrNoTable)
			return nil
		})
	}
}

func (s *storeSuite) testTableNames(t *testing.T) {
	path := t.TempDir() + "/store.avfs"
	for _, name := range []string{"", "Nodes", "1st", "_x", "a-b", `a"b`, "sqlite_x", "\u00e4", strings.Repeat("x", 65)} {
		st, err := s.driver.Open(t.Context(), path, kv.Options{Tables: []kv.Table{{Name: name}}, Create: true})
		wantErr(t, "Open with table "+name, err, kv.ErrLimit)
		if err == nil {
			mustClose(t, st)
		}
	}
	// Words that mean something to a database are fine.
	tables := []kv.Table{{Name: "select"}, {Name: "table"}, {Name: strings.Repeat("x", 64)}}
	st := s.open(t, path, kv.Options{Tables: tables, Create: true})
	for _, tb := range tables {
		put(t, st, tb, []byte("k"), []byte("v"))
		wantValue(t, st, tb, []byte("k"), []byte("v"))
	}
}

func (s *storeSuite) testTablesApart(t *testing.T) {
	st := s.create(t)
	key := kv.ID(1)
	for _, tb := range allTables {
		put(t, st, tb, key, []byte(tb.Name))
	}
	for _, tb := range allTables {
		wantValue(t, st, tb, key, []byte(tb.Name))
		view(t, st, func(r kv.Reader) error {
			keys, err := keysOf(r, tb, nil, nil)
			if len(keys) != 1 {
				t.Errorf("table %s holds %x, want one key", tb.Name, keys)
			}
			return err
		})
	}
}
