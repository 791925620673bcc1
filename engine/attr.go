package engine

import "context"

// Stat describes an inode; one without a name too, while a handle is open.
func (v *Vault) Stat(ctx context.Context, ino Ino) (a Attr, err error) {
	err = v.read("stat", "", func() error {
		n, err := v.inodeOf(ctx, ino)
		if err == nil {
			a = n.attr(ino)
		}
		return err
	})
	return a, err
}

// SetAttr changes attributes of an inode and returns them all.
func (v *Vault) SetAttr(ctx context.Context, ino Ino, set SetAttr) (a Attr, err error) {
	if set.Size != nil {
		if err := checkSize(*set.Size); err != nil {
			return Attr{}, err
		}
	}
	err = v.change(ctx, "set attributes", "", func() error {
		a, err = v.setAttr(ctx, ino, set)
		return err
	})
	return a, err
}

// setAttr does the work of SetAttr. The caller holds mu.
func (v *Vault) setAttr(ctx context.Context, ino Ino, set SetAttr) (Attr, error) {
	n, err := v.inodeOf(ctx, ino)
	if err != nil {
		return Attr{}, err
	}
	if set.Size != nil {
		switch {
		case n.isDir():
			return Attr{}, fail(IsDirectory, "", "")
		case !n.isRegular():
			return Attr{}, fail(Invalid, "", "")
		}
		if err := v.resize(ctx, ino, n, *set.Size); err != nil {
			return Attr{}, err
		}
	}
	if set.Mode != nil {
		n.mode = n.mode&TypeMask | *set.Mode&0o7777
	}
	if set.UID != nil {
		n.uid = *set.UID
	}
	if set.GID != nil {
		n.gid = *set.GID
	}
	if set.Atime != nil {
		n.atime = *set.Atime
	}
	if set.Mtime != nil {
		n.mtime = *set.Mtime
	}
	n.ctime = v.s.now()
	v.putInode(ino, n)
	return n.attr(ino), nil
}

// Readlink returns the target of a symbolic link.
func (v *Vault) Readlink(ctx context.Context, ino Ino) (target string, err error) {
	err = v.read("read link", "", func() error {
		target, err = v.view().readlink(ctx, ino)
		return err
	})
	return target, err
}

// GetXattr returns an extended attribute; NoAttribute where there is none.
func (v *Vault) GetXattr(ctx context.Context, ino Ino, name string) (value []byte, err error) {
	err = v.read("get attribute", name, func() error {
		b, err := v.viewOf(ino).xattr(ctx, ino, name)
		value = append([]byte{}, b...)
		return err
	})
	return value, err
}

// ListXattr lists the names of the extended attributes in byte order.
func (v *Vault) ListXattr(ctx context.Context, ino Ino) (names []string, err error) {
	err = v.read("list attributes", "", func() error {
		names, err = v.viewOf(ino).xattrs(ctx, ino)
		return err
	})
	return names, err
}

// SetXattr sets an extended attribute.
func (v *Vault) SetXattr(ctx context.Context, ino Ino, name string, value []byte, flags XattrFlags) error {
	switch {
	case name == "":
		return fail(Invalid, "set attribute", name)
	case len(name) > MaxXattrName:
		return fail(NameTooLong, "set attribute", name)
	case len(value) > MaxXattr:
		return fail(AttributeTooLarge, "set attribute", name)
	}
	if err := v.room(ctx); err != nil {
		return wrap(err, "set attribute", name)
	}
	return v.change(ctx, "set attribute", name, func() error {
		n, err := v.inodeOf(ctx, ino)
		if err != nil {
			return err
		}
		old, err := v.viewOf(ino).get(ctx, xattrKey(ino, name))
		switch {
		case err != nil:
			return err
		case flags&XattrCreate != 0 && old != nil:
			return fail(Exists, "", "")
		case flags&XattrReplace != 0 && old == nil:
			return fail(NoAttribute, "", "")
		}
		v.put(ino, xattrKey(ino, name), append([]byte{}, value...))
		n.ctime = v.s.now()
		v.putInode(ino, n)
		return nil
	})
}

// RemoveXattr removes an extended attribute; NoAttribute where there is none.
func (v *Vault) RemoveXattr(ctx context.Context, ino Ino, name string) error {
	return v.change(ctx, "remove attribute", name, func() error {
		n, err := v.inodeOf(ctx, ino)
		if err != nil {
			return err
		}
		if _, err := v.viewOf(ino).xattr(ctx, ino, name); err != nil {
			return err
		}
		v.put(ino, xattrKey(ino, name), nil)
		n.ctime = v.s.now()
		v.putInode(ino, n)
		return nil
	})
}
