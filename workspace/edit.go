package workspace

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// edit runs fn, which changes a vault, and keeps what it did as one event of the
// timeline, durably. What a failed fn has changed is kept all the same, because
// undo must reach it. While a command runs in the vault the change belongs to that
// command's event.
//
// An edit takes no turn: input that comes slowly must not keep commands waiting. So
// the events of edits at the same time overlap, and undo of one that lost to
// another is Drift.
func (o *Owner) edit(ctx context.Context, vault string, command []string, fn func(v *engine.Vault) error) error {
	v, err := o.vault(ctx, vault)
	if err != nil {
		return err
	}
	if o.execIn(vault) {
		err := fn(v)
		return errors.Join(err, v.Sync(context.WithoutCancel(ctx)))
	}
	before, err := v.Pin(ctx)
	if err != nil {
		return err
	}
	err = fn(v)
	ctx = context.WithoutCancel(ctx)
	after, cerr := v.Commit(ctx, true)
	if cerr == nil && !after.Same(before) {
		_, cerr = v.Record(ctx, engine.Event{Cause: engine.CauseWrite, Command: command, Before: before})
		if cerr == nil {
			return err
		}
	}
	v.Unpin(before)
	return errors.Join(err, cerr)
}

// execIn reports whether a command runs in the vault now.
func (o *Owner) execIn(vault string) bool {
	t := o.turnOf(vault)
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.exec != ""
}
