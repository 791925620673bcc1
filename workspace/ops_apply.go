package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// ApplyRequest asks to bring what changed in a vault since an import back to where that
// came from.
type ApplyRequest struct {
	Vault  string `json:"vault"`
	To     Path   `json:"to"`              // absolute path of the host's directory
	Paths  []Path `json:"paths,omitempty"` // of the vault: only these and what is below them
	DryRun bool   `json:"dry_run,omitempty"`
	Force  bool   `json:"force,omitempty"`
}

// OpApply brings changes back to the host. The details of a failure say what was done.
var OpApply = Op[ApplyRequest, transfer.ApplyReport]{Name: "apply", Long: true,
	Run: func(ctx context.Context, o *Owner, req ApplyRequest, _ Streams) (transfer.ApplyReport, error) {
		v, err := o.present(ctx, req.Vault)
		if err != nil {
			return transfer.ApplyReport{}, err
		}
		origin, err := originOf(v, string(req.To))
		if err != nil {
			return transfer.ApplyReport{}, err
		}
		now, err := v.Pin(ctx)
		if err != nil {
			return transfer.ApplyReport{}, err
		}
		defer v.Unpin(now)
		state, base := o.store.Snapshot(now), o.store.Snapshot(origin.Root)
		if err := known(ctx, "apply", req.Paths, state, base); err != nil {
			return transfer.ApplyReport{}, err
		}
		paths := texts(req.Paths)
		if len(paths) == 0 {
			paths = []string{origin.Dest}
		}
		changes, _, err := o.store.Diff(ctx, origin.Root, now, &engine.DiffOptions{Paths: paths})
		if err != nil {
			return transfer.ApplyReport{}, err
		}
		opts := &transfer.ApplyOptions{DryRun: req.DryRun, Force: req.Force}
		for _, root := range origin.AppliedStates() {
			since, _, err := o.store.Diff(ctx, root, now, &engine.DiffOptions{Paths: paths})
			if err != nil {
				return transfer.ApplyReport{}, err
			}
			opts.Applied = append(opts.Applied, transfer.AppliedState{State: o.store.Snapshot(root), Since: since})
		}
		rep, err := transfer.Apply(ctx, base, state, changes, origin.Dest, origin.Source, opts)
		if err == nil && !req.DryRun {
			err = v.NoteApplied(context.WithoutCancel(ctx), origin, now, len(req.Paths) == 0)
		}
		if err != nil {
			err = appliedSoFar(err, rep)
		}
		return rep, err
	}}

// appliedSoFar adds to a failure what was done, and where the host has drifted.
func appliedSoFar(err error, rep transfer.ApplyReport) error {
	full := withDetails(err, rep)
	var cause, e *engine.Error
	if errors.As(err, &cause) && errors.As(full, &e) && cause.Details["drift"] != nil {
		for _, k := range []string{"drift", transfer.ApplyForced, transfer.ApplyMoved} {
			if d, ok := cause.Details[k]; ok {
				e.Details[k] = d
			}
		}
	}
	return full
}

// originOf finds the newest import from a directory of the host.
func originOf(v *engine.Vault, dir string) (engine.HostOrigin, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return engine.HostOrigin{}, &engine.Error{Kind: engine.KindOf(err), Op: "apply", Path: dir, Err: err}
	}
	list := v.Origins()
	others := []string{}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Source == real {
			return list[i], nil
		}
		others = append(others, list[i].Source)
	}
	why := "nothing was imported into the vault from there"
	if len(others) > 0 {
		why += fmt.Sprintf(", but from %s", strings.Join(others, ", "))
	}
	return engine.HostOrigin{}, &engine.Error{Kind: engine.NotFound, Op: "apply", Path: dir, Err: errors.New(why),
		Details: map[string]any{"imported_from": others}}
}
