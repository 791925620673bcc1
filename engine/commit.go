package engine

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sort"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// Bounds of one transaction of a commit; a commit that needs more writes its data
// in earlier ones. Sizes are in bytes, well inside the limits of package kv.
const (
	groupBytes   = 4 << 20
	groupChunks  = 8_000
	nodesBytes   = 3 << 20
	doomedNodes  = 5_000
	doomedChunk  = 2_000
	sharedChunks = 2_000
)

// commitRequest says what a commit must do beyond persisting what is pending.
type commitRequest struct {
	durable bool
	spill   bool // also store the content of unlinked open files
	pin     bool // keep the new root: nothing it refers to may be dropped
	// more writes with the new root in the same transaction. It may change
	// rec and may run more than once.
	more func(tx kv.Writer, rec *vaultRecord) error
}

// doomed lists what the newest root no longer refers to, and no other root can.
// It is deleted by the next commit, when no reader of the old root is left.
type doomed struct {
	nodes  []uint64
	chunks []chunkRef
	// closed are chunks of unlinked files whose last handle went. A state that
	// was being published at that moment may still have the file: the next
	// commit looks at the mark again.
	closed []chunkRef
}

func (d *doomed) empty() bool { return len(d.nodes) == 0 && len(d.chunks) == 0 && len(d.closed) == 0 }

