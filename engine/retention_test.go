package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// history is a vault on a clock of its own.
type history struct {
	t   *testing.T
	st  *engine.Store
	v   *engine.Vault
	now time.Time
}

func newHistory(t *testing.T, rule *engine.Retention) *history {
	h := &history{t: t, now: time.Unix(1_000_000_000, 0).UTC().Truncate(24 * time.Hour)}
	opts := quietOptions()
	opts.Clock = func() time.Time { return h.now }
	opts.Retention = rule
	h.st, h.v, _ = newVault(t, opts)
	return h
}

// record replaces one file and records that, with an automatic checkpoint before.
func (h *history) record(text string) engine.Event {
	h.t.Helper()
	ctx := context.Background()
	pin, err := h.v.Pin(ctx)
	if err == nil {
		_, err = h.v.Checkpoint(ctx, engine.CheckpointOptions{Auto: true})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	put(h.t, h.v, "f", strings.Repeat(text, 1000))
	ev, err := h.v.Record(ctx, engine.Event{Cause: engine.CauseExec, Before: pin})
	if err != nil {
		h.t.Fatal(err)
	}
	return ev
}

// left counts the events and the automatic checkpoints, and compares the counts of
// the vault with them.
func (h *history) left() (events []engine.Event, auto int) {
	h.t.Helper()
	ctx := context.Background()
	events, err := h.v.Timeline(ctx, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	list, err := h.v.Checkpoints(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, cp := range list {
		if cp.Auto {
			auto++
		}
	}
	if n := h.v.Info().Checkpoints; n != len(list) {
		h.t.Errorf("the vault says %d checkpoints, has %d", n, len(list))
	}
	return events, auto
}

// TestPrune makes sure that the newest events stay, older ones once an hour and once
// a day, and that what only the rest kept is freed and refused. A saved checkpoint
// stays whatever the rule says.
func TestPrune(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, &engine.Retention{Last: 1000})
	if _, err := h.v.Checkpoint(ctx, engine.CheckpointOptions{Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	first := h.record("a first state, ")
	for i := range 12 { // four an hour
		h.now = h.now.Add(15 * time.Minute)
		h.record(fmt.Sprint(i, " of some "))
	}
	rule := &engine.Retention{Last: 2, Hours: 2}
	want, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: rule, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if events, auto := h.left(); len(events) != 13 || auto != 13 {
		t.Fatalf("looking dropped something: %d events and %d checkpoints are left", len(events), auto)
	}
	// It is 03:00: 03:00 and 02:45 are the newest; 02:45 is the newest of its
	// hour, 01:45 too.
	if want.Events != 10 || want.Checkpoints != 10 || want.KeptEvents != 3 || want.KeptCheckpoints != 3 {
		t.Errorf("%+v", want)
	}
	got, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: rule})
	if want.DryRun = false; err != nil || got != want {
		t.Fatalf("%+v, where %+v was to come; %v", got, want, err)
	}
	events, auto := h.left()
	if len(events) != 3 || auto != 3 || !events[2].At.Equal(h.now.Add(-75*time.Minute)) {
		t.Fatalf("%d checkpoints and %+v are left", auto, events)
	}
	if rep, err := h.st.GC(ctx); err != nil || rep.Chunks < 8 {
		t.Errorf("gc frees %+v, %v", rep, err)
	}
	_, err = h.v.Restore(ctx, first.After, nil)
	wantKind(t, "restore of a state that nothing keeps", err, engine.NotFound)
	if _, err := h.v.FindCheckpoint(ctx, "mine"); err != nil {
		t.Error(err)
	}
	if _, err := h.v.Undo(ctx, nil); err != nil {
		t.Errorf("undo of the newest event: %v", err)
	}
	sound(t, h.st, "after pruning")
}

// TestPruneAll drops the whole history: what only it kept is freed, and the present
// state is untouched.
func TestPruneAll(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, nil)
	for i := range 5 {
		h.record(fmt.Sprint(i, " of some "))
	}
	if _, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
		t.Fatal(err)
	}
	if events, auto := h.left(); len(events) != 0 || auto != 0 {
		t.Fatalf("%d events and %d checkpoints are left", len(events), auto)
	}
	if rep, err := h.st.GC(ctx); err != nil || rep.LiveChunks != 1 || rep.Chunks != 4 {
		t.Errorf("gc: %+v, %v", rep, err)
	}
	if got := get(t, h.v, "f"); !strings.HasPrefix(got, "4 of some ") {
		t.Errorf("%.20q", got)
	}
	_, err := h.v.Undo(ctx, nil)
	wantKind(t, "undo of what is gone", err, engine.NothingToUndo)
	sound(t, h.st, "without history")
}

