//go:build cgo || windows

package cgofusefs

import (
	"fmt"
	"runtime"

	"github.com/winfsp/cgofuse/fuse"
)

// probeLibrary loads the FUSE library, which the process keeps. cgofuse panics
// where it is missing, and in other calls ends the process.
func probeLibrary() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v: install %s", r, libraryName())
		}
	}()
	_, err = fuse.OptParse([]string{}, "")
	return err
}

// libraryName is what a user has to install for this build.
func libraryName() string {
	switch runtime.GOOS {
	case "darwin":
		return "macFUSE (https://macfuse.github.io) or FUSE-T (https://www.fuse-t.org)"
	case "windows":
		return "WinFsp (https://winfsp.dev)"
	}
	return "the package " + fusePackage + " (" + libraryFile + ")"
}
