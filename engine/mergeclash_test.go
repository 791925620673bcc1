package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// clashLines makes n changes for play in a tree with few names, so that the two sides of a
// merge meet: files and directories move, also onto names that others have, and change
// places. Every text that is written is new.
func clashLines(rng *rand.Rand, now tree, n int, tag string) string {
	var b strings.Builder
	line := func(op string, arg ...string) { fmt.Fprintln(&b, op, strings.Join(arg, " ")) }
	for i := range n {
		p := clashPath(rng, now)
		switch k := rng.IntN(10); {
		case k < 3 && now[p] != "dir":
			now[p] = tag + fmt.Sprint(i)
			line("w", p, now[p])
		case k == 3 && now[p] == "":
			now[p] = "dir"
			line("d", p)
		case k < 6 && now[p] != "":
			moveTree(now, p, "")
			line("rm", p)
		case now[p] != "":
			q := clashPath(rng, now)
			switch {
			case q == p || strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/"):
			case now[q] == "" || now[p] != "dir" && now[q] != "dir" && k < 8:
				moveTree(now, p, q)
				line("mv", p, q)
			default:
				moveTree(now, p, "swap")
				moveTree(now, q, p)
				moveTree(now, "swap", q)
				line("mv", p, "swap")
				line("mv", q, p)
				line("mv", "swap", q)
			}
		}
	}
	return b.String()
}

// clashPath is a name in the top directory or in one that there is.
func clashPath(rng *rand.Rand, now tree) string {
	dirs := []string{""}
	for p, what := range now {
		if what == "dir" && strings.Count(p, "/") < 2 {
			dirs = append(dirs, p+"/")
		}
	}
	sort.Strings(dirs)
	return dirs[rng.IntN(len(dirs))] + string(rune('a'+rng.IntN(6)))
}

// moveTree moves what is at a path, with all below it, over what is at another; to
// nowhere if that is empty.
func moveTree(now tree, from, to string) {
	for p, what := range cloneTree(now) {
		if p == from || strings.HasPrefix(p, from+"/") {
			delete(now, p)
			if to != "" {
				now[to+p[len(from):]] = what
			}
		}
	}
}

// TestMergeOneSide decides all conflicts for one side: then there are none left, what both
// sides kept and what the chosen side wrote is somewhere, and at the paths of the conflicts
// is what the chosen side has there.
func TestMergeOneSide(t *testing.T) {
	decided := 0
	rounds := roundsOf(600)
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 14))
		c := clash{base: tree{}}
		c.lines[0] = clashLines(rng, c.base, 12, "b")
		c.ours, c.theirs = cloneTree(c.base), cloneTree(c.base)
		c.lines[1] = clashLines(rng, c.ours, 1+rng.IntN(4), "o")
		c.lines[2] = clashLines(rng, c.theirs, 1+rng.IntN(4), "t")
		for _, c.side = range []string{"ours", "theirs"} {
			c.what = fmt.Sprintf("seed %d, for %s\nbase:\n%sours:\n%stheirs:\n%s", seed, c.side, c.lines[0], c.lines[1], c.lines[2])
			if c.merge(t) {
				decided++
			}
		}
	}
	if decided < rounds/4 {
		t.Errorf("%d of %d merges had conflicts", decided, 2*rounds)
	}
}

// clash is a merge of which one side gets all conflicts.
type clash struct {
	base, ours, theirs tree
	lines              [3]string // that make them
	side, what         string
}

// chosen is the tree of the side that gets the conflicts.
func (c *clash) chosen() tree {
	if c.side == "theirs" {
		return c.theirs
	}
	return c.ours
}

// merge merges and reports whether anything was to be decided.
func (c *clash) merge(t *testing.T) bool {
	t.Helper()
	ctx := context.Background()
	st := mergeVaults(t, c.lines[0], c.lines[1], c.lines[2])
	dst := vaultOf(t, st, "dst")
	opts := &engine.MergeOptions{Ours: []string{"."}}
	if c.side == "theirs" {
		opts = &engine.MergeOptions{Theirs: []string{"."}}
	}
	res, err := st.Merge(ctx, "src", "dst", opts)
	if err != nil {
		t.Fatalf("%s: %v, conflicts %v", c.what, err, conflictsOf(res))
	}
	got := treeOf(t, dst)
	in, base, ours, theirs := texts(got), texts(c.base), texts(c.ours), texts(c.theirs)
	for text := range texts(c.chosen()) {
		if keep := ours[text] > 0 && theirs[text] > 0 || base[text] == 0; keep && in[text] == 0 {
			t.Errorf("%s: text %s is nowhere: ours %v, theirs %v, merged %v", c.what, text, c.ours, c.theirs, got)
		}
	}
	for _, conflict := range res.Resolved {
		// Where things move, a path can be that of two.
		if !strings.Contains(c.lines[1]+c.lines[2], "mv ") {
			c.decided(t, conflict, got)
		}
	}
	again, err := st.Merge(ctx, "src", "dst", nil)
	if err != nil || again.Event != 0 || again.Changed != 0 {
		t.Errorf("%s: a second merge: %+v, %v", c.what, again.Changes, err)
	}
	sound(t, st, c.what)
	return len(res.Resolved) > 0
}

// decided checks what is at the paths of a conflict.
func (c *clash) decided(t *testing.T, conflict engine.MergeConflict, got tree) {
	t.Helper()
	want := c.chosen()
	for _, v := range []*engine.MergeVersion{conflict.Ours, conflict.Theirs} {
		if v != nil && want[v.Path] != got[v.Path] {
			t.Errorf("%s: %s %s: %s is %q, not %q", c.what, conflict.Kind, conflict.Path, v.Path, got[v.Path], want[v.Path])
		}
	}
}
