package engine

import (
	"context"
	"sync/atomic"
)

// file is what the vault keeps in memory about an inode with open handles or
// unsaved content. Guarded by the vault's mu.
type file struct {
	ino     Ino
	handles int
	dirty   map[int64]*page // content changed since the last freeze, by chunk index
	frozen  map[int64]*page // content that a commit is persisting
	orphan  *overlay        // the inode's entries once it has no name; nil before
	stale   bool            // a restore took the inode from under the handles

	linkable bool // it never had a name, so that Link may give it one
}

// page is the unsaved content of one chunk. Bytes of the file beyond len(data)
// are zero.
type page struct {
	data   []byte
	frozen bool // data must not change any more
}

// page returns the newest unsaved content of a chunk.
func (f *file) page(index int64) *page {
	if p := f.dirty[index]; p != nil {
		return p
	}
	return f.frozen[index]
}

// File is an open handle of a regular file. It belongs to the inode: unlink,
// rename and replacement of the name do not touch it. Any number of goroutines
// may use it.
type File struct {
	v      *Vault
	f      *file
	mode   OpenMode
	closed atomic.Bool
}

// fileOf returns the in-memory state of ino, made if need be. The caller holds mu.
func (v *Vault) fileOf(ino Ino) *file {
	f := v.files[ino]
	if f == nil {
		f = &file{ino: ino, dirty: map[int64]*page{}}
		v.files[ino] = f
	}
	return f
}

// Open opens the regular file ino.
func (v *Vault) Open(ctx context.Context, ino Ino, mode OpenMode) (h *File, err error) {
	err = v.change(ctx, "open", "", func() error {
		n, err := v.inodeOf(ctx, ino)
		if err != nil {
			return err
		}
		switch {
		case n.isDir():
			return fail(IsDirectory, "", "")
		case !n.isRegular():
			return fail(Unsupported, "", "")
		}
		if mode&OpenTruncate != 0 {
			if err := v.resize(ctx, ino, n, 0); err != nil {
				return err
			}
		}
		h = v.handle(ino, mode)
		return nil
	})
	return h, err
}

func (v *Vault) handle(ino Ino, mode OpenMode) *File {
	f := v.fileOf(ino)
	f.handles++
	return &File{v: v, f: f, mode: mode}
}

// Create opens the regular file name in dir and makes it where it is missing, as
// one step. With excl an existing file is an error; otherwise it is opened, and
// the permission bits and owner are left as they are.
func (v *Vault) Create(ctx context.Context, dir Ino, name string, perm uint32, o Owner, mode OpenMode, excl bool) (h *File, a Attr, err error) {
	if err := v.room(ctx); err != nil {
		return nil, Attr{}, wrap(err, "create", name)
	}
	err = v.change(ctx, "create", name, func() error {
		ino, n, err := v.view().lookup(ctx, dir, name)
		switch {
		case err == nil && excl:
			return fail(Exists, "", "")
		case err == nil && n.isDir():
			return fail(IsDirectory, "", "")
		case err == nil && !n.isRegular():
			return fail(Unsupported, "", "")
		case err == nil:
			if mode&OpenTruncate != 0 {
				err = v.resize(ctx, ino, n, 0)
			}
		case KindOf(err) == NotFound:
			n = &inode{mode: TypeRegular | perm&^TypeMask, nlink: 1}
			ino, err = v.addInode(ctx, dir, name, n, o)
		}
		if err != nil {
			return err
		}
		h, a = v.handle(ino, mode), n.attr(ino)
		return nil
	})
	return h, a, err
}

