package transfer

import (
	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/engine"
)

func statOf(st *unix.Stat_t) hostStat {
	return hostStat{
		mode: uint32(st.Mode), uid: st.Uid, gid: st.Gid, rdev: uint32(st.Rdev), nlink: uint64(st.Nlink),
		size: st.Size, allocated: st.Blocks * 512, atime: st.Atim.Nano(), mtime: st.Mtim.Nano(),
		dev: uint64(st.Dev), ino: st.Ino,
	}
}

// mknod fails: macOS has no call that makes a node relative to an open directory.
func (d *hostDir) mknod(string, uint32, uint32, *engine.Owner) error { return unix.ENOTSUP }

// mayShowVault reports whether the directory may be on a mounted vault. That can
// look like a network file system, so only the system's own are trusted.
func (d *hostDir) mayShowVault() bool {
	var st unix.Statfs_t
	if unix.Fstatfs(d.fd, &st) != nil {
		return true
	}
	kind := unix.ByteSliceToString(st.Fstypename[:])
	return kind != "apfs" && kind != "hfs"
}
