package memfs

import (
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a file, directory or symbolic link. The tree's lock guards all of it but
// the content, which has its own.
type node struct {
	id     uint64
	attr   fuse.Attr // without size and blocks of a regular file
	known  uint64    // how often the kernel has been told of it, less what it has forgotten
	parent uint64    // of a directory
	names  map[string]*node
	order  listing // of a directory
	target string  // of a symbolic link

	data content // of a regular file
}

// tree is all nodes.
type tree struct {
	mu    sync.RWMutex // guards what follows, and the nodes
	last  uint64
	nodes map[uint64]*node
}

// plant makes the top directory of an empty tree.
func (t *tree) plant() {
	t.nodes = map[uint64]*node{}
	root := t.add(unix.S_IFDIR|0o755, 0, fuse.Owner{})
	root.parent, root.known = root.id, 1
}

// add makes a node that has no name yet. Numbers are not used again. The first is
// the top directory's, fuse.FUSE_ROOT_ID.
func (t *tree) add(mode, rdev uint32, owner fuse.Owner) *node {
	t.last++
	n := &node{id: t.last, attr: fuse.Attr{Ino: t.last, Mode: mode, Rdev: rdev, Nlink: 1, Owner: owner, Blksize: 4096}}
	if n.isDir() {
		n.attr.Nlink, n.names = 2, map[string]*node{}
	}
	now := time.Now()
	n.attr.SetTimes(&now, &now, &now)
	t.nodes[n.id] = n
	return n
}

// find is the node with this number; nil is one that the kernel was never told of,
// or has forgotten.
func (t *tree) find(id uint64) *node {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.nodes[id]
}

// release drops a node that has no name and that the kernel does not know. A handle
// that is still open keeps its content.
func (t *tree) release(n *node) {
	if n.attr.Nlink == 0 && n.known == 0 {
		delete(t.nodes, n.id)
	}
}

// Forget is called when the kernel drops a node.
func (m *memFS) Forget(id, times uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.nodes[id]; n != nil {
		n.known -= min(times, n.known)
		m.release(n)
	}
}

func (n *node) isDir() bool { return n.attr.Mode&unix.S_IFMT == unix.S_IFDIR }

// touch sets the times of a change.
func (n *node) touch() {
	now := time.Now()
	n.attr.SetTimes(nil, &now, &now)
}

// attributes is what the kernel is told. The caller holds the tree's lock.
func (n *node) attributes() fuse.Attr {
	a := n.attr
	switch a.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		a.Size = uint64(n.data.len())
		a.Blocks = (a.Size + 511) / 512
	case unix.S_IFLNK:
		a.Size = uint64(len(n.target))
	}
	return a
}

// set changes what in asks for. The caller holds the tree's lock.
func (n *node) set(in *fuse.SetAttrIn, now time.Time) {
	if mode, ok := in.GetMode(); ok {
		n.attr.Mode = n.attr.Mode&unix.S_IFMT | mode&0o7777
	}
	if uid, ok := in.GetUID(); ok {
		n.attr.Uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		n.attr.Gid = gid
	}
	if in.Valid&fuse.FATTR_KILL_SUIDGID != 0 {
		n.attr.Mode &^= unix.S_ISUID | unix.S_ISGID
	}
	if size, ok := in.GetSize(); ok {
		n.data.truncate(int64(size))
		n.attr.SetTimes(nil, &now, nil)
	}
	if atime, ok := in.GetATime(); ok {
		n.attr.SetTimes(&atime, nil, nil)
	}
	if mtime, ok := in.GetMTime(); ok {
		n.attr.SetTimes(nil, &mtime, nil)
	}
	n.attr.SetTimes(nil, nil, &now)
}
