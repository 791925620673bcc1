package workspace

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// CheckpointRequest names a checkpoint, or describes a new one.
type CheckpointRequest struct {
	Vault   string `json:"vault"`
	ID      string `json:"id,omitempty"` // id or name of an existing one; of a restore: any state
	Name    string `json:"name,omitempty"`
	Message string `json:"message,omitempty"`
	Paths   []Path `json:"paths,omitempty"`   // of a restore: only these
	Preview bool   `json:"preview,omitempty"` // of a restore: only say what would change
}

// OpCheckpointSave keeps the present state.
var OpCheckpointSave = Op[CheckpointRequest, engine.Checkpoint]{Name: "checkpoint.save",
	Run: func(ctx context.Context, o *Owner, req CheckpointRequest, _ Streams) (engine.Checkpoint, error) {
		if req.Name == stateNow || req.Name == stateBase {
			return engine.Checkpoint{}, &engine.Error{Kind: engine.InvalidName, Op: "checkpoint name", Path: req.Name,
				Err: errors.New("it names a state already")}
		}
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
	Run: func(ctx context.Context, o *Owner, req CheckpointRequest, s Streams) (res engine.RestoreResult, err error) {
		err = o.replacing(ctx, req.Vault, s, func(v *engine.Vault) error {
			root, release, err := o.state(ctx, req.Vault, req.ID)
			if err != nil {
				return err
			}
			defer release()
			if err := known(ctx, "restore", req.Paths, v, o.store.Snapshot(root)); err != nil {
				return err
			}
			id := req.ID
			if cp, err := v.FindCheckpoint(ctx, id); err == nil {
				id = cp.ID
			}
			res, err = v.Restore(ctx, root, &engine.RestoreOptions{Paths: texts(req.Paths), ID: id, Preview: req.Preview})
			return err
		})
		return res, err
	}}

// UndoRequest asks to take back what was changed: by the newest event that stands, or by
// one or more that are named by their number or the id of an exec.
type UndoRequest struct {
	Vault   string `json:"vault"`
	To      string `json:"to,omitempty"`    // everything since and including this event
	Event   string `json:"event,omitempty"` // this event alone
	Paths   []Path `json:"paths,omitempty"` // only at these and below them
	Force   bool   `json:"force,omitempty"`
	Preview bool   `json:"preview,omitempty"` // only say what would change
}

// OpUndo takes back what was changed.
var OpUndo = Op[UndoRequest, engine.UndoResult]{Name: "undo",
	Run: func(ctx context.Context, o *Owner, req UndoRequest, s Streams) (res engine.UndoResult, err error) {
		err = o.replacing(ctx, req.Vault, s, func(v *engine.Vault) error {
			res, err = v.Undo(ctx, &engine.UndoOptions{
				To: req.To, Event: req.Event, Paths: texts(req.Paths), Force: req.Force, Preview: req.Preview,
			})
			return err
		})
		return res, err
	}}

// RedoRequest asks to do the newest undo over.
type RedoRequest struct {
	Vault   string `json:"vault"`
	Force   bool   `json:"force,omitempty"`
	Preview bool   `json:"preview,omitempty"` // only say what would change
}

// OpRedo takes back the newest undo that nothing came after.
var OpRedo = Op[RedoRequest, engine.UndoResult]{Name: "redo",
	Run: func(ctx context.Context, o *Owner, req RedoRequest, s Streams) (res engine.UndoResult, err error) {
		err = o.replacing(ctx, req.Vault, s, func(v *engine.Vault) error {
			res, err = v.Redo(ctx, &engine.RedoOptions{Force: req.Force, Preview: req.Preview})
			return err
		})
		return res, err
	}}

// replacing runs fn, which replaces what is in a vault, when its turn comes and what
// programs have in memory has arrived.
func (o *Owner) replacing(ctx context.Context, vault string, s Streams, fn func(v *engine.Vault) error) error {
	v, err := o.vault(ctx, vault)
	if err != nil {
		return err
	}
	done, err := o.turn(ctx, vault, true, s.Exec)
	if err != nil {
		return err
	}
	defer done()
	if err := o.flush(ctx, vault); err != nil {
		return err
	}
	return fn(v)
}

// LogRequest asks for the newest events of a vault.
type LogRequest struct {
	Vault string `json:"vault"`
	Limit int    `json:"limit,omitempty"`
}

// OpLog lists the timeline, newest first.
var OpLog = Op[LogRequest, []engine.LogEntry]{Name: "log",
	Run: func(ctx context.Context, o *Owner, req LogRequest, _ Streams) ([]engine.LogEntry, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return nil, err
		}
		return v.Log(ctx, req.Limit)
	}}

func historyOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpCheckpointSave)
	add(all, OpCheckpointList)
	add(all, OpCheckpointInfo)
	add(all, OpCheckpointDelete)
	add(all, OpCheckpointRestore)
	add(all, OpUndo)
	add(all, OpRedo)
	add(all, OpLog)
	return all
}
