package memfs

import (
	"io"
	"log"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// keep is how long the kernel may keep names and attributes: practically for ever,
// as nobody changes anything but through it.
const keep = 365 * 24 * time.Hour

// options are those of gofusefs; see its mountOptions for what each is for.
func options() *fuse.MountOptions {
	return &fuse.MountOptions{
		Name: "memfs", FsName: "memfs",
		AllowOther:               true,
		DirectMountStrict:        true,
		Options:                  []string{"default_permissions"},
		MaxWrite:                 1 << 20,
		MaxBackground:            64,
		EnableSymlinkCaching:     true,
		ExplicitDataCacheControl: true,
		DisableSplice:            true,
		ExtraCapabilities:        fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_READDIRPLUS_AUTO,
		DisabledCapabilities:     fuse.CAP_PASSTHROUGH | fuse.CAP_NO_OPEN_SUPPORT,
		Logger:                   log.New(io.Discard, "", 0),
	}
}

// Serve mounts a new, empty file system at point, calls ready, and returns when it
// is unmounted; what was in it is gone then. It needs root's right to mount. The
// process that serves must not use the mount.
func Serve(point string, ready func()) error {
	srv, err := fuse.NewServer(newFS(), point, options())
	if err != nil {
		return err
	}
	ready()
	srv.Serve()
	return nil
}

// memFS answers the kernel's requests.
type memFS struct {
	fuse.RawFileSystem // answers ENOSYS to the rest
	tree
	handles handleTable
}

func newFS() *memFS {
	m := &memFS{RawFileSystem: fuse.NewDefaultRawFileSystem(), handles: handleTable{all: map[uint64]*node{}}}
	m.plant()
	return m
}

// String names the file system in go-fuse's debug output.
func (m *memFS) String() string { return "memfs" }

// StatFs claims more room than any workload needs.
func (m *memFS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	*out = fuse.StatfsOut{Bsize: 4096, Frsize: 4096, NameLen: 255, Blocks: 1 << 28, Bfree: 1 << 28, Bavail: 1 << 28, Files: 1 << 32, Ffree: 1 << 32}
	return fuse.OK
}

// Access allows everything: the kernel enforces modes.
func (m *memFS) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

// entry tells the kernel what a name means. The caller holds the tree's lock.
func (m *memFS) entry(out *fuse.EntryOut, n *node) {
	n.known++
	out.NodeId = n.id
	out.Attr = n.attributes()
	out.SetEntryTimeout(keep)
	out.SetAttrTimeout(keep)
}

// GetAttr is stat of what the kernel does not know.
func (m *memFS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := m.find(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	out.Attr = n.attributes()
	out.SetTimeout(keep)
	return fuse.OK
}

// SetAttr changes mode, owner, size or times.
func (m *memFS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := m.find(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n.set(in, time.Now())
	out.Attr = n.attributes()
	out.SetTimeout(keep)
	return fuse.OK
}
