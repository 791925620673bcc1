package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// flip is one bit of one record that is to change.
type flip struct {
	table      kv.Table
	key, value []byte // as it is, and with the bit changed
	at         int
}

// testFlips changes one bit in records of every kind, one at a time, each in a copy of
// the store. It is found and named, and nothing that is read is anything but what was
// written or an error.
func (s *vaultSuite) testFlips(t *testing.T) {
	s.needsDisk(t)
	ctx := context.Background()
	path := s.newPath(t)
	st := s.open(t, path, true, repairOptions())
	if err := fillAllKinds(ctx, st); err != nil {
		t.Fatal(errors.Join(err, st.Close()))
	}
	flips, err := flipsOf(ctx, st.Unwrap())
	if err = errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for i, f := range flips {
		kinds[f.table.Name] = true
		copied := filepath.Join(t.TempDir(), fmt.Sprint(i)+filepath.Ext(path))
		if err := copyStore(path, copied); err != nil {
			t.Fatal(err)
		}
		if !s.noticed(t, copied, f) {
			t.Errorf("nobody notices byte %d of %d of %s %x", f.at, len(f.value), f.table.Name, f.key)
		}
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
	}
	if len(kinds) != len(vaultTables()) {
		t.Errorf("of %d kinds of records there are %d", len(vaultTables()), len(kinds))
	}
}

// fillAllKinds makes a store with records in every table.
func fillAllKinds(ctx context.Context, st *engine.Store) error {
	v, err := fillForRepair(ctx, st)
	if err != nil {
		return err
	}
	if err := v.Settle(ctx); err != nil {
		return err
	}
	note := func(*engine.Note) (*engine.Note, error) { return &engine.Note{Body: []byte(`{"a":1}`)}, nil }
	if _, err := st.ChangeNote(ctx, "kind", "name", nil, note); err != nil {
		return err
	}
	u, err := v.Begin(ctx, engine.BeginOptions{ID: "x", Audit: engine.AuditEntry{Kind: engine.AuditExec}})
	if err != nil {
		return err
	}
	u.Output().Write(ctx, "stdout", bytes.Repeat([]byte("printed "), 20_000))
	u.Output().Flush(ctx)
	return v.Sync(ctx)
}

// flipsOf chooses bits at the beginning, in the middle and at the end of records of every
// table: of the first and the last record, and of one between.
func flipsOf(ctx context.Context, db kv.Store) ([]flip, error) {
	var flips []flip
	for _, table := range vaultTables() {
		var rows []flip
		err := db.View(ctx, func(tx kv.Reader) error {
			rows = rows[:0]
			return tx.Scan(table, nil, nil, func(k, v []byte) error {
				rows = append(rows, flip{table: table, key: bytes.Clone(k), value: bytes.Clone(v)})
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
		chosen := map[int]bool{0: true, len(rows) / 2: true, len(rows) - 1: true}
		if testing.Short() {
			chosen = map[int]bool{len(rows) - 1: true}
		}
		for i, r := range rows {
			if !chosen[i] {
				continue
			}
			for n, at := range []int{0, len(r.value) / 2, len(r.value) - 1} {
				bad := r
				bad.at, bad.value = at, bytes.Clone(r.value)
				bad.value[at] ^= 1 << ((i + n) % 7) // of text it stays text
				flips = append(flips, bad)
			}
		}
	}
	return flips, nil
}

// noticed makes the change in the store at path, and reports whether opening or checking
// it finds it. Wrong data fails the test.
func (s *vaultSuite) noticed(t *testing.T, path string, f flip) bool {
	t.Helper()
	ctx := context.Background()
	db, err := s.driver.Open(ctx, path, kv.Options{Tables: vaultTables()})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(ctx, kv.Durable, func(tx kv.Writer) error { return tx.Put(f.table, f.key, f.value) }); err != nil {
		t.Fatal(errors.Join(err, db.Close()))
	}
	st, err := engine.Open(ctx, db, repairOptions())
	if err != nil {
		if k := engine.KindOf(err); k != engine.Corrupt && k != engine.NotStore {
			t.Errorf("opening fails with %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		return true
	}
	defer func() { _ = st.Close() }() // may well fail
	v, err := st.Vault(ctx, "main")
	if err == nil {
		err = readForRepair(ctx, st, v)
	}
	if err != nil && engine.KindOf(err) != engine.Corrupt {
		t.Errorf("%s %x, byte %d: what is read is %v", f.table.Name, f.key, f.at, err)
	}
	rep, err := st.Check(ctx, &engine.CheckOptions{ReadData: true, History: true})
	if err != nil {
		return engine.KindOf(err) == engine.Corrupt
	}
	for _, found := range rep.Findings {
		if found.Problem == "" || len(found.Owners) == 0 {
			t.Errorf("a finding says nothing: %+v", found)
		}
	}
	return len(rep.Findings) > 0
}

// copyStore copies a store that nobody has open: a file or a directory.
func copyStore(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
