package engine

import (
	"context"
	"slices"

	"github.com/agentvfs/avfs/engine/kv"
)

// Entry describes what Ingest adds to a directory: a whole new inode, or one more
// name of an existing one.
type Entry struct {
	Name  string
	Mode  uint32 // type and permission bits, kept as they are
	Owner Owner
	Rdev  uint32 // of a device node
	Atime int64  // ns since 1970
	Mtime int64  // likewise

	Target string // of a symbolic link
	Size   int64  // of a regular file, in bytes
	// Content is what a regular file holds, in ascending order; the rest of
	// it is a hole. The bytes belong to the vault once Ingest is called.
	Content []Chunk
	Xattrs  []Xattr

	Link    Ino  // not 0: only add Name to this inode, which is no directory
	Replace bool // a file of that name gives way, as in a rename
}

// Chunk is content of a regular file at the offset Index times ChunkSize: at
// least one and at most ChunkSize bytes.
type Chunk struct {
	Index int64
	Data  []byte
}

// Xattr is one extended attribute.
type Xattr struct {
	Name  string
	Value []byte
}

// Ingest adds e to dir as one step: no reader sees it half made, and everything
// about it is one change for the next commit. Unlike the calls that a mount
// makes, it takes modes, owners and times as given: nothing is inherited from a
// set-gid directory. It returns what the new name stands for.
func (v *Vault) Ingest(ctx context.Context, dir Ino, e *Entry) (a Attr, err error) {
	const op = "import"
	if err := e.check(); err != nil {
		return Attr{}, wrap(err, op, e.Name)
	}
	if err := v.roomForContent(ctx); err != nil {
		return Attr{}, wrap(err, op, e.Name)
	}
	err = v.change(ctx, op, e.Name, func() error {
		a, err = v.ingest(ctx, dir, e)
		return err
	})
	return a, err
}

// check rejects what no inode can be.
func (e *Entry) check() error {
	if err := checkName(e.Name); err != nil {
		return err
	}
	if e.Link != 0 {
		return nil
	}
	switch e.Mode & TypeMask {
	case TypeRegular:
		if err := checkSize(e.Size); err != nil {
			return err
		}
	case TypeSymlink:
		if e.Target == "" {
			return fail(NotFound, "", "")
		}
		if len(e.Target) > MaxTarget {
			return fail(NameTooLong, "", "")
		}
	case TypeDir, TypeFIFO, TypeSocket, TypeChar, TypeBlock:
	default:
		return fail(Invalid, "", "")
	}
	return e.checkContent()
}

func (e *Entry) checkContent() error {
	if len(e.Content) > 0 && e.Mode&TypeMask != TypeRegular {
		return fail(Invalid, "", "")
	}
	next := int64(0)
	for _, c := range e.Content {
		n := int64(len(c.Data))
		if c.Index < next || n == 0 || n > ChunkSize || c.Index > (e.Size-n)/ChunkSize || c.Index*ChunkSize+n > e.Size {
			return fail(Invalid, "", "")
		}
		next = c.Index + 1
	}
	for _, x := range e.Xattrs {
		switch {
		case x.Name == "":
			return fail(Invalid, "", "")
		case len(x.Name) > MaxXattrName:
			return fail(NameTooLong, "", "")
		case len(x.Value) > MaxXattr:
			return fail(AttributeTooLarge, "", "")
		}
	}
	return nil
}

