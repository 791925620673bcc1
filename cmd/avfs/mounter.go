package main

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"github.com/agentvfs/avfs/cgofusefs"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/gofusefs"
	"github.com/agentvfs/avfs/internal/mountpoint"
	"github.com/agentvfs/avfs/internal/view"
	"github.com/agentvfs/avfs/workspace"
)

// driverVar names the variable that chooses a driver where no flag does.
const driverVar = "AVFS_DRIVER"

// driver is a way to mount.
type driver struct {
	name      string
	mount     func(ctx context.Context, v *engine.Vault, point string, opts *view.Options) (*view.View, error)
	available func() error
}

// drivers lists the ways to mount, the default of this system first.
func drivers() []driver {
	native := driver{"gofuse", gofusefs.Mount, gofusefs.Available}
	library := driver{"cgofuse", cgofusefs.Mount, cgofusefs.Available}
	if runtime.GOOS == "linux" {
		return []driver{native, library}
	}
	return []driver{library, native}
}

// findDriver is the driver of that name; of no name, the default.
func findDriver(name string) (driver, error) {
	all := drivers()
	if name == "" {
		return all[0], nil
	}
	var names []string
	for _, d := range all {
		if d.name == name {
			return d, nil
		}
		names = append(names, d.name)
	}
	return driver{}, usageError("there is no driver %q; there are %s", name, strings.Join(names, " and "))
}

// driverFlag is the flag of commands that mount.
type driverFlag struct {
	Driver string `help:"What to mount with: gofuse or cgofuse (libfuse)." env:"AVFS_DRIVER" placeholder:"NAME"`
}

// check refuses a driver that there is not.
func (f *driverFlag) check() error {
	_, err := findDriver(f.Driver)
	return err
}

// mounter makes vaults visible as directories.
type mounter struct {
	driver string // where a request names none; empty is the default
}

// Mount implements workspace.Mounter.
func (m mounter) Mount(ctx context.Context, v *engine.Vault, point string, how workspace.MountHow) (workspace.Mounted, error) {
	name := how.Driver
	if name == "" {
		name = m.driver
	}
	d, err := findDriver(name)
	if err != nil {
		return nil, err
	}
	w, err := d.mount(ctx, v, point, &view.Options{ReadOnly: how.ReadOnly})
	if err != nil {
		return nil, mountError(err, point)
	}
	return mounted{w}, nil
}

// Recover implements workspace.Mounter.
func (mounter) Recover(point string) error { return mountError(mountpoint.Recover(point), point) }

// FreeKilled implements workspace.Mounter.
func (mounter) FreeKilled(pid int) (bool, error) { return mountpoint.FreeKilled(pid) }

// mounted is a live mount.
type mounted struct{ *view.View }

// Unmount implements workspace.Mounted.
func (m mounted) Unmount(ctx context.Context, force bool) error {
	return mountError(m.View.Unmount(ctx, force), m.Point())
}

// mountError gives what the mount layer returns a kind.
func mountError(err error, point string) error {
	var busy *mountpoint.BusyError
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
	{view.ErrUnavailable, workspace.NoMounter},
	{view.ErrRefused, workspace.NoMounter},
	{mountpoint.ErrMounted, engine.Busy},
	{mountpoint.ErrNotEmpty, engine.NotEmpty},
	{mountpoint.ErrNotDirectory, engine.NotDirectory},
}

// busyMount is a mount that somebody uses.
type busyMount struct{ *mountpoint.BusyError }

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
