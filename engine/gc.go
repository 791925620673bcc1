package engine

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// GCReport says what a collection found and freed.
type GCReport struct {
	Nodes          int64 `json:"nodes"`             // tree nodes deleted
	Chunks         int64 `json:"chunks"`            // chunks deleted
	Rows           int64 `json:"rows"`              // checkpoints, timeline entries and notes of deleted vaults
	LiveNodes      int64 `json:"live_nodes"`        // tree nodes kept
	LiveChunks     int64 `json:"live_chunks"`       // chunks kept
	ReclaimedBytes int64 `json:"reclaimed_bytes"`   // given back to the file system, as the back end measures it
	NoRoom         bool  `json:"no_room,omitempty"` // the disk has no room to shrink the store; what was freed is free inside it
}

// GC commits and deletes every node and chunk that no vault, fork point,
// checkpoint, timeline entry, running command or open file refers to, and gives the
// space back. It may be cut short at any moment: what is left is found by the next
// one. Commits go on meanwhile; they wait for moments only.
func (s *Store) GC(ctx context.Context) (rep GCReport, err error) {
	s.care.Lock()
	defer s.care.Unlock()
	err = s.commitPending(ctx)
	if err == nil {
		err = s.collect(ctx, &rep)
	}
	if err != nil {
		return rep, wrap(err, "gc", "")
	}
	defer func() { err = errors.Join(err, wrap(s.noteCollected(ctx), "gc", "")) }()
	if c, ok := kv.As[kv.Compacter](s.kv); ok {
		rep.ReclaimedBytes, err = c.Compact(ctx)
		if errors.Is(err, kv.ErrNoSpace) || errors.Is(err, kv.ErrReadOnly) { // opened so for want of room
			rep.NoRoom, err = true, nil
		}
	}
	return rep, wrap(err, "gc", "")
}

// commitPending commits every vault, so that what was removed a moment ago is
// garbage already. A full disk is no reason not to make room on it.
func (s *Store) commitPending(ctx context.Context) error {
	for _, v := range s.allVaults() {
		_, err := v.Commit(ctx, false)
		if err != nil && KindOf(err) != NoSpace && KindOf(err) != Closed {
			return err
		}
	}
	return nil
}

func (s *Store) collect(ctx context.Context, rep *GCReport) error {
	if err := s.dropLineage(ctx); err != nil {
		return err
	}
	var live marks
	lastNode, lastChunk, err := s.findLive(ctx, &live, rep)
	if err != nil {
		return err
	}
	// Nothing can lead to what is swept now: no root, no open file, no digest.
	if rep.Chunks, err = s.sweepIDs(ctx, tableChunks, live.chunks, lastChunk); err != nil {
		return err
	}
	rep.Nodes, err = s.sweepIDs(ctx, tableNodes, live.nodes, lastNode)
	return err
}

// findLive marks what must stay and takes the rest out of the digest index, so
// that no commit finds it any more. It returns the newest ids that it speaks of;
// what is younger stays as well.
func (s *Store) findLive(ctx context.Context, live *marks, rep *GCReport) (lastNode, lastChunk uint64, err error) {
	s.chunks.claims.begin()
	defer s.chunks.claims.end()
	defer s.setFloors(0, 0)
	roots, err := s.freezeRoots(ctx, live, &lastNode, &lastChunk)
	if err != nil {
		return 0, 0, err
	}
	for _, r := range roots {
		if err := s.mark(ctx, r, live); err != nil {
			return 0, 0, err
		}
	}
	if err := s.sweepDigests(ctx, live.chunks, lastChunk); err != nil {
		return 0, 0, err
	}
	s.chunks.claims.addTo(&live.chunks)
	rep.LiveNodes, rep.LiveChunks = live.nodes.count(), live.chunks.count()
	rep.Rows, err = s.sweepRows(ctx)
	return lastNode, lastChunk, err
}

