package engine

import (
	"context"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// RestoreOptions says what to restore and how to record it.
type RestoreOptions struct {
	// Paths limits the restore to these and what is below them. Files that a
	// limited restore rewrites get a new modification time, so that builds
	// notice. Without paths the whole state is restored, times included.
	Paths []string
	// ID names what asked for it, for the timeline; may be empty.
	ID string
}

// RestoreResult says what a restore did. Changed and Changes go from the state
// before the restore to the one after.
type RestoreResult struct {
	Changed        int          `json:"changed"`
	Changes        []FileChange `json:"changes"`
	UndoCheckpoint string       `json:"undo_checkpoint,omitempty"` // the state before; empty if nothing changed
	Root           Root         `json:"root"`
	Event          uint64       `json:"event,omitempty"` // its entry in the timeline
}

// Restore brings a kept state back: of a checkpoint, a timeline entry, a vault or a
// pin; NotFound says that nothing keeps it. The state before is kept under a new
// checkpoint. Open handles of files that the restore replaces or removes fail with
// Stale from then on. A restore that changes nothing does nothing. It applies
// whole or not at all.
func (v *Vault) Restore(ctx context.Context, to Root, opts *RestoreOptions) (RestoreResult, error) {
	if opts == nil {
		opts = &RestoreOptions{}
	}
	defer v.replacing(ctx)()
	if err := v.s.pinKept(ctx, to); err != nil {
		return RestoreResult{}, wrap(err, "restore", v.Name())
	}
	defer v.s.unpin(to)
	ev := Event{Cause: CauseRestore, ID: opts.ID}
	var res RestoreResult
	var err error
	if len(opts.Paths) == 0 {
		res, err = v.switchTo(ctx, to, ev)
	} else {
		inside := func(p string) bool { return within(p, opts.Paths) }
		res, err = v.apply(ctx, to, ev, func(from Root) ([]string, error) {
			return v.s.touchedPaths(ctx, from, to, inside)
		})
	}
	return res, wrap(err, "restore", v.Name())
}

// quiet runs fn while nothing is pending and nobody else can read or change the
// vault. The caller holds commitMu.
func (v *Vault) quiet(ctx context.Context, fn func() error) error {
	v.s.sweep.RLock()
	defer v.s.sweep.RUnlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return fail(Closed, "", "")
	}
	if v.generation != v.committed.Load() {
		c := v.freeze(commitRequest{})
		if err := c.end(ctx, c.persist(ctx)); err != nil {
			return err
		}
	}
	return fn()
}

// switchTo makes the whole state to the vault's. The caller holds commitMu.
func (v *Vault) switchTo(ctx context.Context, to Root, ev Event) (RestoreResult, error) {
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return RestoreResult{}, err
	}
	plan, err := v.planSwitch(ctx, v.rec.Root, to)
	if err != nil {
		return RestoreResult{}, err
	}
	err = v.quiet(ctx, func() error {
		if v.rec.Root != plan.from { // written to since
			if plan, err = v.planSwitch(ctx, v.rec.Root, to); err != nil {
				return err
			}
		}
		if len(plan.foot.inos) == 0 {
			return nil
		}
		rec := v.pinned()
		rec.Root = to
		rec.Lineage = rec.Lineage.including(to).undone(ev.Undoes)
		rec.Count += plan.foot.count
		rec.Bytes += plan.foot.bytes
		rec.Checkpoints++
		undo := v.undoCheckpoint(ev)
		ev = v.stamp(ev)
		ev.Before, ev.After = plan.from, to
		err := v.s.kv.Update(ctx, kv.Durable, func(tx kv.Writer) error {
			if err := v.putHistory(ctx, tx, undo, ev); err != nil {
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
		v.adopt(rec, plan.foot)
		plan.res.Root, plan.res.UndoCheckpoint, plan.res.Event = to, undo.ID, ev.Seq
		return nil
	})
	return plan.res, err
}

// switchPlan is what a full restore is about to do.
type switchPlan struct {
	from Root
	foot footprint
	res  RestoreResult
}

func (v *Vault) planSwitch(ctx context.Context, from, to Root) (p switchPlan, err error) {
	p.from = from
	p.res.Root = from
	if p.foot, err = v.s.footprint(ctx, from, to); err != nil {
		return p, err
	}
	p.res.Changes, p.res.Changed, err = v.s.Diff(ctx, from, to, nil)
	return p, err
}

// undoCheckpoint describes the present state, which a restore is about to leave.
func (v *Vault) undoCheckpoint(ev Event) Checkpoint {
	return Checkpoint{
		ID: checkpointID(v.s.lastCheckpoint.Add(1)), VaultID: v.id, Message: "before " + ev.Cause, Auto: true,
		At: v.s.opts.Clock().UTC(), Root: v.rec.Root, Files: v.rec.Count, Bytes: v.rec.Bytes,
	}
}

// putHistory writes what a restore leaves in the vault's history.
func (v *Vault) putHistory(ctx context.Context, tx kv.Writer, undo Checkpoint, ev Event) error {
	seq, _ := parseCheckpointID(undo.ID)
	if err := putJSON(tx, tableCheckpoints, rowKey(v.id, seq), undo); err != nil {
		return err
	}
	return v.putNoted(ctx, tx, ev)
}

// adopt makes rec the vault's record and cuts off the handles of what changed.
// The caller holds both locks and nothing is pending.
func (v *Vault) adopt(rec vaultRecord, foot footprint) {
	v.rec = rec
	v.count, v.bytes = rec.Count, rec.Bytes
	v.replaced = append(v.replaced, foot.changes...)
	for ino := range foot.inos {
		if f := v.files[ino]; f != nil {
			v.cutOff(f)
		}
	}
	v.generation++
	v.committed.Store(v.generation)
	v.durable.Store(v.generation)
}

// cutOff makes the handles of f stale, also those of an unlinked file whose inode
// a restore brings back.
func (v *Vault) cutOff(f *file) {
	f.stale = true
	if f.orphan != nil {
		v.releaseOrphan(f)
		return
	}
	v.dropDirty(f)
	if v.files[f.ino] == f {
		delete(v.files, f.ino)
	}
}

// footprint is what differs between two states at the level of inodes.
type footprint struct {
	inos         map[Ino]bool
	changes      []Change
	count, bytes int64 // what the second state has more
}

func (s *Store) footprint(ctx context.Context, a, b Root) (footprint, error) {
	f := footprint{inos: map[Ino]bool{}}
	err := tree.Diff(ctx, s.nodes, a.ref, b.ref, func(k, old, new []byte) error {
		ino, kind, _, err := splitKey(k)
		if err != nil {
			return err
		}
		f.inos[ino] = true
		if c, ok := changeOf(k); ok {
			f.changes = append(f.changes, c)
		}
		if kind != kindInode {
			return nil
		}
		for _, side := range []struct {
			record []byte
			sign   int64
		}{{old, -1}, {new, 1}} {
			if side.record == nil {
				continue
			}
			n, err := decodeInode(side.record)
			if err != nil {
				return err
			}
			f.count += side.sign
			f.bytes += side.sign * n.alloc
		}
		return nil
	})
	return f, err
}
