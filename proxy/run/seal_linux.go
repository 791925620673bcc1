package run

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// CloseInherited marks every descriptor above 2 close-on-exec, so that what this
// process inherited from its own parent, such as a lock or a pipe, is not handed on
// to commands. A program calls it first in main: later it could reach a descriptor
// that a C library means to hand to a child. Descriptors that Go opens have the
// mark already. It needs Linux 5.11.
func CloseInherited() error {
	return os.NewSyscallError("close_range", unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
}
