//go:build cgo

package cgofusefs

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// isolateThread gives the calling goroutine's thread, and those that the library
// starts from it, a working directory of their own: libfuse 3 changes to "/" even
// in the foreground, which would move the whole process. The thread ends with the
// goroutine. Where the system refuses, libfuse's habit shows; nothing else breaks.
func isolateThread() {
	runtime.LockOSThread()
	_ = unix.Unshare(unix.CLONE_FS)
}
