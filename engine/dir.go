package engine

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine/kv"
)

// Lookup finds name in directory dir.
func (v *Vault) Lookup(ctx context.Context, dir Ino, name string) (a Attr, err error) {
	err = v.read("lookup", name, func() error {
		ino, n, err := v.view().lookup(ctx, dir, name)
		if err == nil {
			a = n.attr(ino)
		}
		return err
	})
	return a, err
}

// readDirBatch is how many entries ReadDir gathers under one lock.
const readDirBatch = 1024

// ReadDir calls fn for the entries of dir that come after the name after, in
// name order; "." and ".." are not among them. fn may use the vault. Entries
// that come or go meanwhile may or may not be seen, every other one is seen
// once. kv.Stop from fn ends it early.
func (v *Vault) ReadDir(ctx context.Context, dir Ino, after string, fn func(DirEntry) error) error {
	for {
		batch := make([]DirEntry, 0, 64)
		err := v.read("read directory", "", func() error {
			return v.viewOf(dir).readDir(ctx, dir, after, func(e DirEntry) error {
				batch = append(batch, e)
				if len(batch) == readDirBatch {
					return kv.Stop
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, e := range batch {
			if err := fn(e); errors.Is(err, kv.Stop) {
				return nil
			} else if err != nil {
				return err
			}
		}
		if len(batch) < readDirBatch {
			return nil
		}
		after = batch[len(batch)-1].Name
	}
}

// Parent is the directory that holds dir; the top directory holds itself.
func (v *Vault) Parent(ctx context.Context, dir Ino) (parent Ino, err error) {
	err = v.read("parent", "", func() error {
		n, err := v.view().dir(ctx, dir)
		if err != nil {
			return err
		}
		if parent = n.parent; dir == RootIno {
			parent = RootIno
		}
		return nil
	})
	return parent, err
}

// Mknod makes a regular file, FIFO, socket or device node.
func (v *Vault) Mknod(ctx context.Context, dir Ino, name string, mode, rdev uint32, o Owner) (Attr, error) {
	switch mode & TypeMask {
	case 0:
		mode |= TypeRegular
	case TypeRegular, TypeFIFO, TypeSocket:
		rdev = 0
	case TypeChar, TypeBlock:
	default:
		return Attr{}, fail(Invalid, "make node", name)
	}
	return v.make(ctx, "make node", dir, name, &inode{mode: mode, rdev: rdev, nlink: 1}, o)
}

// Mkdir makes a directory.
func (v *Vault) Mkdir(ctx context.Context, dir Ino, name string, mode uint32, o Owner) (Attr, error) {
	return v.make(ctx, "make directory", dir, name, &inode{mode: TypeDir | mode&^TypeMask, nlink: 2}, o)
}

// Symlink makes a symbolic link with the target, which is kept byte for byte.
func (v *Vault) Symlink(ctx context.Context, dir Ino, name, target string, o Owner) (Attr, error) {
	if len(target) > MaxTarget {
		return Attr{}, fail(NameTooLong, "make link", name)
	}
	if target == "" {
		return Attr{}, fail(NotFound, "make link", name)
	}
	n := &inode{mode: TypeSymlink | 0o777, nlink: 1, target: target, size: int64(len(target))}
	return v.make(ctx, "make link", dir, name, n, o)
}

// make adds the new inode n to dir.
func (v *Vault) make(ctx context.Context, op string, dir Ino, name string, n *inode, o Owner) (a Attr, err error) {
	if err := v.room(ctx); err != nil {
		return Attr{}, wrap(err, op, name)
	}
	err = v.change(ctx, op, name, func() error {
		ino, err := v.addInode(ctx, dir, name, n, o)
		if err == nil {
			a = n.attr(ino)
		}
		return err
	})
	return a, err
}

// addInode gives n a number, times and an owner, and a name in dir. The caller
// holds mu.
func (v *Vault) addInode(ctx context.Context, dir Ino, name string, n *inode, o Owner) (Ino, error) {
	d, err := v.freeName(ctx, dir, name)
	if err != nil {
		return 0, err
	}
	if n.isDir() && d.nlink >= MaxLinks {
		return 0, fail(TooManyLinks, "", "")
	}
	if err := v.admitFiles(1); err != nil {
		return 0, err
	}
	v.settleOwner(n, d, o)
	n.parent, n.name = dir, name
	ino := v.newIno()
	v.count++
	v.putInode(ino, n)
	v.link(dir, d, name, dirent{ino: ino, typ: n.mode & TypeMask}, n.ctime)
	return ino, nil
}

// settleOwner gives the new inode n times, and the owner that it has in a directory
// with the record d.
func (v *Vault) settleOwner(n, d *inode, o Owner) {
	n.uid, n.gid = o.UID, o.GID
	if d.mode&ModeSetGID != 0 {
		n.gid = d.gid
		if n.isDir() {
			n.mode |= ModeSetGID
		}
	}
	now := v.s.now()
	n.atime, n.mtime, n.ctime, n.btime = now, now, now, now
}

func (v *Vault) newIno() Ino {
	v.nextIno++
	return Ino(v.nextIno - 1)
}

// freeName checks that name can be added to dir and returns dir's record.
func (v *Vault) freeName(ctx context.Context, dir Ino, name string) (*inode, error) {
	if err := checkName(name); err != nil {
		if name == "." || name == ".." {
			err = fail(Exists, "", "")
		}
		return nil, err
	}
	d, err := v.view().dir(ctx, dir)
	if err != nil {
		return nil, err
	}
	if _, ok, err := v.view().dirent(ctx, dir, name); err != nil || ok {
		if ok {
			err = fail(Exists, "", "")
		}
		return nil, err
	}
	return d, nil
}

// link adds an entry to dir, whose record is d.
func (v *Vault) link(dir Ino, d *inode, name string, e dirent, now int64) {
	v.put(dir, direntKey(dir, name), e.encode())
	d.size++
	if e.typ == TypeDir {
		d.nlink++
	}
	d.mtime, d.ctime = now, now
	v.putInode(dir, d)
}

// unlink removes an entry from dir, whose record is d.
func (v *Vault) unlink(dir Ino, d *inode, name string, e dirent, now int64) {
	v.put(dir, direntKey(dir, name), nil)
	d.size--
	if e.typ == TypeDir {
		d.nlink--
	}
	d.mtime, d.ctime = now, now
	v.putInode(dir, d)
}

// Link gives the file ino another name, or a first one if it was made without.
func (v *Vault) Link(ctx context.Context, ino, dir Ino, name string) (a Attr, err error) {
	if err := v.room(ctx); err != nil {
		return Attr{}, wrap(err, "link", name)
	}
	err = v.change(ctx, "link", name, func() error {
		n, err := v.inodeOf(ctx, ino)
		if err != nil {
			return err
		}
		f := v.files[ino]
		apart := f != nil && f.orphan != nil
		if apart && !f.linkable {
			return fail(NotFound, "", "")
		}
		if n.isDir() {
			return fail(Permission, "", "")
		}
		if n.nlink >= MaxLinks {
			return fail(TooManyLinks, "", "")
		}
		d, err := v.freeName(ctx, dir, name)
		if err != nil {
			return err
		}
		now := v.s.now()
		if apart {
			v.enter(f, n)
		}
		v.addName(ino, n, dir, name)
		n.ctime = now
		v.putInode(ino, n)
		v.link(dir, d, name, dirent{ino: ino, typ: n.mode & TypeMask}, now)
		a = n.attr(ino)
		return nil
	})
	return a, err
}

// addName notes in the record n of ino that dir has it as name, too. The first
// two names of an inode move into link entries.
func (v *Vault) addName(ino Ino, n *inode, dir Ino, name string) {
	switch n.nlink {
	case 0:
		n.nlink, n.parent, n.name = 1, dir, name
		return
	case 1:
		v.put(ino, linkKey(ino, n.parent, n.name), []byte{})
		n.parent, n.name = 0, ""
	}
	v.put(ino, linkKey(ino, dir, name), []byte{})
	n.nlink++
}

// dropName is the reverse of addName: the last name moves back into the record.
func (v *Vault) dropName(ctx context.Context, ino Ino, n *inode, dir Ino, nm string) error {
	if n.nlink > 2 {
		n.nlink--
		v.put(ino, linkKey(ino, dir, nm), nil)
		return nil
	}
	names, err := v.view().links(ctx, ino)
	if err != nil {
		return err
	}
	gone := name{dir, nm}
	if len(names) != 2 || names[0] != gone && names[1] != gone {
		return &Error{Kind: Corrupt, Op: "unlink", Path: nm, Err: errMissing}
	}
	left := names[0]
	if left == gone {
		left = names[1]
	}
	n.nlink, n.parent, n.name = 1, left.dir, left.name
	v.put(ino, linkKey(ino, dir, nm), nil)
	v.put(ino, linkKey(ino, left.dir, left.name), nil)
	return nil
}

// Unlink removes a name of a file. Open handles keep the file.
func (v *Vault) Unlink(ctx context.Context, dir Ino, name string) error {
	_, err := v.UnlinkKeep(ctx, dir, name, nil)
	return err
}

// UnlinkKeep is Unlink for a caller who may know the file by its number. Of a regular
// file that loses its last name keep is asked whether it is to live on; then the
// returned handle holds it, for reading, and is nil otherwise. keep is called with
// locks of the vault held, and must not use it; a nil keep keeps nothing.
func (v *Vault) UnlinkKeep(ctx context.Context, dir Ino, name string, keep func(Ino) bool) (kept *File, err error) {
	err = v.change(ctx, "unlink", name, func() error {
		ino, n, err := v.view().lookup(ctx, dir, name)
		if err != nil {
			return err
		}
		if n.isDir() {
			return fail(IsDirectory, "", "")
		}
		d, err := v.view().dir(ctx, dir)
		if err != nil {
			return err
		}
		now := v.s.now()
		if kept, err = v.forgetKeep(ctx, ino, n, dir, name, now, keep); err != nil {
			return err
		}
		v.unlink(dir, d, name, dirent{ino: ino, typ: n.mode & TypeMask}, now)
		return nil
	})
	return kept, err
}

// forgetKeep is forget with a handle of what keep wants to live on; see UnlinkKeep.
func (v *Vault) forgetKeep(ctx context.Context, ino Ino, n *inode, dir Ino, name string, now int64, keep func(Ino) bool) (*File, error) {
	if keep == nil || !n.isRegular() || n.nlink > 1 || !keep(ino) {
		return nil, v.forget(ctx, ino, n, dir, name, now)
	}
	h := v.handle(ino, OpenRead)
	if err := v.forget(ctx, ino, n, dir, name, now); err != nil {
		h.f.handles--
		v.settle(ino)
		return nil, err
	}
	return h, nil
}

// forget drops one name of the inode, and with the last one the inode. The
// entry in the directory is the caller's business.
func (v *Vault) forget(ctx context.Context, ino Ino, n *inode, dir Ino, name string, now int64) error {
	n.ctime = now
	if n.isDir() || n.nlink <= 1 {
		return v.removeInode(ctx, ino, n)
	}
	if err := v.dropName(ctx, ino, n, dir, name); err != nil {
		return err
	}
	v.putInode(ino, n)
	return nil
}

// Rmdir removes an empty directory.
func (v *Vault) Rmdir(ctx context.Context, dir Ino, name string) error {
	return v.change(ctx, "remove directory", name, func() error {
		if name == "." {
			return fail(Invalid, "", "")
		}
		if name == ".." {
			return fail(NotEmpty, "", "")
		}
		ino, n, err := v.view().lookup(ctx, dir, name)
		if err != nil {
			return err
		}
		if !n.isDir() {
			return fail(NotDirectory, "", "")
		}
		if n.size > 0 {
			return fail(NotEmpty, "", "")
		}
		d, err := v.view().dir(ctx, dir)
		if err != nil {
			return err
		}
		now := v.s.now()
		if err := v.removeInode(ctx, ino, n); err != nil {
			return err
		}
		v.unlink(dir, d, name, dirent{ino: ino, typ: TypeDir}, now)
		return nil
	})
}

// removeInode deletes everything of ino, or sets it apart while it is open. The
// caller holds mu.
func (v *Vault) removeInode(ctx context.Context, ino Ino, n *inode) error {
	if f := v.files[ino]; f != nil && f.handles > 0 {
		return v.orphan(ctx, ino, n, f)
	}
	var keys [][]byte
	err := v.view().scan(ctx, key(ino, 0)[:8], nil, func(k, _ []byte) error {
		keys = append(keys, k)
		return nil
	})
	if err != nil {
		return err
	}
	v.forgetPages(ino)
	for _, k := range keys {
		v.put(ino, k, nil)
	}
	v.count--
	v.bytes -= n.alloc
	return nil
}

// name is one name of an inode.
type name struct {
	dir  Ino
	name string
}

// links lists the link entries of an inode, which are there while it has more
// than one name.
func (w view) links(ctx context.Context, ino Ino) ([]name, error) {
	var names []name
	prefix := key(ino, kindLink)
	err := w.scan(ctx, prefix, nil, func(k, _ []byte) error {
		suffix := k[len(prefix):]
		if len(suffix) < 9 {
			return &Error{Kind: Corrupt, Op: "read", Path: "link entry", Err: errDecode}
		}
		names = append(names, name{Ino(kv.ParseID(suffix[:8])), string(suffix[8:])})
		return nil
	})
	return names, err
}

// names lists every name of an inode with the record n.
func (w view) names(ctx context.Context, ino Ino, n *inode) ([]name, error) {
	if n.nlink > 1 && !n.isDir() {
		return w.links(ctx, ino)
	}
	if n.parent == 0 {
		return nil, nil
	}
	return []name{{n.parent, n.name}}, nil
}
