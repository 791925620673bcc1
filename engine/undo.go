package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine/kv"
)

// UndoOptions says what Undo takes back. The zero value and nil are the newest change
// that stands.
type UndoOptions struct {
	// To takes back everything since and including this event, by its number or id.
	To string
	// Event takes back this event alone, by its number or id, whatever came after it.
	Event string
	// Paths limits it to what was changed at these and below them, before or after:
	// without To and Event, of the newest event that changed something there.
	Paths   []string
	Force   bool // go on although files that it would change have changed since
	Preview bool // change nothing; the result says what would change, and the drift
}

// UndoResult says what was undone, or done again, and what that changed.
type UndoResult struct {
	RestoreResult
	Undone Event `json:"undone"` // the oldest of several
	Events int   `json:"events"` // how many there are
}

// Undo takes back what an event has changed: of an exec, a mount session, a write, an
// import, a restore, a merge. So undo after undo goes back in time, and Redo forward
// again. The times of directories alone are nothing that anybody would want back.
// What changed since at other paths stays; a change since at the same paths is
// Drift, unless forced. The state before is kept under a new checkpoint. An undo is
// an event too, which To and Event can take back.
func (v *Vault) Undo(ctx context.Context, opts *UndoOptions) (UndoResult, error) {
	if opts == nil {
		opts = &UndoOptions{}
	}
	done, err := v.replacing(ctx)
	if err != nil {
		return UndoResult{}, wrap(err, "undo", v.Name())
	}
	defer done()
	res, err := v.undoLocked(ctx, opts)
	return res, wrap(err, "undo", v.Name())
}

// RedoOptions tunes Redo.
type RedoOptions struct {
	Force   bool // go on although files that it would change have changed since
	Preview bool // change nothing; the result says what would change, and the drift
}

// Redo takes back the newest undo that is not taken back yet, unless something else
// has changed the vault since: then it is NothingToRedo.
func (v *Vault) Redo(ctx context.Context, opts *RedoOptions) (UndoResult, error) {
	if opts == nil {
		opts = &RedoOptions{}
	}
	done, err := v.replacing(ctx)
	if err != nil {
		return UndoResult{}, wrap(err, "redo", v.Name())
	}
	defer done()
	res, err := v.redoLocked(ctx, opts)
	return res, wrap(err, "redo", v.Name())
}

// reversal is one or more events that are about to be taken back.
type reversal struct {
	aim
	undone Event // the oldest
	newest uint64
	events int
	asked  []string // no more than at these, nil for everywhere
	limit  tops     // and where moves took it, or brought it from
}

// limitTo limits it to the paths, of what these changes did.
func (r *reversal) limitTo(paths []string, changes []change) {
	if len(paths) > 0 {
		r.asked, r.limit = topsOf(paths).list(), topsOf(paths).alongside(changes)
	}
}

// scope notes in the event of the reversal where it takes back: all paths where they are
// few, else those asked for, and what it is going to change. That tells as much, but of
// what is already as it was before.
func (r *reversal) scope(ev *Event) {
	paths, more := bounded(r.limit.list())
	if more {
		paths, _ = bounded(r.asked)
	}
	ev.Paths, ev.Partly = exact(paths), more
}

// undoLocked is Undo for a caller that holds commitMu, which keeps the timeline as it
// is, and with it the roots that are needed.
func (v *Vault) undoLocked(ctx context.Context, opts *UndoOptions) (UndoResult, error) {
	if opts.To != "" && opts.Event != "" {
		return UndoResult{}, &Error{Kind: Invalid, Err: errors.New("it is either one event or everything since one")}
	}
	gap, err := v.unsettled(ctx, opts.Preview)
	if err != nil {
		return UndoResult{}, err
	}
	paths := limits(opts.Paths)
	var r reversal
	switch {
	case opts.To != "":
		r, err = v.since(ctx, gap, opts.To, paths)
	case opts.Event != "":
		r, err = v.alone(ctx, opts.Event, paths)
	default:
		r, err = v.newestStanding(ctx, gap, paths)
	}
	if err != nil {
		return UndoResult{}, err
	}
	return v.reverse(ctx, r, CauseUndo, opts.Force, opts.Preview)
}

