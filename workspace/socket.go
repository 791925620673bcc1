package workspace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// socketPath is where the owner of a store listens.
func socketPath(store string) string { return strings.TrimSuffix(store, storeSuffix) + ".sock" }

// maxSocketPath is the longest path that every system takes, in bytes.
const maxSocketPath = 100

// atSocket calls fn with a form of the socket's path that is short enough. Where
// the path is too long that is one through an open descriptor of its directory,
// which Linux offers.
func atSocket(store string, fn func(path string) error) error {
	path := socketPath(store)
	if len(path) <= maxSocketPath {
		return fn(path)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%s: the path is too long for a socket; set AVFS_HOME to a shorter one", path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return fn(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

func dialSocket(ctx context.Context, store string) (c net.Conn, err error) {
	err = atSocket(store, func(path string) error {
		var d net.Dialer
		c, err = d.DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}

// listen listens at the store's socket, for this user only. The caller has the
// store open, so whatever is there was left by a dead owner.
func listen(store string) (l net.Listener, err error) {
	if err := os.Remove(socketPath(store)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	err = atSocket(store, func(path string) error {
		ul, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		ul.SetUnlinkOnClose(false)
		made, err := os.Lstat(socketPath(store))
		if err != nil {
			return errors.Join(err, ul.Close())
		}
		l = &socket{UnixListener: ul, path: socketPath(store), made: made}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socketPath(store), 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// socket removes its file by the long path when it is closed.
type socket struct {
	*net.UnixListener
	path string
	made os.FileInfo
}

// Close stops listening and removes the socket, unless the folder is another by now
// and the socket there another owner's.
func (s *socket) Close() error {
	now, err := os.Lstat(s.path)
	if err == nil && os.SameFile(now, s.made) {
		err = os.Remove(s.path)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.UnixListener.Close())
}

// listening reports whether somebody listens at the store's socket.
func listening(store string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := dialSocket(ctx, store)
	if err != nil {
		return false
	}
	_ = c.Close() // it only asked
	return true
}
