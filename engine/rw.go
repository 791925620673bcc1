package engine

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine/kv"
)

// segment is how much of a large read or write happens under one lock, in bytes.
const segment = 1 << 20

// ReadAt reads up to len(p) bytes at off and returns how many there were; at the
// end of the file that is fewer, or none, without an error. Holes read as zeros.
func (h *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fail(Invalid, "read", "")
	}
	done := 0
	for {
		part := p[done:min(len(p), done+segment)]
		n, err := h.readSegment(ctx, part, off+int64(done))
		if err != nil {
			return 0, err
		}
		done += n
		if n < len(part) || done == len(p) {
			return done, nil
		}
	}
}

// readSegment reads as one step. What is not in memory it fetches without a lock, so
// that nobody waits for it. A write may replace that meanwhile, and two commits delete
// it; then it is read once more, under the lock, which holds up the second of them.
func (h *File) readSegment(ctx context.Context, p []byte, off int64) (n int, err error) {
	var rest []fetch
	err = h.v.read("read", "", func() (err error) {
		if err := h.check(OpenRead); err != nil {
			return err
		}
		n, rest, err = h.v.planRead(ctx, h.f, p, off)
		return err
	})
	if err != nil || len(rest) == 0 {
		return n, err
	}
	if err = h.v.s.fetch(ctx, rest, n); KindOf(err) != Corrupt {
		return n, wrap(err, "read", "")
	}
	err = h.v.read("read", "", func() (err error) {
		if err := h.check(OpenRead); err != nil {
			return err
		}
		n, err = h.v.readPart(ctx, h.f, p, off)
		return err
	})
	return n, err
}

// readPart reads from pages, chunks and holes. The caller holds mu.
func (v *Vault) readPart(ctx context.Context, f *file, p []byte, off int64) (int, error) {
	n, rest, err := v.planRead(ctx, f, p, off)
	if err == nil {
		err = v.s.fetch(ctx, rest, n)
	}
	return n, err
}

// fetch is a part of a chunk, from its byte in on, that is to be read into part.
type fetch struct {
	ref  chunkRef
	in   int
	part []byte
}

// planRead fills p from what is in memory, and lists the rest. The caller holds mu
// for reading.
func (v *Vault) planRead(ctx context.Context, f *file, p []byte, off int64) (n int, rest []fetch, err error) {
	w := v.viewOf(f.ino)
	inode, err := w.inode(ctx, f.ino)
	if err != nil || off >= inode.size {
		return 0, nil, err
	}
	p = p[:min(int64(len(p)), inode.size-off)]
	err = pieces(p, off, func(index int64, in int, part []byte) error {
		if pg := f.page(index); pg != nil {
			copyTail(part, pg.data, in)
			return nil
		}
		rest, err = v.s.planChunk(ctx, w, f.ino, index, in, part, rest)
		return err
	})
	return len(p), rest, err
}

// planChunk fills part from byte in of a committed chunk, zeros where it is a hole,
// or adds it to rest.
func (s *Store) planChunk(ctx context.Context, w view, ino Ino, index int64, in int, part []byte, rest []fetch) ([]fetch, error) {
	ref, ok, err := w.chunk(ctx, ino, index)
	switch {
	case err != nil:
		return rest, err
	case !ok:
		clear(part)
		return rest, nil
	}
	if data := s.chunks.known(ref); data != nil {
		copyTail(part, data, in)
		return rest, nil
	}
	return append(rest, fetch{ref, in, part}), nil
}

// longRead is how many bytes read at a time are a sign that a large file is read from
// end to end: that would drive everything else out of the cache, for nothing.
const longRead = 4 * ChunkSize

