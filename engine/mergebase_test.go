package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// mustMerge merges and returns the paths that changed.
func mustMerge(t *testing.T, st *engine.Store, src, dst string, opts *engine.MergeOptions) []string {
	t.Helper()
	res, err := st.Merge(context.Background(), src, dst, opts)
	if err != nil {
		t.Fatalf("merge %s into %s: %v %v", src, dst, err, conflictsOf(res))
	}
	paths := []string{}
	for _, c := range res.Changes {
		paths = append(paths, string(c.Kind)+" "+c.Path)
	}
	return paths
}

func wantPaths(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("changed %v, not %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("changed %v, not %v", got, want)
		}
	}
}

// A second merge starts from the last, in both directions.
func TestMergeAgain(t *testing.T) {
	st := mergeVaults(t, "w a 1\nw b 1", "w a o", "w b t")
	src, dst := vaultOf(t, st, "src"), vaultOf(t, st, "dst")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "modified b")
	play(t, dst, "w b o2") // after the merge: no conflict, since src has not edited it again
	play(t, src, "w c 1")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "added c")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil))
	wantPaths(t, mustMerge(t, st, "dst", "src", nil), "modified a", "modified b")
	wantPaths(t, mustMerge(t, st, "dst", "src", nil))
	play(t, src, "w a t3")
	play(t, dst, "rm c")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "modified a")
	sameTree(t, "dst", treeOf(t, dst), tree{"a": "t3", "b": "o2"})
	wantPaths(t, mustMerge(t, st, "dst", "src", nil), "deleted c")
	sameTree(t, "src", treeOf(t, src), tree{"a": "t3", "b": "o2"})
	sound(t, st, "merged again and again")
}

// A conflict that was decided for ours does not come back.
func TestMergeDecided(t *testing.T) {
	st := mergeVaults(t, "w a 1", "w a o", "w a t")
	wantPaths(t, mustMerge(t, st, "src", "dst", &engine.MergeOptions{Ours: []string{"a"}}))
	wantPaths(t, mustMerge(t, st, "src", "dst", nil))
	sameTree(t, "dst", treeOf(t, vaultOf(t, st, "dst")), tree{"a": "o"})
}

// A merge of some paths leaves the rest for the next one.
func TestMergeSomeThenAll(t *testing.T) {
	st := mergeVaults(t, "w a 1\nw b 1", "", "w a 2\nw b 2")
	wantPaths(t, mustMerge(t, st, "src", "dst", &engine.MergeOptions{Paths: []string{"a"}}), "modified a")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "modified b")
}

// What an undo or a restore takes back is merged again.
func TestMergeAfterUndo(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "w a 1\nw b 1", "w a o", "w b t")
	dst := vaultOf(t, st, "dst")
	cp, err := dst.Checkpoint(ctx, engine.CheckpointOptions{Name: "before"})
	if err != nil {
		t.Fatal(err)
	}
	for _, back := range []func() error{
		func() error { _, err := dst.Undo(ctx, nil); return err },
		func() error { // beside another change, so that the undo is one of paths
			events, err := dst.Timeline(ctx, 1)
			if err != nil {
				return err
			}
			play(t, dst, "w other 1")
			_, err = dst.Undo(ctx, &engine.UndoOptions{Event: fmt.Sprint(events[0].Seq)})
			return err
		},
		func() error { _, err := dst.Restore(ctx, cp.Root, nil); return err },
	} {
		wantPaths(t, mustMerge(t, st, "src", "dst", nil), "modified b")
		wantPaths(t, mustMerge(t, st, "src", "dst", nil))
		if err := back(); err != nil {
			t.Fatal(err)
		}
	}
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "modified b")
	after, err := dst.Checkpoint(ctx, engine.CheckpointOptions{Name: "after"})
	if err != nil {
		t.Fatal(err)
	}
	play(t, dst, "w b o")
	if _, err := dst.Restore(ctx, after.Root, nil); err != nil {
		t.Fatal(err)
	}
	play(t, dst, "w b o") // which src has not touched since
	wantPaths(t, mustMerge(t, st, "src", "dst", nil))
	sound(t, st, "undone")
}

