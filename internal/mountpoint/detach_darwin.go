package mountpoint

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Detach takes the mount off point. A mount in use is a *BusyError; with lazy set
// it is taken off all the same.
func Detach(_ context.Context, point string, lazy bool) error {
	flags := 0
	if lazy {
		flags = unix.MNT_FORCE
	}
	err := unix.Unmount(point, flags)
	if errors.Is(err, unix.EBUSY) {
		return &BusyError{Point: point}
	}
	return os.NewSyscallError("unmount", err)
}
