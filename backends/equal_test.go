package backends_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// TestEqualRoots makes sure that the same operations give the same root on every
// back end, at every commit: what a vault is does not depend on where it is kept.
func TestEqualRoots(t *testing.T) {
	const seed = 20240229
	t.Logf("seed %d", seed)
	want := history(t, memkv.New(engine.Tables()...), seed)
	if len(want) < 20 {
		t.Fatalf("only %d roots", len(want))
	}
	for _, d := range backends.All() {
		t.Run(d.Name(), func(t *testing.T) {
			db, err := d.Open(t.Context(), filepath.Join(t.TempDir(), "v.avfs"), kv.Options{Tables: engine.Tables(), Create: true})
			if err != nil {
				t.Fatal(err)
			}
			got := history(t, db, seed)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the roots differ from those in memory:\n%v\n%v", got, want)
			}
		})
	}
}

// history runs seeded operations with commits, forks and restores in between, and
// returns the root after each commit. It takes the database over.
func history(t *testing.T, db kv.Store, seed uint64) (roots []string) {
	t.Helper()
	ctx := context.Background()
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
	st, err := engine.Create(ctx, db, &engine.Options{Clock: clock, CommitInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(ctx, "v0")
	if err != nil {
		t.Fatal(err)
	}
	owner := &engine.Owner{UID: 1, GID: 2}
	rng := rand.New(rand.NewPCG(seed, 1))
	name := func() string { return fmt.Sprintf("d%d/f%d", rng.IntN(4), rng.IntN(30)) }
	for i := range 4 {
		if _, err := v.MkdirAll(ctx, fmt.Sprintf("d%d", i), 0o755, *owner); err != nil {
			t.Fatal(err)
		}
	}
	var cp engine.Checkpoint
	for step := range 600 {
		var err error
		switch k := rng.IntN(10); {
		case k < 5:
			data := bytes.Repeat([]byte{byte(rng.IntN(7))}, rng.IntN(300_000))
			_, err = v.WriteFile(ctx, name(), bytes.NewReader(data), &engine.WriteOptions{Owner: owner, Append: rng.IntN(2) == 0})
		case k < 7:
			err = v.Move(ctx, name(), name())
		case k < 9:
			err = v.Remove(ctx, name())
		default:
			_, err = v.WriteFile(ctx, name(), strings.NewReader(fmt.Sprint(step)), &engine.WriteOptions{Owner: owner})
		}
		if err != nil && engine.KindOf(err) != engine.NotFound {
			t.Fatalf("step %d: %v", step, err)
		}
		if step%25 == 0 {
			roots = append(roots, milestone(t, ctx, st, &v, &cp, step))
		}
	}
	rep, err := st.Check(ctx, &engine.CheckOptions{ReadData: true, History: true})
	if err != nil || len(rep.Findings) > 0 {
		t.Errorf("check: %v %+v", err, rep.Findings)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	return roots
}

// milestone commits, and now and then checkpoints, restores or goes on in a fork.
func milestone(t *testing.T, ctx context.Context, st *engine.Store, v **engine.Vault, cp *engine.Checkpoint, step int) string {
	t.Helper()
	var err error
	switch step / 25 % 4 {
	case 1:
		*cp, err = (*v).Checkpoint(ctx, engine.CheckpointOptions{})
	case 2:
		_, err = (*v).Restore(ctx, cp.Root, nil)
	case 3:
		*v, err = st.Fork(ctx, (*v).Name(), fmt.Sprintf("v%d", step))
	}
	if err != nil {
		t.Fatal(err)
	}
	root, err := (*v).Commit(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	return root.String()
}
