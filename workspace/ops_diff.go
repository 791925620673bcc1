package workspace

import (
	"context"
	"errors"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// DiffRequest names two states and paths to look at.
type DiffRequest struct {
	Vault string `json:"vault"`
	From  string `json:"from,omitempty"` // empty is the present state
	To    string `json:"to,omitempty"`   // likewise
	// Rest are a second state in the place of To, if the first of them names one, and
	// paths.
	Rest  []Path `json:"rest,omitempty"`
	Times bool   `json:"times,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// DiffResult lists what differs.
type DiffResult struct {
	Changes []engine.FileChange `json:"changes"`
	Total   int                 `json:"total"`
}

// OpDiff compares two states.
var OpDiff = Op[DiffRequest, DiffResult]{Name: "diff",
	Run: func(ctx context.Context, o *Owner, req DiffRequest, _ Streams) (DiffResult, error) {
		d, err := o.twoStates(ctx, req)
		if err != nil {
			return DiffResult{}, err
		}
		defer d.release()
		changes, total, err := o.store.Diff(ctx, d.from, d.to, &engine.DiffOptions{Paths: d.paths, Times: req.Times, Limit: req.Limit})
		return DiffResult{Changes: changes, Total: total}, err
	}}

// twoStates are the states that a DiffRequest names.
type twoStates struct {
	from, to engine.Root
	paths    []string
	release  func()
}

func (o *Owner) twoStates(ctx context.Context, req DiffRequest) (d twoStates, err error) {
	from, release, err := o.state(ctx, req.Vault, req.From)
	if err != nil {
		return d, err
	}
	to, releaseTo, rest, err := o.secondState(ctx, req)
	if err != nil {
		release()
		return d, err
	}
	d = twoStates{from: from, to: to, paths: texts(rest), release: func() { releaseTo(); release() }}
	if err := known(ctx, "compare", rest, o.store.Snapshot(from), o.store.Snapshot(to)); err != nil {
		d.release()
		return d, err
	}
	return d, nil
}

// secondState finds the state to compare with, and the paths.
func (o *Owner) secondState(ctx context.Context, req DiffRequest) (engine.Root, func(), []Path, error) {
	if req.To != "" || len(req.Rest) == 0 || !mayBeState(string(req.Rest[0])) {
		root, release, err := o.state(ctx, req.Vault, req.To)
		return root, release, req.Rest, err
	}
	name := string(req.Rest[0])
	root, release, err := o.state(ctx, req.Vault, name)
	if engine.KindOf(err) != engine.CheckpointNotFound || isCheckpointID(name) {
		return root, release, req.Rest[1:], err
	}
	root, release, err = o.state(ctx, req.Vault, "")
	return root, release, req.Rest, err
}

// mayBeState reports whether an argument can be the name of a state: paths have a
// slash, or lead to the top directory.
func mayBeState(arg string) bool {
	return arg != "." && arg != ".." && (!strings.ContainsRune(arg, '/') || strings.HasPrefix(arg, vaultPrefix))
}

// isCheckpointID reports whether a name can be nothing but the id of a checkpoint.
func isCheckpointID(name string) bool {
	digits, ok := strings.CutPrefix(name, "c")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// known fails with NotFound for a path that none of the states has: it is a mistake,
// not a path where nothing differs.
func known(ctx context.Context, op string, paths []Path, states ...tree) error {
	for _, p := range texts(paths) {
		var err error
		for _, t := range states {
			if _, err = t.Resolve(ctx, p, false); err == nil {
				break
			}
		}
		if engine.KindOf(err) == engine.NotFound || engine.KindOf(err) == engine.NotDirectory {
			return &engine.Error{Kind: engine.NotFound, Op: op, Path: p, Err: errors.New("no such file or directory in either state, and no state of this name")}
		}
	}
	return nil
}

func diffOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpDiff)
	return all
}
