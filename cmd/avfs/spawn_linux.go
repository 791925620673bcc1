package main

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// closeInheritedOnExec keeps the descriptors that this process was started with
// from children. Files that Go opens are kept from them anyway.
func closeInheritedOnExec() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // before Linux 5.11
		return closeEachOnExec()
	}
	return err
}
