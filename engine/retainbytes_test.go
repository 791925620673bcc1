package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
)

// blob is text of so many bytes that is not there a second time.
func blob(seed uint64, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) // never fails
	return string(b)
}

const blobSize = 100_000

// replace gives the file f new content count times, each as an event with an automatic
// checkpoint before.
func (h *history) replace(from, count int) {
	h.t.Helper()
	ctx := context.Background()
	for i := range count {
		h.now = h.now.Add(1)
		if _, err := h.v.Checkpoint(ctx, engine.CheckpointOptions{Auto: true}); err != nil {
			h.t.Fatal(err)
		}
		h.now = h.now.Add(1)
		put(h.t, h.v, "f", blob(uint64(from+i), blobSize))
		if _, err := h.v.Record(ctx, engine.Event{Cause: engine.CauseExec}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// historyBytes is the content that only history holds.
func (h *history) historyBytes() int64 {
	h.t.Helper()
	st, err := h.st.Stats(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return st.HistoryBytes
}

// TestPruneBytes makes sure that history is cut at the bound and not before it, the
// oldest first, and that saved checkpoints stay and do not count.
func TestPruneBytes(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, &engine.Retention{Last: 1000})
	h.replace(0, 1)
	if _, err := h.v.Checkpoint(ctx, engine.CheckpointOptions{Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	h.replace(1, 12)
	if got := h.historyBytes(); got != 11*blobSize {
		t.Fatalf("history holds %d bytes", got)
	}
	rule := &engine.Retention{Last: 1000, Bytes: 3*blobSize + blobSize/2}
	want, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: rule, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if events, auto := h.left(); len(events) != 13 || auto != 13 {
		t.Fatalf("looking dropped something: %d events and %d checkpoints are left", len(events), auto)
	}
	got, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: rule})
	if want.DryRun = false; err != nil || got != want {
		t.Fatalf("%+v, where %+v was to come; %v", got, want, err)
	}
	// Each event holds what was there before it; the checkpoint of the same state, which
	// is as old as the state, is still within the bound.
	if events, auto := h.left(); len(events) != 3 || auto != 3 || got.Events != 10 || got.KeptEvents != 3 {
		t.Errorf("%d events and %d checkpoints are left: %+v", len(events), auto, got)
	}
	if kept := h.historyBytes(); kept != 3*blobSize || got.KeptBytes < kept || got.KeptBytes > rule.Bytes {
		t.Errorf("history holds %d bytes, and is said to hold %d", kept, got.KeptBytes)
	}
	if rep, err := h.st.GC(ctx); err != nil || rep.Chunks < 8 {
		t.Errorf("gc frees %+v, %v", rep, err)
	}
	if cp, err := h.v.FindCheckpoint(ctx, "mine"); err != nil {
		t.Error(err)
	} else if _, err := h.v.Restore(ctx, cp.Root, nil); err != nil {
		t.Error(err)
	}
	if got, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{Last: 1000, Bytes: 1}}); err != nil || got.KeptEvents != 0 || got.KeptBytes > 1 {
		t.Errorf("a bound below everything leaves %+v, %v", got, err)
	}
	_, err = h.v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{Bytes: -1}})
	wantKind(t, "a negative bound", err, engine.Invalid)
	sound(t, h.st, "pruned by bytes")
}

