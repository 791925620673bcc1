package engine

import (
	"context"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// GCReport says what a collection found and freed.
type GCReport struct {
	Nodes          int64 `json:"nodes"`           // tree nodes deleted
	Chunks         int64 `json:"chunks"`          // chunks deleted
	Rows           int64 `json:"rows"`            // checkpoints and timeline entries of deleted vaults
	LiveNodes      int64 `json:"live_nodes"`      // tree nodes kept
	LiveChunks     int64 `json:"live_chunks"`     // chunks kept
	ReclaimedBytes int64 `json:"reclaimed_bytes"` // given back to the file system, as the back end measures it
}

// GC deletes every node and chunk that no vault, fork point, checkpoint, timeline
// entry, running command or open file refers to, and gives the space back. It may
// be cut short at any moment: what is left is found by the next one. Commits wait
// while it marks and sweeps.
func (s *Store) GC(ctx context.Context) (GCReport, error) {
	var rep GCReport
	err := s.collect(ctx, &rep)
	if err != nil {
		return rep, wrap(err, "gc", "")
	}
	if c, ok := kv.As[kv.Compacter](s.kv); ok {
		if rep.ReclaimedBytes, err = c.Compact(ctx); err != nil {
			return rep, wrap(err, "gc", "")
		}
	}
	return rep, nil
}

func (s *Store) collect(ctx context.Context, rep *GCReport) error {
	s.sweep.Lock()
	defer s.sweep.Unlock()
	var nodes, chunks bitmap
	roots, err := s.keptRoots(ctx)
	if err != nil {
		return err
	}
	for _, r := range roots {
		if err := s.mark(ctx, r.root, &nodes, &chunks); err != nil {
			return err
		}
	}
	s.markOpen(&chunks)
	if err := s.sweepDigests(ctx, chunks); err != nil {
		return err
	}
	if rep.Chunks, rep.LiveChunks, err = s.sweepTable(ctx, tableChunks, chunks); err != nil {
		return err
	}
	if rep.Nodes, rep.LiveNodes, err = s.sweepTable(ctx, tableNodes, nodes); err != nil {
		return err
	}
	rep.Rows, err = s.sweepRows(ctx)
	return err
}

// mark adds everything below root that is not marked yet.
func (s *Store) mark(ctx context.Context, root Root, nodes, chunks *bitmap) error {
	enter := func(ref tree.Ref) (bool, error) { return nodes.add(ref.ID), nil }
	return tree.Walk(ctx, s.nodes, root.ref, enter, func(_ tree.Ref, n *tree.Node) error {
		if !n.IsLeaf() {
			return nil
		}
		for i := range n.Len() {
			if k := n.Key(i); len(k) > 8 && k[8] == kindChunk {
				c, err := decodeChunkRef(n.Value(i))
				if err != nil {
					return err
				}
				chunks.add(c.id)
			}
		}
		return nil
	})
}

// markOpen adds what only unlinked open files refer to. What was doomed is swept
// like the rest.
func (s *Store) markOpen(chunks *bitmap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.vaults {
		v.mu.Lock()
		for id := range v.held {
			chunks.add(id)
		}
		v.mu.Unlock()
	}
}

// sweepBatch is how many rows one transaction of a sweep deletes.
const sweepBatch = 10_000

// sweepDigests deletes the index rows of chunks that are not marked, before the
// chunks themselves, so that nothing can be found by digest that is gone.
func (s *Store) sweepDigests(ctx context.Context, live bitmap) error {
	return s.sweepWhere(ctx, tableDigests, nil, func(_, row []byte) (bool, error) {
		id, _, err := parseIndexRow(row)
		return err == nil && !live.has(id), err
	})
}

func (s *Store) sweepTable(ctx context.Context, t kv.Table, live bitmap) (dead, kept int64, err error) {
	err = s.sweepWhere(ctx, t, &dead, func(k, _ []byte) (bool, error) {
		if live.has(kv.ParseID(k)) {
			kept++
			return false, nil
		}
		return true, nil
	})
	return dead, kept, err
}

// sweepRows deletes checkpoints and timeline entries that belong to no vault.
func (s *Store) sweepRows(ctx context.Context) (int64, error) {
	s.mu.Lock()
	vaults := map[uint64]bool{}
	for _, v := range s.vaults {
		vaults[v.id] = true
	}
	s.mu.Unlock()
	var dead int64
	for _, t := range []kv.Table{tableCheckpoints, tableTimeline} {
		err := s.sweepWhere(ctx, t, &dead, func(k, _ []byte) (bool, error) {
			return len(k) == 16 && !vaults[kv.ParseID(k[:8])], nil
		})
		if err != nil {
			return dead, err
		}
	}
	return dead, nil
}

// sweepWhere deletes the rows for which dead holds, a batch in each transaction,
// and counts them. dead sees every row once.
func (s *Store) sweepWhere(ctx context.Context, t kv.Table, count *int64, dead func(k, value []byte) (bool, error)) error {
	var from []byte
	for more := true; more; {
		var batch [][]byte
		more = false
		err := s.kv.View(ctx, func(tx kv.Reader) error {
			return tx.Scan(t, nil, from, func(k, value []byte) error {
				if len(batch) == sweepBatch {
					more = true
					from = append([]byte(nil), k...)
					return kv.Stop
				}
				gone, err := dead(k, value)
				if gone {
					batch = append(batch, append([]byte(nil), k...))
				}
				return err
			})
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		err = s.kv.Update(ctx, kv.Relaxed|kv.Reclaim, func(tx kv.Writer) error {
			for _, k := range batch {
				if err := tx.Delete(t, k); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if count != nil {
			*count += int64(len(batch))
		}
	}
	return nil
}
