//go:build !linux

package memfs

import (
	"errors"
	"fmt"
)

// Serve cannot mount on this system.
func Serve(string, func()) error {
	return fmt.Errorf("a file system in memory over go-fuse: %w", errors.ErrUnsupported)
}
