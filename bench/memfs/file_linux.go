package memfs

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// handleTable gives the kernel numbers for open files.
type handleTable struct {
	mu   sync.RWMutex // guards what follows
	last uint64
	all  map[uint64]*node
}

// open gives the kernel a handle. It keeps the content that it has of the file, and
// does not ask at the close of a file that was only read.
func (t *handleTable) open(out *fuse.OpenOut, n *node, flags uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.all[t.last] = n
	out.Fh, out.OpenFlags = t.last, fuse.FOPEN_KEEP_CACHE
	if flags&unix.O_ACCMODE == unix.O_RDONLY {
		out.OpenFlags |= fuse.FOPEN_NOFLUSH
	}
}

// file is the node of an open file, nil if there is none.
func (t *handleTable) file(fh uint64) *node {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[fh]
}

// Create creates and opens a file in one step.
func (m *memFS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, status := m.create(&in.InHeader, name, unix.S_IFREG|in.Mode&0o7777, 0)
	if status != fuse.OK {
		return status
	}
	m.entry(&out.EntryOut, n)
	m.handles.open(&out.OpenOut, n, in.Flags)
	return fuse.OK
}

// Open opens a file. The kernel has checked permissions.
func (m *memFS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[in.NodeId]
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	if in.Flags&unix.O_TRUNC != 0 {
		n.data.truncate(0)
		n.touch()
	}
	m.handles.open(out, n, in.Flags)
	return fuse.OK
}

// Read fills p from an offset on.
func (m *memFS) Read(_ <-chan struct{}, in *fuse.ReadIn, p []byte) (fuse.ReadResult, fuse.Status) {
	n := m.handles.file(in.Fh)
	if n == nil {
		return nil, fuse.EBADF
	}
	return fuse.ReadResultData(p[:n.data.read(p, int64(in.Offset))]), fuse.OK
}

// Write writes p at an offset; the kernel knows the end that appends go to.
func (m *memFS) Write(_ <-chan struct{}, in *fuse.WriteIn, p []byte) (uint32, fuse.Status) {
	n := m.handles.file(in.Fh)
	if n == nil {
		return 0, fuse.EBADF
	}
	n.data.write(p, int64(in.Offset))
	m.mu.Lock()
	defer m.mu.Unlock()
	n.touch()
	if in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		n.attr.Mode &^= unix.S_ISUID | unix.S_ISGID
	}
	return uint32(len(p)), fuse.OK
}

// Fallocate makes a file longer; it has no other mode.
func (m *memFS) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	n := m.handles.file(in.Fh)
	switch {
	case n == nil:
		return fuse.EBADF
	case in.Mode != 0:
		return fuse.Status(unix.ENOTSUP)
	}
	n.data.grow(int64(in.Offset + in.Length))
	return fuse.OK
}

// Flush is called at every close of a file open for writing.
func (m *memFS) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// Fsync has nothing that could survive.
func (m *memFS) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

// Release gives a handle back.
func (m *memFS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	m.handles.mu.Lock()
	defer m.handles.mu.Unlock()
	delete(m.handles.all, in.Fh)
}
