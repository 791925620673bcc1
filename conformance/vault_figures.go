package conformance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// shrink collects garbage and compacts, so that sizeOf tells what a store has to keep.
func shrink(t *testing.T, st *engine.Store) int64 {
	t.Helper()
	for range 2 { // what commits stopped using is for the second one
		if _, err := st.GC(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	compact(t, st)
	return sizeOf(t, st)
}

// tableBytes is what the keys and values of each table add up to.
func tableBytes(t *testing.T, st *engine.Store) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	err := st.Unwrap().View(context.Background(), func(tx kv.Reader) error {
		clear(sizes)
		for _, table := range vaultTables() {
			err := tx.Scan(table, nil, nil, func(k, v []byte) error {
				sizes[table.Name] += int64(len(k) + len(v))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

// logTables tells what fills a store.
func logTables(t *testing.T, before, after map[string]int64) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if grown := after[name] - before[name]; grown != 0 {
			fmt.Fprintf(&b, " %s %d", name, grown)
		}
	}
	t.Logf("bytes of keys and values that came:%s", b.String())
}

// fillTree writes files of source text, of about 7 KiB each, 50 in a directory.
func fillTree(ctx context.Context, v *engine.Vault, files int) error {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range files {
		dir := fmt.Sprintf("src/%d", i/50)
		if i%50 == 0 {
			if _, err := v.MkdirAll(ctx, dir, 0o755, engine.Owner{}); err != nil {
				return err
			}
		}
		if _, err := v.WriteFile(ctx, fmt.Sprintf("%s/file%d.go", dir, i), strings.NewReader(string(sourceText(rng))), nil); err != nil {
			return err
		}
	}
	return v.Settle(ctx)
}

// Bounds on what a checkpoint adds to a store on disk, in bytes. What it takes by
// itself is its row and the audit's entry. A change before it adds the nodes on one
// way through the tree, of which there are two here, its event and that one's entry.
const (
	plainCheckpoint   = 500 // so 10,000 take less than 5 MB
	changedCheckpoint = 7 << 10
)

// testCheckpoints saves checkpoints one after the other, then with a small change
// before each, as an agent does that keeps every step.
func (s *vaultSuite) testCheckpoints(t *testing.T) {
	s.needsDisk(t)
	count := int64(10_000)
	if testing.Short() {
		count = 500
	}
	ctx := engine.WithActor(context.Background(), engine.Actor{UID: 1000, PID: 123456, User: "somebody", Asked: time.Now().Add(-time.Millisecond)})
	// Without commits in between, which a slow machine has more of: how full they leave the
	// nodes decides how many there are on a way.
	st := s.open(t, s.newPath(t), true, &engine.Options{CommitInterval: -1})
	t.Cleanup(func() { _ = st.Close() }) // in a failed run
	v, err := st.CreateVault(ctx, "main")
	if err == nil {
		err = fillTree(ctx, v, 500)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		what    string
		changes bool
		limit   int64
	}{{"without a change", false, plainCheckpoint}, {"with a change before each", true, changedCheckpoint}} {
		before, tables := shrink(t, st), tableBytes(t, st)
		for i := range count {
			if part.changes {
				name := fmt.Sprintf("src/%d/file%d.go", i%500/50, i%500)
				if _, err := v.WriteFile(ctx, name, strings.NewReader(fmt.Sprintf("package p // %d\n", i)), nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		grown := shrink(t, st) - before
		t.Logf("%d checkpoints %s: the store grew by %d bytes, %d each", count, part.what, grown, grown/count)
		logTables(t, tables, tableBytes(t, st))
		limit := count * part.limit
		if testing.Short() {
			limit += 32 << 10 // a database takes its space in pieces
		}
		if grown > limit {
			t.Errorf("%d checkpoints %s took %d bytes", count, part.what, grown)
		}
	}
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// testForks makes forty forks of a tree.
func (s *vaultSuite) testForks(t *testing.T) {
	s.needsDisk(t)
	files := 5_000
	if testing.Short() {
		files = 1_000
	}
	const forks = 40
	ctx := context.Background()
	st, v := s.newVault(t, s.newPath(t))
	if err := fillTree(ctx, v, files); err != nil {
		t.Fatal(err)
	}
	before, tables := shrink(t, st), tableBytes(t, st)
	for i := range forks {
		if _, err := st.Fork(ctx, "main", fmt.Sprint("fork", i)); err != nil {
			t.Fatal(err)
		}
	}
	grown := shrink(t, st) - before
	logTables(t, tables, tableBytes(t, st))
	t.Logf("%d forks of %d files, %d bytes stored: the store grew by %d bytes, %.2f %%", forks, files, before, grown, 100*float64(grown)/float64(before))
	if grown > before/100 {
		t.Errorf("%d forks took %d bytes", forks, grown)
	}
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
