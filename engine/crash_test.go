package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// crashed is a store as a crash would have left it.
type crashed struct {
	db    *memkv.Store
	what  string
	least int // the oldest state that may come back
	most  int // the newest one
}

// TestCrash takes the store down after every commit of a workload, as the death of
// the process and as every power loss. Each time it must open by itself, be whole,
// and be in a state that existed, no older than what was promised to stay.
func TestCrash(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { crashRun(t, uint64(seed)) })
	}
}

func crashRun(t *testing.T, seed uint64) {
	ctx := context.Background()
	db := memkv.New(engine.Tables()...)
	s, err := createScript(ctx, db, seed)
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.sign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	states := []string{first}
	kept := map[string]string{}
	committed, durable, current := 0, 0, 0
	var crashes []crashed
	db.OnCommit(func(n int) {
		crashes = append(crashes, crashed{db.Clone(memkv.ProcessDeath, 0), fmt.Sprintf("death after commit %d", n), committed, current})
		for keep := range db.Tail() + 1 {
			what := fmt.Sprintf("power loss after commit %d with %d of %d", n, keep, db.Tail())
			crashes = append(crashes, crashed{db.Clone(memkv.PowerLoss, keep), what, durable, current})
		}
	})
	for n := range 90 {
		current = len(states)
		done, err := s.step(ctx, n)
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		sig, err := s.sign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, sig)
		if done.committed {
			committed = len(states) - 1
		}
		if done.durable {
			durable = len(states) - 1
		}
	}
	db.OnCommit(nil)
	for id, sig := range s.kept {
		kept[id] = sig
	}
	t.Logf("%d crashes", len(crashes))
	for _, c := range crashes {
		comeBack(t, c, states, kept)
		if t.Failed() {
			return
		}
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// comeBack opens what a crash left.
func comeBack(t *testing.T, c crashed, states []string, kept map[string]string) {
	t.Helper()
	ctx := context.Background()
	st, err := engine.Open(ctx, c.db, quietOptions())
	if err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Errorf("%s: close: %v", c.what, err)
		}
	}()
	v, err := st.Vault(ctx, "main")
	if err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	sound(t, st, c.what)
	got, err := signature(ctx, v)
	if err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	if !slices.Contains(states[c.least:min(c.most+1, len(states))], got) {
		t.Errorf("%s: this state never existed, or is older than what was promised (%d to %d):\n%s", c.what, c.least, c.most, got)
	}
	list, err := v.Checkpoints(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, cp := range list {
		if want, ok := kept[cp.ID]; ok {
			if got, err := signature(ctx, st.Snapshot(cp.Root)); err != nil || got != want {
				t.Errorf("%s: checkpoint %s is not what it was (%v)", c.what, cp.ID, err)
			}
		}
	}
	// What comes back can be worked on.
	if _, err := st.GC(ctx); err != nil {
		t.Errorf("%s: gc: %v", c.what, err)
	}
	sound(t, st, c.what+", after gc")
}
