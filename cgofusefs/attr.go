//go:build cgo || windows

package cgofusefs

import (
	"context"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/winfsp/cgofuse/fuse"
)

// statOf translates an inode's attributes.
func statOf(a engine.Attr) fuse.Stat_t {
	return fuse.Stat_t{
		Ino: uint64(a.Ino), Mode: a.Mode, Nlink: a.Nlink, Uid: a.UID, Gid: a.GID, Rdev: uint64(a.Rdev),
		Size: a.Size, Blksize: posix.BlockSize, Blocks: a.Blocks,
		Atim: timespec(a.Atime), Mtim: timespec(a.Mtime), Ctim: timespec(a.Ctime), Birthtim: timespec(a.Btime),
	}
}

// timespec is a time in nanoseconds since 1970 in the library's type.
func timespec(ns int64) fuse.Timespec {
	sec, nsec := posix.SplitTime(ns)
	return fuse.Timespec{Sec: sec, Nsec: nsec}
}

// Getattr is stat, lstat and fstat, and part of every look at a name.
func (b *vaultFS) Getattr(path string, out *fuse.Stat_t, fh uint64) int {
	switch {
	case path == "/":
		b.rootCalls.Add(1)
	case b.isPollFile(path):
		*out = fuse.Stat_t{Ino: noHandle, Mode: fuse.S_IFREG | 0o444, Nlink: 1}
		return 0
	}
	return b.do("getattr", func(ctx context.Context) error {
		var a engine.Attr
		var err error
		if h := b.handles.get(fh); h != nil {
			a, err = b.v.Stat(ctx, h.ino)
		} else {
			a, err = b.walk(ctx, path)
		}
		if err != nil {
			return err
		}
		if a.Nlink > 0 && b.isHidden(ctx, path) {
			a.Nlink++ // libfuse takes one off, for the hidden name that it believes in
		}
		*out = statOf(a)
		return nil
	})
}

// set changes attributes of what path or handle mean.
func (b *vaultFS) set(op, path string, fh uint64, change engine.SetAttr) int {
	return b.change(op, func(ctx context.Context) error {
		ino, err := b.inode(ctx, path, fh)
		if err == nil {
			_, err = b.v.SetAttr(ctx, ino, change)
		}
		return err
	})
}

// Chmod is what a library without handles calls.
func (b *vaultFS) Chmod(path string, mode uint32) int { return b.Chmod3(path, mode, noHandle) }

// Chmod3 changes permission bits.
func (b *vaultFS) Chmod3(path string, mode uint32, fh uint64) int {
	return b.set("chmod", path, fh, engine.SetAttr{Mode: &mode})
}

// Chown is what a library without handles calls.
func (b *vaultFS) Chown(path string, uid, gid uint32) int { return b.Chown3(path, uid, gid, noHandle) }

// sameID leaves a user or group as it is, as in chown(2).
const sameID = ^uint32(0)

// Chown3 changes owner and group.
func (b *vaultFS) Chown3(path string, uid, gid uint32, fh uint64) int {
	var change engine.SetAttr
	if uid != sameID {
		change.UID = &uid
	}
	if gid != sameID {
		change.GID = &gid
	}
	return b.set("chown", path, fh, change)
}

// Utimens is what a library without handles calls.
func (b *vaultFS) Utimens(path string, times []fuse.Timespec) int {
	return b.Utimens3(path, times, noHandle)
}

// Utimens3 changes access and modification time. libfuse 3 passes the markers of
// utimensat(2) on as they are.
func (b *vaultFS) Utimens3(path string, times []fuse.Timespec, fh uint64) int {
	now := time.Now().UnixNano()
	return b.set("utimens", path, fh, engine.SetAttr{Atime: timeOf(times[0], now), Mtime: timeOf(times[1], now)})
}

// timeOf is the time that ts asks for; nil leaves it as it is.
func timeOf(ts fuse.Timespec, now int64) *int64 {
	switch ts.Nsec {
	case fuse.UTIME_OMIT:
		return nil
	case fuse.UTIME_NOW:
		return &now
	}
	ns := ts.Sec*1e9 + ts.Nsec
	return &ns
}

// Truncate changes the size.
func (b *vaultFS) Truncate(path string, size int64, fh uint64) int {
	return b.change("truncate", func(ctx context.Context) error {
		ino, err := b.inode(ctx, path, fh)
		if err != nil {
			return err
		}
		b.kept.forget(ino)
		if h := b.handles.get(fh); h != nil && h.file != nil {
			return h.file.Truncate(ctx, size)
		}
		_, err = b.v.SetAttr(ctx, ino, engine.SetAttr{Size: &size})
		return err
	})
}
