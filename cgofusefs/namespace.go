//go:build cgo || windows

package cgofusefs

import (
	"context"

	"github.com/agentvfs/avfs/engine"
	"github.com/winfsp/cgofuse/fuse"
)

// caller is the owner of what the calling process creates.
func caller() engine.Owner {
	uid, gid, _ := fuse.Getcontext()
	return engine.Owner{UID: uid, GID: gid}
}

// at runs fn, which changes the vault, on the directory and name that path means.
// The top directory has no name that could be made or removed.
func (b *vaultFS) at(op, path string, fn func(ctx context.Context, dir engine.Ino, name string) error) int {
	return b.change(op, func(ctx context.Context) error {
		dir, name, err := b.parent(ctx, path)
		if err != nil {
			return err
		}
		if name == "" {
			return &engine.Error{Kind: engine.Busy, Op: op, Path: path}
		}
		return fn(ctx, dir, name)
	})
}

// Mknod makes a file, FIFO, socket or device node.
func (b *vaultFS) Mknod(path string, mode uint32, dev uint64) int {
	return b.at("mknod", path, func(ctx context.Context, dir engine.Ino, name string) error {
		_, err := b.v.Mknod(ctx, dir, name, mode, uint32(dev), caller())
		return err
	})
}

// Mkdir makes a directory.
func (b *vaultFS) Mkdir(path string, mode uint32) int {
	return b.at("mkdir", path, func(ctx context.Context, dir engine.Ino, name string) error {
		_, err := b.v.Mkdir(ctx, dir, name, mode, caller())
		return err
	})
}

// Symlink makes a symbolic link.
func (b *vaultFS) Symlink(target, path string) int {
	return b.at("symlink", path, func(ctx context.Context, dir engine.Ino, name string) error {
		_, err := b.v.Symlink(ctx, dir, name, target, caller())
		return err
	})
}

// Readlink reads a symbolic link.
func (b *vaultFS) Readlink(path string) (errc int, target string) {
	errc = b.do("readlink", func(ctx context.Context) error {
		a, err := b.walk(ctx, path)
		if err == nil {
			target, err = b.v.Readlink(ctx, a.Ino)
		}
		return err
	})
	return errc, target
}

// Link makes a hard link.
func (b *vaultFS) Link(oldPath, newPath string) int {
	return b.at("link", newPath, func(ctx context.Context, dir engine.Ino, name string) error {
		a, err := b.walk(ctx, oldPath)
		if err == nil {
			_, err = b.v.Link(ctx, a.Ino, dir, name)
		}
		return err
	})
}

// Unlink removes a name. libfuse also calls it for a hidden name, once the last
// handle is closed: there is nothing left to do then.
func (b *vaultFS) Unlink(path string) int {
	return b.at("unlink", path, func(ctx context.Context, dir engine.Ino, name string) error {
		if b.orphans.remove(dir, name) {
			return nil
		}
		err := b.v.Unlink(ctx, dir, name)
		if _, hidden := hiddenCount(name); hidden && engine.KindOf(err) == engine.NotFound {
			return nil // forgotten at the last close already
		}
		return err
	})
}

// Rmdir removes an empty directory.
func (b *vaultFS) Rmdir(path string) int {
	return b.at("rmdir", path, func(ctx context.Context, dir engine.Ino, name string) error {
		return b.v.Rmdir(ctx, dir, name)
	})
}

// Rename is what a library without flags calls.
func (b *vaultFS) Rename(oldPath, newPath string) int { return b.Rename3(oldPath, newPath, 0) }

// Rename3 moves or exchanges names. A rename by which libfuse hides a file that is
// being removed while open becomes a removal.
func (b *vaultFS) Rename3(oldPath, newPath string, flags uint32) int {
	if flags&^(fuse.RENAME_NOREPLACE|fuse.RENAME_EXCHANGE) != 0 {
		return -fuse.EINVAL
	}
	return b.at("rename", oldPath, func(ctx context.Context, dir engine.Ino, name string) error {
		newDir, newName, err := b.parent(ctx, newPath)
		if err != nil {
			return err
		}
		if newName == "" {
			return &engine.Error{Kind: engine.Busy, Op: "rename", Path: newPath}
		}
		if flags == 0 && dir == newDir && b.orphans.expects(newName) {
			a, err := b.v.Lookup(ctx, dir, name)
			if err != nil {
				return err
			}
			if b.handles.isOpen(a.Ino) {
				return b.hide(ctx, dir, name, newName, a.Ino)
			}
		}
		return b.v.Rename(ctx, dir, name, newDir, newName, engine.RenameFlags(flags))
	})
}

// hide removes an open file and remembers the name by which libfuse will go on to
// speak of it.
func (b *vaultFS) hide(ctx context.Context, dir engine.Ino, name, hidden string, ino engine.Ino) error {
	if err := b.v.Unlink(ctx, dir, name); err != nil {
		return err
	}
	b.orphans.add(dir, hidden, ino)
	return nil
}
