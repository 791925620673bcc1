package workspace

import (
	"context"

	"github.com/agentvfs/avfs/engine"
)

// CheckpointRequest names a checkpoint, or describes a new one.
type CheckpointRequest struct {
	Vault   string `json:"vault"`
	ID      string `json:"id,omitempty"` // id or name of an existing one; of a restore: any state
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

// OpCheckpointRestore brings the state of a checkpoint back, or another state.
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
		root, release, err := o.state(ctx, req.Vault, req.ID)
		if err != nil {
			return engine.RestoreResult{}, err
		}
		defer release()
		if err := known(ctx, "restore", req.Paths, v, o.store.Snapshot(root)); err != nil {
			return engine.RestoreResult{}, err
		}
		if err := o.flush(ctx, req.Vault); err != nil {
			return engine.RestoreResult{}, err
		}
		id := req.ID
		if cp, err := v.FindCheckpoint(ctx, id); err == nil {
			id = cp.ID
		}
		return v.Restore(ctx, root, &engine.RestoreOptions{Paths: texts(req.Paths), ID: id})
	}}

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

func historyOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpCheckpointSave)
	add(all, OpCheckpointList)
	add(all, OpCheckpointInfo)
	add(all, OpCheckpointDelete)
	add(all, OpCheckpointRestore)
	add(all, OpUndo)
	add(all, OpLog)
	return all
}
