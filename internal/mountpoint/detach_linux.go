package mountpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Recover makes path free for a mount. Where a process died and left a mount of a
// vault that answers "transport endpoint is not connected", it is detached. A
// path where nothing is mounted, or that does not exist, is left as it is.
// Whatever lives there is not touched: the error is ErrMounted.
func Recover(path string) error {
	point, err := Resolve(path)
	if err != nil {
		return err
	}
	for {
		e, ok, err := mountedOn(point)
		if err != nil || !ok {
			return err
		}
		switch dead := isDead(e); {
		case !dead:
			return fmt.Errorf("%s: %w (%s, type %s)", point, ErrMounted, e.source, e.fsType)
		case e.fsType != FSType:
			return fmt.Errorf("%s: %w, of a file system that is dead but not ours (%s, type %s)", point, ErrMounted, e.source, e.fsType)
		}
		if err := Detach(context.Background(), point, true); err != nil {
			return fmt.Errorf("detach the dead mount on %s: %w", point, err)
		}
	}
}

// What an answer from a mount may take.
const (
	deadAfter   = 5 * time.Second        // of one that may hang
	killedAfter = 200 * time.Millisecond // before its server is looked at
)

// isDead reports whether the server of a mount is gone. One that does not answer may be
// slow; it counts as alive, unless it was killed and cannot end.
func isDead(e entry) bool {
	answer := make(chan error, 1)
	go func() { // ends with the stat, which the kernel ends when the server dies
		answer <- Ask(e.point)
	}()
	look, end := time.After(killedAfter), time.After(deadAfter)
	for {
		select {
		case err := <-answer:
			return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
		case <-look:
			_ = freeKilledServer(e.device) // then nothing has changed, and the wait ends below
		case <-end:
			return false
		}
	}
}

// Ask asks the mount on point for its top directory, and returns when its server
// has answered. A process that asks a mount of its own can be killed meanwhile.
func Ask(point string) (err error) {
	apart(func() {
		var st unix.Stat_t
		if err = unix.Stat(point, &st); err == nil {
			// The kernel may have answered that itself; this it passes on.
			var fs unix.Statfs_t
			err = unix.Statfs(point, &fs)
		}
	})
	return err
}

// AskPoll asks the server of a mount whether the file at path is ready to read.
func AskPoll(path string) (err error) {
	apart(func() {
		var fd int
		if fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			err = &os.PathError{Op: "open", Path: path, Err: err}
			return
		}
		defer unix.Close(fd)
		// The kernel remembers the answer for the whole mount.
		if _, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); err != nil {
			err = &os.PathError{Op: "poll", Path: path, Err: err}
		}
	})
	return err
}

// Detach takes the mount off point. A mount in use is a *BusyError; with lazy set
// it disappears from the tree at once and ends when its last user does. Without
// root's rights the setuid helper of libfuse does it.
func Detach(ctx context.Context, point string, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	for wait := 2 * time.Millisecond; ; wait *= 2 {
		var err error
		apart(func() { err = unix.Unmount(point, flags) })
		if errors.Is(err, unix.EPERM) {
			err = detachWithHelper(ctx, point, lazy)
		}
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		// A process that has just ended may still be letting go of its files.
		busy := busyError(point)
		if len(busy.PIDs) > 0 || len(busy.Mounts) > 0 || wait > settleTime {
			return busy
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return busy
		}
	}
}

// settleTime is the longest single wait for holders that cannot be seen.
const settleTime = 200 * time.Millisecond

func busyError(point string) *BusyError {
	busy := &BusyError{Point: point, Mounts: mountsBelow(point)}
	for _, h := range Holders(point) {
		busy.PIDs = append(busy.PIDs, h.PID)
		busy.Names = append(busy.Names, h.Name)
	}
	return busy
}

// detachWithHelper runs fusermount. It tells its reason in words only, so a
// failure while somebody visibly holds the mount is taken for EBUSY.
func detachWithHelper(ctx context.Context, point string, lazy bool) error {
	helper, err := exec.LookPath("fusermount3")
	if err != nil {
		if helper, err = exec.LookPath("fusermount"); err != nil {
			return fmt.Errorf("unmounting without root's rights needs fusermount3: %w", err)
		}
	}
	args := []string{"-u"}
	if lazy {
		args = append(args, "-z")
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, helper, append(args, "--", point)...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil {
		return nil
	} else if !lazy && (len(Holders(point)) > 0 || len(mountsBelow(point)) > 0) {
		return unix.EBUSY
	} else {
		return fmt.Errorf("%s: %w: %s", helper, err, strings.TrimSpace(stderr.String()))
	}
}

// controlDir is where the kernel lists FUSE connections, once the control file
// system is mounted there.
const controlDir = "/sys/fs/fuse/connections"

// AwaitIdle waits until the FUSE mount with the device number that Device gave has no
// request that waits for an answer. It fails where the system does not tell, and when
// ctx ends first.
func AwaitIdle(ctx context.Context, device string) error {
	return control(device, func(dir string) error {
		for {
			text, err := os.ReadFile(filepath.Join(dir, "waiting"))
			if err != nil || strings.TrimSpace(string(text)) == "0" {
				return err
			}
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// Abort cuts the connection of a FUSE mount with the device number that Device
// gave while it was mounted: whoever still uses it gets ENOTCONN, and its server
// is told to end.
func Abort(device string) error {
	return control(device, func(dir string) error { return os.WriteFile(filepath.Join(dir, "abort"), []byte("1"), 0) })
}

// control runs fn with the folder of a mount's control files. Where the control file
// system is not mounted, as in containers, it is mounted while fn runs and for one
// thread only, which takes root's rights.
func control(device string, fn func(dir string) error) error {
	_, minor, ok := strings.Cut(device, ":")
	if !ok {
		return fmt.Errorf("no device number: %q", device)
	}
	dir := filepath.Join(controlDir, minor)
	err := fn(dir)
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	OnOwnThread(unix.CLONE_NEWNS, func(unshared error) {
		if err = unshared; err != nil {
			return
		}
		if err = unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return
		}
		if err = unix.Mount("fusectl", controlDir, "fusectl", 0, ""); err == nil {
			err = fn(dir)
		}
	})
	return err
}

// Flush hands the kernel's unwritten pages of the mount on point, which only
// shared mappings leave behind, to its server.
func Flush(point string) (err error) {
	apart(func() { err = flush(point) })
	return err
}

func flush(point string) error {
	fd, err := unix.Open(point, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: point, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.Syncfs(fd); err != nil {
		return &os.PathError{Op: "syncfs", Path: point, Err: err}
	}
	return nil
}
