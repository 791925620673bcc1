package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// What programs keep about a vault can hold secrets, so it goes with the vault, and
// nothing about a vault that is gone can be added.
func TestNotesGoWithTheirVault(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "", "", "")
	fork, err := st.Fork(ctx, "dst", "fork")
	if err != nil {
		t.Fatal(err)
	}
	note := func(name string, n engine.Note) error {
		n.Body = json.RawMessage(`{}`)
		_, err := st.ChangeNote(ctx, "session", name, nil, func(*engine.Note) (*engine.Note, error) { return &n, nil })
		return err
	}
	id := fork.Info().ID
	for name, n := range map[string]engine.Note{
		"its":   {Vault: "fork", VaultID: id},
		"older": {Vault: "fork"}, // by a version that did not know the id
		"other": {Vault: "dst", VaultID: vaultOf(t, st, "dst").Info().ID},
		"none":  {},
		"left":  {Vault: "long gone"}, // by a version that did not delete it
	} {
		if err := note(name, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.DeleteVault(ctx, "fork"); err != nil {
		t.Fatal(err)
	}
	names := func() (list []string) {
		notes, _, err := st.Notes(ctx, "session")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range notes {
			list = append(list, n.Name)
		}
		return list
	}
	if got := names(); !slices.Equal(got, []string{"left", "none", "other"}) {
		t.Errorf("the notes %q are left", got)
	}
	if rep, err := st.GC(ctx); err != nil || rep.Rows != 1 {
		t.Errorf("the collection deletes %d rows: %v", rep.Rows, err)
	}
	if got := names(); !slices.Equal(got, []string{"none", "other"}) {
		t.Errorf("after a collection the notes %q are left", got)
	}
	if err := note("late", engine.Note{Vault: "fork", VaultID: id}); engine.KindOf(err) != engine.VaultNotFound {
		t.Errorf("a note of a vault that is gone: %v", err)
	}
	sound(t, st, "after the deletion")
}

// noteStore is a store with the notes a and b of a kind and one of another. damage
// changes a bit of the named one; an at below zero counts from its end.
func noteStore(t *testing.T) (damage func(key string, at int), st *engine.Store) {
	t.Helper()
	db, st, _ := newMain(t)
	for name, kind := range map[string]string{"a": "kind", "b": "kind", "c": "other"} {
		changeNote(t, st, kind, name, func(*engine.Note) *engine.Note { return &engine.Note{Body: []byte(`{"n":1}`)} })
	}
	rows := table(t, "notes")
	return func(key string, at int) {
		t.Helper()
		keys, values := rowsOf(t, db, rows)
		for i, k := range keys {
			if string(k) == key {
				putRow(t, db, rows, k, flipped(values[i], (at+len(values[i]))%len(values[i])))
			}
		}
	}, st
}

func changeNote(t *testing.T, st *engine.Store, kind, name string, fn func(old *engine.Note) *engine.Note) {
	t.Helper()
	_, err := st.ChangeNote(t.Context(), kind, name, nil, func(old *engine.Note) (*engine.Note, error) { return fn(old), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedNote holds that a damaged note keeps nobody from the others of its kind,
// and can be replaced and removed.
func TestDamagedNote(t *testing.T) {
	ctx := t.Context()
	damage, st := noteStore(t)
	defer closeStore(t, st)
	for _, now := range []*engine.Note{{Body: []byte(`{"n":2}`)}, nil} {
		damage("kind/a", 0)
		list, damaged, err := st.Notes(ctx, "kind")
		if err != nil || len(list) != 1 || list[0].Name != "b" || !slices.Equal(damaged, []string{"a"}) {
			t.Errorf("%+v, %q, %v", list, damaged, err)
		}
		if n, err := st.Note(ctx, "kind", "a"); engine.KindOf(err) != engine.Corrupt {
			t.Errorf("%+v, %v", n, err)
		}
		changeNote(t, st, "kind", "a", func(old *engine.Note) *engine.Note {
			if old != nil {
				t.Errorf("a damaged note is %+v", old)
			}
			return now
		})
		if n, err := st.Note(ctx, "kind", "a"); err != nil || (n == nil) != (now == nil) {
			t.Errorf("%+v, %v", n, err)
		}
	}
	sound(t, st, "after the change")
}

// TestRepairNote holds that a note whose text is whole is sealed again, and that one
// whose text is not stays as it is.
func TestRepairNote(t *testing.T) {
	ctx := t.Context()
	damage, st := noteStore(t)
	defer closeStore(t, st)
	damage("kind/a", -3) // in the sum
	damage("kind/b", 2)  // in the name of a member
	if rep := repair(t, st); len(rep.Repaired) != 1 || len(rep.Findings) != 1 {
		t.Errorf("%+v", rep)
	}
	list, damaged, err := st.Notes(ctx, "kind")
	if err != nil || len(list) != 1 || string(list[0].Body) != `{"n":1}` || !slices.Equal(damaged, []string{"b"}) {
		t.Errorf("%+v, %q, %v", list, damaged, err)
	}
	changeNote(t, st, "kind", "b", func(*engine.Note) *engine.Note { return nil })
}
