package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// renamed is a vault in which a command has moved n files one by one from one directory
// to another, while it left others alone.
func renamed(t *testing.T, n int) *costVault {
	t.Helper()
	ctx := context.Background()
	c := newCostVault(t, 10)
	for _, dir := range []string{"from", "to", "other"} {
		if _, err := c.v.MkdirAll(ctx, dir, 0o755, engine.Owner{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		put(t, c.v, fmt.Sprintf("from/%05d", i), fmt.Sprint(i))
	}
	put(t, c.v, "other/f", "1")
	if err := c.v.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	u, err := c.v.Begin(ctx, engine.BeginOptions{ID: "moves"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := c.v.Move(ctx, fmt.Sprintf("from/%05d", i), fmt.Sprintf("to/%05d.moved", i)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, c.v, "other/f", "2")
	put(t, c.v, "to/new", "x")
	if _, err := u.End(ctx, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// entries counts what is in a directory.
func (c *costVault) entries(t *testing.T, dir string) int {
	t.Helper()
	ctx := context.Background()
	at, err := c.v.Resolve(ctx, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = c.v.ReadDir(ctx, at.Ino, "", func(engine.DirEntry) error {
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUndoManyMoves takes back what a command did at some paths of which there are
// thousands, by directory and one by one: it costs what was moved, its event stays small,
// the rest goes on standing, and redo and undo know what was taken back.
func TestUndoManyMoves(t *testing.T) {
	ctx := context.Background()
	few, many := 400, 5_000
	if testing.Short() {
		many = 2_000
	}
	names := func(n, step int) (list []string) {
		for i := 0; i < n; i += step {
			list = append(list, fmt.Sprintf("from/%05d", i))
		}
		return list
	}
	for _, c := range []struct {
		name  string
		paths func(n int) []string
		back  int // one file in so many comes back
	}{
		{"directory", func(int) []string { return []string{"from"} }, 1},
		{"list", func(n int) []string { return names(n, 1) }, 1},
		{"list of every second", func(n int) []string { return names(n, 2) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var reads [2]int64
			for i, n := range []int{few, many} {
				v := renamed(t, n)
				undo := func(o engine.UndoOptions) (res engine.UndoResult) {
					used := v.measure(t, func() (err error) {
						res, err = v.v.Undo(ctx, &o)
						return err
					})
					reads[i] = max(reads[i], used.reads)
					return res
				}
				if res := undo(engine.UndoOptions{Paths: c.paths(n)}); res.Changed != n/c.back {
					t.Fatalf("the undo changed %d of %d", res.Changed, n)
				}
				v.expect(t, n, n/c.back, "2", true)
				if res, err := v.v.Redo(ctx, nil); err != nil || res.Changed != n/c.back {
					t.Fatalf("the redo changed %d of %d: %v", res.Changed, n, err)
				}
				v.expect(t, n, 0, "2", true)
				undo(engine.UndoOptions{Paths: c.paths(n)})
				// What is left of the command is all that the next one takes back.
				if res := undo(engine.UndoOptions{}); res.Changed != n-n/c.back+2 {
					t.Errorf("the rest that was undone is %d changes", res.Changed)
				}
				v.expect(t, n, n, "1", false)
				v.smallEvents(t)
				sound(t, v.st, "after the undos")
			}
			if reads[1] > int64(3*many/(2*few))*reads[0] {
				t.Errorf("%d moves took %d node reads, %d took %d", many, reads[1], few, reads[0])
			}
		})
	}
}

// expect fails unless back of n files are where they were, other/f has that text, and to/new
// is there or not.
func (c *costVault) expect(t *testing.T, n, back int, text string, added bool) {
	t.Helper()
	in := n - back
	if added {
		in++
	}
	if from, to := c.entries(t, "from"), c.entries(t, "to"); from != back || to != in {
		t.Fatalf("%d files are in from and %d in to, not %d and %d", from, to, back, in)
	}
	if got := get(t, c.v, path.Join("other", "f")); got != text {
		t.Fatalf("other/f is %q, not %q", got, text)
	}
}

// smallEvents fails if an event of the timeline takes more than is bearable.
func (c *costVault) smallEvents(t *testing.T) {
	t.Helper()
	events, err := c.v.Timeline(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if b, err := json.Marshal(ev); err != nil || len(b) > 100<<10 {
			t.Errorf("event %d takes %d bytes: %v", ev.Seq, len(b), err)
		}
	}
}
