//go:build cgo

package cgofusefs

import (
	"github.com/agentvfs/avfs/internal/mountpoint"
	"golang.org/x/sys/unix"
)

// workingDir keeps the process where it is although libfuse 3 changes to "/", even
// in the foreground. The library gets a thread with a working directory of its own,
// so that nobody sees the change. Its threads share that one, and the Go runtime
// may make a thread for any goroutine out of one of them; so they are sent back to
// where the process is before the first operation.
type workingDir struct {
	fd int // where the process is; -1 where that is not known
}

// run calls the library.
func (w *workingDir) run(fn func()) {
	var err error
	if w.fd, err = unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		w.fd = -1 // it was removed, so that relative paths lead nowhere already
	}
	mountpoint.OnOwnThread(unix.CLONE_FS, func(error) { fn() }) // refused: the change shows until back
	if w.fd >= 0 {
		_ = unix.Close(w.fd)
	}
}

// back is called on a thread of the library.
func (w *workingDir) back() error {
	if w.fd < 0 {
		return nil
	}
	return unix.Fchdir(w.fd)
}
