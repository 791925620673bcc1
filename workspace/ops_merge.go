package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine"
)

// MergeRequest asks to bring what changed in one vault into another of the same store.
type MergeRequest struct {
	Vault   string `json:"vault"` // that is merged into
	Source  string `json:"source"`
	Paths   []Path `json:"paths,omitempty"`  // only these and what is below them
	Ours    []Path `json:"ours,omitempty"`   // conflicts here stay as in Vault
	Theirs  []Path `json:"theirs,omitempty"` // and here become as in Source
	Markers bool   `json:"markers,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// OpMerge merges, whole or not at all. It does not wait for a command that runs in the
// vault. The details of a Conflict are those of the result.
var OpMerge = Op[MergeRequest, engine.MergeResult]{Name: "vault.merge", Run: runMerge}

func runMerge(ctx context.Context, o *Owner, req MergeRequest, s Streams) (engine.MergeResult, error) {
	none := engine.MergeResult{}
	v, err := o.vault(ctx, req.Vault)
	if err != nil {
		return none, err
	}
	src, err := o.present(ctx, req.Source)
	if err != nil {
		return none, err
	}
	if !req.DryRun {
		done, err := o.turn(ctx, req.Vault, false, s.Exec)
		if err != nil {
			return none, err
		}
		defer done()
	}
	if err := o.flush(ctx, req.Vault); err != nil {
		return none, err
	}
	if err := known(ctx, "merge", req.Paths, src, v); err != nil {
		return none, err
	}
	res, err := o.store.Merge(ctx, req.Source, req.Vault, &engine.MergeOptions{
		Paths: texts(req.Paths), Ours: texts(req.Ours), Theirs: texts(req.Theirs), Markers: req.Markers, DryRun: req.DryRun,
	})
	if engine.KindOf(err) == engine.Conflict {
		err = withDetails(err, res)
	}
	return res, err
}

// DiscardRequest asks to throw a fork away.
type DiscardRequest struct {
	Vault  string `json:"vault"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// DiscardResult says what was, or would be, thrown away.
type DiscardResult struct {
	DeleteResult
	engine.Unmerged
	DryRun bool `json:"dry_run,omitempty"`
}

// maxDiscarded is how many changes the result of a discard lists.
const maxDiscarded = 1000

// OpDiscard deletes a fork, whether or not it was merged, and lists what goes with it:
// what changed since it was made, or since it was last merged. A vault that is mounted
// or in which a command runs is busy.
var OpDiscard = Op[DiscardRequest, DiscardResult]{Name: "vault.discard",
	Run: func(ctx context.Context, o *Owner, req DiscardRequest, s Streams) (DiscardResult, error) {
		v, err := o.present(ctx, req.Vault)
		if err != nil {
			return DiscardResult{}, err
		}
		if _, ok := v.ForkPoint(); !ok {
			return DiscardResult{}, &engine.Error{Kind: engine.Invalid, Op: "discard", Path: req.Vault,
				Err: errors.New("the vault is no fork; delete it with: avfs vault delete")}
		}
		left, err := o.store.Unmerged(ctx, req.Vault, maxDiscarded)
		if err != nil {
			return DiscardResult{}, err
		}
		res := DiscardResult{Unmerged: left, DryRun: req.DryRun, DeleteResult: DeleteResult{Left: []string{}}}
		if req.DryRun {
			return res, nil
		}
		res.DeleteResult, err = opVaultDelete.Run(ctx, o, InVault{req.Vault}, s)
		return res, err
	}}

func mergeOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpMerge)
	add(all, OpDiscard)
	return all
}

// Merge brings what changed in the vault source into another; an empty name of that is
// the current vault. Vaults of different stores have nothing in common.
func (w *Workspace) Merge(ctx context.Context, req MergeRequest) (engine.MergeResult, error) {
	none := engine.MergeResult{}
	src, from, err := w.Locate(req.Source)
	if err != nil {
		return none, err
	}
	dst, store, err := w.Locate(req.Vault)
	if err != nil {
		return none, err
	}
	if from != store {
		return none, &engine.Error{Kind: engine.NoAncestor, Op: "merge", Path: src,
			Err: fmt.Errorf("the vaults are in different stores, so neither is a fork of the other: %s, %s", from, store)}
	}
	req.Source, req.Vault = src, dst
	return Call(ctx, w, store, OpMerge, req, Streams{})
}

// Discard deletes a fork, and says what goes with it.
func (w *Workspace) Discard(ctx context.Context, req DiscardRequest) (DiscardResult, error) {
	name, store, err := w.Locate(req.Vault)
	if err != nil {
		return DiscardResult{}, err
	}
	req.Vault = name
	res, err := Call(ctx, w, store, OpDiscard, req, Streams{})
	if err != nil || req.DryRun {
		return res, err
	}
	return res, w.forgetVault(ctx, name, store, res.Left)
}