func (v *Vault) redoLocked(ctx context.Context, opts *RedoOptions) (UndoResult, error) {
	gap, err := v.unsettled(ctx, opts.Preview)
	if err != nil {
		return UndoResult{}, err
	}
	var found *standing
	err = v.eachStep(ctx, gap, func(s standing) error {
		switch s.ev.Cause {
		case CauseRedo:
			return nil
		case CauseUndo:
			found = &s
			return kv.Stop
		}
		tells, err := v.s.tells(ctx, s.ev.Before, s.ev.After)
		if err == nil && tells {
			err = kv.Stop
		}
		return err
	})
	if err == nil && found == nil {
		err = fail(NothingToRedo, "", "")
	}
	if err != nil {
		return UndoResult{}, err
	}
	r, err := v.reversalOf(ctx, *found, nil)
	if err != nil {
		return UndoResult{}, err
	}
	return v.reverse(ctx, r, CauseRedo, opts.Force, opts.Preview)
}

// unsettled settles the vault, or for a preview gives the event that this would add.
func (v *Vault) unsettled(ctx context.Context, preview bool) (gap *Event, err error) {
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return nil, err
	}
	if !preview {
		return nil, v.settleCommitted(ctx)
	}
	if gap, err = v.gap(ctx); gap != nil {
		gap.Seq, gap.VaultID = v.s.lastEvent.Load()+1, v.id
	}
	return gap, err
}

// limits is what paths come to; nil is everywhere.
func limits(paths []string) []string {
	var list []string
	for _, p := range paths {
		if p = cleanPath(p); p == "" {
			return nil
		}
		list = append(list, p)
	}
	return list
}

// newestStanding finds the newest event of which something stands, at the paths, that
// taking it back would change. The undo of what somebody has put back by hand changes
// nothing, and is no reason to go no further.
func (v *Vault) newestStanding(ctx context.Context, gap *Event, paths []string) (r reversal, err error) {
	found := false
	try := func(s standing) error {
		if tells, err := v.s.tells(ctx, s.ev.Before, s.ev.After); err != nil || !tells {
			return err
		}
		if r, err = v.reversalOf(ctx, s, paths); err != nil {
			return err
		}
		r.checked = true
		p, err := v.plan(ctx, v.rec.Root, r.aim)
		if found = err == nil && !p.empty() && (s.ev.Undoes == 0 || len(p.drift) == 0); found {
			err = kv.Stop
		}
		return err
	}
	var redone []standing
	err = v.eachStep(ctx, gap, func(s standing) error {
		switch s.ev.Cause {
		case CauseUndo:
			return nil
		case CauseRedo:
			redone = append(redone, s)
			return nil
		}
		return try(s)
	})
	// What a redo has done again may not be in the timeline any more. Then the redo
	// stands for it, as long as what it did is still there.
	for i := 0; i < len(redone) && err == nil && !found; i++ {
		err = stopped(try(redone[i]))
	}
	if err == nil && !found {
		err = fail(NothingToUndo, "", "")
	}
	return r, err
}

// reversalOf is the reversal of what stands of one event, at the paths.
func (v *Vault) reversalOf(ctx context.Context, s standing, paths []string) (reversal, error) {
	r := reversal{aim: aim{to: s.ev.Before, after: s.ev.After}, undone: s.ev, events: 1}
	if len(paths) == 0 && len(s.gone) == 0 {
		return r, nil
	}
	changes, err := v.s.undoable(ctx, s.ev.Before, s.ev.After)
	if err != nil {
		return r, err
	}
	if err := s.load(ctx, v.s); err != nil {
		return r, err
	}
	r.limitTo(paths, changes)
	limit := r.limit
	r.inside = func(p string) bool { return (limit == nil || limit.has(p)) && s.left(p) }
	return r, nil
}

// alone is the reversal of one event, whatever has become of it since.
func (v *Vault) alone(ctx context.Context, idOrSeq string, paths []string) (reversal, error) {
	ev, err := v.FindEvent(ctx, idOrSeq)
	if err != nil {
		return reversal{}, err
	}
	return v.reversalOf(ctx, standing{ev: ev}, paths)
}

