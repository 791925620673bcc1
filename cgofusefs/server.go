//go:build cgo || windows

package cgofusefs

import (
	"os"
	"os/signal"
	"reflect"
	"sync"
	"unsafe"

	"github.com/agentvfs/avfs/engine"
	"github.com/winfsp/cgofuse/fuse"
)

// newServer prepares the library to serve v at point. Nothing happens before run.
func newServer(v *engine.Vault, point string, words []string, readOnly bool) *server {
	ops := newVaultFS(v, readOnly)
	host := fuse.NewFileSystemHost(ops)
	host.SetUseIno(true)
	host.SetCapOpenTrunc(true)
	// Entries with attributes would spare nothing: the kernel keeps none of
	// them (see the package comment), so it asks again at once.
	host.SetCapReaddirPlus(false)
	ready := make(chan struct{})
	var once sync.Once
	var dir workingDir
	ops.onInit = func() {
		releaseSignals(host)
		if err := dir.back(); err != nil {
			ops.faults.add(err)
		}
		once.Do(func() { close(ready) })
	}
	return &server{
		ready: ready,
		run: func() (served bool) {
			dir.run(func() { served = host.Mount(point, words) })
			return served
		},
		shut:      ops.shut,
		rootCalls: ops.rootCalls.Load,
		stop:      host.Unmount,
	}
}

// releaseSignals takes back SIGINT and SIGTERM, which cgofuse has just subscribed
// to: on either it would detach the mount behind the caller's back. Its channel is
// a private field without any other access; if a later version names it otherwise,
// a test fails and the caller's signals are shared with cgofuse.
func releaseSignals(host *fuse.FileSystemHost) {
	field := reflect.ValueOf(host).Elem().FieldByName("sigc")
	if field.IsValid() && field.Type() == reflect.TypeFor[chan os.Signal]() {
		signal.Stop(*(*chan os.Signal)(unsafe.Pointer(field.UnsafeAddr())))
	}
}