// Commit makes everything pending part of a new root and returns it. A durable
// commit survives power loss, a relaxed one the death of the process.
func (v *Vault) Commit(ctx context.Context, durable bool) (Root, error) {
	if err := v.commit(ctx, commitRequest{durable: durable}); err != nil {
		return Root{}, wrap(err, "commit", v.Name())
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rec.Root, nil
}

// Sync commits durably; callers that wait at the same time share one commit.
func (v *Vault) Sync(ctx context.Context) error {
	return wrap(v.commit(ctx, commitRequest{durable: true}), "sync", "")
}

func (v *Vault) commit(ctx context.Context, req commitRequest) error {
	v.mu.RLock()
	want, closed := v.generation, v.closed
	v.mu.RUnlock()
	if closed {
		return fail(Closed, "", "")
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if req.more == nil && !req.pin && !req.spill && v.covered(want, req.durable) {
		return nil
	}
	return v.commitLocked(ctx, req)
}

// covered reports whether a commit since has done the work.
func (v *Vault) covered(generation uint64, durable bool) bool {
	if durable {
		return v.durable.Load() >= generation
	}
	return v.committed.Load() >= generation
}

// commitLocked is commit for a caller that holds commitMu.
func (v *Vault) commitLocked(ctx context.Context, req commitRequest) error {
	v.s.sweep.RLock()
	defer v.s.sweep.RUnlock()
	if err := v.open(); err != nil {
		return err
	}
	return v.commitSwept(ctx, req)
}

// commitSwept is commitLocked for a caller that holds sweep too. A vault that is
// closing still commits.
func (v *Vault) commitSwept(ctx context.Context, req commitRequest) error {
	v.mu.Lock()
	c := v.freeze(req)
	v.mu.Unlock()
	err := c.persist(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	return c.end(ctx, err)
}

// end makes the outcome of persist that of the vault. The caller holds mu.
func (c *commit) end(ctx context.Context, err error) error {
	if err != nil {
		c.thaw(ctx, err)
		return err
	}
	c.finish()
	return nil
}

// commit is one commit on its way.
type commit struct {
	v       *Vault
	req     commitRequest
	gen     uint64
	rec     vaultRecord // of the new root
	next    vaultRecord // rec with what req.more did to it
	old     vaultRecord
	over    *overlay
	pages   []pending
	content int64 // bytes in pages
	changes []tree.Change
	sink    nodeSink
	last    []*stored // the group that the final transaction writes
	drop    doomed    // what the commit before left to delete
	dead    doomed    // what this commit leaves
	shared  map[uint64]chunkRef

	floorNode, floorChunk uint64 // of the vault, beside the marks in old
}

// pending is one page to store.
type pending struct {
	f     *file
	apart bool // of a file without a name, which is not in the tree
	index int64
	key   []byte // of the chunk entry
	page  *page
	out   stored
}

// freeze takes everything pending out of the way of further changes. The caller
// holds commitMu and mu.
func (v *Vault) freeze(req commitRequest) *commit {
	v.stopTimer()
	v.hastened.Store(false)
	c := &commit{v: v, req: req, gen: v.generation, old: v.rec, rec: v.rec, over: v.active}
	c.floorNode, c.floorChunk = v.floorNode, v.floorChunk
	c.rec.NextIno, c.rec.Count, c.rec.Bytes = v.nextIno, v.count, v.bytes
	v.frozen, v.active = v.active, &overlay{}
	for _, f := range v.files {
		if len(f.dirty) == 0 || f.orphan != nil && !req.spill {
			continue
		}
		for index, p := range f.dirty {
			p.frozen = true
			v.s.dirty.Add(-int64(cap(p.data)))
			c.content += int64(len(p.data))
			c.pages = append(c.pages, pending{f: f, apart: f.orphan != nil, index: index, key: chunkKey(f.ino, index), page: p})
		}
		f.frozen, f.dirty = f.dirty, map[int64]*page{}
	}
	v.s.untaken.Store(v.s.dirty.Load())
	sort.Slice(c.pages, func(i, j int) bool {
		return bytes.Compare(c.pages[i].key, c.pages[j].key) < 0
	})
	c.drop = v.takeDoomed()
	c.shared, v.shared = v.shared, map[uint64]chunkRef{}
	return c
}

// takeDoomed takes as much as one transaction deletes. The caller holds mu.
func (v *Vault) takeDoomed() doomed {
	for _, ref := range v.doomed.closed {
		if ref.id > v.chunkMark() {
			v.doomed.chunks = append(v.doomed.chunks, ref)
		}
	}
	v.doomed.closed = nil
	n, m := min(len(v.doomed.nodes), doomedNodes), min(len(v.doomed.chunks), doomedChunk)
	d := doomed{nodes: v.doomed.nodes[:n:n]}
	for _, ref := range v.doomed.chunks[:m] {
		if v.held[ref.id] == 0 {
			d.chunks = append(d.chunks, ref)
		}
	}
	v.doomed.nodes, v.doomed.chunks = v.doomed.nodes[n:], v.doomed.chunks[m:]
	return d
}

// persist writes the frozen state; nothing of it counts before its last
// transaction, which swaps the root.
func (c *commit) persist(ctx context.Context) error {
	c.v.s.space.begin(c.content)
	defer c.v.s.space.end(c.content)
	if err := c.markShared(ctx); err != nil {
		return err
	}
	if err := c.storePages(ctx); err != nil {
		return err
	}
	if err := c.collect(ctx); err != nil {
		return err
	}
	s := c.v.s
	c.sink = nodeSink{ctx: ctx, s: s, mode: c.mode(false)}
	root, err := tree.Apply(ctx, &c.sink, c.old.Root.ref, tree.Slice(c.changes), &c.sink)
	if err != nil {
		return err
	}
	c.rec.Root = Root{root}
	for _, ref := range c.sink.dead {
		if ref.ID > max(c.old.NodeMark, c.floorNode) {
			c.dead.nodes = append(c.dead.nodes, ref.ID)
		}
	}
	if c.req.pin && root.ID > c.rec.NodeMark {
		// The root is the newest node of its tree. Where it is below the
		// mark, so is everything else, chunks too: the marks rise together.
		c.rec.NodeMark, c.rec.ChunkMark = s.lastNode.Load(), s.lastChunk.Load()
	}
	c.next = c.rec
	if c.idle() {
		return nil
	}
	return s.kv.Update(ctx, c.mode(c.req.durable), c.swap)
}

// idle reports whether there is nothing to write at all.
func (c *commit) idle() bool {
	return c.req.more == nil && c.rec == c.old && len(c.last) == 0 && c.drop.empty() &&
		(!c.req.durable || c.v.durable.Load() >= c.gen)
}

// mode is that of a transaction.
func (c *commit) mode(durable bool) kv.Mode {
	mode := kv.Relaxed
	if durable {
		mode |= kv.Durable
	}
	if c.shrinks() {
		mode |= kv.Reclaim
	}
	return mode
}

// shrinks reports whether the commit frees more than it writes, or at least adds no
// file and no content. It may use the reserve then, so that files can be deleted
// although small writes are pending, and what only reads can be recorded.
func (c *commit) shrinks() bool {
	return c.content <= kv.Reserve/4 && c.rec.Count <= c.old.Count && c.rec.Bytes+2*c.content <= c.old.Bytes
}

// swap is the last transaction of a commit.
func (c *commit) swap(tx kv.Writer) error {
	s := c.v.s
	if err := s.chunks.write(tx, c.last); err != nil {
		return err
	}
	if err := c.sink.write(tx); err != nil {
		return err
	}
	for _, id := range c.drop.nodes {
		if err := tx.Delete(tableNodes, kv.ID(id)); err != nil {
			return err
		}
	}
	for _, ref := range c.drop.chunks {
		if err := s.chunks.drop(tx, ref); err != nil {
			return err
		}
	}
	rec := c.rec
	if c.req.more != nil {
		if err := c.req.more(tx, &rec); err != nil {
			return err
		}
	}
	if err := putRecord(tx, rec); err != nil {
		return err
	}
	c.next = rec
	return s.putCounters(tx)
}

// markShared marks the chunks that got another reference. The mark may come before
// the reference does, and stay without it: it only leaves the chunk to GC.
func (c *commit) markShared(ctx context.Context) error {
	refs := slices.Collect(maps.Values(c.shared))
	slices.SortFunc(refs, func(a, b chunkRef) int { return bytes.Compare(a.digest[:], b.digest[:]) })
	for part := range slices.Chunk(refs, sharedChunks) {
		err := c.v.s.kv.Update(ctx, c.mode(false), func(tx kv.Writer) error {
			for _, ref := range part {
				if err := c.v.s.chunks.share(tx, ref); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// storePages gives every page a chunk. All groups but the last are written at
// once; preparing a group and writing the one before overlap.
func (c *commit) storePages(ctx context.Context) error {
	var groups [][]*stored
	size := groupBytes
	for i := range c.pages {
		p := &c.pages[i]
		p.out.data = p.page.data
		if len(p.out.data) == 0 {
			continue
		}
		if n := len(groups) - 1; n < 0 || size+len(p.out.data) > groupBytes || len(groups[n]) == groupChunks {
			groups = append(groups, nil)
			size = 0
		}
		size += len(p.out.data)
		n := len(groups) - 1
		groups[n] = append(groups[n], &p.out)
	}
	s := c.v.s
	seen := map[[32]byte]uint64{}
	written := make(chan error, 1)
	written <- nil
	for i, g := range groups {
		prepareErr := s.chunks.prepare(ctx, g, seen)
		if err := errors.Join(<-written, prepareErr); err != nil {
			return err
		}
		if i == len(groups)-1 {
			c.last = g
			return nil
		}
		go func() {
			err := s.kv.Update(ctx, c.mode(false), func(tx kv.Writer) error {
				if err := s.chunks.write(tx, g); err != nil {
					return err
				}
				return s.putCounters(tx)
			})
			for _, p := range g {
				p.rec = nil
			}
			written <- err
		}()
	}
	return nil
}

// collect lists the changes of the tree in key order, and the chunks that it
// stops referring to. A page wins over an entry with its key, which is what was
// there before the page was written.
func (c *commit) collect(ctx context.Context) error {
	c.changes = make([]tree.Change, 0, c.over.Len()+len(c.pages))
	i := 0
	addPage := func() {
		p := &c.pages[i]
		i++
		if p.apart {
			return
		}
		ch := tree.Change{Key: p.key, Delete: len(p.page.data) == 0}
		if !ch.Delete {
			ch.Value = p.out.ref.encode()
		}
		c.changes = append(c.changes, ch)
	}
	c.over.Scan(func(k string, value []byte) bool {
		for i < len(c.pages) && string(c.pages[i].key) < k {
			addPage()
		}
		if i < len(c.pages) && string(c.pages[i].key) == k && !c.pages[i].apart {
			addPage()
			return true
		}
		c.changes = append(c.changes, tree.Change{Key: []byte(k), Value: value, Delete: value == nil})
		return true
	})
	for i < len(c.pages) {
		addPage()
	}
	return c.collectDead(ctx)
}

func (c *commit) collectDead(ctx context.Context) error {
	old := view{src: c.v.s.nodes, root: c.old.Root.ref}
	for _, ch := range c.changes {
		ino, kind, suffix, err := splitKey(ch.Key)
		if err != nil {
			return err
		}
		if kind != kindChunk {
			continue
		}
		ref, ok, err := old.chunk(ctx, ino, int64(kv.ParseID(suffix)))
		if err != nil {
			return err
		}
		if !ok || ref.id <= max(c.old.ChunkMark, c.floorChunk) {
			continue
		}
		if !ch.Delete {
			if now, err := decodeChunkRef(ch.Value); err != nil || now.id == ref.id {
				if err != nil {
					return err
				}
				continue
			}
		}
		c.dead.chunks = append(c.dead.chunks, ref)
	}
	return nil
}

// finish makes the new root the vault's. The caller holds mu.
func (c *commit) finish() {
	v := c.v
	v.rec = c.next
	v.frozen = nil
	v.failed = nil
	v.doomed.nodes = append(v.doomed.nodes, c.dead.nodes...)
	v.doomed.chunks = append(v.doomed.chunks, c.dead.chunks...)
	for i := range c.pages {
		p := &c.pages[i]
		c.settleSpilled(p)
		if len(p.page.data) > 0 { // what was just written is soon read
			v.s.chunks.keep(p.out.ref, p.page.data)
		}
	}
	for i := range c.pages {
		f := c.pages[i].f
		f.frozen = nil
		if f.handles == 0 && v.files[f.ino] == f {
			v.release(f)
		}
	}
	v.committed.Store(max(v.committed.Load(), c.gen))
	if c.req.durable {
		v.durable.Store(max(v.durable.Load(), c.gen))
	}
	if c.gen < v.generation || !v.doomed.empty() {
		v.arm()
	}
}

// settleSpilled notes where the content of an unlinked open file is now.
func (c *commit) settleSpilled(p *pending) {
	switch {
	case !p.apart || len(p.page.data) == 0:
	case p.f.orphan != nil && p.f.frozen[p.index] == p.page:
		c.v.putApart(p.f, string(p.key), p.out.ref.encode())
	default: // cut off, or closed for the last time, meanwhile
		c.v.doom(p.out.ref)
	}
}

// thaw puts what could not be persisted back among the pending changes. The
// caller holds mu.
func (c *commit) thaw(ctx context.Context, err error) {
	v := c.v
	c.over.Scan(func(k string, value []byte) bool {
		if _, newer := v.active.Get(k); !newer {
			v.active.Set(k, value)
		}
		return true
	})
	v.frozen = nil
	for i := range c.pages {
		p := &c.pages[i]
		if p.f.frozen[p.index] == p.page && p.f.dirty[p.index] == nil {
			p.f.dirty[p.index] = p.page
			v.s.dirty.Add(int64(cap(p.page.data)))
		}
	}
	for i := range c.pages {
		c.pages[i].f.frozen = nil
	}
	v.doomed.nodes = append(v.doomed.nodes, c.drop.nodes...)
	v.doomed.chunks = append(v.doomed.chunks, c.drop.chunks...)
	maps.Copy(v.shared, c.shared)
	if ctx.Err() == nil { // a caller that gave up says nothing about the store
		v.failed = err
		v.failures++
	}
	v.s.space.refresh() // so that the next write learns of a full disk
	v.arm()
}

// commitInBackground is what the timer runs. A failure is kept for the next
// Flush, Sync or write, and tried again.
func (v *Vault) commitInBackground() {
	ctx := context.Background()
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	v.mu.RLock()
	needed := !v.closed && (v.generation != v.committed.Load() || !v.doomed.empty())
	v.mu.RUnlock()
	if needed {
		_ = v.commitLocked(ctx, commitRequest{}) // kept in v.failed
	}
}

// failure reports why the last commit failed, nil if it did not.
func (v *Vault) failure(op string) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return wrap(v.failed, op, "")
}

// commitAll commits durably and deletes everything doomed. The caller holds
// commitMu.
func (v *Vault) commitAll() error {
	v.s.sweep.RLock()
	defer v.s.sweep.RUnlock()
	for {
		v.mu.RLock()
		clean := (v.generation == v.durable.Load() || v.generation == asOpened) && v.doomed.empty()
		v.mu.RUnlock()
		if clean {
			return nil
		}
		if err := v.commitSwept(context.Background(), commitRequest{durable: true}); err != nil {
			return err
		}
	}
}

// nodeSink takes the nodes that a commit makes and writes full batches at once.
type nodeSink struct {
	ctx   context.Context // of the commit, whose call this is
	s     *Store
	mode  kv.Mode
	nodes []newNode
	size  int
	dead  []tree.Ref
}

type newNode struct {
	ref  tree.Ref
	data []byte
}

// Node implements tree.Source: Apply may look again at a node that it has just put,
// which the database does not have yet. Ids of put nodes rise.
func (k *nodeSink) Node(ctx context.Context, ref tree.Ref) (*tree.Node, error) {
	i := sort.Search(len(k.nodes), func(i int) bool { return k.nodes[i].ref.ID >= ref.ID })
	if i < len(k.nodes) && k.nodes[i].ref == ref {
		return tree.Decode(k.nodes[i].data, ref)
	}
	return k.s.nodes.Node(ctx, ref)
}

func (k *nodeSink) NewID() uint64 { return k.s.lastNode.Add(1) }

func (k *nodeSink) Dead(ref tree.Ref) { k.dead = append(k.dead, ref) }

func (k *nodeSink) Put(ref tree.Ref, data []byte) error {
	if k.size+len(data) > nodesBytes {
		err := k.s.kv.Update(k.ctx, k.mode, func(tx kv.Writer) error {
			if err := k.write(tx); err != nil {
				return err
			}
			return k.s.putCounters(tx)
		})
		if err != nil {
			return err
		}
		k.nodes, k.size = k.nodes[:0], 0
	}
	k.nodes = append(k.nodes, newNode{ref, data})
	k.size += len(data)
	return nil
}

func (k *nodeSink) write(tx kv.Writer) error {
	for _, n := range k.nodes {
		if err := tx.Put(tableNodes, kv.ID(n.ref.ID), n.data); err != nil {
			return err
		}
	}
	return nil
}
