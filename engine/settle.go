package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// The timeline tells of every change of a vault's root exactly once. The record of the
// vault says which state its newest event left (Noted). Where that is no more the
// present one when an event begins, a checkpoint is kept, a mount or the process
// ends, the difference first gets an event of its own. While a command runs, or an event
// has begun and not ended, it gets none: it is theirs.

// MountSession is a time during which programs may change a vault through a mount,
// without telling anybody.
type MountSession struct {
	ID         string `json:"id"`
	Mountpoint string `json:"mountpoint"`
}

// eventTurn waits until nobody else makes an event in the vault. The function that it returns
// ends the turn.
func (v *Vault) eventTurn(ctx context.Context) (done func(), err error) {
	done = func() { <-v.eventing }
	select {
	case v.eventing <- struct{}{}:
		return done, nil
	default: // what need not wait is not given up either
	}
	select {
	case v.eventing <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// claimed reports whether what has changed since the newest event belongs to a command
// that runs, or to an event that has begun. The caller holds commitMu.
func (v *Vault) claimed() bool { return v.running > 0 || v.begun != nil }

// SetMountSession says to what changes are laid that no event tells of; nil is a mount
// that nobody knows. The next commit makes it survive the death of the process.
func (v *Vault) SetMountSession(m *MountSession) {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if v.open() != nil {
		return // nothing changes any more
	}
	rec := v.rec
	rec.Session = m
	v.setRecord(rec)
}

// Settle commits what is pending and gives a change that no event tells of an event
// of its own. Where there is none, or a command runs, or an event has begun, it costs
// next to nothing.
func (v *Vault) Settle(ctx context.Context) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	return wrap(v.settleLocked(ctx), "settle", v.Name())
}

// settleLocked is Settle for a caller that holds commitMu.
func (v *Vault) settleLocked(ctx context.Context) error {
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return err
	}
	return v.settleCommitted(ctx)
}

// settleCommitted is settleLocked without what is pending.
func (v *Vault) settleCommitted(ctx context.Context) error {
	gap, err := v.gap(ctx)
	if err != nil {
		return err
	}
	if gap == nil {
		if !v.claimed() && v.rec.Noted != v.rec.Root { // nothing but times: need not be written
			rec := v.pinned()
			rec.Noted = rec.Root
			v.setRecord(rec)
		}
		return nil
	}
	return v.keepSettled(ctx, kv.Relaxed, gap, func(kv.Writer, *vaultRecord) error { return nil })
}

