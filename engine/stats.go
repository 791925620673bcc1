package engine

import (
	"context"

	"github.com/agentvfs/avfs/engine/kv"
)

// Stats says what fills a store. Content is counted once per store, in bytes before
// compression; what several hold counts for the first of vaults, lineage,
// checkpoints and history.
type Stats struct {
	Vaults       int   `json:"vaults"`
	Files        int64 `json:"files"`         // in all vaults
	LogicalBytes int64 `json:"logical_bytes"` // content of all vaults, as if nothing were shared

	Events          int `json:"events"`           // in all timelines
	Checkpoints     int `json:"checkpoints"`      // saved ones
	AutoCheckpoints int `json:"auto_checkpoints"` // made before commands, restores and undos

	VaultBytes      int64 `json:"vault_bytes"`      // that vaults hold
	LineageBytes    int64 `json:"lineage_bytes"`    // that only merges and applies may go back to holds beside: where forks began, what was merged and imported
	CheckpointBytes int64 `json:"checkpoint_bytes"` // that only saved checkpoints hold beside
	HistoryBytes    int64 `json:"history_bytes"`    // that only what Prune drops holds beside

	GarbageChunks int64 `json:"garbage_chunks"` // that nothing holds
	GarbageNodes  int64 `json:"garbage_nodes"`
	GarbageBytes  int64 `json:"garbage_bytes"` // of both, as they are stored
	StoredBytes   int64 `json:"stored_bytes"`  // the whole store; 0 where the back end does not tell
}

// Stats measures the store. Like GC it walks every state that is kept, so it takes
// as long as there are files, though nobody waits for it; it reads no content.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	s.care.Lock()
	defer s.care.Unlock()
	st, err := s.stats(ctx)
	return st, wrap(err, "measure", "store")
}

func (s *Store) stats(ctx context.Context) (st Stats, err error) {
	lastNode, lastChunk := s.lastNode.Load(), s.lastChunk.Load() // what is younger is not looked at
	vaults := s.allVaults()
	pinned, err := s.pinVaults(ctx, vaults)
	var held []Root
	for _, rec := range pinned {
		defer s.unpin(rec.Root)
		held = append(held, rec.Root)
	}
	if err != nil {
		return st, err
	}
	for _, v := range vaults {
		info := v.Info()
		st.Vaults++
		st.Files += info.Files
		st.LogicalBytes += info.Bytes
	}
	roots, err := s.rootsByHolder(ctx, &st)
	if err != nil {
		return st, err
	}
	var live marks
	for _, part := range []struct {
		roots []Root
		bytes *int64
	}{{append(held, roots.vaults...), &st.VaultBytes}, {roots.lineage, &st.LineageBytes}, {roots.checkpoints, &st.CheckpointBytes}, {roots.history, &st.HistoryBytes}} {
		before := live.bytes
		for _, r := range part.roots {
			if err := s.mark(ctx, r, &live); err != nil {
				return st, err
			}
		}
		*part.bytes = live.bytes - before
	}
	if err := s.markOpen(&live.chunks); err != nil {
		return st, err
	}
	if err := s.garbage(ctx, tableChunks, live.chunks, lastChunk, &st.GarbageChunks, &st.GarbageBytes); err != nil {
		return st, err
	}
	if err := s.garbage(ctx, tableNodes, live.nodes, lastNode, &st.GarbageNodes, &st.GarbageBytes); err != nil {
		return st, err
	}
	st.StoredBytes, _, err = s.storedBytes()
	return st, err
}

// heldRoots are roots by what holds them.
type heldRoots struct{ vaults, lineage, checkpoints, history []Root }

// rootsByHolder sorts the kept roots and counts what holds them.
func (s *Store) rootsByHolder(ctx context.Context, st *Stats) (list heldRoots, err error) {
	for _, v := range s.allVaults() {
		n, err := v.countEvents(ctx)
		if err != nil {
			return list, err
		}
		st.Events += n
	}
	err = s.eachRoot(ctx, func(r keptRoot) error {
		switch {
		case r.kind == rootCheckpoint && !r.auto:
			st.Checkpoints++
			list.checkpoints = append(list.checkpoints, r.root)
		case r.kind == rootCheckpoint:
			st.AutoCheckpoints++
			list.history = append(list.history, r.root)
		case r.kind == rootForkPoint, r.kind == rootLineage:
			list.lineage = append(list.lineage, r.root)
		case r.kind == rootEvent, r.kind == rootNoted, r.kind == rootOutput:
			list.history = append(list.history, r.root)
		case r.kind != rootLive: // which are pinned; these go on changing
			list.vaults = append(list.vaults, r.root)
		}
		return nil
	})
	return list, err
}

// garbage counts the rows up to last whose ids are not live, and their bytes.
func (s *Store) garbage(ctx context.Context, t kv.Table, live bitmap, last uint64, count, bytes *int64) error {
	return s.eachDead(ctx, t, live, last, func(rows []deadRow) error {
		for _, r := range rows {
			*count++
			*bytes += int64(r.size)
		}
		return nil
	})
}
