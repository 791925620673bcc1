package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// counted counts what is written to a store.
type counted struct {
	kv.Store
	updates, puts, bytes atomic.Int64
}

func (c *counted) Unwrap() kv.Store { return c.Store }

// Update implements kv.Store.
func (c *counted) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	c.updates.Add(1)
	return c.Store.Update(ctx, mode, func(tx kv.Writer) error { return fn(&countedTx{tx, c}) })
}

type countedTx struct {
	kv.Writer
	c *counted
}

// Put implements kv.Writer.
func (t *countedTx) Put(tb kv.Table, key, value []byte) error {
	t.c.puts.Add(1)
	t.c.bytes.Add(int64(len(key) + len(value)))
	return t.Writer.Put(tb, key, value)
}

// cost is what an operation needed.
type cost struct{ reads, updates, puts, bytes int64 }

func (c cost) String() string {
	return fmt.Sprintf("%d node reads, %d updates, %d puts, %d bytes", c.reads, c.updates, c.puts, c.bytes)
}

// costVault is a vault with n files on a store that counts.
type costVault struct {
	db *counted
	st *engine.Store
	v  *engine.Vault
}

func newCostVault(t *testing.T, n int) *costVault {
	t.Helper()
	ctx := context.Background()
	db := &counted{Store: memkv.New(engine.Tables()...)}
	st, err := engine.Create(ctx, db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, v, n)
	if err := v.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	return &costVault{db, st, v}
}

func (c *costVault) measure(t *testing.T, fn func() error) cost {
	t.Helper()
	at := func() cost {
		return cost{c.st.NodeReads(), c.db.updates.Load(), c.db.puts.Load(), c.db.bytes.Load()}
	}
	before := at()
	if err := fn(); err != nil {
		t.Fatal(err)
	}
	after := at()
	return cost{after.reads - before.reads, after.updates - before.updates, after.puts - before.puts, after.bytes - before.bytes}
}

// touch changes every nth file, count of them, to texts that begin with word.
func (c *costVault) touch(t *testing.T, files, count int, word string) {
	t.Helper()
	ctx := context.Background()
	for i := range count {
		n := i * (files / count)
		name := fmt.Sprintf("dir%06d/file%02d.go", n/100, n%100)
		if _, err := c.v.WriteFile(ctx, name, strings.NewReader(fmt.Sprint(word, i)), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForkCost makes sure that forks and checkpoints do not notice how much there is.
func TestForkCost(t *testing.T) {
	ctx := context.Background()
	sizes := []int{1_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	var forks, checkpoints []cost
	for _, n := range sizes {
		c := newCostVault(t, n)
		if _, err := c.st.Fork(ctx, "main", "warm"); err != nil { // also deletes what the last commit left
			t.Fatal(err)
		}
		forks = append(forks, c.measure(t, func() error {
			_, err := c.st.Fork(ctx, "main", "fork")
			return err
		}))
		checkpoints = append(checkpoints, c.measure(t, func() error {
			_, err := c.v.Checkpoint(ctx, engine.CheckpointOptions{Name: "x"})
			return err
		}))
		t.Logf("%d files: fork %v; checkpoint %v", n, forks[len(forks)-1], checkpoints[len(checkpoints)-1])
	}
	for _, list := range [][]cost{forks, checkpoints} {
		for _, c := range list {
			first := list[0]
			// Numbers in the records have a few digits more.
			if c.reads != first.reads || c.updates != first.updates || c.puts != first.puts || c.bytes > first.bytes+100 {
				t.Errorf("%v where the smallest vault needs %v", c, first)
			}
			// What it makes, its vault, the counters, the audit entry and the head of the audit.
			if c.reads > 0 || c.updates > 1 || c.puts > 5 {
				t.Errorf("%v is more than a few records", c)
			}
		}
	}
}

// TestDiffCost makes sure that diff and restore cost what differs.
func TestDiffCost(t *testing.T) {
	ctx := context.Background()
	sizes := []int{100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, n := range sizes {
		c := newCostVault(t, n)
		const differ, depth = 10, 6
		cp, err := c.v.Checkpoint(ctx, engine.CheckpointOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.touch(t, n, differ, "changed")
		now, err := c.v.Pin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		diff := c.measure(t, func() error {
			changes, total, err := c.st.Diff(ctx, cp.Root, now, nil)
			if err == nil && (total != differ || len(changes) != differ) {
				err = fmt.Errorf("%d changes", total)
			}
			return err
		})
		// Both trees are walked, and each inode is looked up with its directory
		// in both.
		if limit := int64(8 * differ * depth); diff.reads > limit {
			t.Errorf("%d files: diff needs %v, more than %d", n, diff, limit)
		}
		restore := c.measure(t, func() error {
			res, err := c.v.Restore(ctx, cp.Root, nil)
			if err == nil && res.Changed != differ {
				err = fmt.Errorf("%d changes", res.Changed)
			}
			return err
		})
		if limit := int64(12 * differ * depth); restore.reads > limit || restore.puts > 9 { // with the event that tells of the changes before
			t.Errorf("%d files: restore needs %v, more than %d node reads", n, restore, limit)
		}
		part := c.measure(t, func() error {
			c.touch(t, n, 2, "changed")
			_, err := c.v.Restore(ctx, cp.Root, &engine.RestoreOptions{Paths: []string{"dir000000"}})
			return err
		})
		if limit := int64(20 * differ * depth); part.reads > limit {
			t.Errorf("%d files: restoring a directory needs %v", n, part)
		}
		t.Logf("%d files, %d differ: diff %v; restore %v; one directory %v", n, differ, diff, restore, part)
	}
}
