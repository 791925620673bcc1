package engine

import (
	"context"
	"errors"
	"strings"
)

// MkdirAt makes the directory p; the one above it must exist.
func (v *Vault) MkdirAt(ctx context.Context, p string, perm uint32, o Owner) (Attr, error) {
	dir, name, err := v.place(ctx, p)
	if err != nil {
		return Attr{}, atPath(err, "make directory", p)
	}
	a, err := v.Mkdir(ctx, dir, name, perm, o)
	return a, atPath(err, "make directory", p)
}

// LinkAt gives the file ino the further name p. With replace a file that is there
// gives way, as in a rename.
func (v *Vault) LinkAt(ctx context.Context, ino Ino, p string, replace bool) error {
	dir, name, err := v.place(ctx, p)
	if err == nil && replace {
		_, err = v.Ingest(ctx, dir, &Entry{Name: name, Link: ino, Replace: true})
	} else if err == nil {
		_, err = v.Link(ctx, ino, dir, name)
	}
	return atPath(err, "link", p)
}

// SymlinkAt makes a symbolic link at p with the target, which is kept byte for
// byte. With replace a file that is there gives way, as in a rename.
func (v *Vault) SymlinkAt(ctx context.Context, target, p string, o Owner, replace bool) error {
	dir, name, err := v.place(ctx, p)
	if err == nil && replace {
		now := v.s.now()
		_, err = v.Ingest(ctx, dir, &Entry{Name: name, Mode: TypeSymlink | 0o777, Owner: o, Atime: now, Mtime: now, Target: target, Replace: true})
	} else if err == nil {
		_, err = v.Symlink(ctx, dir, name, target, o)
	}
	return atPath(err, "link", p)
}

// Copy copies the file from to the path to, replacing a file that is there, and
// with recursive a directory with everything below it, merging into a directory
// that is there. Links are copied as links; modes, owners, times and extended
// attributes are kept. Content is shared, not stored again.
func (v *Vault) Copy(ctx context.Context, from, to string, recursive bool) error {
	a, err := resolve(ctx, v, from, !recursive)
	if err != nil {
		return atPath(err, "copy", from)
	}
	if a.IsDir() && !recursive {
		return atPath(fail(IsDirectory, "", ""), "copy", from)
	}
	if strings.HasPrefix(cleanPath(to)+"/", cleanPath(from)+"/") && a.IsDir() {
		return &Error{Kind: Invalid, Op: "copy", Path: from, Err: errors.New("a directory cannot be copied into itself")}
	}
	dir, name, err := v.place(ctx, to)
	if err != nil {
		return atPath(err, "copy", to)
	}
	return atPath(v.copyNode(ctx, a, dir, name), "copy", from)
}

// copyNode copies the inode a to name in dir.
func (v *Vault) copyNode(ctx context.Context, a Attr, dir Ino, name string) error {
	owner := Owner{a.UID, a.GID}
	old, err := v.Lookup(ctx, dir, name)
	if a.IsRegular() && old.Ino != a.Ino && !old.IsDir() {
		if err := v.admitCopy(ctx, a.Ino, old.Ino); err != nil {
			return err
		}
	}
	switch {
	case err == nil && old.Ino == a.Ino:
		return fail(Invalid, "", "")
	case err == nil && a.IsDir() && old.IsDir():
		return v.copyDir(ctx, a, old)
	case err == nil && old.IsDir():
		return fail(IsDirectory, "", "")
	case err == nil && a.IsDir():
		return fail(NotDirectory, "", "")
	case err == nil && !(a.IsRegular() && old.IsRegular()):
		if err := v.Unlink(ctx, dir, name); err != nil {
			return err
		}
	case err != nil && KindOf(err) != NotFound:
		return err
	}
	switch {
	case a.IsDir():
		made, err := v.Mkdir(ctx, dir, name, a.Mode|0o700, owner)
		if err != nil {
			return err
		}
		return v.copyDir(ctx, a, made)
	case a.IsSymlink():
		target, err := v.Readlink(ctx, a.Ino)
		if err != nil {
			return err
		}
		made, err := v.Symlink(ctx, dir, name, target, owner)
		if err != nil {
			return err
		}
		_, err = v.SetAttr(ctx, made.Ino, SetAttr{Mtime: &a.Mtime})
		return err
	case a.IsRegular():
		return v.copyFile(ctx, a, dir, name)
	}
	made, err := v.Mknod(ctx, dir, name, a.Mode, a.Rdev, owner)
	if err != nil {
		return err
	}
	return v.copyAttrs(ctx, a, made.Ino)
}

func (v *Vault) copyDir(ctx context.Context, from, to Attr) error {
	err := v.ReadDir(ctx, from.Ino, "", func(e DirEntry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		child, err := v.Stat(ctx, e.Ino)
		if err != nil {
			return err
		}
		return v.copyNode(ctx, child, to.Ino, e.Name)
	})
	if err != nil {
		return err
	}
	return v.copyAttrs(ctx, from, to.Ino)
}

func (v *Vault) copyFile(ctx context.Context, a Attr, dir Ino, name string) error {
	in, err := v.Open(ctx, a.Ino, OpenRead)
	if err != nil {
		return err
	}
	out, made, err := v.Create(ctx, dir, name, a.Mode, Owner{a.UID, a.GID}, OpenWrite|OpenTruncate, false)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = out.CloneRange(ctx, 0, in, 0, a.Size)
	if err = errors.Join(err, in.Close(), out.Close()); err != nil {
		return err
	}
	return v.copyAttrs(ctx, a, made.Ino)
}

// copyAttrs gives ino the extended attributes, mode, owner and times of a.
func (v *Vault) copyAttrs(ctx context.Context, a Attr, ino Ino) error {
	names, err := v.ListXattr(ctx, a.Ino)
	if err != nil {
		return err
	}
	for _, name := range names {
		value, err := v.GetXattr(ctx, a.Ino, name)
		if err != nil {
			return err
		}
		if err := v.SetXattr(ctx, ino, name, value, 0); err != nil {
			return err
		}
	}
	_, err = v.SetAttr(ctx, ino, SetAttr{Mode: &a.Mode, UID: &a.UID, GID: &a.GID, Atime: &a.Atime, Mtime: &a.Mtime})
	return err
}
