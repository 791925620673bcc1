//go:build linux || darwin

package transfer

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/engine"
)

// hostDir is an open directory of the host. Names are single components, and no
// call follows a symbolic link.
type hostDir struct{ fd int }

// hostFile is an open file of the host.
type hostFile struct{ fd int }

// openTop opens the directory that the caller named, following links.
func openTop(path string) (*hostDir, hostStat, error) {
	return openDirAt(unix.AT_FDCWD, path, 0)
}

func openDirAt(fd int, name string, flags int) (*hostDir, hostStat, error) {
	dir, err := openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|flags, 0)
	if err != nil {
		return nil, hostStat{}, err
	}
	d := &hostDir{dir}
	st, err := (&hostFile{dir}).stat()
	if err != nil {
		_ = d.close() // the first error is the one that counts
		return nil, hostStat{}, err
	}
	return d, st, nil
}

// openat opens with the flags that every open here has, again after a signal.
func openat(fd int, name string, flags int, perm uint32) (int, error) {
	for {
		n, err := unix.Openat(fd, name, flags|unix.O_CLOEXEC, perm)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (d *hostDir) close() error { return unix.Close(d.fd) }

// names lists the entries. With an error it returns those that it saw before.
func (d *hostDir) names() ([]string, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// openDir opens a directory in d.
func (d *hostDir) openDir(name string) (*hostDir, hostStat, error) {
	return openDirAt(d.fd, name, unix.O_NOFOLLOW)
}

func (d *hostDir) stat(name string) (hostStat, error) {
	var st unix.Stat_t
	err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return statOf(&st), err
}

// openFile opens a regular file for reading. It does not wait for a FIFO that
// took its place.
func (d *hostDir) openFile(name string) (*hostFile, hostStat, error) {
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, hostStat{}, err
	}
	f := &hostFile{fd}
	st, err := f.stat()
	if err == nil && st.mode&engine.TypeMask != engine.TypeRegular {
		err = errReplaced
	}
	if err != nil {
		_ = f.close() // the first error is the one that counts
		return nil, hostStat{}, err
	}
	return f, st, nil
}

func (d *hostDir) readlink(name string) (string, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(d.fd, name, b)
		if err != nil || n < size {
			return string(b[:max(n, 0)]), err
		}
	}
}

// create makes a file that must not exist.
func (d *hostDir) create(name string) (*hostFile, error) {
	fd, err := openat(d.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &hostFile{fd}, nil
}

func (d *hostDir) mkdir(name string) error           { return unix.Mkdirat(d.fd, name, 0o700) }
func (d *hostDir) symlink(target, name string) error { return unix.Symlinkat(target, d.fd, name) }
func (d *hostDir) remove(name string) error          { return unix.Unlinkat(d.fd, name, 0) }
func (d *hostDir) rmdir(name string) error           { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) }
func (d *hostDir) rename(from, to string) error      { return unix.Renameat(d.fd, from, d.fd, to) }

// link gives the file from in fromDir another name in d.
func (d *hostDir) link(fromDir *hostDir, from, name string) error {
	return unix.Linkat(fromDir.fd, from, d.fd, name, 0)
}

// setLinkAttrs sets owner and times of an entry that cannot be opened.
func (d *hostDir) setLinkAttrs(name string, owner *engine.Owner, atime, mtime int64) error {
	if owner != nil {
		if err := unix.Fchownat(d.fd, name, int(owner.UID), int(owner.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return d.setTimes(name, atime, mtime)
}

// setTimes sets the times of an entry, "." for the directory itself.
func (d *hostDir) setTimes(name string, atime, mtime int64) error {
	ts := []unix.Timespec{unix.NsecToTimespec(atime), unix.NsecToTimespec(mtime)}
	return unix.UtimesNanoAt(d.fd, name, ts, unix.AT_SYMLINK_NOFOLLOW)
}

// file is the directory as something with attributes; it shares the descriptor.
func (d *hostDir) file() *hostFile { return &hostFile{d.fd} }

func (f *hostFile) close() error { return unix.Close(f.fd) }

func (f *hostFile) stat() (hostStat, error) {
	var st unix.Stat_t
	err := unix.Fstat(f.fd, &st)
	return statOf(&st), err
}

// readAt reads until p is full or the file ends.
func (f *hostFile) readAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pread(f.fd, p[done:], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return done, err
		}
		done += n
	}
	return done, nil
}

func (f *hostFile) writeAt(p []byte, off int64) error {
	for len(p) > 0 {
		n, err := unix.Pwrite(f.fd, p, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

func (f *hostFile) truncate(size int64) error { return unix.Ftruncate(f.fd, size) }

// setOwnerAndMode sets the owner first, which clears the set-id bits. They stay
// cleared if that fails.
func (f *hostFile) setOwnerAndMode(owner *engine.Owner, mode uint32) error {
	mode &= 0o7777
	if owner == nil {
		return unix.Fchmod(f.fd, mode)
	}
	err := unix.Fchown(f.fd, int(owner.UID), int(owner.GID))
	if err != nil {
		mode &^= engine.ModeSetUID | engine.ModeSetGID
	}
	return errors.Join(err, unix.Fchmod(f.fd, mode))
}

// nextData is the first range with data at or after off, and whether there is one.
func (f *hostFile) nextData(off, size int64) (extent, bool, error) {
	if off >= size {
		return extent{}, false, nil
	}
	from, err := unix.Seek(f.fd, off, unix.SEEK_DATA)
	if err == unix.ENXIO {
		return extent{}, false, nil
	}
	if err != nil {
		return extent{off, size}, true, nil // the file system cannot tell
	}
	to, err := unix.Seek(f.fd, from, unix.SEEK_HOLE)
	if err == unix.ENXIO { // cut off meanwhile
		return extent{}, false, nil
	}
	return extent{from, to}, true, err
}

// xattrs lists the names of the extended attributes.
func (f *hostFile) xattrs() ([]string, error) {
	var small [512]byte
	b := small[:]
	for {
		n, err := unix.Flistxattr(f.fd, b)
		switch {
		case err == unix.ERANGE:
			b = make([]byte, 64<<10) // the most that Linux gives
			continue
		case err == unix.ENOTSUP:
			return nil, nil
		case err != nil || n == 0:
			return nil, err
		}
		return strings.Split(strings.TrimSuffix(string(b[:n]), "\x00"), "\x00"), nil
	}
}

func (f *hostFile) xattr(name string) ([]byte, error) {
	b := make([]byte, engine.MaxXattr)
	n, err := unix.Fgetxattr(f.fd, name, b)
	return b[:max(n, 0):max(n, 0)], err
}

func (f *hostFile) setXattr(name string, value []byte) error {
	return unix.Fsetxattr(f.fd, name, value, 0)
}

// kindOf classifies an error of the host.
func kindOf(err error) engine.Kind {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return engine.KindOf(err)
	}
	switch no {
	case unix.ENOSPC:
		return engine.NoSpace
	case unix.EDQUOT:
		return engine.QuotaExceeded
	case unix.EROFS:
		return engine.ReadOnly
	case unix.ENOTDIR:
		return engine.NotDirectory
	case unix.EISDIR:
		return engine.IsDirectory
	case unix.ENOTEMPTY:
		return engine.NotEmpty
	case unix.ELOOP:
		return engine.Loop
	case unix.ENAMETOOLONG:
		return engine.NameTooLong
	case unix.EINVAL:
		return engine.Invalid
	case unix.EILSEQ:
		return engine.InvalidName
	case unix.EMLINK:
		return engine.TooManyLinks
	case unix.EFBIG:
		return engine.FileTooLarge
	case unix.E2BIG, unix.ERANGE:
		return engine.AttributeTooLarge
	case unix.ENOTSUP:
		return engine.Unsupported
	case unix.EBUSY, unix.ETXTBSY:
		return engine.Busy
	}
	return engine.KindOf(err)
}

// asRoot reports whether the process may set owners and make device nodes.
func asRoot() bool { return os.Geteuid() == 0 }