// A redo brings back what a merge has settled, whichever way it was taken back, and
// another undo takes it away again.
func TestMergeAfterRedo(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "w a 1", "", "w b t")
	src, dst := vaultOf(t, st, "src"), vaultOf(t, st, "dst")
	undo := func(opts *engine.UndoOptions) {
		t.Helper()
		if _, err := dst.Undo(ctx, opts); err != nil {
			t.Fatal(err)
		}
	}
	newest := func() *engine.UndoOptions {
		t.Helper()
		events, err := dst.Timeline(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		return &engine.UndoOptions{Event: fmt.Sprint(events[0].Seq)}
	}
	redo := func() {
		t.Helper()
		if _, err := dst.Redo(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "added b")
	undo(nil)
	redo()
	play(t, src, "rm b")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "deleted b")
	undo(nil)
	undo(nil)
	redo()
	redo()
	play(t, src, "w b t2")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "added b")
	merge := newest()
	play(t, dst, "w other 1") // so that the undo is one of paths
	undo(merge)
	back := newest()
	wantPaths(t, mustMerge(t, st, "src", "dst", &engine.MergeOptions{DryRun: true}), "added b")
	undo(back)
	again := newest()
	wantPaths(t, mustMerge(t, st, "src", "dst", nil))
	undo(again)
	wantPaths(t, mustMerge(t, st, "src", "dst", &engine.MergeOptions{DryRun: true}), "added b")
	fork, err := st.Fork(ctx, "dst", "fork")
	if err != nil {
		t.Fatal(err)
	}
	play(t, fork, "w c f")
	wantPaths(t, mustMerge(t, st, "src", "fork", nil), "added b")
	if _, err := dst.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
		t.Fatal(err)
	}
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "added b")
	sound(t, st, "redone")
}

// Undo and redo in turn lose nothing, however often.
func TestMergeUndoneOften(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "w a 1", "", "w b t")
	src, dst := vaultOf(t, st, "src"), vaultOf(t, st, "dst")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "added b")
	for range 40 {
		if _, err := dst.Undo(ctx, nil); err != nil {
			t.Fatal(err)
		}
		wantPaths(t, mustMerge(t, st, "src", "dst", &engine.MergeOptions{DryRun: true}), "added b")
		if _, err := dst.Redo(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	play(t, dst, "w c 1")
	play(t, src, "rm b")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "deleted b")
	sound(t, st, "undone often")
}

