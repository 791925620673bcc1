package memfs

import (
	"slices"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// listing is the names of a directory in the order in which they came, each with a
// position that stays the same, so that reading can go on anywhere.
type listing struct {
	last    uint64
	entries []listed // ascending by pos
	at      map[string]uint64
}

type listed struct {
	name string // empty: removed
	pos  uint64
}

// firstPos is the position of the first name, after "." and "..".
const firstPos = 3

func (l *listing) add(name string) {
	if l.at == nil {
		l.at, l.last = map[string]uint64{}, firstPos-1
	}
	l.remove(name)
	l.last++
	l.at[name] = l.last
	l.entries = append(l.entries, listed{name, l.last})
}

func (l *listing) remove(name string) {
	pos, ok := l.at[name]
	if !ok {
		return
	}
	delete(l.at, name)
	l.entries[l.search(pos)].name = ""
	if len(l.at)*2 < len(l.entries) {
		l.entries = slices.DeleteFunc(l.entries, func(e listed) bool { return e.name == "" })
	}
}

// search is the index of the first entry at or behind pos.
func (l *listing) search(pos uint64) int {
	i, _ := slices.BinarySearchFunc(l.entries, pos, func(e listed, pos uint64) int {
		if e.pos < pos {
			return -1
		}
		return 1
	})
	return i
}

// list calls add for the entries behind the request's position, until it is false.
// The nodes of "." and ".." are nil.
func (m *memFS) list(in *fuse.ReadIn, add func(e fuse.DirEntry, n *node) bool) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.nodes[in.NodeId]
	if d == nil || !d.isDir() {
		return fuse.ENOTDIR
	}
	dots := [...]fuse.DirEntry{{Name: ".", Ino: d.id, Mode: unix.S_IFDIR, Off: 1}, {Name: "..", Ino: d.parent, Mode: unix.S_IFDIR, Off: 2}}
	for _, e := range dots[min(in.Offset, 2):] {
		if !add(e, nil) {
			return fuse.OK
		}
	}
	for _, e := range d.order.entries[d.order.search(in.Offset+1):] {
		n := d.names[e.name]
		if n != nil && !add(fuse.DirEntry{Name: e.name, Ino: n.id, Mode: n.attr.Mode, Off: e.pos}, n) {
			break
		}
	}
	return fuse.OK
}

// OpenDir says that directories need no handles, so that the kernel keeps listings.
func (m *memFS) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.ENOSYS }

// ReadDir lists names with numbers and types.
func (m *memFS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return m.list(in, func(e fuse.DirEntry, _ *node) bool { return out.AddDirEntry(e) })
}

// ReadDirPlus lists with attributes, which count as a lookup of each name.
func (m *memFS) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return m.list(in, func(e fuse.DirEntry, n *node) bool {
		entry := out.AddDirLookupEntry(e)
		if entry != nil && n != nil {
			m.entry(entry, n)
		}
		return entry != nil
	})
}

// FsyncDir has nothing that could survive.
func (m *memFS) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
