//go:build !linux && !darwin

package transfer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// hostDir is an open directory of the host. Names are single components. os.Root
// keeps every step inside the directory; links are told apart before it.
type hostDir struct {
	root *os.Root
	self hostStat
}

// hostFile is an open file of the host, or a directory as something with
// attributes.
type hostFile struct {
	f    *os.File // nil for a directory
	dir  *hostDir // the directory itself, or the one that the file is in
	name string
}

// openTop opens the directory that the caller named, following links.
func openTop(path string) (*hostDir, hostStat, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, hostStat{}, err
	}
	return newDir(root)
}

func newDir(root *os.Root) (*hostDir, hostStat, error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, hostStat{}, errors.Join(err, root.Close())
	}
	d := &hostDir{root: root, self: statOf(info)}
	return d, d.self, nil
}

// statOf translates what package os tells. There are no owners, links and inode
// numbers in it, so hard links become files of their own.
func statOf(info fs.FileInfo) hostStat {
	t := info.ModTime().UnixNano()
	st := hostStat{mode: uint32(info.Mode().Perm()), nlink: 1, size: info.Size(), allocated: -1, atime: t, mtime: t}
	st.uid, st.gid = processOwner().UID, processOwner().GID
	switch m := info.Mode(); {
	case m.IsRegular():
		st.mode |= engine.TypeRegular
	case m.IsDir():
		st.mode |= engine.TypeDir
	case m&fs.ModeSymlink != 0:
		st.mode |= engine.TypeSymlink
	case m&fs.ModeNamedPipe != 0:
		st.mode |= engine.TypeFIFO
	case m&fs.ModeDevice != 0:
		st.mode |= engine.TypeChar
	default:
		st.mode |= engine.TypeSocket // left out, like whatever it may be
	}
	return st
}

func (d *hostDir) close() error { return d.root.Close() }

// names lists the entries. With an error it returns those that it saw before.
func (d *hostDir) names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// openDir opens a directory in d, and no link to one.
func (d *hostDir) openDir(name string) (*hostDir, hostStat, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, hostStat{}, err
	}
	if !before.IsDir() {
		return nil, hostStat{}, &engine.Error{Kind: engine.NotDirectory}
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, hostStat{}, err
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(before, now) {
		return nil, hostStat{}, errors.Join(errReplaced, err, root.Close())
	}
	return newDir(root)
}

func (d *hostDir) stat(name string) (hostStat, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return hostStat{}, err
	}
	return statOf(info), nil
}

// openFile opens a regular file for reading.
func (d *hostDir) openFile(name string) (*hostFile, hostStat, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, hostStat{}, err
	}
	if !before.Mode().IsRegular() {
		return nil, hostStat{}, errReplaced
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, hostStat{}, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errReplaced
	}
	if err != nil {
		return nil, hostStat{}, errors.Join(err, f.Close())
	}
	return &hostFile{f: f, dir: d, name: name}, statOf(info), nil
}

func (d *hostDir) readlink(name string) (string, error) { return d.root.Readlink(name) }

// create makes a file that must not exist.
func (d *hostDir) create(name string) (*hostFile, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &hostFile{f: f, dir: d, name: name}, nil
}

func (d *hostDir) mkdir(name string) error           { return d.root.Mkdir(name, 0o700) }
func (d *hostDir) symlink(target, name string) error { return d.root.Symlink(target, name) }
func (d *hostDir) remove(name string) error          { return d.root.Remove(name) }
func (d *hostDir) rmdir(name string) error           { return d.root.Remove(name) }
func (d *hostDir) rename(from, to string) error      { return d.root.Rename(from, to) }

// link makes no links: package os cannot name a file in another open directory.
func (d *hostDir) link(*hostDir, string, string) error {
	return &engine.Error{Kind: engine.Unsupported, Err: message("hard links are not made on this system")}
}

func (d *hostDir) mknod(string, uint32, uint32, *engine.Owner) error {
	return &engine.Error{Kind: engine.Unsupported, Err: message("there are no such files on this system")}
}

// setLinkAttrs does nothing: a link has no attributes of its own that could be set.
func (d *hostDir) setLinkAttrs(string, *engine.Owner, int64, int64) error { return nil }

// setTimes sets the times of an entry, "." for the directory itself.
func (d *hostDir) setTimes(name string, atime, mtime int64) error {
	return d.root.Chtimes(name, time.Unix(0, atime), time.Unix(0, mtime))
}

// file is the directory as something with attributes.
func (d *hostDir) file() *hostFile { return &hostFile{dir: d, name: "."} }

// mayShowVault is always true: there is no telling.
func (d *hostDir) mayShowVault() bool { return true }

func (f *hostFile) close() error { return f.f.Close() }

func (f *hostFile) stat() (hostStat, error) {
	info, err := f.f.Stat()
	if err != nil {
		return hostStat{}, err
	}
	return statOf(info), nil
}

// readAt reads until p is full or the file ends.
func (f *hostFile) readAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *hostFile) writeAt(p []byte, off int64) error {
	_, err := f.f.WriteAt(p, off)
	return err
}

func (f *hostFile) truncate(size int64) error { return f.f.Truncate(size) }

// setOwnerAndMode sets what of the mode the system knows; there are no owners.
func (f *hostFile) setOwnerAndMode(_ *engine.Owner, mode uint32) error {
	return f.dir.root.Chmod(f.name, fs.FileMode(mode&0o777))
}

// nextData takes everything for data.
func (f *hostFile) nextData(off, size int64) (extent, bool, error) {
	return extent{off, size}, off < size, nil
}

// xattrs is empty: there are no user attributes.
func (f *hostFile) xattrs() ([]string, error) { return nil, nil }

func (f *hostFile) xattr(string) ([]byte, error) {
	return nil, &engine.Error{Kind: engine.NoAttribute}
}

func (f *hostFile) setXattr(string, []byte) error {
	return &engine.Error{Kind: engine.Unsupported, Err: message("there are no extended attributes on this system")}
}

// kindOf classifies an error of the host.
func kindOf(err error) engine.Kind { return engine.KindOf(err) }

// asRoot reports whether the process may set owners and make device nodes.
func asRoot() bool { return false }
