//go:build cgo || windows

package cgofusefs

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/winfsp/cgofuse/fuse"
)

// openMode translates the flags of open(2). O_APPEND and O_TRUNC do not matter
// without the right to write.
func openMode(flags int) engine.OpenMode {
	mode := engine.OpenRead
	switch flags & fuse.O_ACCMODE {
	case fuse.O_WRONLY:
		mode = engine.OpenWrite
	case fuse.O_RDWR:
		mode = engine.OpenRead | engine.OpenWrite
	}
	if mode&engine.OpenWrite == 0 {
		return mode
	}
	if flags&fuse.O_APPEND != 0 {
		mode |= engine.OpenAppend
	}
	if flags&fuse.O_TRUNC != 0 {
		mode |= engine.OpenTruncate
	}
	return mode
}

// CreateEx creates and opens a file in one step.
func (b *vaultFS) CreateEx(path string, perm uint32, fi *fuse.FileInfo_t) int {
	mode := openMode(fi.Flags)
	return b.at("create", path, func(ctx context.Context, dir engine.Ino, name string) error {
		file, _, err := b.v.Create(ctx, dir, name, perm&^engine.TypeMask, caller(), mode, fi.Flags&fuse.O_EXCL != 0)
		if err != nil {
			return err
		}
		fi.Fh = b.handles.add(handleOf(file, mode))
		return nil
	})
}

// OpenEx opens a file. The kernel has checked permissions, and opens FIFOs,
// sockets and devices without us.
func (b *vaultFS) OpenEx(path string, fi *fuse.FileInfo_t) int {
	if b.isPollFile(path) {
		b.pollShown.Store(false) // it has done its service
		fi.Fh = noHandle
		return 0
	}
	mode := openMode(fi.Flags)
	if b.readOnly && mode&engine.OpenWrite != 0 {
		return -fuse.EROFS
	}
	return b.do("open", func(ctx context.Context) error {
		a, err := b.walk(ctx, path)
		if err != nil {
			return err
		}
		file, err := b.v.Open(ctx, a.Ino, mode)
		if err != nil {
			return err
		}
		if mode&engine.OpenTruncate != 0 {
			err = b.dropPrivileges(ctx, a)
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
		fi.KeepCache = b.kept.opened(a, mode)
		fi.Fh = b.handles.add(handleOf(file, mode))
		return nil
	})
}

// dropPrivileges takes the set-uid and set-gid bits off a file that somebody but
// root has just cut to nothing by opening it. For every other change the kernel
// does that.
func (b *vaultFS) dropPrivileges(ctx context.Context, a engine.Attr) error {
	kept := posix.WithoutSetID(a.Mode)
	if kept == a.Mode || caller().UID == 0 {
		return nil
	}
	_, err := b.v.SetAttr(ctx, a.Ino, engine.SetAttr{Mode: &kept})
	return err
}

// Read fills p from offset off; fewer bytes mean the end of the file.
func (b *vaultFS) Read(_ string, p []byte, off int64, fh uint64) (n int) {
	errc := b.do("read", func(ctx context.Context) error {
		h, err := b.handles.file(fh)
		if err == nil {
			n, err = h.file.ReadAt(ctx, p, off)
		}
		return err
	})
	if errc != 0 {
		return errc
	}
	return n
}

// Write writes p at offset off. A part that was written before an error counts;
// the rest brings the error back.
func (b *vaultFS) Write(_ string, p []byte, off int64, fh uint64) (n int) {
	errc := b.change("write", func(ctx context.Context) error {
		h, err := b.handles.file(fh)
		if err != nil {
			return err
		}
		b.kept.forget(h.ino)
		if h.append && b.isMappedPage(ctx, h, p, off) {
			n, err = b.writePage(ctx, h, p, off)
		} else {
			n, err = h.file.WriteAt(ctx, p, off)
		}
		return err
	})
	if errc != 0 && n == 0 {
		return errc
	}
	return n
}

// pageSize divides every page size that Linux has.
const pageSize = 4096

// isMappedPage reports whether a write through an append handle comes from a
// shared mapping of the file: the kernel writes such pages back through any
// writable handle of the file. They are whole pages within the file, whereas what
// a program appends is meant to start at the end. That alone does not tell them
// from the append of a kernel that has not seen another name's append yet; but the
// kernel writes pages back in nobody's name, process 0. A program outside our
// process namespace has that number, too, so neither sign is enough.
func (b *vaultFS) isMappedPage(ctx context.Context, h *handle, p []byte, off int64) bool {
	if _, _, pid := fuse.Getcontext(); pid != 0 || off%pageSize != 0 {
		return false
	}
	a, err := h.file.Stat(ctx)
	end := off + int64(len(p))
	return err == nil && off < a.Size && (end == a.Size || end < a.Size && end%pageSize == 0)
}

// writePage writes at an offset although the handle appends.
func (b *vaultFS) writePage(ctx context.Context, h *handle, p []byte, off int64) (n int, err error) {
	plain, err := b.v.Open(ctx, h.ino, engine.OpenWrite)
	if err != nil {
		return 0, err
	}
	n, err = plain.WriteAt(ctx, p, off)
	if closeErr := plain.Close(); err == nil {
		err = closeErr
	}
	return n, err
}

// Flush is called at every close(2), which returns what it returns.
func (b *vaultFS) Flush(_ string, fh uint64) int {
	return b.do("flush", func(ctx context.Context) error {
		h, err := b.handles.file(fh)
		if err == nil {
			err = h.file.Flush(ctx)
		}
		return err
	})
}

// Release gives a handle back. No program waits for it, so a failure is kept for
// the end of the mount.
func (b *vaultFS) Release(_ string, fh uint64) int {
	return b.do("release", func(context.Context) error {
		h, last := b.handles.remove(fh)
		if h == nil || h.file == nil {
			return &engine.Error{Kind: engine.BadHandle, Op: "release"}
		}
		err := h.file.Close()
		b.svc.Fault(err)
		if last {
			b.orphans.closed(h.ino)
		}
		return err
	})
}

// Fsync makes everything written to the file survive power loss.
func (b *vaultFS) Fsync(_ string, _ bool, fh uint64) int {
	return b.do("fsync", func(ctx context.Context) error {
		h, err := b.handles.file(fh)
		if err == nil {
			err = h.file.Sync(ctx)
		}
		return err
	})
}
