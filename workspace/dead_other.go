//go:build !linux

package workspace

import (
	"errors"
	"os"
	"syscall"
)

// isDead reports whether a mount has lost its server. The system may answer a stat all
// the same, if it still has what the server said.
func isDead(point string) bool {
	dir, err := os.Open(point)
	if err == nil {
		_ = dir.Close() // nothing was read
	}
	return errors.Is(err, syscall.ENOTCONN)
}
