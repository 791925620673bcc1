package cgofusefs

import (
	"context"
	"fmt"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/mountpoint"
	"github.com/agentvfs/avfs/internal/view"
)

// ErrUnavailable says that this machine or this build cannot mount. The error
// that wraps it says what to install or permit.
var ErrUnavailable = view.ErrUnavailable

// ErrRefused says that the FUSE library could not mount; it has written its
// reason to standard error.
var ErrRefused = view.ErrRefused

// Options tunes a mount. The zero value and nil are the defaults.
type Options = view.Options

// View is a vault that is visible as a directory.
type View = view.View

// BusyError says who keeps a mount from being unmounted.
type BusyError = mountpoint.BusyError

// Available reports whether Mount can work here: nil, or an error that wraps
// ErrUnavailable. It changes nothing.
func Available() error {
	if err := probeLibrary(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := view.ProbeDevice(helperProgram, fusePackage); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Recover detaches a mount of a vault whose process has died, so that path can be
// used again. A path without a mount is left as it is; a living mount, or one that
// is not a vault's, is an error.
func Recover(path string) error { return mountpoint.Recover(path) }

// FreeKilled sets a process free that was killed and cannot end, because a mount which
// it serves waits for it, and reports whether it was such a one. Whoever uses its mounts
// gets errors then.
func FreeKilled(pid int) (bool, error) { return mountpoint.FreeKilled(pid) }

// Mount makes v visible at point and returns once a stat through the mount gets
// its answer from v. A missing directory is made, and removed at the unmount; what
// a dead process left mounted there is cleared away. ctx bounds the wait for the
// mount, not its life. The caller keeps v open until Done.
//
// Mount installs no signal handlers and leaves the working directory alone. On
// Linux, though, a process that changes its working directory or umask while a
// mount is up may find some of its goroutines with the old one: the threads of the
// library have their own.
func Mount(ctx context.Context, v *engine.Vault, point string, opts *Options) (*View, error) {
	return view.Mount(ctx, &view.Driver{Name: "cgofuse", Available: Available, Plan: plan}, v, point, opts)
}
