package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// The environment by which the tests of random histories can be made to run one seed,
// and more steps.
const (
	envHistorySeed  = "AVFS_HISTORY_SEED"
	envHistorySteps = "AVFS_HISTORY_STEPS"
)

// historyVaults is how many vaults of a store are alive at most.
const historyVaults = 8

// historyRun plays a random history on the vaults of a store: edits, events, commands,
// checkpoints, forks, restores, undo and redo, merges, pruning, collections. It knows by
// plain maps of paths what every state has to be, that of now and those that are kept.
type historyRun struct {
	s     *vaultSuite
	path  string
	opts  *engine.Options
	rng   *rand.Rand
	store *engine.Store
	// fail ends the run, and does not return.
	fail   func(message string)
	vaults []*told
	saved  []savedState
	step   int
	made   int // vaults
	log    []string
	// say tells another process what is about to happen and what has happened; nil tells
	// nobody.
	say func(format string, args ...any)
}

// told is one vault with what it has to be.
type told struct {
	name   string
	v      *engine.Vault
	cur    pathState
	noted  pathState // what the newest event left
	events []*toldEvent
	seen   uint64 // the newest of the events
}

// toldEvent is an event with the states that it leads from and to.
type toldEvent struct {
	engine.Event
	before, after pathState
}

// savedState is a saved checkpoint with the state that it keeps.
type savedState struct {
	vault string
	cp    engine.Checkpoint
	state pathState
}

func historyOptions(seed uint64) *engine.Options {
	o := &engine.Options{CommitInterval: -1, DirtyBytes: 1 << 20, CacheBytes: 1 << 20, Retention: &engine.Retention{Last: 30}}
	if seed%2 == 0 {
		o.CacheBytes = 1 // what is gone from the store is missed at once
	}
	return o
}

// testHistory plays random histories in this process.
func (s *vaultSuite) testHistory(t *testing.T) {
	seeds, steps := 4, 700
	if testing.Short() {
		seeds, steps = 2, 200
	}
	first := historyNumber(t, envHistorySeed, 0)
	if first > 0 {
		seeds = 1
	}
	if n := historyNumber(t, envHistorySteps, 0); n > 0 {
		steps = int(n)
	}
	for seed := max(first, 1); seed < max(first, 1)+uint64(seeds); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := &historyRun{
				s: s, path: s.newPath(t), rng: rand.New(rand.NewPCG(seed, 18)), opts: historyOptions(seed),
				fail: func(message string) { t.Helper(); t.Fatal(message) },
			}
			var err error
			if r.store, err = s.tryOpen(r.path, true, r.opts); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.store.Close() }) // in a failed run; the rest closes it itself
			ctx := context.Background()
			r.create(ctx)
			for r.step = range steps {
				r.next(ctx)
				if r.step%60 == 59 {
					r.compareAll(ctx)
				}
			}
			r.compareAll(ctx)
			r.finish(ctx, t)
		})
	}
}

// historyNumber is a number in the environment.
func historyNumber(tb testing.TB, name string, otherwise uint64) uint64 {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func (r *historyRun) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%d ", r.step)+fmt.Sprintf(format, args...))
}

func (r *historyRun) fatalf(format string, args ...any) {
	tail := r.log[max(0, len(r.log)-60):]
	r.fail(fmt.Sprintf("step %d: %s\nlast steps:\n  %s", r.step, fmt.Sprintf(format, args...), strings.Join(tail, "\n  ")))
}

func (r *historyRun) ok(err error) {
	if err != nil {
		r.fatalf("%v", err)
	}
}

// may tells that the vault is about to get a state.
func (r *historyRun) may(t *told, next pathState) {
	if r.say != nil {
		r.say("may %s %s", t.name, next.digest())
	}
}

// any tells that the vault is about to get a state that only the engine can tell.
func (r *historyRun) any(t *told) {
	if r.say != nil {
		r.say("any %s", t.name)
	}
}

// at tells that the present state and all events survive the process.
func (r *historyRun) at(t *told) {
	if r.say != nil {
		r.say("at %s %s %d", t.name, t.cur.digest(), t.seen)
	}
}

