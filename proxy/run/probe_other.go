//go:build !linux

package run

import "errors"

// CanGroup reports whether a command can get a cgroup of its own: only on Linux.
func CanGroup() error { return errors.ErrUnsupported }