// since is the reversal of everything from an event on.
func (v *Vault) since(ctx context.Context, gap *Event, idOrSeq string, paths []string) (reversal, error) {
	ev, err := v.FindEvent(ctx, idOrSeq)
	if err != nil {
		return reversal{}, err
	}
	r := reversal{aim: aim{to: ev.Before, after: v.rec.Root}, undone: ev}
	if gap != nil {
		r.newest, r.events = gap.Seq, 1
	}
	err = v.s.kv.View(ctx, func(tx kv.Reader) error {
		return eachEvent(tx, v.id, func(e Event) error {
			r.newest = max(r.newest, e.Seq)
			r.events++
			if e.Seq == ev.Seq {
				return kv.Stop
			}
			return nil
		})
	})
	if err != nil || len(paths) == 0 {
		return r, err
	}
	changes, err := v.s.undoable(ctx, r.to, r.after)
	r.limitTo(paths, changes)
	r.inside = r.limit.has
	return r, err
}

// reverse takes the events of r back, as an event with the cause.
func (v *Vault) reverse(ctx context.Context, r reversal, cause string, force, preview bool) (UndoResult, error) {
	ev := Event{Cause: cause, Undoes: r.undone.Seq}
	r.scope(&ev)
	if r.newest > r.undone.Seq {
		ev.Through = r.newest
	}
	r.force, r.preview, r.checked = force, preview, true
	res, err := v.become(ctx, ev, r.aim)
	return UndoResult{RestoreResult: res, Undone: r.undone, Events: r.events}, err
}

// undoable lists what taking a change from a to b back would change. The time of a
// directory alone says that something came and went, and is not worth an undo.
func (s *Store) undoable(ctx context.Context, a, b Root) ([]change, error) {
	changes, err := s.diff(ctx, a, b, nil, true)
	return slices.DeleteFunc(changes, func(c change) bool {
		return c.kind == TimesChanged && c.after.n.isDir()
	}), err
}

// tells reports whether from a to b anything changed that somebody may want back: what a
// diff lists, or the time of a file, as touch sets it. A program that puts a new file with
// the same content in the place of the old one, as git status does with the index, has
// changed nothing: that ends no redo, and nobody would undo it.
func (s *Store) tells(ctx context.Context, a, b Root) (bool, error) {
	if worth, err := s.worthAnEvent(ctx, a, b); err != nil || !worth {
		return false, err
	}
	changes, err := s.undoable(ctx, a, b)
	if KindOf(err) == Corrupt {
		return true, nil
	}
	return slices.ContainsFunc(changes, func(c change) bool {
		return c.kind != TimesChanged || c.before.ino == c.after.ino || c.before.n.nlink > 1 || c.after.n.nlink > 1 // a link that was broken, or made
	}), err
}

// pathSet is what a list of changes touched: paths before and after, and the
// trees that it brought or moved, which belong to it whole.
type pathSet struct {
	paths map[string]bool
	trees map[string]bool
}

func pathsOf(changes []change) pathSet {
	set := pathSet{paths: map[string]bool{}, trees: map[string]bool{}}
	for _, c := range changes {
		set.paths[c.path] = true
		if c.oldPath != "" {
			set.paths[c.oldPath] = true
		}
		if c.after.n != nil && c.after.n.isDir() && (c.kind == Added || c.kind == TypeChanged || c.kind == Renamed) {
			set.trees[c.path] = true
		}
		if c.kind == Renamed && c.before.n.isDir() {
			set.trees[c.oldPath] = true
		}
	}
	return set
}

func (s pathSet) has(p string) bool {
	if s.paths[p] {
		return true
	}
	for i := strings.LastIndexByte(p, '/'); i > 0; i = strings.LastIndexByte(p[:i], '/') {
		if s.trees[p[:i]] {
			return true
		}
	}
	return false
}

// drift lists the paths of changes that are in the set.
func (s pathSet) drift(changes []change) []string {
	var hit []string
	for _, c := range changes {
		for _, p := range []string{c.path, c.oldPath} {
			if p != "" && s.has(p) {
				hit = append(hit, p)
			}
		}
	}
	return hit
}