// historySteps are the kinds of steps, by their weights.
var historySteps = []struct {
	weight int
	run    func(*historyRun, context.Context, *told)
}{
	{30, (*historyRun).edit},
	{14, (*historyRun).recorded},
	{8, (*historyRun).command},
	{4, (*historyRun).commit},
	{6, (*historyRun).checkpoint},
	{3, (*historyRun).dropCheckpoint},
	{5, (*historyRun).restore},
	{6, (*historyRun).restorePaths},
	{10, (*historyRun).undo},
	{4, (*historyRun).undoTo},
	{5, (*historyRun).undoEvent},
	{5, (*historyRun).undoPaths},
	{8, (*historyRun).redo},
	{5, (*historyRun).fork},
	{3, (*historyRun).deleteVault},
	{8, (*historyRun).merge},
	{1, (*historyRun).prune},
	{2, (*historyRun).collect},
	{1, (*historyRun).reopen},
}

// next makes one random step in a random vault.
func (r *historyRun) next(ctx context.Context) {
	t := r.vaults[r.rng.IntN(len(r.vaults))]
	total := 0
	for _, st := range historySteps {
		total += st.weight
	}
	n := r.rng.IntN(total)
	for _, st := range historySteps {
		if n -= st.weight; n < 0 {
			st.run(r, ctx, t)
			return
		}
	}
}

// read captures the present state of a vault.
func (r *historyRun) read(ctx context.Context, t *told) pathState {
	w, err := captureVault(ctx, t.v)
	r.ok(err)
	return pathStateOf(w)
}

// compareNow fails the run unless the vault is what it has to be.
func (r *historyRun) compareNow(ctx context.Context, t *told) {
	if err := compareStates(r.read(ctx, t), t.cur); err != nil {
		r.fatalf("vault %s: %v", t.name, err)
	}
}

func (r *historyRun) compareRoot(ctx context.Context, what string, root engine.Root, want pathState) {
	w, err := captureRoot(ctx, r.store, root)
	if err == nil {
		err = compareStates(pathStateOf(w), want)
	}
	if err != nil {
		r.fatalf("%s: %v", what, err)
	}
}

// compareAll compares every vault, every checkpoint and some events, byte for byte,
// and checks the whole store.
func (r *historyRun) compareAll(ctx context.Context) {
	for _, t := range r.vaults {
		r.compareNow(ctx, t)
		r.timeline(ctx, t)
		for range min(4, len(t.events)) {
			ev := t.events[r.rng.IntN(len(t.events))]
			r.compareRoot(ctx, fmt.Sprintf("before event %d of %s", ev.Seq, t.name), ev.Before, ev.before)
			r.compareRoot(ctx, fmt.Sprintf("after event %d of %s", ev.Seq, t.name), ev.After, ev.after)
		}
	}
	for _, k := range r.saved {
		r.compareRoot(ctx, fmt.Sprintf("checkpoint %s of %s", k.cp.ID, k.vault), k.cp.Root, k.state)
	}
	r.ok(checkStore(r.store))
}

// timeline compares the events that are kept: those that are not are the oldest ones.
func (r *historyRun) timeline(ctx context.Context, t *told) {
	events, err := t.v.Timeline(ctx, 0)
	r.ok(err)
	slices.Reverse(events)
	if len(events) > len(t.events) {
		r.fatalf("vault %s has %d events, not %d", t.name, len(events), len(t.events))
	}
	t.events = t.events[len(t.events)-len(events):]
	for i, ev := range events {
		if e := t.events[i]; ev.Seq != e.Seq || ev.Before != e.Before || ev.After != e.After {
			r.fatalf("event %d of %s is %+v, not %+v", i, t.name, ev, e.Event)
		}
	}
}

// tell takes over the events that a step has added: one with the cause, "" for none,
// which leads from was to the present state, and before it perhaps one that leads from
// the newest event to was, if something had changed since.
func (r *historyRun) tell(ctx context.Context, t *told, was pathState, cause string) {
	events, err := t.v.Timeline(ctx, 4)
	r.ok(err)
	events = slices.DeleteFunc(events, func(ev engine.Event) bool { return ev.Seq <= t.seen })
	slices.Reverse(events)
	if n := len(events); n > 0 && events[0].Cause == engine.CauseMount {
		r.told(t, events[0], was)
		events = events[1:]
	}
	switch {
	case cause == "" && len(events) > 0 || len(events) > 1:
		r.fatalf("vault %s: %d events too many, %+v", t.name, len(events), events)
	case cause == "":
		return
	case len(events) == 0 || events[0].Cause != cause:
		r.fatalf("vault %s: there is no event of the %s, but %+v", t.name, cause, events)
	case !t.noted.equal(was):
		r.fatalf("vault %s: no event tells of %q", t.name, t.noted.differing(was))
	}
	r.told(t, events[0], t.cur)
}

