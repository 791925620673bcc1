//go:build unix

package storefile

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// FreeSpace returns the bytes that this user may still write beside path.
func FreeSpace(path string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
		}
		return int64(st.Bavail) * int64(st.Bsize), nil
	}
}

// IsNoSpace reports whether err is the system's word for a full disk or quota.
func IsNoSpace(err error) bool { return isAny(err, unix.ENOSPC, unix.EDQUOT) }
