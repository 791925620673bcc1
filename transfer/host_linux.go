package transfer

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/engine"
)

func statOf(st *unix.Stat_t) hostStat {
	return hostStat{
		mode: st.Mode, uid: st.Uid, gid: st.Gid, rdev: uint32(st.Rdev), nlink: uint64(st.Nlink),
		size: st.Size, allocated: st.Blocks * 512, atime: st.Atim.Nano(), mtime: st.Mtim.Nano(),
		dev: uint64(st.Dev), ino: st.Ino,
	}
}

// mknod makes a FIFO or device node with exactly these permissions, whatever the
// process's umask.
func (d *hostDir) mknod(name string, mode, rdev uint32, owner *engine.Owner) error {
	if err := unix.Mknodat(d.fd, name, mode&engine.TypeMask|0o600, int(rdev)); err != nil {
		return err
	}
	if owner != nil {
		if err := unix.Fchownat(d.fd, name, int(owner.UID), int(owner.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	// Opening it for real would wait or have effects, and fchmod refuses the
	// kind of descriptor that does not, so the way goes through /proc.
	fd, err := openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	f := &hostFile{fd}
	st, err := f.stat()
	if err == nil && st.mode&engine.TypeMask != mode&engine.TypeMask {
		err = errReplaced
	}
	if err == nil {
		err = unix.Chmod(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), mode&0o7777)
	}
	_ = f.close() // nothing was written through it
	return err
}

// mayShowVault reports whether the directory is on a file system that a user's
// program serves.
func (d *hostDir) mayShowVault() bool {
	var st unix.Statfs_t
	return unix.Fstatfs(d.fd, &st) != nil || int64(st.Type) == unix.FUSE_SUPER_MAGIC
}
