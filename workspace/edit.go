package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine"
)

// edit runs fn, which changes a vault, and keeps what it did as one event of the
// timeline, durably. What a failed fn has changed is kept all the same, because
// undo must reach it. What ends while a command runs is part of that command's event.
//
// What one edit does is in one event, and nothing that another does: edits, imports, undos,
// merges and the beginnings and ends of commands in one vault follow each other. So fn must
// not wait for anything from outside; see gather. What programs change through a mount
// meanwhile is in the event too, for nobody tells it apart.
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
	defer ev.Drop() // should fn panic
	err = fn(v)
	_, rerr := ev.EndIfChanged(engine.WithFailure(context.WithoutCancel(ctx), err))
	if err == nil && engine.KindOf(rerr) == engine.NoSpace {
		rerr = unsaved(rerr)
	}
	return errors.Join(err, rerr)
}

// unsaved says of an edit that a full disk keeps from being saved what has become of it:
// everybody sees it, but it is only in memory.
func unsaved(err error) error {
	var e *engine.Error
	details := map[string]any{"done": true, "saved": false}
	if errors.As(err, &e) {
		for k, v := range e.Details {
			details[k] = v
		}
	}
	return &engine.Error{
		Kind: engine.NoSpace, Details: details,
		Err: fmt.Errorf("it is done but not saved, which is tried again while the store is open, and lost when that ends before there is room: %w", err),
	}
}

// execIn is the exec whose command runs in the vault now; empty if none does.
func (o *Owner) execIn(vault string) string {
	t := o.turnOf(vault)
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.exec
}
