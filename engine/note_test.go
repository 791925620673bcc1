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
		notes, err := st.Notes(ctx, "session")
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