// TestPruneBytesShared makes sure that what something else holds as well does not
// count: a copy at another path, a fork, and what came back.
func TestPruneBytesShared(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, &engine.Retention{Last: 1000})
	for i := range 6 {
		put(t, h.v, fmt.Sprint("copy", i), blob(uint64(i), blobSize))
	}
	h.replace(0, 6)
	if _, err := h.st.Fork(ctx, "main", "fork"); err != nil {
		t.Fatal(err)
	}
	put(t, h.v, "f", "short")
	if _, err := h.v.Record(ctx, engine.Event{Cause: engine.CauseExec}); err != nil {
		t.Fatal(err)
	}
	rule := &engine.Retention{Last: 1000, Bytes: blobSize}
	got, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: rule})
	if err != nil || got.Events+got.Checkpoints != 0 {
		t.Errorf("what is held elsewhere counts: %+v, %v", got, err)
	}
	for i := range 6 {
		if err := h.v.RemoveAll(ctx, fmt.Sprint("copy", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.v.Record(ctx, engine.Event{Cause: engine.CauseExec}); err != nil {
		t.Fatal(err)
	}
	if got, err = h.v.Prune(ctx, &engine.PruneOptions{Rule: rule}); err != nil || got.Events != 0 {
		t.Errorf("what the fork holds counts: %+v, %v", got, err)
	}
	if err := h.st.DeleteVault(ctx, "fork"); err != nil {
		t.Fatal(err)
	}
	if got, err = h.v.Prune(ctx, &engine.PruneOptions{Rule: rule}); err != nil || got.KeptEvents != 0 {
		t.Errorf("nothing else holds it now: %+v, %v", got, err)
	}
	sound(t, h.st, "pruned by bytes")
}

// TestPruneBytesCost makes sure that a history within its bound costs what it changed,
// not what the vault has, and that nothing is looked at twice in the background.
func TestPruneBytesCost(t *testing.T) {
	ctx := context.Background()
	const files, events = 100_000, 20
	c := newCostVault(t, files)
	for i := range events {
		c.touch(t, files, touched, fmt.Sprint("change", i))
		if _, err := c.v.Record(ctx, engine.Event{Cause: engine.CauseExec}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.v.SetRetention(ctx, &engine.Retention{Last: 1000, Bytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	look := func() error {
		n, err := c.st.Trim(ctx)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d entries went", n)
		}
		return err
	}
	used := c.measure(t, look)
	t.Logf("%d events of %d files among %d: %v", events, touched, files, used)
	if limit := int64(events * touched * 2 * 8); used.reads > limit || used.reads == 0 { // on the ways to both sides, with neighbours
		t.Errorf("looking at %d small events needs %v, more than %d reads", events, used, limit)
	}
	if used := c.measure(t, look); used != (cost{}) {
		t.Errorf("looking again needs %v", used)
	}
}

// TestTrim makes sure that the background acts once history is beyond its bound by a
// quarter, and then brings it back to it, while somebody writes.
func TestTrim(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, nil)
	if err := h.v.SetRetention(ctx, &engine.Retention{Last: 1000, Bytes: 4 * blobSize * 11 / 10}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 0, 0, 0, 0, 0, 6, 0, 4} { // the first event holds no content
		h.replace(i, 1)
		if n, err := h.st.Trim(ctx); err != nil || n != want {
			t.Errorf("after %d events %d entries go, %v", i+1, n, err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 40 {
			if _, err := h.v.WriteFile(ctx, fmt.Sprint("by", i%3), strings.NewReader(blob(uint64(1000+i), blobSize)), nil); err != nil {
				t.Error(err)
			}
			if _, err := h.v.Record(ctx, engine.Event{Cause: engine.CauseWrite}); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		if _, err := h.st.Trim(ctx); err != nil {
			t.Error(err)
		}
		if _, err := h.st.Collect(ctx); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if _, err := h.v.Prune(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if kept := h.historyBytes(); kept > h.v.Retention().Bytes {
		t.Errorf("history holds %d bytes", kept)
	}
	sound(t, h.st, "trimmed beside a writer")
}

// TestPruneBytesClockSetBack makes sure that the newest of each kind stays also where the
// clock says that the oldest is newer.
func TestPruneBytesClockSetBack(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, &engine.Retention{Last: 1000})
	run := func(id string) {
		t.Helper()
		h.now = h.now.Add(1)
		u := beginExec(t, h.v, id, true)
		u.Output().Write(ctx, "stdout", []byte(blob(uint64(len(id))<<32, blobSize)))
		endExec(t, u)
	}
	run("old")
	h.replace(0, 6)
	h.now = h.now.Add(-time.Hour)
	h.replace(6, 6)
	run("newer")
	before, _ := h.left()
	if _, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{Last: 1000, Bytes: 4*blobSize + blobSize/2}}); err != nil {
		t.Fatal(err)
	}
	events, auto := h.left()
	if n := len(events); n < 2 || n > 4 || auto < 2 || auto > 4 {
		t.Fatalf("%d events and %d checkpoints are left", n, auto)
	}
	for i, ev := range events {
		if ev.Seq != before[i].Seq {
			t.Errorf("event %d is left, not %d", ev.Seq, before[i].Seq)
		}
	}
	if k, err := h.st.Output(ctx, h.v.Name(), "newer"); err != nil {
		t.Errorf("the newest output: %v", err)
	} else {
		k.Close()
	}
	sound(t, h.st, "pruned by bytes after the clock was set back")
}

// TestTrimHugeBound makes sure that a bound near the end of the numbers is none that
// everything is beyond.
func TestTrimHugeBound(t *testing.T) {
	ctx := context.Background()
	for _, bound := range []int64{1 << 60, math.MaxInt64/5*4 + 4, math.MaxInt64} {
		h := newHistory(t, &engine.Retention{Last: 1000, Bytes: bound}) // as a store has it that took any bound
		h.replace(0, 3)
		if n, err := h.st.Trim(ctx); n != 0 || err != nil {
			t.Errorf("%d: %d entries go, %v", bound, n, err)
		}
		err := h.v.SetRetention(ctx, &engine.Retention{Last: 1000, Bytes: bound})
		if bound > 1<<60 {
			wantKind(t, "a bound that is no size", err, engine.Invalid)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// TestTrimGoesOn holds that a vault whose history cannot be trimmed keeps no other from
// it, and that whatever fails is told.
func TestTrimGoesOn(t *testing.T) {
	ctx := context.Background()
	db := faultkv.Wrap(newMem(t), faultkv.Config{Scribble: true})
	st, err := engine.Create(ctx, db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	for _, name := range []string{"b", "a", "c"} {
		v, err := st.CreateVault(ctx, name)
		if err == nil {
			err = v.SetRetention(ctx, &engine.Retention{Last: 1000, Bytes: blobSize})
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if _, err := v.WriteFile(ctx, "f", strings.NewReader(blob(uint64(v.Info().ID*10)+uint64(i), blobSize)), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := v.Record(ctx, engine.Event{Cause: engine.CauseWrite}); err != nil {
				t.Fatal(err)
			}
		}
	}
	db.Arm(faultkv.Rule{Op: faultkv.Update, N: 1, Err: kv.ErrNoSpace})
	n, err := st.Trim(ctx)
	if engine.KindOf(err) != engine.NoSpace || n == 0 {
		t.Errorf("%d entries went, and %v", n, err)
	}
	db.Arm(faultkv.Rule{Op: faultkv.Update, Err: kv.ErrNoSpace, Sticky: true})
	if _, err := st.Trim(ctx); engine.KindOf(err) != engine.NoSpace {
		t.Errorf("%v, want NoSpace", err)
	}
	db.Arm()
	if again, err := st.Trim(ctx); err != nil || again == 0 || again >= n {
		t.Errorf("another time %d entries went, after %d: %v", again, n, err)
	}
	list, err := st.QueryAudit(ctx, engine.AuditQuery{Kinds: []string{engine.AuditPrune}})
	if err != nil || len(list.Entries) != 3 {
		t.Errorf("the audit tells of %d passes: %v", len(list.Entries), err)
	}
	sound(t, st, "trimmed")
}
