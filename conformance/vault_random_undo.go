package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentvfs/avfs/engine"
)

// ledger follows a timeline from its oldest event to its newest, and knows which of the
// events are taken back.
type ledger struct {
	back  map[uint64]bool
	took  map[uint64][]uint64 // what an undo or a redo has taken back
	vague bool                // parts of events are taken back, or what is not there any more
}

func (t *told) ledger() *ledger {
	l := &ledger{back: map[uint64]bool{}, took: map[uint64][]uint64{}}
	for _, ev := range t.events {
		if ev.Undoes == 0 {
			continue
		}
		if len(ev.Paths) > 0 || ev.Undoes < t.events[0].Seq {
			l.vague = true
		}
		for i := len(t.events) - 1; i >= 0; i-- {
			old := t.events[i].Seq
			if old >= ev.Undoes && old <= max(ev.Undoes, ev.Through) && !l.back[old] {
				l.took[ev.Seq] = append(l.took[ev.Seq], old)
				l.take(old)
			}
		}
	}
	return l
}

// take takes an event back: what it had taken back stands again.
func (l *ledger) take(seq uint64) {
	l.back[seq] = true
	for _, old := range slices.Backward(l.took[seq]) { // the oldest first, as it happened
		l.stand(old)
	}
}

func (l *ledger) stand(seq uint64) {
	l.back[seq] = false
	for _, old := range l.took[seq] {
		l.take(old)
	}
}

// touched lists what taking the event back may change, at and below the paths; without
// paths everywhere.
func (ev *toldEvent) touched(paths []string) []string {
	list := ev.before.differing(ev.after)
	if len(paths) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(p string) bool { return !inAny(p, paths) })
}

// drift reports whether taking ev back must be refused in the state cur, since what
// it would change has changed, and whether it may be.
func (ev *toldEvent) drift(cur pathState, paths []string) (must, may bool) {
	list := ev.touched(nil)
	for _, p := range ev.touched(paths) {
		must = must || !cur.same(ev.after, p) && !cur.same(ev.before, p)
	}
	for _, p := range cur.differing(ev.after) {
		may = may || slices.ContainsFunc(list, func(q string) bool { return p == q || below(p, q) || below(q, p) })
	}
	return must, may
}

// event finds an event by its number; nil if it is not kept.
func (t *told) event(seq uint64) *toldEvent {
	for _, ev := range t.events {
		if ev.Seq == seq {
			return ev
		}
	}
	return nil
}

func isReversal(cause string) bool { return cause == engine.CauseUndo || cause == engine.CauseRedo }

// expected is the newest event that stands and of which something is left to undo.
func (t *told) expected(l *ledger) *toldEvent {
	for _, ev := range slices.Backward(t.events) {
		if isReversal(ev.Cause) || l.back[ev.Seq] {
			continue
		}
		for _, p := range ev.touched(nil) {
			if !t.cur.same(ev.before, p) {
				return ev
			}
		}
	}
	return nil
}

// pending is the event that settles the vault when an undo begins.
func (r *historyRun) settle(ctx context.Context, t *told) {
	r.ok(t.v.Settle(ctx))
	r.tell(ctx, t, t.cur, "")
	r.at(t)
}

// undo takes back the newest event that stands.
func (r *historyRun) undo(ctx context.Context, t *told) {
	r.settle(ctx, t)
	l := t.ledger()
	want := t.expected(l)
	opts := engine.UndoOptions{Force: r.rng.IntN(8) == 0}
	r.note("%s undo %+v", t.name, opts)
	res, err := r.attempt(ctx, t, opts)
	if res.Undone.Cause == engine.CauseUndo {
		r.fatalf("undo took back the undo %d", res.Undone.Seq)
	}
	if !l.vague {
		switch {
		case want != nil && engine.KindOf(err) == engine.NothingToUndo:
			r.fatalf("there is nothing to undo, but event %d stands", want.Seq)
		case want != nil && err == nil && res.Undone.Seq < want.Seq:
			r.fatalf("event %d was undone, not %d", res.Undone.Seq, want.Seq)
		case err == nil && (l.back[res.Undone.Seq] || res.Undone.Cause == engine.CauseRedo && want != nil):
			r.fatalf("undo took back the %s %d, taken back already: %v", res.Undone.Cause, res.Undone.Seq, l.back[res.Undone.Seq])
		}
	}
	r.reversed(ctx, t, opts, res, err, !l.vague)
}

