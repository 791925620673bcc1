package workspace

import (
	"errors"

	"golang.org/x/sys/unix"
)

// isDead reports whether a mount has lost its server. The kernel may answer all else by
// itself, from what the server once said; statfs it passes on.
func isDead(point string) bool {
	var fs unix.Statfs_t
	err := unix.Statfs(point, &fs)
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
}
