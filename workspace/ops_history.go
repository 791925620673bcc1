package workspace

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// CheckpointRequest names a checkpoint, or describes a new one.
type CheckpointRequest struct {
	Vault   string `json:"vault"`
	ID      string `json:"id,omitempty"` // id or name of an existing one
	Name    string `json:"name,omitempty"`
	Message string `json:"message,omitempty"`
	Paths   []Path `json:"paths,omitempty"` // of a restore: only these
}

// OpCheckpointSave keeps the present state.
var OpCheckpointSave = Op[CheckpointRequest, engine.Checkpoint]{Name: "checkpoint.save",
	Run: func(ctx context.Context, o *Owner, req CheckpointRequest, _ Streams) (engine.Checkpoint, error) {
		v, err := o.present(ctx, req.Vault)
		if err != nil {
			return engine.Checkpoint{}, err
		}
		return v.Checkpoint(ctx, engine.CheckpointOptions{Name: req.Name, Message: req.Message})
	}}

// OpCheckpointList lists checkpoints, oldest first.
var OpCheckpointList = Op[InVault, []engine.Checkpoint]{Name: "checkpoint.list",
	Run: func(ctx context.Context, o *Owner, req InVault, _ Streams) ([]engine.Checkpoint, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return nil, err
		}
		return v.Checkpoints(ctx)
	}}

// OpCheckpointInfo describes one checkpoint.
var OpCheckpointInfo = Op[CheckpointRequest, engine.Checkpoint]{Name: "checkpoint.info",
	Run: func(ctx context.Context, o *Owner, req CheckpointRequest, _ Streams) (engine.Checkpoint, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return engine.Checkpoint{}, err
		}
		return v.FindCheckpoint(ctx, req.ID)
	}}

// OpCheckpointDelete deletes one checkpoint and describes what it was.
var OpCheckpointDelete = Op[CheckpointRequest, engine.Checkpoint]{Name: "checkpoint.delete",
	Run: func(ctx context.Context, o *Owner, req CheckpointRequest, _ Streams) (engine.Checkpoint, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return engine.Checkpoint{}, err
		}
		cp, err := v.FindCheckpoint(ctx, req.ID)
		if err != nil {
			return cp, err
		}
		return cp, v.DeleteCheckpoint(ctx, cp.ID)
	}}

// OpCheckpointRestore brings a checkpoint's state back.
var OpCheckpointRestore = Op[CheckpointRequest, engine.RestoreResult]{Name: "checkpoint.restore",
	Run: func(ctx context.Context, o *Owner, req CheckpointRequest, s Streams) (engine.RestoreResult, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return engine.RestoreResult{}, err
		}
		done, err := o.turn(ctx, req.Vault, true, s.Exec)
		if err != nil {
			return engine.RestoreResult{}, err
		}
		defer done()
		cp, err := v.FindCheckpoint(ctx, req.ID)
		if err != nil {
			return engine.RestoreResult{}, err
		}
		if err := known(ctx, req.Paths, v, o.store.Snapshot(cp.Root)); err != nil {
			return engine.RestoreResult{}, err
		}
		if err := o.flush(ctx, req.Vault); err != nil {
			return engine.RestoreResult{}, err
		}
		return v.Restore(ctx, cp.Root, &engine.RestoreOptions{Paths: texts(req.Paths), ID: cp.ID})
	}}

// known fails with NotFound for a path that none of the states has: it is a
// mistake, not a path where nothing differs.
func known(ctx context.Context, paths []Path, states ...tree) error {
	for _, p := range texts(paths) {
		var err error
		for _, t := range states {
			if _, err = t.Resolve(ctx, p, false); err == nil {
				break
			}
		}
		if engine.KindOf(err) == engine.NotFound || engine.KindOf(err) == engine.NotDirectory {
			return &engine.Error{Kind: engine.NotFound, Op: "restore", Path: p, Err: errors.New("no such file or directory, now or in the checkpoint")}
		}
	}
	return nil
}

// UndoRequest asks to take back the newest change.
type UndoRequest struct {
	Vault string `json:"vault"`
	Force bool   `json:"force,omitempty"`
}

