package workspace_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// TestRepairIsHonest flips bits in the file of a store, one at a time, as a bad disk
// does. Where a check with all content finds something, a repair says sound only
// if a check afterwards says so too.
func TestRepairIsHonest(t *testing.T) {
	home := t.TempDir()
	w := open(t, home)
	doc, err := w.CreateVault(t.Context(), "v", "sqlite")
	if err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: no SQLite in this build: %v", err)
	}
	for i := range 20 {
		text := make([]byte, 20_000)
		_, _ = rand.Read(text)                                                                     // never fails
		req := workspace.WriteRequest{Vault: "v", Path: workspace.Path(fmt.Sprintf("/f%d", i%15))} // the first five live on in history
		inV(t, w, workspace.OpWrite, req, workspace.Streams{In: bytes.NewReader(text)})
	}
	whole, err := os.ReadFile(doc.Store)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	found, left := 0, 0
	for range rounds {
		at := 4096 + random.IntN(len(whole)-4096) // the first page says what the file is
		bad := bytes.Clone(whole)
		bad[at] ^= 1 << random.IntN(8)
		a, b := flipped(t, bad, at)
		found += a
		left += b
	}
	t.Logf("of %d flips %d were found, %d left damage", rounds, found, left)
	if found == 0 || left == 0 {
		t.Error("the test proves nothing")
	}
}

// flipped checks and repairs a damaged store, and returns 1 for what was found and
// for what was left.
func flipped(t *testing.T, file []byte, at int) (found, left int) {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, "vaults", "v.avfs")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, home)
	was := checked(t.Context(), w)
	rep, err := w.Repair(t.Context(), "v", workspace.Streams{})
	said := err == nil && len(rep.Findings) == 0
	is := checked(t.Context(), w)
	if said != is {
		t.Errorf("byte %d: a repair says sound: %v, a check after it: %v; %+v, %v", at, said, is, rep, err)
	}
	if err != nil && engine.KindOf(err) != engine.Corrupt && engine.KindOf(err) != engine.NotStore {
		t.Errorf("byte %d: a repair fails with %v", at, err)
	}
	if !was {
		found = 1
	}
	if !is {
		left = 1
	}
	return found, left
}

// checked reports whether a check that reads everything finds the store sound.
func checked(ctx context.Context, w *workspace.Workspace) bool {
	rep, err := workspace.CallVault(ctx, w, "v", workspace.OpCheck, func(v string) workspace.CheckRequest {
		return workspace.CheckRequest{Vault: v, ReadData: true}
	}, workspace.Streams{})
	return err == nil && len(rep.Findings) == 0
}
