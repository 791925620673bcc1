package memfs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// dir is a directory that the kernel knows; the caller holds the lock.
func (t *tree) dir(id uint64) (*node, fuse.Status) {
	d := t.nodes[id]
	switch {
	case d == nil || d.attr.Nlink == 0:
		return nil, fuse.ENOENT
	case !d.isDir():
		return nil, fuse.ENOTDIR
	}
	return d, fuse.OK
}

// link gives n a name in d.
func (d *node) link(name string, n *node) {
	d.names[name] = n
	d.order.add(name)
	d.touch()
	if n.isDir() {
		d.attr.Nlink++
		n.parent = d.id
	}
}

// unlink takes the name of n in d away.
func (d *node) unlink(name string, n *node) {
	delete(d.names, name)
	d.order.remove(name)
	d.touch()
	if n.isDir() {
		d.attr.Nlink--
	}
}

// drop is unlink for a name whose node loses a link.
func (t *tree) drop(d *node, name string, n *node) {
	d.unlink(name, n)
	n.attr.Nlink--
	if n.isDir() {
		n.attr.Nlink = 0
	}
	n.touch()
	t.release(n)
}

// Lookup finds a name. The kernel also keeps that there is none.
func (m *memFS) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, status := m.dir(h.NodeId)
	if status != fuse.OK {
		return status
	}
	if n := d.names[name]; n != nil {
		m.entry(out, n)
		return fuse.OK
	}
	out.SetEntryTimeout(keep)
	return fuse.OK
}

// create makes a node with a name that is free. The caller holds the lock.
func (m *memFS) create(h *fuse.InHeader, name string, mode, rdev uint32) (*node, fuse.Status) {
	d, status := m.dir(h.NodeId)
	if status != fuse.OK {
		return nil, status
	}
	if d.names[name] != nil {
		return nil, fuse.Status(unix.EEXIST)
	}
	n := m.add(mode, rdev, h.Owner)
	d.link(name, n)
	return n, fuse.OK
}

// make is create for an operation that returns the entry only; fill, where there
// is one, completes the node.
func (m *memFS) make(h *fuse.InHeader, name string, mode, rdev uint32, out *fuse.EntryOut, fill func(*node)) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, status := m.create(h, name, mode, rdev)
	if status != fuse.OK {
		return status
	}
	if fill != nil {
		fill(n)
	}
	m.entry(out, n)
	return fuse.OK
}

// Mknod makes a file, FIFO, socket or device node.
func (m *memFS) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(&in.InHeader, name, in.Mode, in.Rdev, out, nil)
}

// Mkdir makes a directory.
func (m *memFS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(&in.InHeader, name, unix.S_IFDIR|in.Mode&0o7777, 0, out, nil)
}

// Symlink makes a symbolic link.
func (m *memFS) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(h, name, unix.S_IFLNK|0o777, 0, out, func(n *node) { n.target = target })
}

// Readlink reads a symbolic link.
func (m *memFS) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	n := m.find(h.NodeId)
	if n == nil {
		return nil, fuse.Status(unix.ESTALE)
	}
	return []byte(n.target), fuse.OK // set before anybody could find it, and never changed
}

// Link makes a hard link.
func (m *memFS) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, status := m.dir(in.NodeId)
	n := m.nodes[in.Oldnodeid]
	switch {
	case status != fuse.OK:
		return status
	case n == nil || n.attr.Nlink == 0:
		return fuse.ENOENT
	case d.names[name] != nil:
		return fuse.Status(unix.EEXIST)
	}
	d.link(name, n)
	n.attr.Nlink++
	m.entry(out, n)
	return fuse.OK
}

// Unlink removes a name of what is no directory.
func (m *memFS) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.remove(h, name, false)
}

// Rmdir removes an empty directory.
func (m *memFS) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.remove(h, name, true)
}

func (m *memFS) remove(h *fuse.InHeader, name string, isDir bool) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, status := m.dir(h.NodeId)
	if status != fuse.OK {
		return status
	}
	n := d.names[name]
	switch {
	case n == nil:
		return fuse.ENOENT
	case isDir && !n.isDir():
		return fuse.ENOTDIR
	case !isDir && n.isDir():
		return fuse.EISDIR
	case len(n.names) > 0:
		return fuse.Status(unix.ENOTEMPTY)
	}
	m.drop(d, name, n)
	return fuse.OK
}

// Rename moves a name, in place of another where there is one.
func (m *memFS) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if in.Flags&^unix.RENAME_NOREPLACE != 0 {
		return fuse.EINVAL
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	src, status := m.dir(in.NodeId)
	if status != fuse.OK {
		return status
	}
	dst, status := m.dir(in.Newdir)
	if status != fuse.OK {
		return status
	}
	n, old := src.names[from], dst.names[to]
	switch {
	case n == nil:
		return fuse.ENOENT
	case old != nil && in.Flags != 0:
		return fuse.Status(unix.EEXIST)
	case old == n:
		return fuse.OK
	case old != nil && len(old.names) > 0:
		return fuse.Status(unix.ENOTEMPTY)
	}
	if old != nil {
		m.drop(dst, to, old)
	}
	src.unlink(from, n)
	dst.link(to, n)
	n.touch()
	return fuse.OK
}
