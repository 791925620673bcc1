package workspace

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/patch"
)

// DiffRequest names two states and paths to look at.
type DiffRequest struct {
	Vault string `json:"vault"`
	From  string `json:"from,omitempty"` // empty is the present state
	To    string `json:"to,omitempty"`   // likewise
	// Rest are a second state in the place of To, if the first of them names one, and
	// paths.
	Rest  []Path   `json:"rest,omitempty"`
	Times bool     `json:"times,omitempty"`
	Limit int      `json:"limit,omitempty"` // of the list; the text has everything
	Text  DiffText `json:"text,omitempty"`
	// Context is how many equal lines surround a difference in the text: 0 is the
	// usual number, below 0 none.
	Context int `json:"context,omitempty"`
}

// DiffText says what a diff writes to the output stream besides its result.
type DiffText string

// The texts of a diff. Empty is none.
const (
	TextUnified DiffText = "unified" // for people: binary files are only named
	TextGit     DiffText = "git"     // for git apply
	TextStat    DiffText = "stat"    // nothing is written, but Files counts lines
)

// DiffResult lists what differs. With a text Files has one entry for each section of
// it, and LeftOut what it cannot express.
type DiffResult struct {
	Changes []engine.FileChange `json:"changes"`
	Total   int                 `json:"total"`
	Files   []patch.FileStat    `json:"files,omitempty"`
	LeftOut []patch.LeftOut     `json:"left_out,omitempty"`
}

// OpDiff compares two states, and may write the difference as text.
var OpDiff = Op[DiffRequest, DiffResult]{Name: "diff",
	Run: func(ctx context.Context, o *Owner, req DiffRequest, s Streams) (DiffResult, error) {
		d, err := o.twoStates(ctx, req)
		if err != nil {
			return DiffResult{}, err
		}
		defer d.release()
		opts := &engine.DiffOptions{Paths: d.paths, Times: req.Times}
		if req.Text == "" {
			opts.Limit = req.Limit
		}
		changes, total, err := o.store.Diff(ctx, d.from, d.to, opts)
		res := DiffResult{Changes: changes, Total: total}
		if err != nil || req.Text == "" {
			return res, err
		}
		err = o.writeDiff(ctx, s.out(), d, req, &res)
		if req.Limit > 0 && total > req.Limit {
			res.Changes = changes[:req.Limit]
		}
		return res, err
	}}

// writeDiff writes the changes in res as text.
func (o *Owner) writeDiff(ctx context.Context, w io.Writer, d twoStates, req DiffRequest, res *DiffResult) error {
	if req.Text == TextStat {
		w = io.Discard
	}
	opts := &patch.Options{Binary: req.Text == TextGit, Context: req.Context}
	rep, err := patch.Write(ctx, w, o.store.Snapshot(d.from), o.store.Snapshot(d.to), res.Changes, opts)
	res.Files, res.LeftOut = rep.Files, rep.LeftOut
	return err
}

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