// attempt undoes, sometimes after a preview that must tell exactly what then happens.
func (r *historyRun) attempt(ctx context.Context, t *told, opts engine.UndoOptions) (engine.UndoResult, error) {
	if r.rng.IntN(2) > 0 {
		r.any(t)
		return t.v.Undo(ctx, &opts)
	}
	opts.Preview = true
	told, terr := t.v.Undo(ctx, &opts)
	r.compareNow(ctx, t)
	r.tell(ctx, t, t.cur, "")
	opts.Preview = false
	r.any(t)
	res, err := t.v.Undo(ctx, &opts)
	switch {
	case engine.KindOf(err) == engine.Drift && (terr == nil && len(told.Drift) > 0 || terr != nil):
	case (terr == nil) != (err == nil):
		r.fatalf("the preview ended with %v, the undo with %v", terr, err)
	case err == nil && !slices.Equal(describe(told.Changes), describe(res.Changes)):
		r.fatalf("foretold %q, happened %q", describe(told.Changes), describe(res.Changes))
	}
	return res, err
}

// refused reports whether err is a reason not to take ev back, and fails the run if
// there is none.
func (r *historyRun) refused(ctx context.Context, t *told, ev *toldEvent, opts engine.UndoOptions, err error) bool {
	switch kind := engine.KindOf(err); kind {
	case "":
		return false
	case engine.NothingToUndo, engine.NothingToRedo, engine.EventNotFound:
	case engine.Drift, engine.NotEmpty, engine.NotDirectory:
		if ev != nil {
			if _, may := ev.drift(t.cur, nil); !may && !r.movedTimes(ctx, ev) && !r.blocked(t.cur, ev.before, r.alongside(ctx, ev, opts.Paths)) {
				r.fatalf("event %d cannot be taken back, but nothing of it has changed since: %v", ev.Seq, err)
			}
		}
		if kind == engine.Drift && opts.Force {
			r.fatalf("%v, although forced", err)
		}
	default:
		r.ok(err)
	}
	r.compareNow(ctx, t)
	r.tell(ctx, t, t.cur, "")
	return true
}

// movedTimes reports whether the event did nothing to some files but to touch them, which
// the model does not know. That can be taken back, too.
func (r *historyRun) movedTimes(ctx context.Context, ev *toldEvent) bool {
	changes, _, err := r.store.Diff(ctx, ev.Before, ev.After, &engine.DiffOptions{Times: true})
	r.ok(err)
	return slices.ContainsFunc(changes, func(c engine.FileChange) bool { return c.Kind == engine.TimesChanged && c.Type != "dir" })
}

// alongside is the paths with the places that moves of the event joined them with: what was
// moved is taken back at both or at none.
func (r *historyRun) alongside(ctx context.Context, ev *toldEvent, paths []string) []string {
	if len(paths) == 0 {
		return paths
	}
	changes, _, err := r.store.Diff(ctx, ev.Before, ev.After, nil)
	r.ok(err)
	all := slices.Clone(paths)
	for _, c := range changes {
		if c.OldPath == "" {
			continue
		}
		moved := func(p string) bool {
			return inAny(c.Path, []string{p}) || inAny(c.OldPath, []string{p}) || below(p, c.Path) || below(p, c.OldPath)
		}
		if slices.ContainsFunc(paths, moved) {
			all = append(all, c.Path, c.OldPath)
		}
	}
	return all
}

// reversed checks what an undo of one event has done. With exact nothing of the event
// was taken back before.
func (r *historyRun) reversed(ctx context.Context, t *told, opts engine.UndoOptions, res engine.UndoResult, err error, exact bool) {
	ev := t.event(res.Undone.Seq)
	if r.refused(ctx, t, ev, opts, err) {
		return
	}
	if ev == nil {
		r.fatalf("event %d was undone, which is not in the timeline", res.Undone.Seq)
	}
	was, got := t.cur, r.read(ctx, t)
	r.checkReversed(ctx, ev, was, got, opts, exact)
	t.cur = got
	r.replaced(ctx, t, was, engine.CauseUndo, res.RestoreResult)
}

// checkReversed fails the run unless got is was with the event taken back.
func (r *historyRun) checkReversed(ctx context.Context, ev *toldEvent, was, got pathState, opts engine.UndoOptions, exact bool) {
	must, _ := ev.drift(was, opts.Paths)
	if must && exact && !opts.Force {
		r.fatalf("event %d was taken back over what has changed since", ev.Seq)
	}
	for p := range union(was, got) {
		if !got.same(was, p) && !got.same(ev.before, p) {
			r.fatalf("the undo of event %d made %q %s, before it was %s, before the event %s", ev.Seq, p, got.at(p), was.at(p), ev.before.at(p))
		}
	}
	all, mine := ev.touched(nil), ev.touched(opts.Paths)
	for _, p := range mine {
		if exact && !got.same(ev.before, p) {
			r.fatalf("the undo of event %d left %q %s, not %s", ev.Seq, p, got.at(p), ev.before.at(p))
		}
	}
	for _, p := range got.differing(was) {
		switch {
		case slices.Contains(all, p):
		case opts.Force && r.movedTimes(ctx, ev):
		case opts.Force && slices.ContainsFunc(all, func(q string) bool { return below(p, q) }): // in a tree that goes
		case was[p] == nil && slices.ContainsFunc(all, func(q string) bool { return below(q, p) }): // a directory that was needed
		default:
			r.fatalf("the undo of event %d, which did not touch %q, made it %s, before it was %s", ev.Seq, p, got.at(p), was.at(p))
		}
	}
	if exact && len(opts.Paths) == 0 && was.equal(ev.after) && !got.equal(ev.before) {
		r.fatalf("the undo of event %d left %q", ev.Seq, got.differing(ev.before))
	}
}

