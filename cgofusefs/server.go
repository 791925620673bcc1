//go:build cgo || windows

package cgofusefs

import (
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/view"
	"github.com/winfsp/cgofuse/fuse"
)

// plan prepares the library to serve v. Nothing happens before Run.
func plan(v *engine.Vault, opts *Options) (func(point string) *view.Server, error) {
	words, err := mountOptions(v, opts)
	if err != nil {
		return nil, err
	}
	return func(point string) *view.Server { return newServer(v, point, words, opts.ReadOnly) }, nil
}

func newServer(v *engine.Vault, point string, words []string, readOnly bool) *view.Server {
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
	asked := "" // only Linux asks whether files can be polled
	if runtime.GOOS == "linux" {
		asked = pollName
		ops.pollShown.Store(true)
	}
	ops.onInit = func() {
		releaseSignals(host)
		ops.svc.Fault(dir.back())
		once.Do(func() { close(ready) })
	}
	return &view.Server{
		Ready: ready,
		Run: func() error {
			served := false
			dir.run(func() { served = host.Mount(point, words) })
			if !served {
				return ErrRefused // it has written its reason to standard error
			}
			return nil
		},
		Shut:      ops.shut,
		RootCalls: ops.rootCalls.Load,
		Stop:      host.Unmount,
		Writing:   ops.handles.anyWritten,
		PollName:  asked,
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
