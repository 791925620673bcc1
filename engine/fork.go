package engine

import (
	"context"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Fork makes the vault dst with the present state of src. It copies one root: its
// cost depends neither on the number of files nor on the depth of forks.
func (s *Store) Fork(ctx context.Context, src, dst string) (*Vault, error) {
	v, err := s.Vault(ctx, src)
	if err != nil {
		return nil, wrap(err, "fork", src)
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return nil, wrap(err, "fork", src)
	}
	rec := v.rec
	fork, err := s.forkFrom(ctx, v, forkPoint{rec.Root, s.opts.Clock().UTC(), s.nextEvent(), rec.Count, rec.Bytes}, dst)
	return fork, wrap(err, "fork", src)
}

// ForkAt is Fork from a checkpoint of src instead of its present state.
func (s *Store) ForkAt(ctx context.Context, src string, cp Checkpoint, dst string) (*Vault, error) {
	v, err := s.Vault(ctx, src)
	if err != nil {
		return nil, wrap(err, "fork", src)
	}
	v.commitMu.Lock() // which keeps the checkpoint from being deleted
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return nil, wrap(err, "fork", src)
	}
	if cp, err = v.FindCheckpoint(ctx, cp.ID); err != nil {
		return nil, wrap(err, "fork", src)
	}
	fork, err := s.forkFrom(ctx, v, forkPoint{cp.Root, cp.At, cp.Seq, cp.Files, cp.Bytes}, dst)
	return fork, wrap(err, "fork", src)
}

// forkPoint is the state that a fork begins with, and when its parent had it.
type forkPoint struct {
	root         Root
	at           time.Time
	seq          uint64 // see ancestor
	files, bytes int64
}

// nextEvent is the number that the next event of any vault gets at the earliest. With
// commitMu of a vault held, its state is from before that event.
func (s *Store) nextEvent() uint64 { return s.lastEvent.Load() + 1 }

// forkFrom adds a vault at a state of v, and pins what v has. The caller holds
// v.commitMu.
func (s *Store) forkFrom(ctx context.Context, v *Vault, p forkPoint, dst string) (*Vault, error) {
	pinned := v.pinned()
	rec := vaultRecord{
		Name: dst, Parent: pinned.Name, ForkedFrom: p.root, CreatedAt: s.opts.Clock().UTC(), Root: p.root, Noted: p.root,
		NodeMark: pinned.NodeMark, ChunkMark: pinned.ChunkMark, Count: p.files, Bytes: p.bytes,
		Quota: pinned.Quota, Retention: pinned.Retention, Lineage: lineageOf(pinned).forked(pinned, p, s.lastNode.Load()+1),
	}
	fork, err := s.addVault(rec, func(f *Vault) error {
		e := f.entry(ctx, AuditVaultFork)
		e.Subject, e.RootAfter = pinned.Name, p.root.String()
		return s.kv.Update(ctx, kv.Durable, func(tx kv.Writer) error {
			if _, err := s.putAudit(tx, e); err != nil {
				return err
			}
			if err := putRecord(tx, f.rec); err != nil {
				return err
			}
			if err := putRecord(tx, pinned); err != nil {
				return err
			}
			return s.putCounters(tx)
		})
	})
	if err != nil {
		return nil, err
	}
	v.setRecord(pinned)
	return fork, nil
}

// pinned is the vault's record with everything it refers to marked as shared. The
// caller holds commitMu, persists the record, and then calls setRecord.
func (v *Vault) pinned() vaultRecord {
	rec := v.rec
	rec.NodeMark, rec.ChunkMark = v.s.lastNode.Load(), v.s.lastChunk.Load()
	return rec
}

// chunkMark is the chunk id up to which others may refer to what the vault has, or
// GC looks for it. The caller holds mu.
func (v *Vault) chunkMark() uint64 { return max(v.rec.ChunkMark, v.floorChunk) }

// setRecord replaces the vault's record. The caller holds commitMu.
func (v *Vault) setRecord(rec vaultRecord) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rec = rec
}

// ForkPoint is the state that a fork began with; a vault that is no fork has none.
func (v *Vault) ForkPoint() (Root, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rec.ForkedFrom, !v.rec.ForkedFrom.IsZero()
}
