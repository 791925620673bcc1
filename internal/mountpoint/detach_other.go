//go:build !linux

package mountpoint

import (
	"context"
	"errors"
	"os"
)

// Recover makes path free for a mount. Outside Linux a mount ends with its
// server, so there is nothing to clear away.
func Recover(string) error { return nil }

// Abort cuts the connection of a FUSE mount. Outside Linux there is no such
// control.
func Abort(string) error { return errors.ErrUnsupported }

// Flush hands unwritten pages to the server. Outside Linux detaching does that.
func Flush(string) error { return nil }

// Ask asks the mount on point for its top directory, and returns when it has
// answered.
func Ask(point string) error {
	_, err := os.Stat(point)
	return err
}

// AwaitIdle waits until a mount has no request. Outside Linux nothing tells, and
// Flush has nothing to wait for.
func AwaitIdle(context.Context, string) error { return nil }

// AskPoll asks the server of a mount whether a file is ready to read. Outside
// Linux the Go runtime's poller does not ask servers, so there is nothing to learn.
func AskPoll(string) error { return nil }

// Device is the device number of the mount on point; empty where it has none.
func Device(string) (string, error) { return "", nil }

// ReadAhead lets the kernel read on in the files of a mount. Outside Linux it does as
// it likes.
func ReadAhead(string) {}
