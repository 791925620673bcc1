package gofusefs

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/mountpoint"
	"github.com/agentvfs/avfs/internal/view"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The setuid program that mounts for ordinary users, and what installs it.
const (
	helperProgram = "fusermount3"
	helperPackage = "fuse3"
)

func probe() error { return view.ProbeDevice(helperProgram, helperPackage) }

// Sizes and numbers of requests. The kernel lowers what it does not allow.
const (
	maxRequest    = 1 << 20 // bytes in one read or write
	maxBackground = 64      // readahead and the like under way at a time
)

// capabilities are what we ask of the kernel beyond go-fuse's own choice: to
// leave it to us to take set-id bits off, which spares a look for file capabilities
// at every write; to truncate in the open; and to list with attributes where a
// program has shown that it wants them.
const capabilities = fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_READDIRPLUS_AUTO

// mountOptions are go-fuse's for a mount of v.
func mountOptions(v *engine.Vault, opts *Options) (*fuse.MountOptions, error) {
	others, err := opts.Shared()
	if err != nil {
		return nil, err
	}
	o := &fuse.MountOptions{
		Name:                     "avfs", // with "fuse." before it, mountpoint.FSType
		FsName:                   opts.Source(v),
		AllowOther:               others,
		Options:                  append([]string{"default_permissions"}, opts.ExtraOptions...),
		MaxWrite:                 maxRequest,
		MaxBackground:            maxBackground,
		EnableSymlinkCaching:     true,
		ExplicitDataCacheControl: true,
		DisableSplice:            true, // what we answer with is in memory
		ExtraCapabilities:        capabilities,
		DisabledCapabilities:     fuse.CAP_PASSTHROUGH | fuse.CAP_NO_OPEN_SUPPORT, // the first would keep overlayfs off the mount
		Debug:                    opts.Debug,
		Logger:                   log.New(io.Discard, "", 0),
	}
	if opts.Debug {
		o.Logger = log.New(os.Stderr, "gofusefs: ", log.Lmicroseconds)
	}
	if opts.ReadOnly && !mountsItself() {
		o.Options = append(o.Options, "ro")
	}
	return o, nil
}

// mountsItself reports whether this process may mount without a setuid program.
func mountsItself() bool { return os.Geteuid() == 0 }

// connect mounts and returns the place of the connection to the kernel as go-fuse
// takes it. go-fuse could mount by itself, but lets programs that this process
// starts inherit the connection, and a mount lives as long as somebody has that.
func connect(point string, o *fuse.MountOptions, readOnly bool) (place string, err error) {
	if !mountsItself() {
		return point, nil // go-fuse runs the setuid program
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", os.NewSyscallError("open /dev/fuse", err)
	}
	words := append([]string{
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,max_read=%d", fd, os.Geteuid(), os.Getegid(), o.MaxWrite),
	}, o.Options...)
	if o.AllowOther {
		words = append(words, "allow_other")
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount(o.FsName, point, mountpoint.FSType, flags, strings.Join(words, ",")); err != nil {
		return "", errors.Join(os.NewSyscallError("mount", err), unix.Close(fd))
	}
	return fmt.Sprintf("/dev/fd/%d", fd), nil
}

// plan prepares a mount of v. Nothing happens before Run.
func plan(v *engine.Vault, opts *Options) (func(point string) *view.Server, error) {
	o, err := mountOptions(v, opts)
	if err != nil {
		return nil, err
	}
	return func(point string) *view.Server { return newServer(v, point, o, opts.ReadOnly) }, nil
}

func newServer(v *engine.Vault, point string, o *fuse.MountOptions, readOnly bool) *view.Server {
	ops := newVaultFS(v, readOnly)
	o.PanicHandler = ops.panicked
	ready := make(chan struct{})
	return &view.Server{
		Ready: ready,
		Run: func() error {
			srv, err := start(ops, point, o)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrRefused, err)
			}
			close(ready)
			srv.Serve()
			return nil
		},
		Shut:      ops.shut,
		WriteBack: ops.writeBack,
		Stop:      func() bool { return false },
		PollName:  pollName,
	}
}

// start mounts and greets the kernel.
func start(ops *vaultFS, point string, o *fuse.MountOptions) (*fuse.Server, error) {
	place, err := connect(point, o, ops.readOnly)
	if err != nil {
		return nil, err
	}
	srv, err := fuse.NewServer(ops, place, o)
	if err != nil { // what is mounted has no server
		return nil, errors.Join(err, mountpoint.Recover(point))
	}
	return srv, nil
}

// pollName is a file that go-fuse has in every mount; it answers that it cannot be
// polled. See view.Server.
const pollName = ".go-fuse-epoll-hack"
