package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine/kv"
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
// exec, a write, an import, a restore, or an undo, so that undo twice is redo. The
// times of directories alone are nothing that anybody would want back. What changed
// since at other paths stays; a change since at the same paths is Drift, unless
// forced. The state before is kept under a new checkpoint.
func (v *Vault) Undo(ctx context.Context, opts *UndoOptions) (UndoResult, error) {
	force := opts != nil && opts.Force
	defer v.replacing(ctx)()
	res, err := v.undoLocked(ctx, force)
	return res, wrap(err, "undo", v.Name())
}

// undoLocked is Undo for a caller that holds commitMu, which keeps the timeline
// as it is, and with it the roots that are needed.
func (v *Vault) undoLocked(ctx context.Context, force bool) (UndoResult, error) {
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return UndoResult{}, err
	}
	target, touched, err := v.newestChange(ctx)
	if err != nil {
		return UndoResult{}, err
	}
	ev := Event{Cause: CauseUndo, Undoes: target.Seq}
	res := UndoResult{Undone: target}
	if v.rec.Root.Same(target.After) {
		res.RestoreResult, err = v.switchTo(ctx, target.Before, ev)
		return res, err
	}
	mine := pathsOf(touched)
	res.RestoreResult, err = v.apply(ctx, target.Before, ev, func(from Root) ([]string, error) {
		since, err := v.s.diff(ctx, target.After, from, nil, false)
		if err != nil {
			return nil, err
		}
		if drift := mine.drift(since); len(drift) > 0 && !force {
			return nil, &Error{
				Kind: Drift, Err: errors.New("changed since: " + strings.Join(drift[:min(len(drift), 10)], ", ")),
				Details: map[string]any{"paths": drift},
			}
		}
		return v.s.touchedPaths(ctx, from, target.Before, mine.has)
	})
	return res, err
}

// undoable lists what an undo of ev takes back. The time of a directory alone says
// that something came and went, and is not worth an undo.
func (s *Store) undoable(ctx context.Context, ev Event) ([]change, error) {
	changes, err := s.diff(ctx, ev.Before, ev.After, nil, true)
	return slices.DeleteFunc(changes, func(c change) bool {
		return c.kind == TimesChanged && c.after.n.isDir()
	}), err
}

// newestChange is the newest event that changed something for an undo, and what.
func (v *Vault) newestChange(ctx context.Context) (Event, []change, error) {
	for seq := uint64(math.MaxUint64); ; {
		ev, err := v.newestBefore(ctx, seq)
		if err != nil {
			return ev, nil, err
		}
		changes, err := v.s.undoable(ctx, ev)
		if err != nil || len(changes) > 0 {
			return ev, changes, err
		}
		seq = ev.Seq
	}
}

// newestBefore is the newest event before seq that changed the root.
func (v *Vault) newestBefore(ctx context.Context, seq uint64) (newest Event, err error) {
	err = v.s.kv.View(ctx, func(tx kv.Reader) error {
		newest = Event{}
		return eachEventBefore(tx, v.id, seq, func(ev Event) error {
			if ev.Before.Same(ev.After) {
				return nil
			}
			newest = ev
			return kv.Stop
		})
	})
	if err == nil && newest.Seq == 0 {
		err = fail(NothingToUndo, "", "")
	}
	return newest, err
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