// fetch reads what the plan of a read of n bytes lists, on all processors.
func (s *Store) fetch(ctx context.Context, rest []fetch, n int) error {
	errs := make([]error, len(rest))
	parallel(len(rest), func(i int) {
		f := rest[i]
		if n >= longRead && f.in == 0 && len(f.part) == f.ref.length {
			errs[i] = s.chunks.loadInto(ctx, f.ref, f.part)
			return
		}
		data, err := s.chunks.get(ctx, f.ref)
		copyTail(f.part, data, f.in)
		errs[i] = err
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// copyTail copies data from byte in on to part and zeros the rest of part.
func copyTail(part, data []byte, in int) {
	n := 0
	if in < len(data) {
		n = copy(part, data[in:])
	}
	clear(part[n:])
}

// pieces cuts the range at off into parts that each lie within one chunk.
func pieces(p []byte, off int64, fn func(index int64, in int, part []byte) error) error {
	for len(p) > 0 {
		index, in := off/ChunkSize, int(off%ChunkSize)
		n := min(len(p), ChunkSize-in)
		if err := fn(index, in, p[:n]); err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// WriteAt writes p at off, or at the end of the file for a handle with
// OpenAppend. It returns how much it wrote, which is less than len(p) only with
// an error. The bytes are visible at once and survive power loss after Sync.
func (h *File) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fail(Invalid, "write", "")
	}
	done := 0
	for {
		if err := h.v.roomForContent(ctx); err != nil {
			return done, wrap(err, "write", "")
		}
		end := min(len(p), done+segment)
		if h.mode&OpenAppend != 0 {
			end = len(p) // an append is one step
		}
		n := 0
		err := h.v.change(ctx, "write", "", func() (err error) {
			if err := h.check(OpenWrite); err != nil {
				return err
			}
			n, err = h.v.writePart(ctx, h, p[done:end], off+int64(done))
			return err
		})
		done += n
		if err != nil || done == len(p) {
			return done, err
		}
	}
}

// maxPending is how many changes of entries may wait for a commit.
const maxPending = 500_000

// room makes room for more growth: a full disk refuses it, and past the bounds on
// unsaved content and pending changes the writer commits first. With half of the bound
// on content a commit begins beside the writer. It is called without locks.
func (v *Vault) room(ctx context.Context) error {
	dirty := v.s.dirty.Load()
	if !v.s.space.admits(dirty) {
		return v.squeeze(ctx)
	}
	v.mu.RLock()
	pending := v.generation - v.committed.Load()
	v.mu.RUnlock()
	if v.s.grown(dirty) >= v.s.opts.DirtyBytes/2 {
		v.hasten()
	}
	if dirty < v.s.opts.DirtyBytes && pending < maxPending {
		return nil
	}
	if err := v.commit(ctx, commitRequest{spill: true}); err != nil {
		return err
	}
	for _, other := range v.s.allVaults() { // which may hold the most of it
		if v.s.dirty.Load() < v.s.opts.DirtyBytes {
			break
		}
		if err := other.commit(ctx, commitRequest{spill: true}); err != nil && KindOf(err) != Closed {
			return err
		}
	}
	return nil
}

// writePart writes into pages. The caller holds mu.
func (v *Vault) writePart(ctx context.Context, h *File, p []byte, off int64) (int, error) {
	ino := h.f.ino
	n, err := v.inodeOf(ctx, ino)
	if err != nil {
		return 0, err
	}
	if h.mode&OpenAppend != 0 {
		off = n.size
	}
	if off > MaxFileSize-int64(len(p)) {
		return 0, fail(FileTooLarge, "", "")
	}
	done := 0
	err = pieces(p, off, func(index int64, in int, part []byte) error {
		err := v.writePiece(ctx, h.f, n, index, in, part)
		if err == nil {
			done += len(part)
		}
		return err
	})
	if done > 0 {
		n.mtime = v.s.now()
		n.ctime = n.mtime
		v.putInode(ino, n)
	}
	return done, err
}

// writePiece writes what lies in one chunk, from its byte in on. The caller puts the
// record n.
func (v *Vault) writePiece(ctx context.Context, f *file, n *inode, index int64, in int, part []byte) error {
	valid := int(min(max(n.size-index*ChunkSize, 0), ChunkSize))
	all := in == 0 && len(part) >= valid
	before, err := v.lengthOf(ctx, f, index)
	if err != nil {
		return err
	}
	end := index*ChunkSize + int64(in+len(part))
	if err := v.admitSize(n.size, end); err != nil {
		return err
	}
	if err := v.admitBytes(int64(in + len(part) - before)); err != nil {
		return err
	}
	pg, err := v.writable(ctx, f, index, !all)
	if err != nil {
		return err
	}
	if len(pg.data) == 0 && in == 0 {
		v.setPage(pg, part)
	} else {
		v.extend(pg, in+len(part))
		copy(pg.data[in:], part)
	}
	v.grow(f, n, int64(len(pg.data)-before))
	n.size = max(n.size, end)
	return nil
}

// grow accounts for allocated content. The caller puts the record n.
func (v *Vault) grow(f *file, n *inode, delta int64) {
	n.alloc += delta
	if f != nil && f.orphan != nil {
		v.unlinked += delta
	} else {
		v.bytes += delta
	}
}

// lengthOf is how many bytes of a chunk are allocated.
func (v *Vault) lengthOf(ctx context.Context, f *file, index int64) (int, error) {
	if pg := f.page(index); pg != nil {
		return len(pg.data), nil
	}
	ref, _, err := v.viewOf(f.ino).chunk(ctx, f.ino, index)
	return ref.length, err
}

// writable returns the page of a chunk for writing, with the present content if
// load is set.
func (v *Vault) writable(ctx context.Context, f *file, index int64, load bool) (*page, error) {
	present := f.page(index)
	if present != nil && !present.frozen {
		return present, nil
	}
	var old []byte
	switch {
	case !load:
	case present != nil:
		old = present.data
	default:
		ref, ok, err := v.viewOf(f.ino).chunk(ctx, f.ino, index)
		if err != nil {
			return nil, err
		}
		if ok {
			if old, err = v.s.chunks.get(ctx, ref); err != nil {
				return nil, err
			}
		}
	}
	pg := &page{}
	v.setPage(pg, old)
	if p := f.dirty[index]; p != nil {
		v.s.dirty.Add(-int64(cap(p.data)))
	}
	f.dirty[index] = pg
	return pg, nil
}

// setPage makes a copy of data the content of an empty page.
func (v *Vault) setPage(pg *page, data []byte) {
	before := cap(pg.data)
	pg.data = append(pg.data[:0], data...)
	v.s.dirty.Add(int64(cap(pg.data) - before))
}

// extend makes the page n bytes long where it is shorter; new bytes are zero.
func (v *Vault) extend(pg *page, n int) {
	old := len(pg.data)
	if n <= old {
		return
	}
	if n > cap(pg.data) {
		size := min(max(2*cap(pg.data), (n+4095)&^4095), ChunkSize)
		v.s.dirty.Add(int64(size - cap(pg.data)))
		grown := make([]byte, n, size)
		copy(grown, pg.data)
		pg.data = grown
		return
	}
	pg.data = pg.data[:n]
	clear(pg.data[old:])
}

// checkSize rejects sizes that no file can have.
func checkSize(size int64) error {
	switch {
	case size < 0:
		return fail(Invalid, "truncate", "")
	case size > MaxFileSize:
		return fail(FileTooLarge, "truncate", "")
	}
	return nil
}

// resize sets the size of a file with the record n. Bytes that are cut off are
// gone; new ones are a hole. The caller holds mu.
func (v *Vault) resize(ctx context.Context, ino Ino, n *inode, size int64) error {
	defer v.settle(ino)
	if err := v.admitSize(n.size, size); err != nil {
		return err
	}
	if size < n.size {
		if err := v.zero(ctx, v.fileOf(ino), n, size, n.size); err != nil {
			return err
		}
	}
	n.size = size
	n.mtime = v.s.now()
	n.ctime = n.mtime
	v.putInode(ino, n)
	return nil
}

// settle drops the in-memory state of a file that needs none.
func (v *Vault) settle(ino Ino) {
	if f := v.files[ino]; f != nil && f.handles == 0 {
		v.release(f)
	}
}

// zero makes the bytes from off to end zero and gives up whole chunks and tails
// among them. Everything that can fail comes before the first change. The caller
// puts the record n.
func (v *Vault) zero(ctx context.Context, f *file, n *inode, off, end int64) error {
	first, last := (off+ChunkSize-1)/ChunkSize, end/ChunkSize
	if end >= n.size {
		end, last = n.size, (n.size+ChunkSize-1)/ChunkSize
	}
	if off >= end {
		return nil
	}
	var edges []edge
	if in := int(off % ChunkSize); in > 0 {
		index := off / ChunkSize
		edges = append(edges, edge{index: index, from: in, to: int(min(end-index*ChunkSize, ChunkSize))})
	}
	if in := int(end % ChunkSize); in > 0 && end < n.size && end/ChunkSize >= first {
		edges = append(edges, edge{index: end / ChunkSize, to: in})
	}
	for i := range edges {
		if err := v.loadEdge(ctx, f, &edges[i]); err != nil {
			return err
		}
	}
	gone, err := v.stored(ctx, f, first, last)
	if err != nil {
		return err
	}
	for _, e := range edges {
		v.zeroEdge(f, n, e)
	}
	v.dropChunks(f, n, gone, first, last)
	return nil
}

// edge is a part of a chunk to make zero.
type edge struct {
	index    int64
	from, to int
	pg       *page // nil: the part is a hole already
}

func (v *Vault) loadEdge(ctx context.Context, f *file, e *edge) error {
	length, err := v.lengthOf(ctx, f, e.index)
	if err != nil || length <= e.from {
		return err
	}
	e.pg, err = v.writable(ctx, f, e.index, true)
	return err
}

// zeroEdge zeros a part of a chunk; where nothing follows it the chunk becomes
// shorter.
func (v *Vault) zeroEdge(f *file, n *inode, e edge) {
	if e.pg == nil {
		return
	}
	length := len(e.pg.data)
	if e.to < length {
		clear(e.pg.data[e.from:e.to])
		return
	}
	v.grow(f, n, int64(e.from-length))
	e.pg.data = e.pg.data[:e.from]
}

// stored returns the allocated bytes of the chunks first to last-1 that have an
// entry, by index.
func (v *Vault) stored(ctx context.Context, f *file, first, last int64) (map[int64]int, error) {
	if first >= last {
		return nil, nil
	}
	lengths := map[int64]int{}
	err := v.viewOf(f.ino).scan(ctx, key(f.ino, kindChunk), chunkKey(f.ino, first), func(k, value []byte) error {
		index := int64(kv.ParseID(k[keyHead:]))
		if index >= last {
			return kv.Stop
		}
		ref, err := decodeChunkRef(value)
		lengths[index] = ref.length
		return err
	})
	return lengths, err
}

// dropChunks gives up the chunks first to last-1 of a file, of which those in gone
// have entries.
func (v *Vault) dropChunks(f *file, n *inode, gone map[int64]int, first, last int64) {
	if first >= last {
		return
	}
	for index, pg := range f.frozen {
		if index >= first && index < last {
			gone[index] = len(pg.data)
			delete(f.frozen, index)
		}
	}
	total := 0
	for index, pg := range f.dirty {
		if index < first || index >= last {
			continue
		}
		v.s.dirty.Add(-int64(cap(pg.data)))
		delete(f.dirty, index)
		if _, stored := gone[index]; stored {
			gone[index] = len(pg.data)
		} else {
			total += len(pg.data)
		}
	}
	for index, length := range gone {
		v.put(f.ino, chunkKey(f.ino, index), nil)
		total += length
	}
	v.grow(f, n, -int64(total))
}

// The modes of Allocate are those of Linux's fallocate.
const (
	AllocKeepSize  uint32 = 1
	AllocPunchHole uint32 = 2
	AllocZeroRange uint32 = 16
)

// Allocate does what fallocate does. Space is not reserved: blocks that it
// promises are taken when they are written. What the quota will certainly refuse
// then is refused now.
func (h *File) Allocate(ctx context.Context, off, length int64, mode uint32) error {
	const op = "allocate"
	if off < 0 || length <= 0 {
		return fail(Invalid, op, "")
	}
	if off > MaxFileSize-length {
		return fail(FileTooLarge, op, "")
	}
	keep := mode&AllocKeepSize != 0
	switch mode &^ AllocKeepSize {
	case 0, AllocZeroRange:
	case AllocPunchHole:
		if !keep {
			return fail(Unsupported, op, "")
		}
	default:
		return fail(Unsupported, op, "")
	}
	if err := h.v.roomForContent(ctx); err != nil {
		return wrap(err, op, "")
	}
	return h.v.change(ctx, op, "", func() error {
		if err := h.check(OpenWrite); err != nil {
			return err
		}
		n, err := h.v.inodeOf(ctx, h.f.ino)
		if err != nil {
			return err
		}
		if err := h.v.admitAllocate(n, off, length, mode); err != nil {
			return err
		}
		if mode&^AllocKeepSize != 0 {
			if err := h.v.zero(ctx, h.f, n, off, off+length); err != nil {
				return err
			}
		}
		if !keep {
			n.size = max(n.size, off+length)
		}
		n.mtime = h.v.s.now()
		n.ctime = n.mtime
		h.v.putInode(h.f.ino, n)
		return nil
	})
}

// Seek finds the next hole, or the next data, at or after off; the granularity is
// a chunk. The end of the file is a hole. NoData says that there is none.
func (h *File) Seek(ctx context.Context, off int64, hole bool) (at int64, err error) {
	err = h.v.read("seek", "", func() error {
		if err := h.check(0); err != nil {
			return err
		}
		n, err := h.v.inodeOf(ctx, h.f.ino)
		if err != nil {
			return err
		}
		if off < 0 || off >= n.size {
			return fail(NoData, "", "")
		}
		index, err := h.v.seekChunk(ctx, h.f, off/ChunkSize, hole)
		if err != nil {
			return err
		}
		at = max(off, min(index*ChunkSize, n.size))
		if !hole && at >= n.size {
			return fail(NoData, "", "")
		}
		return nil
	})
	return at, err
}

// seekChunk is the first chunk from index on that is a hole, or that is not.
func (v *Vault) seekChunk(ctx context.Context, f *file, index int64, hole bool) (int64, error) {
	const never = MaxFileSize/ChunkSize + 1
	dirty := map[int64]bool{}
	lowest := int64(never)
	for _, pages := range []map[int64]*page{f.dirty, f.frozen} {
		for i := range pages {
			if i >= index && len(f.page(i).data) > 0 {
				dirty[i] = true
				lowest = min(lowest, i)
			}
		}
	}
	next := index
	skip := func() {
		for hole && dirty[next] {
			next++
		}
	}
	skip()
	found := int64(never)
	err := v.viewOf(f.ino).scan(ctx, key(f.ino, kindChunk), chunkKey(f.ino, index), func(k, _ []byte) error {
		i := int64(kv.ParseID(k[keyHead:]))
		if !hole {
			found = i
			return kv.Stop
		}
		if i > next {
			return kv.Stop
		}
		if i == next {
			next++
			skip()
		}
		return nil
	})
	if err != nil && !errors.Is(err, kv.Stop) {
		return 0, err
	}
	if hole {
		return next, nil
	}
	return min(found, lowest), nil
}