// Settle settles every vault that needs it, whatever becomes of the others. What fails
// is joined, in the order of the vaults' ids.
func (s *Store) Settle(ctx context.Context) error {
	vaults := s.allVaults()
	slices.SortFunc(vaults, func(a, b *Vault) int { return cmp.Compare(a.id, b.id) })
	var failed []error
	for _, v := range vaults {
		if v.settled() {
			continue
		}
		if err := v.Settle(ctx); err != nil && KindOf(err) != Closed {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// settled reports whether nothing has changed since the newest event.
func (v *Vault) settled() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rec.Noted.Same(v.rec.Root) && v.generation == v.committed.Load()
}

// gap is the event of what changed in the committed state since the newest event
// ended; nil where that is nothing worth one. It is not stamped. The caller holds
// commitMu.
func (v *Vault) gap(ctx context.Context) (*Event, error) {
	if v.claimed() || v.rec.Noted.Same(v.rec.Root) {
		return nil, nil
	}
	ok, err := v.s.worthAnEvent(ctx, v.rec.Noted, v.rec.Root)
	if err != nil || !ok {
		return nil, err
	}
	ev := &Event{Cause: CauseMount, Before: v.rec.Noted, After: v.rec.Root}
	if m := v.rec.Session; m != nil {
		ev.ID, ev.Mountpoint = m.ID, m.Mountpoint
	}
	return ev, nil
}

// keepPresent settles the vault and has its present committed root stay, with what fn
// writes about it. All of it is one transaction, and may use the reserve. The caller
// holds commitMu.
func (v *Vault) keepPresent(ctx context.Context, mode kv.Mode, fn func(tx kv.Writer, rec *vaultRecord) error) error {
	gap, err := v.gap(ctx)
	if err != nil {
		return err
	}
	return v.keepSettled(ctx, mode, gap, fn)
}

// stampGap completes the event that settles a vault, if there is one.
func (v *Vault) stampGap(gap *Event) *Event {
	if gap == nil {
		return nil
	}
	ev := v.stamp(*gap)
	return &ev
}

// putGap writes the event that settles a vault, if there is one. It is nobody's but
// the process's that has the store open, whoever asks for what made it necessary.
func (v *Vault) putGap(tx kv.Writer, gap *Event) error {
	if gap == nil {
		return nil
	}
	return v.putNoted(context.Background(), tx, *gap)
}

// keepSettled is keepPresent with the event that settles the vault, nil for none.
func (v *Vault) keepSettled(ctx context.Context, mode kv.Mode, gap *Event, fn func(tx kv.Writer, rec *vaultRecord) error) error {
	v.s.sweep.RLock()
	defer v.s.sweep.RUnlock()
	if err := v.open(); err != nil {
		return err
	}
	gap = v.stampGap(gap)
	var rec vaultRecord
	err := v.s.kv.Update(ctx, mode|kv.Reclaim, func(tx kv.Writer) error {
		rec = v.pinned()
		if !v.claimed() {
			rec.Noted = rec.Root
		}
		if err := v.putGap(tx, gap); err != nil {
			return err
		}
		if err := fn(tx, &rec); err != nil {
			return err
		}
		if err := putRecord(tx, rec); err != nil {
			return err
		}
		return v.s.putCounters(tx)
	})
	if err != nil {
		return err
	}
	v.setRecord(rec)
	if mode&kv.Durable != 0 {
		v.durable.Store(max(v.durable.Load(), v.committed.Load()))
	}
	v.pruneRecorded(ctx)
	return nil
}

// worthAnEvent reports whether anything differs from a to b but the times of
// directories, and times that move by themselves. It looks no further than the first
// such difference. Damage in the way counts as one.
func (s *Store) worthAnEvent(ctx context.Context, a, b Root) (found bool, err error) {
	if a.Same(b) {
		return false, nil
	}
	err = tree.Diff(ctx, s.nodes, a.ref, b.ref, func(k, old, new []byte) error {
		same, err := sameButTimes(k, old, new)
		if err == nil && !same {
			found, err = true, kv.Stop
		}
		return err
	})
	if KindOf(err) == Corrupt {
		return true, nil
	}
	return found, stopped(err)
}

// sameButTimes reports whether an entry that differs means the same to everybody.
func sameButTimes(k, old, new []byte) (bool, error) {
	_, kind, _, err := splitKey(k)
	if err != nil {
		return false, &Error{Kind: Corrupt, Err: err}
	}
	switch {
	case kind == kindChunk:
		return sameChunk(old, new)
	case kind != kindInode || old == nil || new == nil:
		return false, nil
	}
	a, err := decodeInode(old)
	if err != nil {
		return false, err
	}
	b, err := decodeInode(new)
	if err != nil {
		return false, err
	}
	b.ctime, b.atime = a.ctime, a.atime
	if a.isDir() && b.isDir() {
		b.mtime = a.mtime
	}
	return slices.Equal(a.encode(), b.encode()), nil
}

// OpenEvent is a change that has begun in a vault and is to become one event. Unlike
// an Unfinished it dies with the process; what it had done by then gets an event when
// the store is opened again.
type OpenEvent struct {
	v    *Vault
	ev   Event
	done func() // ends the turn; nil when it is over. Guarded by v.commitMu
}

// BeginEvent settles the vault and pins its present state, from which the event that
// ev describes (Cause, ID, Command) is about to lead. End or Drop must follow. Until then
// whatever else makes an event in the vault waits, so it must not be what the same caller
// does; checkpoints and forks do not wait, and what has changed by then stays this event's.
func (v *Vault) BeginEvent(ctx context.Context, ev Event) (*OpenEvent, error) {
	done, err := v.eventTurn(ctx)
	if err != nil {
		return nil, wrap(err, "begin "+ev.Cause, v.Name())
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	err = v.commitLocked(ctx, commitRequest{pin: true})
	if err == nil {
		err = v.settleCommitted(ctx)
	}
	if err != nil {
		done()
		return nil, wrap(err, "begin "+ev.Cause, v.Name())
	}
	ev.Before = v.rec.Root
	v.s.pin(ev.Before)
	v.begun = &OpenEvent{v: v, ev: ev, done: done}
	return v.begun, nil
}

// Before is the state from which the event leads.
func (o *OpenEvent) Before() Root { return o.ev.Before }

// End commits what is pending durably and adds the event. While a command runs the
// change becomes part of that command's event instead; then the event that is returned
// has no Seq.
func (o *OpenEvent) End(ctx context.Context) (Event, error) { return o.end(ctx, true) }

// EndIfChanged is End for what is worth an event only if it has changed something. If
// it has not, the event that is returned has no Seq.
func (o *OpenEvent) EndIfChanged(ctx context.Context) (Event, error) { return o.end(ctx, false) }

func (o *OpenEvent) end(ctx context.Context, always bool) (Event, error) {
	v := o.v
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	defer o.drop()
	if v.running > 0 {
		err := v.commitLocked(ctx, commitRequest{durable: true})
		return Event{Cause: o.ev.Cause}, wrap(err, "commit", v.Name())
	}
	added := false
	ev, err := v.recordLocked(ctx, o.ev, nil, func(tx kv.Writer, ev Event) error {
		if added = always || !ev.After.Same(ev.Before); !added {
			return nil
		}
		return v.putNoted(ctx, tx, ev)
	})
	if !added {
		ev.Seq = 0
	}
	return ev, wrap(err, "record "+ev.Cause, v.Name())
}

// Drop gives up: what has changed gets an event with the next one that begins. After
// End it does nothing.
func (o *OpenEvent) Drop() {
	o.v.commitMu.Lock()
	defer o.v.commitMu.Unlock()
	o.drop()
}

func (o *OpenEvent) drop() {
	if o.done == nil {
		return
	}
	o.v.s.unpin(o.ev.Before)
	o.v.begun = nil
	o.done()
	o.done = nil
}
