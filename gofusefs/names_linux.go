package gofusefs

import (
	"github.com/agentvfs/avfs/engine"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// entry tells the kernel what a name means.
func (b *vaultFS) entry(out *fuse.EntryOut, a engine.Attr, seen uint64) {
	b.nodes.told(a.Ino)
	b.describe(out, a, seen)
}

// describe fills in an entry that is counted already. The count comes before the
// look at changes: who changes something looks at the count after it has moved
// changes, so that one of the two sees the other.
func (b *vaultFS) describe(out *fuse.EntryOut, a engine.Attr, seen uint64) {
	out.NodeId = uint64(a.Ino)
	fillAttr(&out.Attr, a)
	d := b.keepFor(seen)
	out.SetEntryTimeout(d)
	out.SetAttrTimeout(d)
}

// Lookup finds a name in a directory. The kernel also keeps that there is none.
func (b *vaultFS) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return b.do(func() error {
		seen := b.changes.Load()
		a, err := b.v.Lookup(b.own, engine.Ino(h.NodeId), name)
		switch {
		case err == nil:
			b.entry(out, a, seen)
		case engine.KindOf(err) == engine.NotFound && b.keepFor(seen) > 0:
			out.SetEntryTimeout(keep)
			return nil
		}
		return err
	})
}

// make runs fn, which makes an inode, and tells the kernel of it.
func (b *vaultFS) make(out *fuse.EntryOut, fn func() (engine.Attr, error)) fuse.Status {
	return b.change(func() error {
		seen := b.changes.Load()
		a, err := fn()
		if err == nil {
			b.entry(out, a, seen)
		}
		return err
	})
}

// Mknod makes a file, FIFO, socket or device node. The mount lets nobody use
// devices.
func (b *vaultFS) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return b.make(out, func() (engine.Attr, error) {
		return b.v.Mknod(b.own, engine.Ino(in.NodeId), name, in.Mode, in.Rdev, owner(&in.InHeader))
	})
}

// Mkdir makes a directory.
func (b *vaultFS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return b.make(out, func() (engine.Attr, error) {
		return b.v.Mkdir(b.own, engine.Ino(in.NodeId), name, in.Mode, owner(&in.InHeader))
	})
}

// Symlink makes a symbolic link.
func (b *vaultFS) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return b.make(out, func() (engine.Attr, error) {
		return b.v.Symlink(b.own, engine.Ino(h.NodeId), name, target, owner(h))
	})
}

// Link makes a hard link.
func (b *vaultFS) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return b.make(out, func() (engine.Attr, error) {
		return b.v.Link(b.own, engine.Ino(in.Oldnodeid), engine.Ino(in.NodeId), name)
	})
}

// Readlink reads a symbolic link.
func (b *vaultFS) Readlink(_ <-chan struct{}, h *fuse.InHeader) (out []byte, status fuse.Status) {
	status = b.do(func() error {
		target, err := b.v.Readlink(b.own, engine.Ino(h.NodeId))
		out = []byte(target)
		return ofNode(err)
	})
	return out, status
}

// Unlink removes a name of a file. Open handles keep the file.
func (b *vaultFS) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return b.change(func() error {
		kept, err := b.v.UnlinkKeep(b.own, engine.Ino(h.NodeId), name, b.nodes.knows)
		b.keepRemoved(kept)
		return err
	})
}

// Rmdir removes an empty directory.
func (b *vaultFS) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return b.change(func() error { return b.v.Rmdir(b.own, engine.Ino(h.NodeId), name) })
}

// Rename moves or exchanges names. The engine refuses flags that it does not know.
func (b *vaultFS) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	return b.change(func() error {
		kept, err := b.v.RenameKeep(b.own, engine.Ino(in.NodeId), from, engine.Ino(in.Newdir), to, engine.RenameFlags(in.Flags), b.nodes.knows)
		b.keepRemoved(kept)
		return err
	})
}
