package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

func newMem(t testing.TB) *memkv.Store {
	t.Helper()
	return memkv.New(engine.Tables()...)
}

// TestDamage flips bytes in every record of a store, one at a time. Opening or
// Check must notice, what is read is right or an error, and other vaults go on.
func TestDamage(t *testing.T) {
	ctx := context.Background()
	db := newMem(t)
	s, err := createScript(ctx, db, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		data := bytes.Repeat([]byte(fmt.Sprintf("file %d ", i)), 1+i*50)
		if _, err := s.v.WriteFile(ctx, fmt.Sprintf("f%03d", i), bytes.NewReader(data), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.v.Checkpoint(ctx, engine.CheckpointOptions{Name: "one"}); err != nil {
		t.Fatal(err)
	}
	pin, err := s.v.Pin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.v.Remove(ctx, "f007"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.v.Record(ctx, engine.Event{Cause: engine.CauseExec, Before: pin}, engine.AuditEntry{Kind: "exec"}); err != nil {
		t.Fatal(err)
	}
	begun, err := s.v.Begin(ctx, engine.BeginOptions{ID: "x", Audit: engine.AuditEntry{Kind: "exec"}})
	if err != nil {
		t.Fatal(err)
	}
	begun.Output().Write(ctx, "stdout", bytes.Repeat([]byte("printed "), 20_000))
	begun.Output().Flush(ctx)
	note := func(*engine.Note) (*engine.Note, error) { return &engine.Note{Body: []byte(`{"a":1}`)}, nil }
	if _, err := s.store.ChangeNote(ctx, "kind", "name", nil, note); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Fork(ctx, "main", "fork"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.GC(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.v.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	want, err := s.sign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	whole := db.Clone(memkv.ProcessDeath, 0)
	for _, table := range engine.Tables() {
		t.Run(table.Name, func(t *testing.T) { damageTable(t, whole, table, want) })
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
}

func damageTable(t *testing.T, whole *memkv.Store, table kv.Table, want string) {
	ctx := context.Background()
	type row struct{ key, value []byte }
	var rows []row
	err := whole.View(ctx, func(tx kv.Reader) error {
		return tx.Scan(table, nil, nil, func(k, v []byte) error {
			rows = append(rows, row{bytes.Clone(k), bytes.Clone(v)})
			return nil
		})
	})
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	stride := max(1, len(rows)/12)
	if testing.Short() {
		stride = max(1, len(rows)/2)
	}
	for i := 0; i < len(rows); i += stride {
		r := rows[i]
		for _, at := range []int{0, len(r.value) / 3, len(r.value) / 2, len(r.value) - 1} {
			bad := bytes.Clone(r.value)
			bad[at] ^= 1 << (i % 7)
			if !damaged(t, whole, table, r.key, bad, want) {
				t.Errorf("nobody notices byte %d of %d of %x", at, len(bad), r.key)
			}
		}
		if table.Name != "digests" && !damaged(t, whole, table, r.key, nil, want) {
			if !slices.Contains([]string{"checkpoints", "timeline", "unfinished", "outputs", "notes", "vaults", "audit"}, table.Name) {
				t.Errorf("nobody notices that %x is missing", r.key)
			}
		}
	}
}

// damaged replaces or, with nil, removes one value in a copy of the store and
// reports whether somebody noticed. Wrong data fails the test.
func damaged(t *testing.T, whole *memkv.Store, table kv.Table, key, value []byte, want string) bool {
	t.Helper()
	ctx := context.Background()
	db := whole.Clone(memkv.ProcessDeath, 0)
	err := db.Update(ctx, kv.Relaxed, func(tx kv.Writer) error {
		if value == nil {
			return tx.Delete(table, key)
		}
		return tx.Put(table, key, value)
	})
	if err != nil {
		if table.Text && errors.Is(err, kv.ErrLimit) {
			return true // no longer UTF-8
		}
		t.Fatal(err)
	}
	st, err := engine.Open(ctx, db, quietOptions())
	if err != nil {
		k := engine.KindOf(err)
		if k != engine.Corrupt && k != engine.NotStore {
			t.Errorf("opening fails with %v", err)
		}
		return true
	}
	defer func() { _ = st.Close() }() // may well fail
	for _, name := range []string{"main", "fork"} {
		v, err := st.Vault(ctx, name)
		if err != nil {
			continue
		}
		if got, err := signature(ctx, v); err == nil && got != want {
			t.Errorf("%s %x: wrong data is read from %s", table.Name, key, name)
		} else if err != nil && engine.KindOf(err) != engine.Corrupt {
			t.Errorf("%s %x: reading fails with %v", table.Name, key, err)
		}
	}
	rep, err := st.Check(ctx, &engine.CheckOptions{ReadData: true, History: true})
	if err != nil {
		if engine.KindOf(err) != engine.Corrupt {
			t.Errorf("check fails with %v", err)
		}
		return true
	}
	for _, f := range rep.Findings {
		if f.Problem == "" || len(f.Owners) == 0 {
			t.Errorf("a finding says nothing: %+v", f)
		}
	}
	return len(rep.Findings) > 0
}

// TestFindingsName makes sure that damage is named with the paths and owners that
// it touches.
func TestFindingsName(t *testing.T) {
	ctx := context.Background()
	db := newMem(t)
	s, err := createScript(ctx, db, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "bad"} {
		if _, err := s.v.WriteFile(ctx, name, strings.NewReader(strings.Repeat(name, 999)), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.v.Checkpoint(ctx, engine.CheckpointOptions{Name: "one"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Fork(ctx, "main", "fork"); err != nil {
		t.Fatal(err)
	}
	chunks := kv.Table{Name: "chunks", IDs: true}
	err = db.Update(ctx, kv.Relaxed, func(tx kv.Writer) error {
		var bad []byte
		err := tx.Scan(chunks, nil, nil, func(k, v []byte) error {
			bad = bytes.Clone(k) // "bad" was written last
			return nil
		})
		return errors.Join(err, tx.Delete(chunks, bad))
	})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := s.store.Check(ctx, &engine.CheckOptions{History: true})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range rep.Findings {
		t.Logf("%+v", f)
		found = found || strings.Contains(f.Problem, "missing") && len(f.Paths) == 1 && f.Paths[0] == "bad" && len(f.Owners) >= 2
	}
	if !found {
		t.Error("no finding names the path and both vaults")
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
}
