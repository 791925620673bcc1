package main

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/cgofusefs"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/mountpoint"
	"github.com/agentvfs/avfs/workspace"
)

// mounter makes vaults visible through cgofuse.
type mounter struct{}

// Mount implements workspace.Mounter.
func (mounter) Mount(ctx context.Context, v *engine.Vault, point string, readOnly bool) (workspace.Mounted, error) {
	view, err := cgofusefs.Mount(ctx, v, point, &cgofusefs.Options{ReadOnly: readOnly})
	if err != nil {
		return nil, mountError(err, point)
	}
	return mounted{view}, nil
}

// Recover implements workspace.Mounter.
func (mounter) Recover(point string) error { return mountError(cgofusefs.Recover(point), point) }

// mounted is a live mount.
type mounted struct{ *cgofusefs.View }

// Unmount implements workspace.Mounted.
func (m mounted) Unmount(ctx context.Context, force bool) error {
	return mountError(m.View.Unmount(ctx, force), m.Point())
}

// mountError gives what the mount layer returns a kind.
func mountError(err error, point string) error {
	var busy *cgofusefs.BusyError
	if errors.As(err, &busy) {
		return &busyMount{busy}
	}
	for _, m := range mountKinds {
		if errors.Is(err, m.err) {
			return &engine.Error{Kind: m.kind, Op: "mount", Path: point, Err: err}
		}
	}
	return err
}

var mountKinds = [...]struct {
	err  error
	kind engine.Kind
}{
	{cgofusefs.ErrUnavailable, workspace.NoMounter},
	{cgofusefs.ErrRefused, workspace.NoMounter},
	{mountpoint.ErrMounted, engine.Busy},
	{mountpoint.ErrNotEmpty, engine.NotEmpty},
	{mountpoint.ErrNotDirectory, engine.NotDirectory},
}

// busyMount is a mount that somebody uses.
type busyMount struct{ *cgofusefs.BusyError }

// Unwrap gives the mount layer's error.
func (e *busyMount) Unwrap() error { return e.BusyError }

// ErrorKind implements workspace.Kinder.
func (e *busyMount) ErrorKind() engine.Kind { return engine.Busy }

// ErrorDetails implements workspace.Kinder.
func (e *busyMount) ErrorDetails() map[string]any {
	d := map[string]any{"mountpoint": e.Point, "pids": e.PIDs, "names": e.Names}
	if len(e.Mounts) > 0 {
		d["mounts"] = e.Mounts
	}
	return d
}
