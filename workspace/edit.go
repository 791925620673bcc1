package workspace

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// edit runs fn, which changes a vault, and keeps what it did as one event of the
// timeline, durably. What a failed fn has changed is kept all the same, because
// undo must reach it. What began and ended while one command ran belongs to that
// command's event; anything less may be missing there, and has an event of its own.
//
// An edit takes no turn: input that comes slowly must not keep commands waiting. So
// the events of edits at the same time overlap, and undo of one that lost to
// another is Drift.
func (o *Owner) edit(ctx context.Context, vault string, command []string, fn func(v *engine.Vault) error) error {
	v, err := o.vault(ctx, vault)
	if err != nil {
		return err
	}
	exec := o.execIn(vault)
	if exec == "" { // what a command has in memory is its event's
		if err := o.flush(ctx, vault); err != nil {
			return err
		}
	}
	before, err := v.Pin(ctx)
	if err != nil {
		return err
	}
	err = fn(v)
	ctx = context.WithoutCancel(ctx)
	if exec != "" && o.execIn(vault) == exec {
		v.Unpin(before)
		return errors.Join(err, v.Sync(ctx))
	}
	rerr := v.RecordChange(ctx, engine.Event{Cause: engine.CauseWrite, Command: command, Before: before})
	if rerr != nil {
		v.Unpin(before)
	}
	return errors.Join(err, rerr)
}

// execIn is the exec whose command runs in the vault now; empty if none does.
func (o *Owner) execIn(vault string) string {
	t := o.turnOf(vault)
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.exec
}