// orphan sets an inode that lost its last name apart from the tree, so that its
// handles go on. It is in no commit, and gone when the process ends.
func (v *Vault) orphan(ctx context.Context, ino Ino, n *inode, f *file) error {
	apart := &overlay{}
	err := v.view().scan(ctx, key(ino, 0)[:8], nil, func(k, value []byte) error {
		apart.Set(string(k), value)
		return nil
	})
	if err != nil {
		return err
	}
	apart.Scan(func(k string, value []byte) bool {
		if k[keyHead-1] == kindChunk {
			_, err = decodeChunkRef(value)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	apart.Scan(func(k string, value []byte) bool {
		v.put(ino, []byte(k), nil)
		v.hold(k, value, 1)
		return true
	})
	v.buryFrozen(ino, f)
	n.nlink, n.parent, n.name = 0, 0, ""
	apart.Set(string(inodeKey(ino)), n.encode())
	f.orphan = apart
	v.count--
	v.orphans++
	v.bytes -= n.alloc
	v.unlinked += n.alloc
	return nil
}

// putApart is put for an inode without a name. The caller holds mu.
func (v *Vault) putApart(f *file, key string, value []byte) {
	old, _ := f.orphan.Get(key)
	if value == nil {
		f.orphan.Delete(key)
	} else {
		f.orphan.Set(key, value)
		v.hold(key, value, 1)
	}
	v.hold(key, old, -1)
}

// hold counts the references that unlinked open files have to a chunk, where
// key is that of a chunk entry. The last one gone, the chunk is doomed.
func (v *Vault) hold(key string, value []byte, delta int) {
	if key[keyHead-1] != kindChunk || value == nil {
		return
	}
	ref, err := decodeChunkRef(value)
	if err != nil {
		return // orphan and spill keep no entry that cannot be decoded
	}
	if v.held[ref.id] += delta; v.held[ref.id] <= 0 {
		delete(v.held, ref.id)
		v.doom(ref)
	}
}

// doom lets the next commit delete a chunk that only unlinked open files of this
// vault can have referred to, or the tree until that commit. The caller holds mu.
func (v *Vault) doom(ref chunkRef) {
	if ref.id > v.chunkMark() {
		v.doomed.closed = append(v.doomed.closed, ref)
		v.arm()
	}
}

// buryFrozen makes sure that pages which a commit is persisting do not come back
// as chunks of an inode that was removed meanwhile. Their content stays with f.
func (v *Vault) buryFrozen(ino Ino, f *file) {
	for index := range f.frozen {
		v.put(ino, chunkKey(ino, index), nil)
	}
	v.buryPages(f)
}

// buryPages takes pages from a commit under way, whatever comes of it.
func (v *Vault) buryPages(f *file) {
	for index, p := range f.frozen {
		if f.dirty[index] == nil {
			f.dirty[index] = p
			v.s.dirty.Add(int64(cap(p.data)))
		}
	}
	f.frozen = nil
}

// forgetPages drops the unsaved content of an inode that is removed.
func (v *Vault) forgetPages(ino Ino) {
	f := v.files[ino]
	if f == nil {
		return
	}
	v.buryFrozen(ino, f)
	v.dropDirty(f)
	delete(v.files, ino)
}

func (v *Vault) dropDirty(f *file) {
	for index, p := range f.dirty {
		v.s.dirty.Add(-int64(cap(p.data)))
		delete(f.dirty, index)
	}
}

// Ino is the inode number.
func (h *File) Ino() Ino { return h.f.ino }

// Vault is the vault that the file is in.
func (h *File) Vault() *Vault { return h.v }

// check says whether the handle can be used for what mode names.
func (h *File) check(mode OpenMode) error {
	switch {
	case h.closed.Load():
		return fail(BadHandle, "", "")
	case h.f.stale:
		return fail(Stale, "", "")
	case h.mode&mode != mode:
		return fail(BadHandle, "", "")
	}
	return nil
}

// Stat describes the file, which may have no name any more.
func (h *File) Stat(ctx context.Context) (a Attr, err error) {
	err = h.v.read("stat", "", func() error {
		if err := h.check(0); err != nil {
			return err
		}
		n, err := h.v.inodeOf(ctx, h.f.ino)
		if err == nil {
			a = n.attr(h.f.ino)
		}
		return err
	})
	return a, err
}

// SetAttr changes attributes of the file, which may have no name any more.
func (h *File) SetAttr(ctx context.Context, set SetAttr) (a Attr, err error) {
	if set.Size != nil {
		if err := checkSize(*set.Size); err != nil {
			return Attr{}, err
		}
	}
	err = h.v.change(ctx, "set attributes", "", func() error {
		if err := h.check(0); err != nil {
			return err
		}
		a, err = h.v.setAttr(ctx, h.f.ino, set)
		return err
	})
	return a, err
}

// Truncate sets the size in bytes.
func (h *File) Truncate(ctx context.Context, size int64) error {
	if h.mode&OpenWrite == 0 {
		return fail(BadHandle, "truncate", "")
	}
	_, err := h.SetAttr(ctx, SetAttr{Size: &size})
	return err
}

// Sync commits durably. Callers that wait at the same time share a commit.
func (h *File) Sync(ctx context.Context) error {
	if err := h.usable("sync"); err != nil {
		return err
	}
	return h.v.Sync(ctx)
}

// Flush reports why the last commit failed, if it did. On a nearly full disk it
// commits first, so that the close of a file shows what its writes could not. To
// a handle that only reads it reports nothing: what was read was right, and a
// program must be able to read while nothing can be written.
func (h *File) Flush(ctx context.Context) error {
	if err := h.usable("flush"); err != nil || h.mode&OpenWrite == 0 {
		return err
	}
	if !h.v.s.space.admits(h.v.s.dirty.Load()) {
		if err := h.v.commit(ctx, commitRequest{}); err != nil {
			return wrap(err, "flush", "")
		}
	}
	return h.v.failure("flush")
}

// roomyBytes is more than what is written between the open and the close of most
// files.
const roomyBytes = 1 << 30

// Failed returns why the last commit failed and how many have so far; nil if the last
// one did not fail.
func (v *Vault) Failed() (failures uint64, err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.failures, v.failed
}

// Untroubled reports whether Flush has nothing to report of any file, nor can be
// expected to soon: the last commit succeeded, and the disk has 1 GiB more than what is
// pending needs. A write that finds less room later is itself refused.
func (v *Vault) Untroubled() bool {
	return v.failure("") == nil && v.s.space.admits(v.s.dirty.Load()+roomyBytes)
}

func (h *File) usable(op string) error {
	h.v.mu.RLock()
	defer h.v.mu.RUnlock()
	return wrap(h.check(0), op, "")
}

// Close releases the handle. What a file without a name held is gone with its
// last handle. A second Close fails with BadHandle.
func (h *File) Close() error {
	if h.closed.Swap(true) {
		return fail(BadHandle, "close", "")
	}
	v := h.v
	v.mu.Lock()
	defer v.mu.Unlock()
	h.f.handles--
	if h.f.handles == 0 {
		v.release(h.f)
	}
	return nil
}

// release forgets a file without handles, unless it has unsaved content.
func (v *Vault) release(f *file) {
	if f.orphan != nil {
		v.releaseOrphan(f)
		return
	}
	if len(f.dirty) == 0 && len(f.frozen) == 0 && v.files[f.ino] == f {
		delete(v.files, f.ino)
	}
}

func (v *Vault) releaseOrphan(f *file) {
	f.orphan.Scan(func(k string, value []byte) bool {
		if k[keyHead-1] == kindInode {
			if n, err := decodeInode(value); err == nil {
				v.unlinked -= n.alloc
			}
		}
		v.hold(k, value, -1)
		return true
	})
	v.orphans--
	f.orphan = nil
	v.dropDirty(f)
	f.frozen = nil
	if v.files[f.ino] == f {
		delete(v.files, f.ino)
	}
}
