package engine

import (
	"context"
)

// CauseUnrecorded is that of changes which no event of the timeline is about. It is in
// no timeline, only in a PathLog.
const CauseUnrecorded = "unrecorded"

// PathEvent is an event that changed a path or something below it.
type PathEvent struct {
	Event
	Path    string       `json:"path"`               // as it was after the event
	PathB64 string       `json:"path_b64,omitempty"` // the exact bytes where Path is not exact
	Changes []FileChange `json:"changes"`
	Total   int          `json:"total"` // of Changes, and of those beyond the limit
}

// Origin says what was before the oldest event of a PathLog.
type Origin string

// The origins of a path.
const (
	OriginNone   Origin = "none"   // nothing was at the path
	OriginFork   Origin = "fork"   // it came with the state that the fork began with
	OriginPruned Origin = "pruned" // it was there already where the history begins
	OriginMore   Origin = "more"   // there are more events than were asked for
)

// PathLog is the history of one path.
type PathLog struct {
	Events []PathEvent // newest first
	Origin Origin
}

// PathLogOptions bounds a PathLog. The zero value and nil mean everything.
type PathLogOptions struct {
	Limit   int // at most so many events of the timeline
	Changes int // at most so many changes of each
}

// PathLog lists the events that changed a path or something below it, newest first. It
// follows renames backwards: of the path, and of directories above it. Changes between
// events, which programs made through a mount, are listed as unrecorded. For a file the
// cost is some node reads for each event; for a directory it is what the events changed.
// A path that the history does not know is NotFound.
func (v *Vault) PathLog(ctx context.Context, path string, opts *PathLogOptions) (PathLog, error) {
	if opts == nil {
		opts = &PathLogOptions{}
	}
	now, err := v.Pin(ctx)
	if err != nil {
		return PathLog{}, wrap(err, "log", path)
	}
	defer v.Unpin(now)
	events, release, err := v.holdTimeline(ctx)
	if err != nil {
		return PathLog{}, wrap(err, "log", path)
	}
	defer release()
	w := &pathWalk{v: v, opts: opts, path: cleanPath(path), at: now, log: PathLog{Events: []PathEvent{}}}
	err = w.run(ctx, events)
	if err == nil && w.log.Origin == OriginNone && len(w.log.Events) == 0 {
		err = fail(NotFound, "", "")
	}
	return w.log, wrap(err, "log", path)
}

// holdTimeline reads the timeline and keeps its states until release is called.
func (v *Vault) holdTimeline(ctx context.Context) (events []Event, release func(), err error) {
	events, err = v.Timeline(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, ev := range events {
		v.s.pin(ev.Before)
		v.s.pin(ev.After)
	}
	held := events
	release = func() {
		for _, ev := range held {
			v.s.unpin(ev.Before)
			v.s.unpin(ev.After)
		}
	}
	// An event that is still there was there when its states were pinned.
	still := map[uint64]bool{}
	again, err := v.Timeline(ctx, 0)
	if err != nil {
		release()
		return nil, nil, err
	}
	for _, ev := range again {
		still[ev.Seq] = true
	}
	var kept []Event
	for _, ev := range held {
		if still[ev.Seq] {
			kept = append(kept, ev)
		}
	}
	return kept, release, nil
}

// pathWalk goes back through a timeline.
type pathWalk struct {
	v        *Vault
	opts     *PathLogOptions
	path     string // in the state at
	at       Root
	recorded int
	log      PathLog
}

func (w *pathWalk) run(ctx context.Context, events []Event) error {
	for _, ev := range events {
		if err := w.step(ctx, Event{Cause: CauseUnrecorded, VaultID: ev.VaultID, Before: ev.After, After: w.at}); err != nil {
			return err
		}
		if w.opts.Limit > 0 && w.recorded == w.opts.Limit {
			w.log.Origin = OriginMore
			return nil
		}
		if err := w.step(ctx, ev); err != nil {
			return err
		}
	}
	return w.end(ctx)
}

// step adds an event if it changed the path.
func (w *pathWalk) step(ctx context.Context, ev Event) error {
	t, err := w.v.s.Follow(ctx, ev.Before, ev.After, w.path, w.opts.Changes)
	if err != nil {
		return err
	}
	if t.Total > 0 {
		e := PathEvent{Event: ev, Changes: t.Changes, Total: t.Total}
		e.Path, e.PathB64 = printable(w.path)
		w.log.Events = append(w.log.Events, e)
		if ev.Cause != CauseUnrecorded {
			w.recorded++
		}
	}
	w.path, w.at = t.OldPath, ev.Before
	return nil
}

// end finds out what was before the history.
func (w *pathWalk) end(ctx context.Context) error {
	there, fork := OriginPruned, false
	var begin Root
	if begin, fork = w.v.ForkPoint(); fork {
		err := w.step(ctx, Event{Cause: CauseUnrecorded, VaultID: w.v.id, Before: begin, After: w.at})
		if err != nil {
			return err
		}
		there = OriginFork
	}
	at, err := view{src: w.v.s.nodes, root: w.at.ref}.spot(ctx, orDot(w.path))
	if err != nil {
		return err
	}
	if w.log.Origin = OriginNone; at.n != nil {
		w.log.Origin = there
	}
	return nil
}

// orDot is a path as spot wants it.
func orDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}
