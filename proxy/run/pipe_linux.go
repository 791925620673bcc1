package run

import (
	"os"

	"golang.org/x/sys/unix"
)

// pending returns how many bytes wait in the pipe, 0 if it is closed.
func pending(f *os.File) int {
	n := 0
	err := withFD(f, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	if err != nil {
		return 0
	}
	return n
}

// widen enlarges the pipe. It reports no error: a user's share of pipe memory may
// be used up, and a small pipe works too.
func widen(f *os.File, size int) {
	_ = withFD(f, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size)
		return err
	})
}

// withFD calls fn with the descriptor, which stays valid meanwhile, without
// changing its blocking mode.
func withFD(f *os.File, fn func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := raw.Control(func(fd uintptr) { ferr = fn(int(fd)) }); err != nil {
		return err
	}
	return ferr
}