// Forks of forks, siblings, and vaults in between that are gone.
func TestMergeFamily(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "w a 1\nw b 1\nw c 1", "", "")
	dst := vaultOf(t, st, "dst")
	fork := func(src, name string) *engine.Vault {
		v, err := st.Fork(ctx, src, name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	play(t, vaultOf(t, st, "src"), "w a t")
	deep := fork("src", "deep")
	play(t, deep, "w b deep")
	play(t, dst, "w main 1")
	sibling := fork("dst", "sibling")
	play(t, sibling, "w c sibling")
	if err := st.DeleteVault(ctx, "src"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	// To siblings the older of the two fork points is common.
	wantPaths(t, mustMerge(t, st, "deep", "sibling", nil), "modified a", "modified b")
	sameTree(t, "sibling", treeOf(t, sibling), tree{"a": "t", "b": "deep", "c": "sibling", "main": "1"})
	wantPaths(t, mustMerge(t, st, "deep", "dst", nil), "modified a", "modified b")
	// A fork made after a merge knows of it.
	late := fork("dst", "late")
	play(t, late, "w e late")
	play(t, deep, "w d deep")
	wantPaths(t, mustMerge(t, st, "deep", "late", nil), "added d")
	if err := st.DeleteVault(ctx, "dst"); err != nil {
		t.Fatal(err)
	}
	wantPaths(t, mustMerge(t, st, "late", "sibling", nil), "added d", "added e")
	sound(t, st, "family")
	if _, err := st.CreateVault(ctx, "stranger"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Merge(ctx, "stranger", "late", nil); engine.KindOf(err) != engine.NoAncestor {
		t.Errorf("a merge of strangers: %v", err)
	}
	if _, err := st.Merge(ctx, "late", "late", nil); engine.KindOf(err) != engine.Invalid {
		t.Errorf("a merge into itself: %v", err)
	}
}

// The lineage is in the store: it survives the process, and the collector.
func TestMergeReopened(t *testing.T) {
	ctx := context.Background()
	db := newMem(t)
	st, err := engine.Create(ctx, &kept{Store: db}, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	dst, err := st.CreateVault(ctx, "dst")
	if err != nil {
		t.Fatal(err)
	}
	play(t, dst, "w a 1\nw b 1")
	src, err := st.Fork(ctx, "dst", "src")
	if err != nil {
		t.Fatal(err)
	}
	play(t, src, "w a t")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "modified a")
	play(t, src, "w a t2\nw a t3")
	play(t, dst, "w b o")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err = engine.Open(ctx, db, quietOptions()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	sound(t, st, "reopened")
	wantPaths(t, mustMerge(t, st, "src", "dst", nil), "modified a")
	sound(t, st, "merged")
}

// kept is a database that outlives the store over it.
type kept struct{ *memkv.Store }

func (*kept) Close() error { return nil }

// A clock that is set back changes neither which of two fork points is the older one, nor
// which merges a fork has: what the other side has never had does not look deleted by it.
func TestMergeClockSetBack(t *testing.T) {
	ctx := context.Background()
	for _, recorded := range []bool{false, true} {
		t.Run(fmt.Sprint("recorded ", recorded), func(t *testing.T) {
			now := time.Unix(1_000_000_000, 0)
			opts := quietOptions()
			opts.Clock = func() time.Time { return now }
			db := newMem(t)
			st, err := engine.Create(ctx, &kept{Store: db}, opts)
			if err != nil {
				t.Fatal(err)
			}
			main, err := st.CreateVault(ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			back := func(lines string) {
				t.Helper()
				play(t, main, lines)
				if recorded {
					if _, err := main.Record(ctx, engine.Event{Cause: engine.CauseWrite}); err != nil {
						t.Fatal(err)
					}
				}
				now = now.Add(-30 * time.Minute)
			}
			forks := func(_ *engine.Vault, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			play(t, main, "w a 1")
			forks(st.Fork(ctx, "main", "f1"))
			wantPaths(t, mustMerge(t, st, "main", "f1", nil))
			back("w x 1")
			cp, err := main.Checkpoint(ctx, engine.CheckpointOptions{Name: "x"})
			if err != nil {
				t.Fatal(err)
			}
			forks(st.Fork(ctx, "main", "f2"))
			forks(st.Fork(ctx, "main", "merges"))
			back("w y 1")
			forks(st.ForkAt(ctx, "main", cp, "f3"))
			forks(st.Fork(ctx, "main", "f4"))
			back("w z 1")
			wantPaths(t, mustMerge(t, st, "main", "merges", nil), "added y", "added z")
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			if st, err = engine.Open(ctx, db, opts); err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{"f2", "f3", "f4"} {
				wantPaths(t, mustMerge(t, st, "f1", f, nil))
			}
			wantPaths(t, mustMerge(t, st, "f2", "f4", nil))
			wantPaths(t, mustMerge(t, st, "f3", "f4", nil))
			wantPaths(t, mustMerge(t, st, "f4", "merges", nil))
			sameTree(t, "merges", treeOf(t, vaultOf(t, st, "merges")), tree{"a": "1", "x": "1", "y": "1", "z": "1"})
			wantPaths(t, mustMerge(t, st, "f4", "f1", nil), "added x", "added y")
			sound(t, st, "merged after the clock was set back")
		})
	}
}
