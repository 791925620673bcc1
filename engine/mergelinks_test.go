package engine_test

import (
	"slices"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// TestMergeLinks merges what changed nothing but hard links: files that became names of
// one, and names that became files of their own. What the other side edited is a conflict.
func TestMergeLinks(t *testing.T) {
	ctx := t.Context()
	for _, edited := range []string{"", "a", "c"} {
		st, v, _ := newVault(t, quietOptions())
		for _, name := range []string{"a", "b", "c"} {
			put(t, v, name, "same")
		}
		ino := func(v *engine.Vault, name string) engine.Attr {
			t.Helper()
			a, err := v.Resolve(ctx, name, false)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if err := v.LinkAt(ctx, ino(v, "c").Ino, "d", false); err != nil {
			t.Fatal(err)
		}
		if err := v.Settle(ctx); err != nil {
			t.Fatal(err)
		}
		fork, err := st.Fork(ctx, "main", "fork")
		if err != nil {
			t.Fatal(err)
		}
		if err := fork.LinkAt(ctx, ino(fork, "a").Ino, "b", true); err != nil { // a and b become one
			t.Fatal(err)
		}
		put(t, fork, "new", "same")
		if err := fork.Move(ctx, "new", "d"); err != nil { // d becomes another than c
			t.Fatal(err)
		}
		if edited != "" {
			put(t, v, edited, "edited")
		}
		res, err := st.Merge(ctx, "fork", "main", nil)
		if edited != "" {
			wantKind(t, "a merge of links of what was edited", err, engine.Conflict)
			if !slices.ContainsFunc(res.Conflicts, func(c engine.MergeConflict) bool { return c.Kind == engine.ConflictLinks }) {
				t.Errorf("the conflicts are %+v", res.Conflicts)
			}
			if res, err = st.Merge(ctx, "fork", "main", &engine.MergeOptions{Ours: []string{"/"}}); err != nil {
				t.Errorf("resolved for ours: %+v, %v", res, err)
			}
			if got := get(t, v, edited); got != "edited" {
				t.Errorf("%s is %q", edited, got)
			}
		} else {
			if err != nil {
				t.Fatalf("%+v, %v", res, err)
			}
			if a, b, c, d := ino(v, "a"), ino(v, "b"), ino(v, "c"), ino(v, "d"); a.Ino != b.Ino || a.Nlink != 2 || c.Ino == d.Ino || c.Nlink != 1 {
				t.Errorf("after the merge: a %d, b %d (%d names), c %d (%d names), d %d", a.Ino, b.Ino, a.Nlink, c.Ino, c.Nlink, d.Ino)
			}
			for _, name := range []string{"a", "b", "c", "d"} {
				if got := get(t, v, name); got != "same" {
					t.Errorf("%s is %q", name, got)
				}
			}
		}
		sound(t, st, "merged")
	}
}