// OpUndo takes back the newest event that changed something.
var OpUndo = Op[UndoRequest, engine.UndoResult]{Name: "undo",
	Run: func(ctx context.Context, o *Owner, req UndoRequest, s Streams) (engine.UndoResult, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return engine.UndoResult{}, err
		}
		done, err := o.turn(ctx, req.Vault, true, s.Exec)
		if err != nil {
			return engine.UndoResult{}, err
		}
		defer done()
		if err := o.flush(ctx, req.Vault); err != nil {
			return engine.UndoResult{}, err
		}
		return v.Undo(ctx, &engine.UndoOptions{Force: req.Force})
	}}

// LogRequest asks for the newest events of a vault.
type LogRequest struct {
	Vault string `json:"vault"`
	Limit int    `json:"limit,omitempty"`
}

// OpLog lists the timeline, newest first.
var OpLog = Op[LogRequest, []engine.Event]{Name: "log",
	Run: func(ctx context.Context, o *Owner, req LogRequest, _ Streams) ([]engine.Event, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return nil, err
		}
		return v.Timeline(ctx, req.Limit)
	}}

// DiffRequest names two states. From and To are checkpoints, or other vaults of
// the same store where they begin with "vault:"; empty means the present state
// of Vault.
type DiffRequest struct {
	Vault string `json:"vault"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	Paths []Path `json:"paths,omitempty"`
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
		from, unpin, err := o.state(ctx, req.Vault, req.From)
		if err != nil {
			return DiffResult{}, err
		}
		defer unpin()
		to, unpinTo, err := o.state(ctx, req.Vault, req.To)
		if err != nil {
			return DiffResult{}, err
		}
		defer unpinTo()
		opts := &engine.DiffOptions{Paths: texts(req.Paths), Times: req.Times, Limit: req.Limit}
		changes, total, err := o.store.Diff(ctx, from, to, opts)
		return DiffResult{Changes: changes, Total: total}, err
	}}

const vaultPrefix = "vault:"

// state finds a root by its name in a DiffRequest. The returned function lets go
// of it.
func (o *Owner) state(ctx context.Context, vault, name string) (engine.Root, func(), error) {
	none := func() {}
	if len(name) > len(vaultPrefix) && name[:len(vaultPrefix)] == vaultPrefix {
		vault, name = name[len(vaultPrefix):], ""
	}
	v, err := o.vault(ctx, vault)
	if err != nil {
		return engine.Root{}, none, err
	}
	if name != "" {
		cp, err := v.FindCheckpoint(ctx, name)
		return cp.Root, none, err
	}
	if err := o.flush(ctx, vault); err != nil {
		return engine.Root{}, none, err
	}
	root, err := v.Pin(ctx)
	if err != nil {
		return engine.Root{}, none, err
	}
	return root, func() { v.Unpin(root) }, nil
}

// ForkDiffRequest asks what changed in a fork.
type ForkDiffRequest struct {
	Vault string `json:"vault"`
	Paths []Path `json:"paths,omitempty"`
	Times bool   `json:"times,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// OpForkDiff lists what changed in a fork since it was made.
var OpForkDiff = Op[ForkDiffRequest, DiffResult]{Name: "diff.fork",
	Run: func(ctx context.Context, o *Owner, req ForkDiffRequest, _ Streams) (DiffResult, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return DiffResult{}, err
		}
		from, ok := v.ForkPoint()
		if !ok {
			return DiffResult{}, &engine.Error{Kind: engine.Invalid, Op: "diff", Path: req.Vault,
				Err: errors.New("the vault is no fork; name a checkpoint to compare with")}
		}
		if err := o.flush(ctx, req.Vault); err != nil {
			return DiffResult{}, err
		}
		to, err := v.Pin(ctx)
		if err != nil {
			return DiffResult{}, err
		}
		defer v.Unpin(to)
		changes, total, err := o.store.Diff(ctx, from, to, &engine.DiffOptions{Paths: texts(req.Paths), Times: req.Times, Limit: req.Limit})
		return DiffResult{Changes: changes, Total: total}, err
	}}

func historyOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpCheckpointSave)
	add(all, OpCheckpointList)
	add(all, OpCheckpointInfo)
	add(all, OpCheckpointDelete)
	add(all, OpCheckpointRestore)
	add(all, OpUndo)
	add(all, OpLog)
	add(all, OpDiff)
	add(all, OpForkDiff)
	return all
}
