package workspace_test

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"github.com/agentvfs/avfs/workspace"
)

// TestTending replaces a file until the store has grown by more than a collection is
// worth, drops the history, and waits: the owner collects by itself, and ends by
// itself after that.
func TestTending(t *testing.T) {
	w, _, ended := served(t, 3*time.Second)
	text := make([]byte, 4<<20)
	for range 20 {
		_, _ = rand.Read(text) // never fails
		inV(t, w, workspace.OpWrite, workspace.WriteRequest{Vault: "v", Path: "/f"}, workspace.Streams{In: bytes.NewReader(text)})
	}
	none := 0
	inV(t, w, workspace.OpPrune, workspace.PruneRequest{Vault: "v", Last: &none, Hours: &none, Days: &none}, workspace.Streams{})
	st := inV(t, w, workspace.OpStats, workspace.InVault{Vault: "v"}, workspace.Streams{})
	if st.GarbageBytes < 70<<20 || st.StoredBytes < 70<<20 {
		t.Fatalf("nothing to collect: %+v", st)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the owner does not end")
	}
	st = inV(t, w, workspace.OpStats, workspace.InVault{Vault: "v"}, workspace.Streams{})
	if st.GarbageChunks != 0 || st.VaultBytes != 4<<20 {
		t.Errorf("after the owner ended: %+v", st)
	}
	if rep := inV(t, w, workspace.OpCheck, workspace.CheckRequest{Vault: "v", ReadData: true}, workspace.Streams{}); len(rep.Findings) > 0 {
		t.Errorf("%+v", rep)
	}
}

// TestTendingHistory gives a vault a bound on the bytes of its history and goes beyond
// it: the owner drops the oldest and frees what only that kept, by itself.
func TestTendingHistory(t *testing.T) {
	w, _, ended := served(t, 5*time.Second)
	bound := int64(2 << 20)
	inV(t, w, workspace.OpPrune, workspace.PruneRequest{Vault: "v", Bytes: &bound, Save: true}, workspace.Streams{})
	text := make([]byte, 1<<20)
	for range 8 {
		_, _ = rand.Read(text) // never fails
		inV(t, w, workspace.OpWrite, workspace.WriteRequest{Vault: "v", Path: "/f"}, workspace.Streams{In: bytes.NewReader(text)})
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the owner does not end")
	}
	st := inV(t, w, workspace.OpStats, workspace.InVault{Vault: "v"}, workspace.Streams{})
	if st.HistoryBytes == 0 || st.HistoryBytes > bound || st.GarbageChunks != 0 || st.VaultBytes != 1<<20 {
		t.Errorf("after the owner ended: %+v", st)
	}
}

// TestTendingBesideService holds that an owner drops history while a service runs.
func TestTendingBesideService(t *testing.T) {
	w := execOwner(t)
	bound := int64(2 << 20)
	inV(t, w, workspace.OpPrune, workspace.PruneRequest{Vault: "v", Bytes: &bound, Save: true}, workspace.Streams{})
	x := begin(t, w, workspace.ExecRequest{ID: "x", Service: "s"})
	defer end(t, x)
	text := make([]byte, 1<<20)
	for range 8 {
		_, _ = rand.Read(text) // never fails
		inV(t, w, workspace.OpWrite, workspace.WriteRequest{Vault: "v", Path: "/f"}, workspace.Streams{In: bytes.NewReader(text)})
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		time.Sleep(4 * time.Second) // an owner that is asked is not idle
		st := inV(t, w, workspace.OpStats, workspace.InVault{Vault: "v"}, workspace.Streams{})
		if st.HistoryBytes <= bound && st.GarbageChunks == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is tended: %+v", st)
		}
	}
}
