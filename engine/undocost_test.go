package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// undoSteps are ways to take back what commands did, in the order in which they are
// measured; each leads to the state that the next one needs.
var undoSteps = []struct {
	name    string
	changed int // files
	do      func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error)
}{
	{"undo", touched, func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error) {
		return v.Undo(ctx, nil)
	}},
	{"redo", touched, func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error) {
		return v.Redo(ctx, nil)
	}},
	{"preview", touched, func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error) {
		return v.Undo(ctx, &engine.UndoOptions{To: "e2", Preview: true})
	}},
	{"undo --to", touched, func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error) {
		return v.Undo(ctx, &engine.UndoOptions{To: "e2"})
	}},
	{"redo of undo --to", touched, func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error) {
		return v.Redo(ctx, nil)
	}},
	{"undo of paths", 1, func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error) {
		return v.Undo(ctx, &engine.UndoOptions{Paths: []string{"dir000000"}})
	}},
	{"undo of an older event", touched, func(ctx context.Context, v *engine.Vault) (engine.UndoResult, error) {
		return v.Undo(ctx, &engine.UndoOptions{Event: "e1", Force: true})
	}},
}

// touched is how many files each command of TestUndoCost changes.
const touched = 10

// TestUndoCost makes sure that taking back a command costs what the command changed,
// however many files there are: as many nodes are read among 100,000 files as among
// 1,000, but for the levels that the tree has more, and as many records are written.
func TestUndoCost(t *testing.T) {
	ctx := context.Background()
	var costs [2][]cost
	for i, files := range []int{1_000, 100_000} {
		c := newCostVault(t, files)
		for n := range 3 {
			id := fmt.Sprint("e", n+1)
			u, err := c.v.Begin(ctx, engine.BeginOptions{ID: id, Command: []string{"touch"}})
			if err != nil {
				t.Fatal(err)
			}
			c.touch(t, files, touched, id)
			if _, err := u.End(ctx, engine.AuditEntry{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range undoSteps {
			began := time.Now()
			used := c.measure(t, func() error {
				res, err := step.do(ctx, c.v)
				if err == nil && res.Changed != step.changed {
					err = fmt.Errorf("%s changed %d files", step.name, res.Changed)
				}
				return err
			})
			t.Logf("%d files: %s of %d: %v, %v", files, step.name, step.changed, time.Since(began).Round(10*time.Microsecond), used)
			costs[i] = append(costs[i], used)
		}
		sound(t, c.st, "undone")
	}
	for i, step := range undoSteps {
		few, many := costs[0][i], costs[1][i]
		if many.reads > 2*few.reads { // of which the tree has two levels, and then three
			t.Errorf("%s reads %d nodes among 100,000 files, %d among 1,000", step.name, many.reads, few.reads)
		}
		if many.updates != few.updates || many.bytes > 3*few.bytes {
			t.Errorf("%s needs %v among 100,000 files, %v among 1,000", step.name, many, few)
		}
	}
}
