package engine

import "context"

// shareCost is what sharing a chunk counts as, in bytes, where segment bounds how
// much happens under one lock.
const shareCost = 4 << 10

// cloning is one CloneRange under way.
type cloning struct {
	v        *Vault
	from, to *File
	buf      []byte // of one chunk; nil until bytes are copied
}

// CloneRange makes the length bytes at off those that from has at fromOff. It
// returns how many those were: fewer where from ends. Whole chunks are shared, not
// copied, where both ranges lie alike in them, and holes stay holes; the quota counts
// all of it as content that was written. Like a write it counts what was done before
// an error. Both files are of one vault; ranges of one file that overlap are Invalid.
// Others may see, and change, the part that is done before the rest is.
func (h *File) CloneRange(ctx context.Context, off int64, from *File, fromOff, length int64) (done int64, err error) {
	const op = "clone"
	c := &cloning{v: h.v, from: from, to: h}
	err = h.v.read(op, "", func() error {
		length, err = c.admit(ctx, off, fromOff, length)
		return err
	})
	for err == nil && done < length {
		if err := h.v.roomForContent(ctx); err != nil {
			return done, wrap(err, op, "")
		}
		n := int64(0)
		err = h.v.change(ctx, op, "", func() (err error) {
			n, err = c.step(ctx, off+done, fromOff+done, length-done)
			return err
		})
		done += n
		if n == 0 {
			break // from became shorter
		}
	}
	return done, err
}

// admit says how much there is to do. The caller holds mu for reading.
func (c *cloning) admit(ctx context.Context, off, fromOff, length int64) (int64, error) {
	if off < 0 || fromOff < 0 || length < 0 || c.from.v != c.v {
		return 0, fail(Invalid, "", "")
	}
	if err := c.usable(); err != nil {
		return 0, err
	}
	n, err := c.v.inodeOf(ctx, c.from.f.ino)
	if err != nil {
		return 0, err
	}
	length = max(min(length, n.size-fromOff), 0)
	if off > MaxFileSize-length {
		return 0, fail(FileTooLarge, "", "")
	}
	if c.from.f == c.to.f && off < fromOff+length && fromOff < off+length {
		return 0, fail(Invalid, "", "")
	}
	return length, nil
}

// usable says whether both handles can be used. As with copy_file_range, there is
// no place in a file that is open for appending.
func (c *cloning) usable() error {
	if c.to.mode&OpenAppend != 0 {
		return fail(BadHandle, "", "")
	}
	if err := c.from.check(OpenRead); err != nil {
		return err
	}
	return c.to.check(OpenWrite)
}

// step does as much as fits under one lock. The caller holds mu.
func (c *cloning) step(ctx context.Context, off, fromOff, left int64) (done int64, err error) {
	if err := c.usable(); err != nil {
		return 0, err
	}
	n, err := c.v.inodeOf(ctx, c.to.f.ino)
	if err != nil {
		return 0, err
	}
	source := n
	if c.from.f != c.to.f {
		if source, err = c.v.inodeOf(ctx, c.from.f.ino); err != nil {
			return 0, err
		}
	}
	left = min(left, source.size-fromOff)
	for budget := int64(segment); done < left && budget > 0; {
		m, cost, err := c.piece(ctx, n, off+done, fromOff+done, left-done)
		if err != nil {
			c.touch(n, done)
			return done, err
		}
		done, budget = done+m, budget-cost
	}
	c.touch(n, done)
	return done, nil
}

// touch puts the record n of the file that was written to.
func (c *cloning) touch(n *inode, done int64) {
	if done > 0 {
		n.mtime = c.v.s.now()
		n.ctime = n.mtime
		c.v.putInode(c.to.f.ino, n)
	}
}

