package workspace

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// edit runs fn, which changes a vault, and keeps what it did as one event of the
// timeline, durably. What a failed fn has changed is kept all the same, because
// undo must reach it. What ends while a command runs is part of that command's event.
//
// An edit takes no turn: input that comes slowly must not keep commands waiting. What
// several have done at the same time is in the event of the one that ends first, or
// of the command that begins meanwhile; no change is in two events.
func (o *Owner) edit(ctx context.Context, vault string, command []string, fn func(v *engine.Vault) error) error {
	v, err := o.vault(ctx, vault)
	if err != nil {
		return err
	}
	if o.execIn(vault) == "" { // what a command has in memory is its event's
		if err := o.flush(ctx, vault); err != nil {
			return err
		}
	}
	ev, err := v.BeginEvent(ctx, engine.Event{Cause: engine.CauseWrite, Command: command})
	if err != nil {
		return err
	}
	err = fn(v)
	_, rerr := ev.EndIfChanged(context.WithoutCancel(ctx))
	return errors.Join(err, rerr)
}

// execIn is the exec whose command runs in the vault now; empty if none does.
func (o *Owner) execIn(vault string) string {
	t := o.turnOf(vault)
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.exec
}