// ingest does the work of Ingest. The caller holds mu.
func (v *Vault) ingest(ctx context.Context, dir Ino, e *Entry) (Attr, error) {
	w := v.view()
	d, err := w.dir(ctx, dir)
	if err != nil {
		return Attr{}, err
	}
	var linked *inode
	if e.Link != 0 {
		if linked, err = v.linkable(ctx, e.Link); err != nil {
			return Attr{}, err
		}
	}
	old, taken, err := w.dirent(ctx, dir, e.Name)
	switch {
	case err != nil:
		return Attr{}, err
	case taken && e.Link != 0 && old.ino == e.Link:
		return linked.attr(e.Link), nil
	case taken && (!e.Replace || e.Link == 0 && e.Mode&TypeMask == TypeDir):
		return Attr{}, fail(Exists, "", "")
	case taken && old.typ == TypeDir:
		return Attr{}, fail(IsDirectory, "", "")
	case linked != nil && linked.nlink >= MaxLinks:
		return Attr{}, fail(TooManyLinks, "", "")
	case e.Link == 0 && e.Mode&TypeMask == TypeDir && d.nlink >= MaxLinks:
		return Attr{}, fail(TooManyLinks, "", "")
	}
	var gives *inode
	if taken {
		if gives, err = w.inode(ctx, old.ino); err != nil {
			return Attr{}, err
		}
	}
	if err := v.admitEntry(e, gives, old.ino); err != nil {
		return Attr{}, err
	}
	now := v.s.now()
	if taken {
		if err := v.giveWay(ctx, dir, d, e.Name, old, now); err != nil {
			return Attr{}, err
		}
	}
	if linked == nil {
		ino, n := v.newInode(dir, e, now)
		v.link(dir, d, e.Name, dirent{ino: ino, typ: n.mode & TypeMask}, now)
		return n.attr(ino), nil
	}
	v.addName(e.Link, linked, dir, e.Name)
	linked.ctime = now
	v.putInode(e.Link, linked)
	v.link(dir, d, e.Name, dirent{ino: e.Link, typ: linked.mode & TypeMask}, now)
	return linked.attr(e.Link), nil
}

// linkable returns the record of an inode that may get another name.
func (v *Vault) linkable(ctx context.Context, ino Ino) (*inode, error) {
	n, err := v.view().inode(ctx, ino)
	if err == nil && n.isDir() {
		err = fail(Permission, "", "")
	}
	return n, err
}

// giveWay removes the file that has the name of a new one.
func (v *Vault) giveWay(ctx context.Context, dir Ino, d *inode, name string, old dirent, now int64) error {
	n, err := v.view().inode(ctx, old.ino)
	if err != nil {
		return err
	}
	if err := v.forget(ctx, old.ino, n, dir, name, now); err != nil {
		return err
	}
	v.unlink(dir, d, name, old, now)
	return nil
}

// newInode makes the inode of e without its entry in dir.
func (v *Vault) newInode(dir Ino, e *Entry, now int64) (Ino, *inode) {
	n := &inode{
		mode: e.Mode & (TypeMask | 0o7777), uid: e.Owner.UID, gid: e.Owner.GID, nlink: 1,
		atime: e.Atime, mtime: e.Mtime, ctime: now, btime: now, parent: dir, name: e.Name,
	}
	switch n.mode & TypeMask {
	case TypeDir:
		n.nlink = 2
	case TypeRegular:
		n.size = e.Size
	case TypeSymlink:
		n.target, n.size = e.Target, int64(len(e.Target))
	case TypeChar, TypeBlock:
		n.rdev = e.Rdev
	}
	ino := Ino(v.nextIno)
	v.nextIno++
	v.count++
	if len(e.Content) > 0 {
		f := v.fileOf(ino)
		for _, c := range e.Content {
			// Clipped, because a page grows within its capacity.
			f.dirty[c.Index] = &page{data: slices.Clip(c.Data)}
			v.s.dirty.Add(int64(len(c.Data)))
			v.grow(f, n, int64(len(c.Data)))
		}
	}
	for _, x := range e.Xattrs {
		v.put(ino, xattrKey(ino, x.Name), append([]byte{}, x.Value...))
	}
	v.putInode(ino, n)
	return ino, n
}

// Seek finds the next hole, or the next data, at or after off, as File.Seek does.
func (f *SnapshotFile) Seek(ctx context.Context, off int64, hole bool) (int64, error) {
	const op = "seek"
	switch {
	case f.closed.Load():
		return 0, fail(BadHandle, op, "")
	case off < 0 || off >= f.size:
		return 0, fail(NoData, op, "")
	}
	next := off / ChunkSize // the first chunk that may be what is sought
	found := hole
	err := f.p.w.scan(ctx, key(f.ino, kindChunk), chunkKey(f.ino, next), func(k, _ []byte) error {
		index := int64(kv.ParseID(k[keyHead:]))
		switch {
		case !hole:
			next, found = index, true
		case index == next:
			next++
			return nil
		}
		return kv.Stop
	})
	if err != nil {
		return 0, wrap(err, op, "")
	}
	at := max(off, min(next*ChunkSize, f.size))
	if !found || !hole && at >= f.size {
		return 0, fail(NoData, op, "")
	}
	return at, nil
}