// piece does what lies in one chunk of each file, or a whole hole, and says how much
// that was and what it counts as.
func (c *cloning) piece(ctx context.Context, n *inode, off, fromOff, left int64) (m, cost int64, err error) {
	in, fromIn := off%ChunkSize, fromOff%ChunkSize
	m = min(left, ChunkSize-in, ChunkSize-fromIn)
	length, err := c.v.lengthOf(ctx, c.from.f, fromOff/ChunkSize)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case int64(length) <= fromIn:
		m, err = c.hole(ctx, n, off, fromOff, left, m)
		return m, shareCost, err
	case in == 0 && fromIn == 0 && int64(length) <= m && (m == ChunkSize || off+m >= n.size):
		return m, shareCost, c.share(ctx, n, off, fromOff, m)
	default:
		return m, m, c.copy(ctx, n, off, fromOff, m)
	}
}

// hole makes zeros of what is none but zeros in the source, up to its next chunk
// with content, and gives up the chunks that they fill.
func (c *cloning) hole(ctx context.Context, n *inode, off, fromOff, left, m int64) (int64, error) {
	next, err := c.v.seekChunk(ctx, c.from.f, fromOff/ChunkSize, false)
	if err != nil {
		return 0, err
	}
	if next > fromOff/ChunkSize {
		m = min(left, next*ChunkSize-fromOff)
	}
	if err := c.v.admitSize(n.size, off+m); err != nil {
		return 0, err
	}
	if err := c.v.zero(ctx, c.to.f, n, off, off+m); err != nil {
		return 0, err
	}
	n.size = max(n.size, off+m)
	return m, nil
}

// share lets a whole chunk of the target be that of the source: its unsaved page,
// which neither file changes in place from then on, or else what is stored.
func (c *cloning) share(ctx context.Context, n *inode, off, fromOff, m int64) error {
	v, to, index := c.v, c.to.f, off/ChunkSize
	before, err := v.lengthOf(ctx, to, index)
	if err != nil {
		return err
	}
	pg := c.from.f.page(fromOff / ChunkSize)
	var ref chunkRef
	after := 0
	if pg != nil {
		after = len(pg.data)
	} else {
		if ref, _, err = v.viewOf(c.from.f.ino).chunk(ctx, c.from.f.ino, fromOff/ChunkSize); err != nil {
			return err
		}
		after = ref.length
	}
	if err := v.admitSize(n.size, off+m); err != nil {
		return err
	}
	if err := v.admitBytes(int64(after - before)); err != nil {
		return err
	}
	v.dropPage(to, index)
	if pg != nil {
		pg.frozen = true
		to.dirty[index] = pg
		v.s.dirty.Add(int64(cap(pg.data)))
	} else {
		delete(to.frozen, index)
		v.put(to.ino, chunkKey(to.ino, index), ref.encode())
		v.doubled(ref)
	}
	v.grow(to, n, int64(after-before))
	n.size = max(n.size, off+m)
	return nil
}

// dropPage drops a page that was changed since the last freeze.
func (v *Vault) dropPage(f *file, index int64) {
	if p := f.dirty[index]; p != nil {
		v.s.dirty.Add(-int64(cap(p.data)))
		delete(f.dirty, index)
	}
}

// doubled notes that a stored chunk has one reference more than its index row may
// know of. The next commit marks it as shared before it deletes anything. What others
// may have is not deleted by commits, unless one has found it dead before they came:
// only a file without a name can still be read there.
func (v *Vault) doubled(ref chunkRef) {
	if ref.id > v.rec.ChunkMark || v.held[ref.id] > 0 {
		v.shared[ref.id] = ref
	}
}

// copy copies m bytes that lie in one chunk of each file.
func (c *cloning) copy(ctx context.Context, n *inode, off, fromOff, m int64) error {
	if c.buf == nil {
		c.buf = make([]byte, ChunkSize)
	}
	got, err := c.v.readPart(ctx, c.from.f, c.buf[:m], fromOff)
	if err != nil {
		return err
	}
	clear(c.buf[got:m])
	return c.v.writePiece(ctx, c.to.f, n, off/ChunkSize, int(off%ChunkSize), c.buf[:m])
}
