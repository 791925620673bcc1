package engine

import "context"

// moved is one side of a rename: an entry and the records it touches.
type moved struct {
	dir  Ino
	d    *inode // record of dir; both sides share it where the directory is the same
	name string
	ino  Ino
	n    *inode // nil: the name is free
}

func (m *moved) entry() dirent { return dirent{ino: m.ino, typ: m.n.mode & TypeMask} }

// Rename moves a name, replacing what the new name was, as renameat2 does. A
// file that is replaced while open lives on for its handles.
func (v *Vault) Rename(ctx context.Context, fromDir Ino, fromName string, toDir Ino, toName string, flags RenameFlags) error {
	_, err := v.RenameKeep(ctx, fromDir, fromName, toDir, toName, flags, nil)
	return err
}

// RenameKeep is to Rename what UnlinkKeep is to Unlink.
func (v *Vault) RenameKeep(ctx context.Context, fromDir Ino, fromName string, toDir Ino, toName string, flags RenameFlags, keep func(Ino) bool) (kept *File, err error) {
	err = v.change(ctx, "rename", fromName, func() error {
		from, to, err := v.renameSides(ctx, fromDir, fromName, toDir, toName)
		if err != nil {
			return err
		}
		switch flags {
		case 0:
		case RenameNoReplace:
			if to.n != nil {
				return fail(Exists, "", "")
			}
		case RenameExchange:
			return v.exchange(ctx, from, to)
		default:
			return fail(Invalid, "", "")
		}
		kept, err = v.replace(ctx, from, to, keep)
		return err
	})
	return kept, err
}

func (v *Vault) renameSides(ctx context.Context, fromDir Ino, fromName string, toDir Ino, toName string) (from, to *moved, err error) {
	w := v.view()
	from = &moved{dir: fromDir, name: fromName}
	to = &moved{dir: toDir, name: toName}
	if from.ino, from.n, err = w.lookup(ctx, fromDir, fromName); err != nil {
		return nil, nil, err
	}
	if to.ino, to.n, err = w.lookup(ctx, toDir, toName); err != nil && KindOf(err) != NotFound {
		return nil, nil, err
	}
	if from.d, err = w.dir(ctx, fromDir); err != nil {
		return nil, nil, err
	}
	to.d = from.d
	if toDir != fromDir {
		if to.d, err = w.dir(ctx, toDir); err != nil {
			return nil, nil, err
		}
	}
	return from, to, nil
}

// below reports whether dir is ino or lies below it.
func (w view) below(ctx context.Context, dir, ino Ino) (bool, error) {
	for depth := 0; dir != ino; depth++ {
		if dir == RootIno || dir == 0 {
			return false, nil
		}
		n, err := w.dir(ctx, dir)
		if err != nil {
			return false, err
		}
		if depth > maxDepth {
			return false, &Error{Kind: Corrupt, Op: "walk", Path: "parents", Err: errDecode}
		}
		dir = n.parent
	}
	return true, nil
}

// maxDepth bounds every walk to the top; deeper trees are damaged.
const maxDepth = 1 << 20

// replace moves a name; keep is that of RenameKeep.
func (v *Vault) replace(ctx context.Context, from, to *moved, keep func(Ino) bool) (kept *File, err error) {
	if to.n != nil && to.ino == from.ino {
		return nil, nil // two names of one file: POSIX does nothing
	}
	if from.n.isDir() && from.dir != to.dir {
		if inside, err := v.view().below(ctx, to.dir, from.ino); err != nil || inside {
			if inside {
				err = fail(Invalid, "", "")
			}
			return nil, err
		}
		if to.n == nil && to.d.nlink >= MaxLinks {
			return nil, fail(TooManyLinks, "", "")
		}
	}
	if to.n != nil {
		if err := replaceable(from.n, to.n); err != nil {
			return nil, err
		}
	}
	now := v.s.now()
	if to.n != nil {
		entry := to.entry()
		if kept, err = v.forgetKeep(ctx, to.ino, to.n, to.dir, to.name, now, keep); err != nil {
			return nil, err
		}
		v.unlink(to.dir, to.d, to.name, entry, now)
	}
	v.unlink(from.dir, from.d, from.name, from.entry(), now)
	v.link(to.dir, to.d, to.name, from.entry(), now)
	from.n.ctime = now
	v.rehang(from, to)
	v.putInode(from.ino, from.n)
	return kept, nil
}

// replaceable says whether a rename of from may replace to.
func replaceable(from, to *inode) error {
	switch {
	case to.isDir() && !from.isDir():
		return fail(IsDirectory, "", "")
	case !to.isDir() && from.isDir():
		return fail(NotDirectory, "", "")
	case to.isDir() && to.size > 0:
		return fail(NotEmpty, "", "")
	}
	return nil
}

// rehang notes in from's record that its name is now to's.
func (v *Vault) rehang(from, to *moved) {
	if from.n.nlink > 1 && !from.n.isDir() {
		v.put(from.ino, linkKey(from.ino, from.dir, from.name), nil)
		v.put(from.ino, linkKey(from.ino, to.dir, to.name), []byte{})
		return
	}
	from.n.parent, from.n.name = to.dir, to.name
}

// exchange swaps two names.
func (v *Vault) exchange(ctx context.Context, from, to *moved) error {
	if to.n == nil {
		return fail(NotFound, "", "")
	}
	if to.ino == from.ino {
		return nil
	}
	for _, m := range [][2]*moved{{from, to}, {to, from}} {
		if !m[0].n.isDir() || from.dir == to.dir {
			continue
		}
		if inside, err := v.view().below(ctx, m[1].dir, m[0].ino); err != nil || inside {
			if inside {
				err = fail(Invalid, "", "")
			}
			return err
		}
	}
	now := v.s.now()
	a, b := from.entry(), to.entry()
	v.unlink(from.dir, from.d, from.name, a, now)
	v.unlink(to.dir, to.d, to.name, b, now)
	v.link(from.dir, from.d, from.name, b, now)
	v.link(to.dir, to.d, to.name, a, now)
	v.rehang(from, to)
	v.rehang(to, from)
	from.n.ctime, to.n.ctime = now, now
	v.putInode(from.ino, from.n)
	v.putInode(to.ino, to.n)
	return nil
}
