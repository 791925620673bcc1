//go:build !linux && !darwin && !windows

package sqlite

import (
	"errors"
	"fmt"
	"runtime"
)

// try fails: where flock shares a name space with SQLite's own locks, as on the
// BSDs, it would shut SQLite out of its own file.
func (l *fileLock) try() (bool, error) {
	return false, fmt.Errorf("exclusive stores on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// unlock does nothing: there is no lock.
func (l *fileLock) unlock() error { return nil }

// holder returns 0: there is no lock.
func holder(string) int { return 0 }
