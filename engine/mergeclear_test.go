package engine_test

import (
	"context"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// What comes and what was moved may want one name. It is a conflict, and whichever side it
// is resolved for, nothing that both sides have goes.
func TestMergeOneNameForTwo(t *testing.T) {
	ours, theirs := &engine.MergeOptions{Ours: []string{"."}}, &engine.MergeOptions{Theirs: []string{"."}}
	for _, tc := range []struct {
		name, base, ours, theirs string
		opts                     *engine.MergeOptions
		want                     tree // nil: a conflict
	}{
		{
			name: "a replacement follows a move to where something comes",
			base: "sl d x", ours: "mv d g", theirs: "rm d\nd d\nd g",
		},
		{
			name: "the same, for theirs", opts: theirs,
			base: "sl d x", ours: "mv d g", theirs: "rm d\nd d\nd g",
			want: tree{"d": "dir", "g": "dir"},
		},
		{
			name: "the same, for ours", opts: ours,
			base: "sl d x", ours: "mv d g", theirs: "rm d\nd d\nd g",
			want: tree{"g": "dir"},
		},
		{
			name: "a replacement follows a move to where something moves, for ours", opts: ours,
			base: "sl e x\nsl g y", ours: "mv e a", theirs: "rm e\nw e new\nmv g a",
			want: tree{"a": "new", "g": "-> y"},
		},
		{
			name: "an edit of what is in the way of what comes, for theirs", opts: theirs,
			base: "w c 1", ours: "mv c e\nw e ours", theirs: "w c theirs\nw e new",
			want: tree{"c": "theirs", "e": "new"},
		},
		{
			name: "what is in the way of what comes, for theirs", opts: theirs,
			base: "w c 1", ours: "mv c e", theirs: "w e new",
			want: tree{"c": "1", "e": "new"},
		},
		{
			name: "an edit of what was moved into a tree that goes, for theirs", opts: theirs,
			base: "w a 1\nsl g x", ours: "rm g\nd g\nmv a g/a\nw g/d d", theirs: "w a theirs\nrm g",
			want: tree{"a": "theirs"},
		},
		{
			name: "what was moved into a tree that goes, for theirs", opts: theirs,
			base: "w a 1\nsl g x", ours: "rm g\nd g\nmv a g/a", theirs: "rm g",
			want: tree{"a": "1"},
		},
		{
			name: "a move away from a name that becomes another one of the file, for theirs", opts: theirs,
			base: "w g/b 1", ours: "mv g/b b/c", theirs: "mv g/b g/d\nln g/d b/c\nln g/d b/a",
			want: tree{"b": "dir", "b/a": "1 = b/a", "b/c": "1 = b/a", "g": "dir", "g/d": "1 = b/a"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st := mergeVaults(t, tc.base, tc.ours, tc.theirs)
			dst := vaultOf(t, st, "dst")
			want := tc.want
			if want == nil {
				want = treeOf(t, dst)
			}
			res, err := st.Merge(context.Background(), "src", "dst", tc.opts)
			if kind := engine.KindOf(err); tc.want == nil && kind != engine.Conflict || tc.want != nil && err != nil {
				t.Fatalf("%v, conflicts %v", err, conflictsOf(res))
			}
			sameTree(t, tc.name, treeOf(t, dst), want)
			sound(t, st, tc.name)
		})
	}
}
