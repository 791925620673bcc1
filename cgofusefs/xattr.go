//go:build cgo || windows

package cgofusefs

import (
	"context"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/winfsp/cgofuse/fuse"
)

// Setxattr sets an extended attribute.
func (b *vaultFS) Setxattr(path, name string, value []byte, flags int) int {
	if !posix.XattrSupported(name) {
		return -fuse.ENOTSUP
	}
	var how engine.XattrFlags
	switch flags {
	case 0:
	case fuse.XATTR_CREATE:
		how = engine.XattrCreate
	case fuse.XATTR_REPLACE:
		how = engine.XattrReplace
	default:
		return -fuse.EINVAL
	}
	return b.change("setxattr", func(ctx context.Context) error {
		a, err := b.walk(ctx, path)
		if err == nil {
			err = b.v.SetXattr(ctx, a.Ino, name, value, how)
		}
		return err
	})
}

// Getxattr reads an extended attribute.
func (b *vaultFS) Getxattr(path, name string) (errc int, value []byte) {
	if !posix.XattrSupported(name) {
		return -fuse.ENOTSUP, nil
	}
	errc = b.do("getxattr", func(ctx context.Context) error {
		a, err := b.walk(ctx, path)
		if err == nil {
			value, err = b.v.GetXattr(ctx, a.Ino, name)
		}
		return err
	})
	return errc, value
}

// Removexattr removes an extended attribute.
func (b *vaultFS) Removexattr(path, name string) int {
	if !posix.XattrSupported(name) {
		return -fuse.ENOTSUP
	}
	return b.change("removexattr", func(ctx context.Context) error {
		a, err := b.walk(ctx, path)
		if err == nil {
			err = b.v.RemoveXattr(ctx, a.Ino, name)
		}
		return err
	})
}

// Listxattr lists the names of extended attributes. fill refuses what does not fit
// into the caller's buffer.
func (b *vaultFS) Listxattr(path string, fill func(string) bool) int {
	full := false
	errc := b.do("listxattr", func(ctx context.Context) error {
		a, err := b.walk(ctx, path)
		if err != nil {
			return err
		}
		names, err := b.v.ListXattr(ctx, a.Ino)
		for _, name := range names {
			full = full || !fill(name)
		}
		return err
	})
	if errc == 0 && full {
		return -fuse.ERANGE
	}
	return errc
}
