package engine_test

import (
	"context"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// A deleted vault's merge still counts for the forks that it had; when they are gone too,
// nothing of it is kept.
func TestLineageServes(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "w a 1", "", "w b 1")
	if _, err := st.Merge(ctx, "src", "dst", nil); err != nil {
		t.Fatal(err)
	}
	child, err := st.Fork(ctx, "src", "child")
	if err != nil {
		t.Fatal(err)
	}
	dst := vaultOf(t, st, "dst")
	play(t, dst, "rm b")
	play(t, child, "w c 1")
	if err := st.DeleteVault(ctx, "src"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	if res, err := st.Merge(ctx, "child", "dst", nil); err != nil || res.Changed != 1 {
		t.Fatalf("the fork of the deleted vault: %+v, %v", res.Changes, err)
	}
	sameTree(t, "merged", treeOf(t, dst), tree{"a": "1", "c": "1"})
	if err := st.DeleteVault(ctx, "dst"); err != nil {
		t.Fatal(err)
	}
	if got := child.Info().Ancestors; len(got) != 2 || got[0] != "src" || got[1] != "dst" {
		t.Errorf("comes from %v", got)
	}
	play(t, child, "rm a\nrm b\nrm c")
	if _, err := child.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
		t.Fatal(err)
	}
	again, err := st.Fork(ctx, "child", "again")
	if err != nil {
		t.Fatal(err)
	}
	play(t, again, "w d 1")
	if res, err := st.Merge(ctx, "again", "child", nil); err != nil || res.Changed != 1 {
		t.Errorf("a fork of what is left: %+v, %v", res.Changes, err)
	}
	sound(t, st, "at the end")
}
