//go:build !cgo && !windows

package cgofusefs

import (
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// errNoCgo is why a build without cgo cannot mount: the library is C.
var errNoCgo = errors.New("this program was built without cgo (CGO_ENABLED=0); a build with cgo can mount")

func probeLibrary() error { return errNoCgo }

func mountOptions(*engine.Vault, *Options) ([]string, error) { return nil, errNoCgo }

// newServer is never reached, because Available fails first.
func newServer(*engine.Vault, string, []string, bool) *server {
	ready := make(chan struct{})
	return &server{
		ready:     ready,
		run:       func() bool { return false },
		shut:      func() error { return errNoCgo },
		rootCalls: func() uint64 { return 0 },
		stop:      func() bool { return false },
	}
}
