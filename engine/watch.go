package engine

import (
	"context"
	"slices"
)

// Change is one thing that became different in a vault.
type Change struct {
	Ino Ino
	// Name is a name in the directory Ino that came, went, or means another
	// inode now. Empty, it is the attributes or the content of Ino.
	Name string
}

// Watcher is told of the changes that others make.
type Watcher struct {
	v  *Vault
	fn func(ctx context.Context, changes []Change)
}

// Watch calls fn after each step that changes what is to be seen in the vault,
// except those that are taken with a context of the watcher's own (Context). fn
// runs in the goroutine that took the step, before its call returns and while no
// lock of the engine is held; ctx is that of the call. Steps that are taken at the
// same time may be told in either order, and together. fn may use the vault. Stop
// ends it.
func (v *Vault) Watch(fn func(ctx context.Context, changes []Change)) *Watcher {
	w := &Watcher{v: v, fn: fn}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watchers = append(slices.Clone(v.watchers), w)
	return w
}

// Stop ends the watch. Calls that are under way may still be told of.
func (w *Watcher) Stop() {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	w.v.watchers = slices.DeleteFunc(slices.Clone(w.v.watchers), func(o *Watcher) bool { return o == w })
}

// watcherKey finds the watcher whose own step a call is.
type watcherKey struct{}

// Context marks calls as the watcher's own, of which it is not told.
func (w *Watcher) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, watcherKey{}, w)
}

// notes gathers what one step changes, for those who watch.
type notes struct {
	to      []*Watcher
	changes []Change
}

// note starts notes of the step that ctx belongs to, if anybody is to be told. The
// caller holds mu.
func (v *Vault) note(ctx context.Context, n *notes) {
	if len(v.watchers) == 0 {
		return
	}
	own, _ := ctx.Value(watcherKey{}).(*Watcher)
	if own != nil && len(v.watchers) == 1 && v.watchers[0] == own {
		return
	}
	for _, w := range v.watchers {
		if w != own {
			n.to = append(n.to, w)
		}
	}
	v.notes = n
}

// add notes the change of one of ino's entries.
func (n *notes) add(key []byte) {
	if c, ok := changeOf(key); ok && (len(n.changes) == 0 || n.changes[len(n.changes)-1] != c) {
		n.changes = append(n.changes, c)
	}
}

// changeOf is what the change of an entry means to a watcher. Every change of
// content or an attribute moves the inode's ctime as well, so that other kinds of
// entries say nothing new.
func changeOf(key []byte) (Change, bool) {
	ino, kind, suffix, err := splitKey(key)
	switch {
	case err != nil: // such an entry is in no view
	case kind == kindInode:
		return Change{Ino: ino}, true
	case kind == kindDirent:
		return Change{Ino: ino, Name: string(suffix)}, true
	}
	return Change{}, false
}

// tell passes the notes on. The caller holds no lock.
func (n *notes) tell(ctx context.Context) {
	if len(n.changes) == 0 {
		return
	}
	for _, w := range n.to {
		w.fn(ctx, n.changes)
	}
}

// replacing takes commitMu for an operation that may put another state in the
// place of the vault's. The returned function gives it back and tells who watches,
// after that, because they may wait for somebody who waits for a commit.
func (v *Vault) replacing(ctx context.Context) (done func(), err error) {
	told, err := v.eventTurn(ctx)
	if err != nil {
		return nil, err
	}
	v.commitMu.Lock()
	return func() {
		n := notes{changes: v.replaced}
		v.replaced = nil
		v.pruneRecorded(ctx)
		v.commitMu.Unlock()
		told()
		if len(n.changes) == 0 {
			return
		}
		v.mu.RLock()
		n.to = v.watchers
		v.mu.RUnlock()
		n.tell(ctx)
	}, nil
}
