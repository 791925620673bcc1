//go:build !cgo && !windows

package cgofusefs

import (
	"errors"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/view"
)

// errNoCgo is why a build without cgo cannot use the library, which is C.
var errNoCgo = errors.New("this program was built without cgo (CGO_ENABLED=0); a build with cgo can mount with libfuse")

func probeLibrary() error { return errNoCgo }

// plan is never reached, because Available fails first.
func plan(*engine.Vault, *Options) (func(string) *view.Server, error) { return nil, errNoCgo }
