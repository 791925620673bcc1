package gofusefs

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/agentvfs/avfs/internal/view"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// vaultFS is the set of operations that the kernel asks for, in any number of
// goroutines. Each calls the engine and turns the outcome into an error number.
type vaultFS struct {
	fuse.RawFileSystem // answers ENOSYS to the rest
	v                  *engine.Vault
	readOnly           bool
	svc                *view.Service
	watcher            *engine.Watcher
	// own is the context of every request, by which the engine knows them as
	// this mount's. Requests have no deadline; the kernel waits for the answer
	// even of one that it has told us is interrupted.
	own context.Context

	// changes counts the changes from outside. An answer that was found while
	// it moved may be old, and the kernel is not let keep it.
	changes  atomic.Uint64
	nodes    nodeTable
	handles  handleTable
	lists    listings
	notifier notifier
	lost     firstError    // of pages of mappings, since writeBack
	caps     atomic.Uint64 // moves when a file may have got file capabilities
}

func newVaultFS(v *engine.Vault, readOnly bool) *vaultFS {
	b := &vaultFS{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), v: v, readOnly: readOnly, svc: view.NewService(v),
		nodes: newNodeTable(), handles: newHandleTable(), lists: newListings(),
	}
	b.watcher = v.Watch(b.changedOutside)
	b.own = b.watcher.Context(context.WithValue(context.Background(), requestKey{}, true))
	return b
}

// String names the file system in go-fuse's debug output.
func (b *vaultFS) String() string { return "avfs" }

// Init is called once the kernel has said hello.
func (b *vaultFS) Init(srv *fuse.Server) { b.notifier.srv.Store(srv) }

// shut ends all service. What was lost since the last flush is told at the end.
func (b *vaultFS) shut() error {
	b.watcher.Stop()
	b.svc.Fault(b.lost.take())
	return b.svc.Shut(func() []*engine.File { return append(b.handles.drain(), b.nodes.drain()...) })
}

// panicked keeps a panic from getting lost; the mount goes on.
func (b *vaultFS) panicked(r any) fuse.Status {
	b.svc.Panicked("request", r)
	return fuse.EIO
}

// ended is the answer to everything once the service has ended.
const ended = fuse.Status(unix.ENOTCONN)

// do runs one operation.
func (b *vaultFS) do(fn func() error) fuse.Status {
	if !b.svc.Enter() {
		return ended
	}
	defer b.svc.Leave()
	return statusOf(fn())
}

// change is do for an operation that alters the vault.
func (b *vaultFS) change(fn func() error) fuse.Status {
	if b.readOnly {
		return fuse.EROFS
	}
	return b.do(fn)
}

// statusOf is the answer that err becomes. Which code an error has is decided in
// package posix.
func statusOf(err error) fuse.Status {
	return fuse.Status(posix.CodeOf(err).Errno())
}

// ofNode is err for an operation on an inode that the kernel has found by a name
// before. If the inode is gone, the name means another now or none: the kernel is
// told to look again, as a program that opens a file while another replaces it must
// find one of the two.
func ofNode(err error) error {
	if err != nil && engine.KindOf(err) == engine.NotFound {
		return &engine.Error{Kind: engine.Stale, Err: err}
	}
	return err
}

// keep is how long the kernel may keep what it is told: practically for ever.
const keep = 365 * 24 * time.Hour

// keepFor is how long the kernel may keep an answer that was looked for when
// changes was seen.
func (b *vaultFS) keepFor(seen uint64) time.Duration {
	if b.changes.Load() != seen {
		return 0
	}
	return keep
}

// owner is the owner of what the calling process creates.
func owner(h *fuse.InHeader) engine.Owner { return engine.Owner{UID: h.Uid, GID: h.Gid} }

// StatFs describes the vault as a file system.
func (b *vaultFS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return b.do(func() error {
		st, err := b.v.StatFS(b.own)
		if err != nil {
			return err
		}
		*out = fuse.StatfsOut{
			Bsize: uint32(st.BlockSize), Frsize: uint32(st.BlockSize), NameLen: uint32(st.NameMax),
			Blocks: uint64(st.Blocks), Bfree: uint64(st.BlocksFree), Bavail: uint64(st.BlocksFree),
			Files: uint64(st.Files), Ffree: uint64(st.FilesFree),
		}
		return nil
	})
}

// Access allows everything: the kernel enforces modes.
func (b *vaultFS) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }
