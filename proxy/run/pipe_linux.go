package run

import (
	"os"

	"golang.org/x/sys/unix"
)

// pending returns how many bytes wait in the pipe.
func pending(f *os.File) int {
	var n int
	withFD(f, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return n
}

// widen enlarges the pipe if the system permits; a small one works too.
func widen(f *os.File, size int) {
	withFD(f, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size)
		return err
	})
}

// withFD calls fn with the descriptor, which stays valid meanwhile, without
// changing its blocking mode.
func withFD(f *os.File, fn func(fd int) error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { err = fn(int(fd)) })
}