// told adds an event.
func (r *historyRun) told(t *told, ev engine.Event, after pathState) {
	r.note("%s event %d %s, takes back %d to %d %q", t.name, ev.Seq, ev.Cause, ev.Undoes, ev.Through, ev.Paths)
	t.events = append(t.events, &toldEvent{Event: ev, before: t.noted, after: after})
	t.noted, t.seen = after, ev.Seq
}

// finish deletes everything, collects, and compares the size with that of a store in
// which nothing ever was but the same audit.
func (r *historyRun) finish(ctx context.Context, t *testing.T) {
	r.reopen(ctx, nil)
	entries, err := r.store.Audit(ctx, 0)
	r.ok(err)
	for len(r.vaults) > 0 {
		t := r.vaults[len(r.vaults)-1]
		r.ok(r.store.DeleteVault(ctx, t.name))
		r.vaults = r.vaults[:len(r.vaults)-1]
	}
	_, err = r.store.CreateVault(ctx, "main")
	r.ok(err)
	rep := r.clean(ctx)
	if rep.LiveChunks != 0 || rep.LiveNodes > 1 {
		r.fatalf("an empty store has %d nodes and %d chunks", rep.LiveNodes, rep.LiveChunks)
	}
	r.ok(checkStore(r.store))
	if _, sized := kv.As[kv.Sizer](r.store.Unwrap()); !sized || r.s.opts.InMemory {
		r.ok(r.store.Close())
		return
	}
	compact(t, r.store)
	got := sizeOf(t, r.store)
	fresh, _ := r.s.newVault(t, r.s.newPath(t))
	for _, e := range entries {
		_, err := fresh.AppendAudit(ctx, e)
		r.ok(err)
	}
	_, err = fresh.GC(ctx)
	r.ok(err)
	compact(t, fresh)
	want := sizeOf(t, fresh)
	t.Logf("after %d entries of the audit, deleting everything, gc and compact: %d bytes; a new store with these: %d", len(entries), got, want)
	if float64(got) > reclaimFactor*float64(want) {
		t.Errorf("an empty store takes %d bytes, a new one %d", got, want)
	}
	r.ok(fresh.Close())
	r.ok(r.store.Close())
}

// clean collects until nothing can be left, and fails the run if something is.
func (r *historyRun) clean(ctx context.Context) engine.GCReport {
	var rep engine.GCReport
	for range 2 { // what commits stopped using while the first one marked is for this one
		var err error
		rep, err = r.store.GC(ctx)
		r.ok(err)
	}
	stats, err := r.store.Stats(ctx)
	r.ok(err)
	if stats.GarbageChunks != 0 || stats.GarbageNodes != 0 {
		r.fatalf("after collections there are %d chunks and %d nodes of garbage", stats.GarbageChunks, stats.GarbageNodes)
	}
	return rep
}

// reopen closes the store and opens it again. Pending changes are not lost.
func (r *historyRun) reopen(ctx context.Context, _ *told) {
	r.note("reopen")
	r.ok(r.store.Close())
	for _, t := range r.vaults {
		r.at(t)
	}
	var err error
	r.store, err = r.s.tryOpen(r.path, false, r.opts)
	r.ok(err)
	for _, t := range r.vaults {
		t.v, err = r.store.Vault(ctx, t.name)
		r.ok(err)
		r.compareNow(ctx, t)
		r.tell(ctx, t, t.cur, "")
	}
}

// collect collects garbage, one way or the other.
func (r *historyRun) collect(ctx context.Context, _ *told) {
	r.note("collect")
	if r.rng.IntN(3) > 0 {
		_, err := r.store.Collect(ctx)
		r.ok(err)
		return
	}
	r.clean(ctx)
	r.ok(checkStore(r.store))
}

// prune drops all but the newest events, and the automatic checkpoints.
func (r *historyRun) prune(ctx context.Context, t *told) {
	r.settle(ctx, t)
	last := 1 + r.rng.IntN(20)
	r.note("%s prune to %d", t.name, last)
	rep, err := t.v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{Last: last}})
	r.ok(err)
	if rep.KeptEvents > last {
		r.fatalf("pruning to %d kept %d events", last, rep.KeptEvents)
	}
	r.timeline(ctx, t)
	if len(t.events) != rep.KeptEvents {
		r.fatalf("there are %d events, pruning kept %d", len(t.events), rep.KeptEvents)
	}
}
