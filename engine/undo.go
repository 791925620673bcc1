package engine

import (
	"context"
	"errors"
	"strings"
)

// UndoOptions tunes Undo.
type UndoOptions struct {
	Force bool // go on although files that the event touched changed since
}

// UndoResult says what was undone and what that changed.
type UndoResult struct {
	RestoreResult
	Undone Event `json:"undone"`
}

// Undo takes back the newest event of the timeline that changed something: an
// exec, an import, a restore, or an undo, so that undo twice is redo. What changed
// since at other paths stays; a change since at the same paths is Drift, unless
// forced. The state before is kept under a new checkpoint.
func (v *Vault) Undo(ctx context.Context, opts *UndoOptions) (UndoResult, error) {
	force := opts != nil && opts.Force
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	res, err := v.undoLocked(ctx, force)
	return res, wrap(err, "undo", v.Name())
}

func (v *Vault) undoLocked(ctx context.Context, force bool) (UndoResult, error) {
	target, err := v.newestChange(ctx)
	if err != nil {
		return UndoResult{}, err
	}
	if err := v.commitLocked(ctx, commitRequest{pin: true}); err != nil {
		return UndoResult{}, err
	}
	ev := Event{Cause: CauseUndo, Undoes: target.Seq}
	res := UndoResult{Undone: target}
	if v.rec.Root.Same(target.After) {
		res.RestoreResult, err = v.switchTo(ctx, target.Before, ev)
		return res, err
	}
	touched, err := v.s.diff(ctx, target.Before, target.After, nil, false)
	if err != nil {
		return res, err
	}
	since, err := v.s.diff(ctx, target.After, v.rec.Root, nil, false)
	if err != nil {
		return res, err
	}
	mine := pathsOf(touched)
	if drift := mine.drift(since); len(drift) > 0 && !force {
		return res, &Error{
			Kind: Drift, Err: errors.New("changed since: " + strings.Join(drift[:min(len(drift), 10)], ", ")),
			Details: map[string]any{"paths": drift},
		}
	}
	back, err := v.s.diff(ctx, v.rec.Root, target.Before, nil, false)
	if err != nil {
		return res, err
	}
	var changes []change
	for _, c := range back {
		if mine.has(c.path) || mine.has(c.oldPath) {
			changes = append(changes, c)
		}
	}
	res.RestoreResult, err = v.apply(ctx, target.Before, changes, mine.has, ev)
	return res, err
}

// newestChange is the newest event that changed the root.
func (v *Vault) newestChange(ctx context.Context) (Event, error) {
	events, err := v.Timeline(ctx, 0)
	if err != nil {
		return Event{}, err
	}
	for _, ev := range events {
		if !ev.Before.Same(ev.After) {
			return ev, nil
		}
	}
	return Event{}, fail(NothingToUndo, "", "")
}

// pathSet is what a list of changes touched: paths before and after, and the
// trees that it brought, which belong to it whole.
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