// freezeRoots lists every root that is kept at this moment, and makes sure that
// nothing which they refer to is deleted while it is marked: commits drop younger
// nodes and chunks only. A root that is kept later refers to these states' nodes
// and to younger ones, so what is in none of them, and not younger, is garbage for
// good. It also marks what only open files refer to.
func (s *Store) freezeRoots(ctx context.Context, live *marks, lastNode, lastChunk *uint64) (roots []Root, err error) {
	seen, known := map[Root]bool{}, rowSet{}
	add := func(r keptRoot) error {
		if !seen[r.root] {
			seen[r.root] = true
			roots = append(roots, r.root)
		}
		return nil
	}
	// Most of the history is read beforehand. What goes meanwhile is kept once more,
	// but the present states of vaults are not: their nodes may go as well.
	err = s.eachNewRoot(ctx, known, func(r keptRoot) error {
		if r.kind == rootCheckpoint || r.kind == rootEvent {
			return add(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.pause()
	defer s.sweep.Unlock()
	*lastNode, *lastChunk = s.lastNode.Load(), s.lastChunk.Load()
	s.setFloors(*lastNode, *lastChunk)
	if err := s.eachNewRoot(ctx, known, add); err != nil {
		return nil, err
	}
	return roots, s.markOpen(&live.chunks)
}

// pauseWait bounds how long pause looks for a moment without commits.
const pauseWait = 2 * time.Second

// pause takes sweep alone. A commit may take long, and whoever waits for the lock
// makes the commits of other vaults wait as well; so it looks for a moment in which
// none is under way, and waits only if there is none.
func (s *Store) pause() {
	for until := time.Now().Add(pauseWait); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if s.sweep.TryLock() {
			return
		}
	}
	s.sweep.Lock()
}

// setFloors keeps commits from deleting what has these ids or lower ones.
func (s *Store) setFloors(node, chunk uint64) {
	for _, v := range s.allVaults() {
		v.mu.Lock()
		v.floorNode, v.floorChunk = node, chunk
		v.mu.Unlock()
	}
}

// claims are chunks that commits found by their digest while GC marks. Nothing else
// may lead to them, so it does not see them otherwise. Whoever adds holds sweep
// shared until the commit is over.
type claims struct {
	mu     sync.Mutex // guards what follows
	active bool
	ids    bitmap
}

func (c *claims) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active, c.ids = true, nil
}

func (c *claims) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active, c.ids = false, nil
}

func (c *claims) add(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active {
		c.ids.add(id)
	}
}

func (c *claims) has(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids.has(id)
}

func (c *claims) addTo(live *bitmap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, word := range c.ids {
		for ; word != 0; word &= word - 1 {
			live.add(uint64(i)*64 + uint64(bits.TrailingZeros64(word)))
		}
	}
}

// marks is what was found to be in use.
type marks struct {
	nodes, chunks bitmap
	bytes         int64 // content of the chunks that files of kept states have
	records       int64 // of the nodes, in bytes as they are stored
}

// size is that of the content, before compression, and of the nodes.
func (m *marks) size() int64 { return m.bytes + m.records }

// mark adds everything below root that is not marked yet.
func (s *Store) mark(ctx context.Context, root Root, live *marks) error {
	enter := func(ref tree.Ref) (bool, error) { return live.nodes.add(ref.ID), nil }
	return tree.Walk(ctx, s.nodes, root.ref, enter, func(_ tree.Ref, n *tree.Node) error {
		live.records += int64(n.RecordSize())
		if !n.IsLeaf() {
			return nil
		}
		for i := range n.Len() {
			if k := n.Key(i); len(k) > 8 && k[8] == kindChunk {
				c, err := decodeChunkRef(n.Value(i))
				if err != nil {
					return err
				}
				if live.chunks.add(c.id) {
					live.bytes += int64(c.length)
				}
			}
		}
		return nil
	})
}

// markOpen adds what only unlinked open files refer to, and files that have got it
// from those since the last commit. What was doomed is swept like the rest.
func (s *Store) markOpen(chunks *bitmap) error {
	for _, v := range s.allVaults() {
		if err := v.markPending(chunks); err != nil {
			return err
		}
	}
	return nil
}

func (v *Vault) markPending(chunks *bitmap) (err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for id := range v.held {
		chunks.add(id)
	}
	v.active.Scan(func(k string, value []byte) bool {
		if k[keyHead-1] != kindChunk || value == nil {
			return true
		}
		var ref chunkRef
		if ref, err = decodeChunkRef(value); err == nil {
			chunks.add(ref.id)
		}
		return err == nil
	})
	return err
}

// Bounds of one transaction of a sweep, for which commits may have to wait: so many
// rows, with so many bytes, are deleted.
const (
	sweepBatch = 2_000
	sweepBytes = 4 << 20
	// sweepLooks is how many gaps or rows one transaction looks at, found or not: a
	// long one keeps the database from using its log and free pages again.
	sweepLooks = 20_000
)

// pausedBatch is how many rows GC deletes while commits wait.
const pausedBatch = 500

// sweepDigests deletes the index rows of chunks up to last that are not marked, and
// those that are damaged, before the chunks themselves, so that nothing can be found
// by digest that is gone. Between two batches a commit may still find such a chunk;
// it claims it, and no commit is under way while a batch is decided.
func (s *Store) sweepDigests(ctx context.Context, live bitmap, last uint64) error {
	dead := func(k, row []byte) bool {
		id, _, ok := parseIndexRow(k, row)
		return !ok || id <= last && !live.has(id) && !s.chunks.claims.has(id)
	}
	return s.eachRow(ctx, tableDigests, dead, func(keys [][]byte) error {
		for part := range slices.Chunk(keys, pausedBatch) {
			if err := s.dropDigests(ctx, part, dead); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropDigests deletes the index rows that are dead still.
func (s *Store) dropDigests(ctx context.Context, keys [][]byte, dead func(k, row []byte) bool) error {
	s.pause()
	defer s.sweep.Unlock()
	return s.kv.Update(ctx, kv.Relaxed|kv.Reclaim, func(tx kv.Writer) error {
		for _, k := range keys {
			row, ok, err := tx.Get(tableDigests, k)
			if err == nil && ok && dead(k, row) {
				err = tx.Delete(tableDigests, k)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// sweepIDs deletes the rows up to last whose ids are not live, and counts them.
func (s *Store) sweepIDs(ctx context.Context, t kv.Table, live bitmap, last uint64) (dead int64, err error) {
	err = s.eachDead(ctx, t, live, last, func(rows []deadRow) error {
		keys := make([][]byte, len(rows))
		for i, r := range rows {
			keys[i] = r.key
		}
		if err := s.deleteKeys(ctx, t, keys); err != nil {
			return err
		}
		dead += int64(len(rows))
		return nil
	})
	return dead, err
}

// deadRow is a row that nothing refers to; size is that of its value in bytes.
type deadRow struct {
	key  []byte
	size int
}

// eachDead shows the rows up to last whose ids are not live to fn, a batch at a
// time, outside of the transaction that found them. It looks between live ids only,
// since reading a row means reading its content.
func (s *Store) eachDead(ctx context.Context, t kv.Table, live bitmap, last uint64, fn func([]deadRow) error) error {
	for next := uint64(1); next <= last; {
		var batch []deadRow
		bytes := 0
		looks := 0
		full := func() bool { return len(batch) >= sweepBatch || bytes >= sweepBytes || looks >= sweepLooks }
		err := s.kv.View(ctx, func(tx kv.Reader) error {
			for next <= last && !full() {
				low, high := live.nextGap(next, last+1)
				next = high
				looks++
				if low == high {
					return nil
				}
				err := tx.Scan(t, nil, kv.ID(low), func(k, value []byte) error {
					switch id := kv.ParseID(k); {
					case id >= high:
						return kv.Stop
					case full():
						next = id
						return kv.Stop
					}
					batch = append(batch, deadRow{append([]byte(nil), k...), len(value)})
					bytes += len(value)
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil && len(batch) > 0 {
			err = fn(batch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteKeys(ctx context.Context, t kv.Table, keys [][]byte) error {
	if len(keys) == 0 {
		return nil
	}
	return s.kv.Update(ctx, kv.Relaxed|kv.Reclaim, func(tx kv.Writer) error {
		for _, k := range keys {
			if err := tx.Delete(t, k); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweepRows deletes the rows that belong to no vault: checkpoints, timeline entries,
// notes and others.
func (s *Store) sweepRows(ctx context.Context) (dead int64, err error) {
	last, vaults := s.vaultIDs()
	for _, t := range rowTables() {
		ownerless := func(k, _ []byte) bool {
			return len(k) == 16 && kv.ParseID(k[:8]) <= last && !vaults[kv.ParseID(k[:8])]
		}
		err := s.eachRow(ctx, t, ownerless, func(keys [][]byte) error {
			dead += int64(len(keys))
			return s.deleteKeys(ctx, t, keys)
		})
		if err != nil {
			return dead, err
		}
	}
	notes, err := s.sweepNotes(ctx, last, vaults)
	return dead + notes, err
}

// vaultIDs lists the vaults up to the newest id, at a moment in which none is made.
func (s *Store) vaultIDs() (last uint64, ids map[uint64]bool) {
	s.pause()
	defer s.sweep.Unlock()
	ids = map[uint64]bool{}
	for _, v := range s.allVaults() {
		ids[v.id] = true
	}
	return s.lastVault.Load(), ids
}

// eachRow shows the keys of the rows for which match holds to fn, a batch at a
// time, outside of the transaction that found them. match sees every row once.
func (s *Store) eachRow(ctx context.Context, t kv.Table, match func(k, value []byte) bool, fn func(keys [][]byte) error) error {
	var from []byte
	for more := true; more; {
		var batch [][]byte
		more = false
		looks := 0
		err := s.kv.View(ctx, func(tx kv.Reader) error {
			return tx.Scan(t, nil, from, func(k, value []byte) error {
				if looks++; len(batch) == sweepBatch || looks > sweepLooks {
					more = true
					from = append([]byte(nil), k...)
					return kv.Stop
				}
				if match(k, value) {
					batch = append(batch, append([]byte(nil), k...))
				}
				return nil
			})
		})
		if err == nil && len(batch) > 0 {
			err = fn(batch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
