//go:build !linux && !darwin && !windows

package storefile

import (
	"errors"
	"fmt"
	"runtime"
)

// Try fails: where flock shares a name space with SQLite's own locks, as on the
// BSDs, it would shut SQLite out of its own file.
func (l *Lock) Try() (bool, error) {
	return false, fmt.Errorf("exclusive stores on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Unlock does nothing: there is no lock.
func (l *Lock) Unlock() error { return nil }

// Holder returns 0: there is no lock.
func Holder(string) int { return 0 }
