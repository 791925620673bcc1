package workspace_test

import (
	"context"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/workspace"
)

// damageNotes replaces the notes of those keys in a store that nobody has open.
func damageNotes(t *testing.T, store string, keys ...string) {
	t.Helper()
	for _, d := range backends.All() {
		if !d.Recognise(store) {
			continue
		}
		db, err := d.Open(t.Context(), store, kv.Options{Tables: engine.Tables()})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(t.Context(), kv.Durable, func(tx kv.Writer) error {
			for _, k := range keys {
				if err := tx.Put(kv.Table{Name: "notes", Text: true}, []byte(k), []byte("damaged")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no back end knows the store")
}

// TestDamagedApproval holds that an approval of which nothing can be read lets nothing
// run and is in nobody's way: the command asks anew. One that is old goes.
func TestDamagedApproval(t *testing.T) {
	w := open(t, t.TempDir())
	doc, err := w.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() workspace.Approval {
		return inV(t, w, workspace.OpApprovalAsk, workspace.Approval{Vault: "v", Binding: "b"}, workspace.Streams{})
	}
	first := ask()
	const old = "01AN4Z07BY79KA1307SR9X4MV3" // of 2016
	damageNotes(t, doc.Store, "approval/"+first.ID, "approval/"+old)
	second := ask()
	if second.ID == first.ID || second.State != workspace.ApprovalPending || ask().ID != second.ID {
		t.Errorf("%+v after %+v", second, first)
	}
	if list := inV(t, w, workspace.OpApprovals, workspace.InVault{Vault: "v"}, workspace.Streams{}); len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("%+v", list)
	}
	for id, want := range map[string]engine.Kind{first.ID: engine.Corrupt, old: workspace.ApprovalNotFound} {
		decision := workspace.ApprovalDecision{Vault: "v", ID: id, Approve: true, Use: time.Hour}
		_, err := workspace.CallVault(context.Background(), w, "v", workspace.OpApprovalDecide, func(string) workspace.ApprovalDecision { return decision }, workspace.Streams{})
		if engine.KindOf(err) != want {
			t.Errorf("to approve %s: %v, want %s", id, err, want)
		}
	}
}

// TestDamagedSession holds that a damaged session can be deleted, and keeps nobody from
// the list.
func TestDamagedSession(t *testing.T) {
	w := open(t, t.TempDir())
	doc, err := w.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	damageNotes(t, doc.Store, "session/1/s")
	req := workspace.SessionRequest{Vault: "v", Name: "s"}
	show := func() error {
		_, err := workspace.CallVault(t.Context(), w, "v", workspace.OpSession, func(string) workspace.SessionRequest { return req }, workspace.Streams{})
		return err
	}
	if err := show(); engine.KindOf(err) != engine.Corrupt {
		t.Fatalf("the damage is not seen: %v", err)
	}
	if list := inV(t, w, workspace.OpSessions, workspace.InVault{Vault: "v"}, workspace.Streams{}); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	inV(t, w, workspace.OpSessionDelete, req, workspace.Streams{})
	if err := show(); err != nil {
		t.Error(err)
	}
}
