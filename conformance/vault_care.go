package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// roleVaultGC is a child that collects garbage again and again.
const roleVaultGC = "vault-gc"

// gcDelay is the most that a collection in the background may delay an operation.
const gcDelay = 50 * time.Millisecond

// storeRandom writes files of 1 MiB of random content each, and syncs.
func storeRandom(ctx context.Context, v *engine.Vault, dir string, files int) error {
	if _, err := v.MkdirAll(ctx, dir, 0o755, engine.Owner{}); err != nil {
		return err
	}
	src := newRandomReader(int64(files) << 20)
	buf := make([]byte, 1<<20)
	for i := range files {
		if _, err := src.Read(buf); err != nil {
			return err
		}
		if _, err := v.WriteFile(ctx, fmt.Sprintf("%s/%d", dir, i), strings.NewReader(string(buf)), nil); err != nil {
			return err
		}
	}
	return v.Sync(ctx)
}

// testGCTail lets a collection run over much garbage beside small operations, durable
// ones and others, and compares the slowest with the slowest of the same operations
// without a collection. A delay that comes from the collection comes in every round;
// one that comes from the machine does not, so one good round in six is enough.
func (s *vaultSuite) testGCTail(t *testing.T) {
	s.needsDisk(t)
	megabytes := 128
	if testing.Short() {
		megabytes = 16
	}
	ctx := context.Background()
	st, v := s.newVault(t, s.newPath(t))
	for round := range 6 {
		if err := storeRandom(ctx, v, "garbage", megabytes); err != nil {
			t.Fatal(err)
		}
		for i := range 2000 { // small files are many nodes and chunks
			if _, err := v.WriteFile(ctx, fmt.Sprintf("garbage/small%d", i), strings.NewReader(fmt.Sprintf("round %d, file %d", round, i)), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "all"}); err != nil {
			t.Fatal(err)
		}
		if err := v.RemoveAll(ctx, "garbage"); err != nil {
			t.Fatal(err)
		}
		if err := v.DeleteCheckpoint(ctx, "all"); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
			t.Fatal(err)
		}
		alone, err := s.foreground(ctx, v, func() error { time.Sleep(time.Second); return nil })
		if err != nil {
			t.Fatal(err)
		}
		var rep engine.GCReport
		beside, err := s.foreground(ctx, v, func() (err error) {
			rep, err = st.Collect(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Chunks < int64(megabytes) {
			t.Fatalf("only %d chunks were garbage", rep.Chunks)
		}
		t.Logf("round %d: alone %v; beside the collection of %d chunks %v", round, tail(alone), rep.Chunks, tail(beside))
		if slices.Max(beside) <= slices.Max(alone)+gcDelay {
			mustCheck(t, st)
			mustBeClean(t, st)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Errorf("operations were delayed by more than %v in every round", gcDelay)
}

// foreground makes small changes while fn runs, and tells how long each took.
func (s *vaultSuite) foreground(ctx context.Context, v *engine.Vault, fn func() error) ([]time.Duration, error) {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	var took []time.Duration
	for i := 0; ; i++ {
		start := time.Now()
		_, err := v.WriteFile(ctx, fmt.Sprintf("f%d", i%50), strings.NewReader(fmt.Sprintf("content %d", i)), nil)
		if err == nil && i%2 == 0 {
			err = v.Sync(ctx)
		}
		if err == nil && i%3 == 0 {
			_, err = v.Commit(ctx, false)
		}
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		select {
		case err := <-done:
			return took, err
		case <-time.After(time.Millisecond):
		}
	}
}

// tail describes the slowest operations.
func tail(took []time.Duration) string {
	took = slices.Sorted(slices.Values(took))
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%d operations, half within %v, 99 %% within %v, all within %v", len(took), at(0.5), at(0.99), at(1))
}

// mustBeClean fails the test if a collection has left garbage that another one finds.
func mustBeClean(t *testing.T, st *engine.Store) {
	t.Helper()
	for range 2 { // what commits stopped using while the first one marked is for this one
		if _, err := st.GC(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	stats, err := st.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if stats.GarbageChunks != 0 || stats.GarbageNodes != 0 {
		t.Errorf("after collections there are %d chunks and %d nodes of garbage", stats.GarbageChunks, stats.GarbageNodes)
	}
}

// reclaimFactor is how much larger than a new store one may be from which everything
// was deleted.
const reclaimFactor = 1.3

// testReclaim fills a store, deletes everything, and compares its size with that of a
// store in which nothing ever was.
func (s *vaultSuite) testReclaim(t *testing.T) {
	s.needsDisk(t)
	megabytes := 100
	if testing.Short() {
		megabytes = 20
	}
	ctx := context.Background()
	want := s.freshSize(t)
	st, v := s.newVault(t, s.newPath(t))
	if err := storeRandom(ctx, v, "big", megabytes); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "all"}); err != nil {
		t.Fatal(err)
	}
	full := sizeOf(t, st)
	if err := v.RemoveAll(ctx, "big"); err != nil {
		t.Fatal(err)
	}
	if err := v.DeleteCheckpoint(ctx, "all"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
		t.Fatal(err)
	}
	rep, err := st.GC(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, st)
	compact(t, st)
	got := sizeOf(t, st)
	t.Logf("new %d bytes, with %d MiB %d, after deleting, gc and compact %d; gc says it gave back %d", want, megabytes, full, got, rep.ReclaimedBytes)
	if float64(got) > reclaimFactor*float64(want) {
		t.Errorf("an empty store takes %d bytes, a new one %d", got, want)
	}
	if least := int64(megabytes) << 20 * 9 / 10; rep.ReclaimedBytes < least {
		t.Errorf("gc says that it gave back %d bytes, of %d", rep.ReclaimedBytes, full-got)
	}
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func compact(t *testing.T, st *engine.Store) {
	t.Helper()
	if c, ok := kv.As[kv.Compacter](st.Unwrap()); ok {
		if _, err := c.Compact(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// collectForEver is the child: it makes garbage, says so, and collects it.
func (s *vaultSuite) collectForEver(ctx context.Context, path string) error {
	st, err := s.tryOpen(path, false, repairOptions())
	if err != nil {
		return err
	}
	v, err := st.Vault(ctx, "main")
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := storeRandom(ctx, v, "garbage", 4); err != nil {
			return err
		}
		if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "all"}); err != nil {
			return err
		}
		if err := v.RemoveAll(ctx, "garbage"); err != nil {
			return err
		}
		if err := v.DeleteCheckpoint(ctx, "all"); err != nil {
			return err
		}
		if _, err := v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
			return err
		}
		fmt.Println("collecting")
		if _, err := st.GC(ctx); err != nil {
			return err
		}
	}
}

// testGCKilled kills collections. Nothing is ever missing, and the next one, which is
// left alone, leaves no garbage.
func (s *vaultSuite) testGCKilled(t *testing.T) {
	if s.opts.InMemory {
		t.Skipf("SKIP: a %s store dies with its process", s.driver.Name())
	}
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	ctx := context.Background()
	path := s.newPath(t)
	rng := rand.New(rand.NewPCG(15, 2))
	st := s.open(t, path, true, repairOptions())
	if _, err := fillForRepair(ctx, st); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		c := (&storeSuite{driver: s.driver, self: s.self}).startChild(t, roleVaultGC, path)
		if got := c.line(); got != "collecting" {
			t.Fatalf("round %d: the child says %q", round, got)
		}
		time.Sleep(time.Duration(rng.IntN(12)) * time.Millisecond)
		c.kill()
		st := s.open(t, path, false, repairOptions())
		mustCheck(t, st)
		v, err := st.Vault(ctx, "main")
		if err == nil {
			err = readForRepair(ctx, st, v)
		}
		if err == nil {
			err = v.RemoveAll(ctx, "garbage") // it may not have come to that
		}
		if _, cerr := v.FindCheckpoint(ctx, "all"); err == nil && cerr == nil {
			err = v.DeleteCheckpoint(ctx, "all")
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		mustBeClean(t, st)
		mustCheck(t, st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// freshSize is what a new store with one vault takes.
func (s *vaultSuite) freshSize(t *testing.T) int64 {
	t.Helper()
	st, _ := s.newVault(t, s.newPath(t))
	if _, err := st.GC(context.Background()); err != nil {
		t.Fatal(err)
	}
	compact(t, st)
	size := sizeOf(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return size
}

// testReclaimMerged deletes what came with a merge, and the vault that it came from.
func (s *vaultSuite) testReclaimMerged(t *testing.T) {
	s.needsDisk(t)
	ctx := context.Background()
	want := s.freshSize(t)
	st, v := s.newVault(t, s.newPath(t))
	task, err := st.Fork(ctx, "main", "task")
	if err != nil {
		t.Fatal(err)
	}
	if err := storeRandom(ctx, task, "big", 8); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Merge(ctx, "task", "main", nil); err != nil {
		t.Fatal(err)
	}
	for _, vault := range []*engine.Vault{v, task} {
		if err := vault.RemoveAll(ctx, "big"); err != nil {
			t.Fatal(err)
		}
		if _, err := vault.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
			t.Fatal(err)
		}
	}
	if stats, err := st.Stats(ctx); err != nil || stats.LineageBytes != 8<<20 || stats.VaultBytes != 0 {
		t.Errorf("with the fork: %+v, %v", stats, err)
	}
	if err := st.DeleteVault(ctx, "task"); err != nil {
		t.Fatal(err)
	}
	if stats, err := st.Stats(ctx); err != nil || stats.LineageBytes != 0 || stats.GarbageChunks == 0 {
		t.Errorf("without the fork: %+v, %v", stats, err)
	}
	if _, err := st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, st)
	compact(t, st)
	if got := sizeOf(t, st); float64(got) > reclaimFactor*float64(want) {
		t.Errorf("the store takes %d bytes, a new one %d", got, want)
	}
	mustCheck(t, st)
}
