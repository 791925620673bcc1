//go:build cgo

package cgofusefs

import (
	"github.com/agentvfs/avfs/internal/mountpoint"
	"golang.org/x/sys/unix"
)

// isolated runs fn, and the threads that the library starts from it, with a working
// directory of their own: libfuse 3 changes to "/" even in the foreground, which
// would move the whole process. Where the system refuses that, fn runs without.
func isolated(fn func()) {
	mountpoint.OnOwnThread(unix.CLONE_FS, func(error) { fn() })
}
