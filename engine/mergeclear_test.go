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
		{
			name: "what ours moved onto what theirs made a directory, for theirs", opts: theirs,
			base: "w c c\nw f f", ours: "mv f c", theirs: "rm c\nw c/z z",
			want: tree{"c": "dir", "c/z": "z", "f": "f"},
		},
		{
			name: "what theirs moved to where ours has a directory, for ours", opts: ours,
			base: "w d 3\nw c c", ours: "d g\nw c ours", theirs: "w c theirs\nmv d g\nw d 6",
			want: tree{"d": "3", "g": "dir", "c": "ours"},
		},
		{
			name: "what ours exchanged, and theirs replaced one of, for theirs", opts: theirs,
			base: "w a a\nw e e", ours: "mv e f\nmv f swap\nmv a f\nmv swap a", theirs: "w f/b new",
			want: tree{"a": "a", "e": "e", "f": "dir", "f/b": "new"},
		},
		{
			name: "directories moved into each other, for ours", opts: ours,
			base: "w a/1 1\nw b/2 2", ours: "mv a b/a", theirs: "mv b a/b",
			want: tree{"b": "dir", "b/2": "2", "b/a": "dir", "b/a/1": "1"},
		},
		{
			name: "directories moved into each other, for theirs", opts: theirs,
			base: "w a/1 1\nw b/2 2", ours: "mv a b/a\nw b/a/n new", theirs: "mv b a/b",
			want: tree{"a": "dir", "a/1": "1", "a/b": "dir", "a/b/2": "2", "a/n": "new"},
		},
		{
			name: "a directory moved into a new one in the other, for theirs", opts: theirs,
			base: "w a/1 1\nw b/2 2", ours: "d b/n\nmv a b/n/a", theirs: "mv b a/b",
			want: tree{"a": "dir", "a/1": "1", "a/b": "dir", "a/b/2": "2", "a/b/n": "dir"},
		},
		{
			name: "what comes to below a directory of which ours deleted and replaced what is above, for theirs", opts: theirs,
			base: "d a\nw a/d b1\nmv a/d d\nd a/d\nw a/d/a 10", ours: "rm a\nmv d a", theirs: "w a/d/d new",
			want: tree{"a": "dir", "a/d": "dir", "a/d/d": "new", "d": "b1"},
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

// A decision about a path that is nowhere is a mistake; one about a path of the base is not.
func TestMergeDecidesWhatIsThere(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "w a 1", "mv a b", "mv a c")
	for _, o := range []*engine.MergeOptions{{Ours: []string{"nosuch"}}, {Theirs: []string{".", "b/x"}}} {
		if _, err := st.Merge(ctx, "src", "dst", o); engine.KindOf(err) != engine.NotFound {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := st.Merge(ctx, "src", "dst", &engine.MergeOptions{Theirs: []string{"a"}}); err != nil {
		t.Error(err)
	}
}