// someEvent is one of the newer events.
func (r *historyRun) someEvent(t *told) *toldEvent {
	if len(t.events) == 0 {
		return nil
	}
	return t.events[max(0, len(t.events)-1-r.rng.IntN(8))]
}

// undoTo takes back everything since an event.
func (r *historyRun) undoTo(ctx context.Context, t *told) {
	r.settle(ctx, t)
	ev := r.someEvent(t)
	if ev == nil {
		return
	}
	opts := engine.UndoOptions{To: fmt.Sprint(ev.Seq)}
	r.note("%s undo to %d", t.name, ev.Seq)
	r.may(t, ev.before)
	res, err := r.attempt(ctx, t, opts)
	r.ok(err)
	if n := t.since(ev.Seq); res.Undone.Seq != ev.Seq || res.Events != n {
		r.fatalf("undo to %d took back %d events from %d on, not %d", ev.Seq, res.Events, res.Undone.Seq, n)
	}
	was := t.cur
	t.cur = ev.before
	r.compareNow(ctx, t)
	r.replaced(ctx, t, was, engine.CauseUndo, res.RestoreResult)
}

// since counts the events from one on.
func (t *told) since(seq uint64) (n int) {
	for _, ev := range t.events {
		if ev.Seq >= seq {
			n++
		}
	}
	return n
}

// undoEvent takes back one event, whatever came after it.
func (r *historyRun) undoEvent(ctx context.Context, t *told) {
	r.settle(ctx, t)
	ev := r.someEvent(t)
	if ev == nil {
		return
	}
	opts := engine.UndoOptions{Event: fmt.Sprint(ev.Seq), Force: r.rng.IntN(4) == 0}
	if r.rng.IntN(3) == 0 {
		opts.Paths = r.somePaths(ev.before, ev.after)
	}
	r.note("%s undo event %+v", t.name, opts)
	res, err := r.attempt(ctx, t, opts)
	if err != nil {
		res.Undone = ev.Event
	} else if res.Undone.Seq != ev.Seq {
		r.fatalf("event %d was undone, not %d", res.Undone.Seq, ev.Seq)
	}
	r.reversed(ctx, t, opts, res, err, true)
}

// undoPaths takes back what the newest event that changed some paths did there.
func (r *historyRun) undoPaths(ctx context.Context, t *told) {
	r.settle(ctx, t)
	ev := r.someEvent(t)
	if ev == nil {
		return
	}
	opts := engine.UndoOptions{Paths: r.somePaths(ev.before, ev.after)}
	if len(opts.Paths) == 0 {
		return
	}
	r.note("%s undo paths %+v", t.name, opts)
	l := t.ledger()
	res, err := r.attempt(ctx, t, opts)
	r.reversed(ctx, t, opts, res, err, !l.vague)
}

// redo takes back the newest undo.
func (r *historyRun) redo(ctx context.Context, t *told) {
	r.settle(ctx, t)
	opts := engine.RedoOptions{}
	r.note("%s redo", t.name)
	r.any(t)
	res, err := t.v.Redo(ctx, &opts)
	var newest *toldEvent
	if len(t.events) > 0 {
		newest = t.events[len(t.events)-1]
	}
	if newest != nil && newest.Cause == engine.CauseUndo {
		switch {
		case err != nil:
			r.fatalf("redo right after undo %d: %v", newest.Seq, err)
		case res.Undone.Seq != newest.Seq:
			r.fatalf("redo took back %d, not %d", res.Undone.Seq, newest.Seq)
		}
	}
	ev := t.event(res.Undone.Seq)
	if r.refused(ctx, t, ev, engine.UndoOptions{}, err) {
		return
	}
	if res.Undone.Cause != engine.CauseUndo || ev == nil {
		r.fatalf("redo took back the %s %d", res.Undone.Cause, res.Undone.Seq)
	}
	was, got := t.cur, r.read(ctx, t)
	r.checkReversed(ctx, ev, was, got, engine.UndoOptions{}, !t.ledger().vague)
	t.cur = got
	r.replaced(ctx, t, was, engine.CauseRedo, res.RestoreResult)
}
