//go:build cgo || windows

package cgofusefs

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/agentvfs/avfs/internal/view"
	"github.com/winfsp/cgofuse/fuse"
)

// vaultFS is the set of operations that the library calls, on any number of its
// threads. Each translates its path to an inode, calls the engine, and turns the
// outcome into the negative number that the library wants.
type vaultFS struct {
	fuse.FileSystemBase
	v        *engine.Vault
	readOnly bool
	onInit   func()

	rootCalls atomic.Uint64
	pollShown atomic.Bool // the file for the view's poll is still there
	handles   handleTable
	orphans   orphanTable
	kept      keptTable
	svc       *view.Service
}

var (
	_ fuse.FileSystemInterface = (*vaultFS)(nil)
	_ fuse.FileSystemOpenEx    = (*vaultFS)(nil)
	_ fuse.FileSystemRename3   = (*vaultFS)(nil)
	_ fuse.FileSystemChmod3    = (*vaultFS)(nil)
	_ fuse.FileSystemChown3    = (*vaultFS)(nil)
	_ fuse.FileSystemUtimens3  = (*vaultFS)(nil)
)

func newVaultFS(v *engine.Vault, readOnly bool) *vaultFS {
	return &vaultFS{v: v, svc: view.NewService(v), readOnly: readOnly, handles: newHandleTable(), orphans: newOrphanTable(), kept: newKeptTable()}
}

// do runs one operation. Requests of the kernel have no deadline, and libfuse does
// not tell us of interruptions, hence the background context.
func (b *vaultFS) do(op string, fn func(ctx context.Context) error) (errc int) {
	if !b.svc.Enter() {
		return -fuse.ENOTCONN
	}
	defer b.svc.Leave()
	defer b.catch(op, &errc)
	return -errnoOf(fn(context.Background()))
}

// change is do for an operation that alters the vault.
func (b *vaultFS) change(op string, fn func(ctx context.Context) error) int {
	if b.readOnly {
		return -fuse.EROFS
	}
	return b.do(op, fn)
}

func errnoOf(err error) int { return numberOf(posix.CodeOf(err)) }

// catch keeps a panic from getting lost: cgofuse would turn it into EIO without a
// word.
func (b *vaultFS) catch(op string, errc *int) {
	if r := recover(); r != nil {
		b.svc.Panicked(op, r)
		*errc = -fuse.EIO
	}
}

// shut ends all service.
func (b *vaultFS) shut() error { return b.svc.Shut(b.handles.drain) }

// Init is called once the kernel has said hello.
func (b *vaultFS) Init() { b.onInit() }

// Statfs describes the vault as a file system.
func (b *vaultFS) Statfs(_ string, out *fuse.Statfs_t) int {
	return b.do("statfs", func(ctx context.Context) error {
		st, err := b.v.StatFS(ctx)
		if err != nil {
			return err
		}
		*out = fuse.Statfs_t{
			Bsize: uint64(st.BlockSize), Frsize: uint64(st.BlockSize),
			Blocks: uint64(st.Blocks), Bfree: uint64(st.BlocksFree), Bavail: uint64(st.BlocksFree),
			Files: uint64(st.Files), Ffree: uint64(st.FilesFree), Favail: uint64(st.FilesFree),
			Namemax: uint64(st.NameMax),
		}
		return nil
	})
}

// Access allows everything: the kernel enforces modes and asks only on systems
// where it does not.
func (b *vaultFS) Access(string, uint32) int { return 0 }

// walk follows path from the top directory. Symbolic links are the kernel's
// business; none is followed here.
func (b *vaultFS) walk(ctx context.Context, path string) (engine.Attr, error) {
	dir, name, err := b.parent(ctx, path)
	if err != nil {
		return engine.Attr{}, err
	}
	if name == "" {
		return b.v.Stat(ctx, dir)
	}
	return b.lookup(ctx, dir, name)
}

// parent finds the directory of path's last element, and that element; the top
// directory is its own parent with an empty name.
func (b *vaultFS) parent(ctx context.Context, path string) (engine.Ino, string, error) {
	if path == "" { // libfuse lost the path of something removed
		return 0, "", &engine.Error{Kind: engine.NotFound, Op: "walk"}
	}
	dir, rest := engine.RootIno, strings.Trim(path, "/")
	for {
		name, below, more := strings.Cut(rest, "/")
		if !more {
			return dir, name, nil
		}
		a, err := b.v.Lookup(ctx, dir, name)
		if err != nil {
			return 0, "", err
		}
		dir, rest = a.Ino, below
	}
}

// lookup finds one name, which may be the hidden one of a removed open file.
func (b *vaultFS) lookup(ctx context.Context, dir engine.Ino, name string) (engine.Attr, error) {
	if ino, ok := b.orphans.find(dir, name); ok {
		return b.v.Stat(ctx, ino)
	}
	return b.v.Lookup(ctx, dir, name)
}

// isHidden reports whether path is the hidden name of a removed open file.
func (b *vaultFS) isHidden(ctx context.Context, path string) bool {
	if !strings.HasPrefix(path[strings.LastIndexByte(path, '/')+1:], hiddenPrefix) {
		return false
	}
	dir, name, err := b.parent(ctx, path)
	if err != nil {
		return false
	}
	_, hidden := b.orphans.find(dir, name)
	return hidden
}

// inode is the inode that an operation means: that of its handle if it has one,
// because the path may be gone, else that of its path.
func (b *vaultFS) inode(ctx context.Context, path string, fh uint64) (engine.Ino, error) {
	if h := b.handles.get(fh); h != nil {
		return h.ino, nil
	}
	a, err := b.walk(ctx, path)
	return a.Ino, err
}