// TestPruneByItself makes sure that a timeline stays bounded by the rule without
// anybody asking, in every vault of a store that takes turns, and in a fork.
func TestPruneByItself(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, nil)
	if err := h.v.SetRetention(ctx, &engine.Retention{Last: 20}); err != nil {
		t.Fatal(err)
	}
	fork, err := h.st.Fork(ctx, "main", "fork")
	if err != nil {
		t.Fatal(err)
	}
	if got := fork.Retention(); got != (engine.Retention{Last: 20}) {
		t.Fatalf("the fork has the rule %+v", got)
	}
	main := h.v
	most := 0
	for i := range 200 {
		h.v = []*engine.Vault{main, fork}[i%2]
		ev := h.record(fmt.Sprint(i, " "))
		events, _ := h.left()
		most = max(most, len(events))
		if events[0].Seq != ev.Seq {
			t.Fatal("the newest event went")
		}
	}
	if most < 20 || most > 20+5+3*16 {
		t.Errorf("up to %d events", most)
	}
	for range 50 { // undo and redo are recorded, too
		if _, err := h.v.Undo(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := h.v.Redo(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if events, auto := h.left(); len(events) > 20+5+3*16 || auto > 20+5+3*16 {
		t.Errorf("%d events and %d checkpoints", len(events), auto)
	}
	list, err := h.st.QueryAudit(ctx, engine.AuditQuery{Kinds: []string{engine.AuditPrune}})
	if err != nil || len(list.Entries) < 5 || len(list.Entries) > 60 {
		t.Errorf("the audit tells of %d passes: %v", len(list.Entries), err)
	}
	for _, e := range list.Entries {
		if e.RootAfter == "" || e.RootBefore != e.RootAfter || !strings.Contains(e.Subject, " events, ") || strings.HasPrefix(e.Subject, "0 events, 0 automatic") {
			t.Errorf("a pass is told of as %+v", e)
		}
	}
	sound(t, h.st, "pruned by itself")
}

// TestRetention keeps the rule over a restart, takes it back, and refuses nonsense.
func TestRetention(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, nil)
	if got := h.v.Retention(); got != engine.DefaultRetention() {
		t.Errorf("%+v", got)
	}
	if err := h.v.SetRetention(ctx, &engine.Retention{Last: 3, Days: 1}); err != nil {
		t.Fatal(err)
	}
	if got := h.v.Retention(); got != (engine.Retention{Last: 3, Days: 1}) {
		t.Errorf("%+v", got)
	}
	wantKind(t, "a negative rule", h.v.SetRetention(ctx, &engine.Retention{Hours: -1}), engine.Invalid)
	_, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{Last: -1}})
	wantKind(t, "a negative rule", err, engine.Invalid)
	if err := h.v.SetRetention(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got := h.v.Retention(); got != engine.DefaultRetention() {
		t.Errorf("%+v", got)
	}
	sound(t, h.st, "with a rule")
}

// TestStats measures a store in which each kind of holder has content of its own.
func TestStats(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, nil)
	size := func(text string) int64 { return int64(len(text)) * 1000 }
	h.record("only the history has this ")
	h.record("a saved checkpoint has this ")
	if _, err := h.v.Checkpoint(ctx, engine.CheckpointOptions{Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	h.record("everybody has this ")
	fork, err := h.st.Fork(ctx, "main", "fork")
	if err != nil {
		t.Fatal(err)
	}
	put(t, fork, "g", strings.Repeat("the fork has this ", 1000))
	want := engine.Stats{
		Vaults: 2, Files: 3, LogicalBytes: 2*size("everybody has this ") + size("the fork has this "),
		Events: 3, Checkpoints: 1, AutoCheckpoints: 3,
		VaultBytes:      size("everybody has this ") + size("the fork has this "),
		CheckpointBytes: size("a saved checkpoint has this "), HistoryBytes: size("only the history has this "),
	}
	got, err := h.st.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got.GarbageNodes > 4 { // of roots that were replaced
		t.Errorf("%d nodes of garbage", got.GarbageNodes)
	}
	got.GarbageNodes, got.GarbageBytes, got.StoredBytes = 0, 0, 0
	if got != want {
		t.Errorf("%+v, not\n%+v", got, want)
	}
	if _, err := h.v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
		t.Fatal(err)
	}
	if got, err = h.st.Stats(ctx); err != nil || got.HistoryBytes != 0 || got.GarbageChunks != 1 || got.GarbageBytes == 0 {
		t.Errorf("after pruning: %+v, %v", got, err)
	}
	if _, err := h.st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err = h.st.Stats(ctx); err != nil || got.GarbageChunks != 0 || got.GarbageNodes > 1 {
		t.Errorf("after gc: %+v, %v", got, err)
	}
}
