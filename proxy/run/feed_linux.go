package run

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// abort wakes a pollReader.
type abort struct {
	wait, wake *os.File
	once       sync.Once
}

func (a *abort) stop() { a.once.Do(func() { closeAll(a.wake) }) }

func (a *abort) close() {
	if a != nil {
		closeAll(a.wait, a.wake)
	}
}

// interruptible returns a reader of the same data whose Read the abort ends. It
// works on files: their readiness can be waited for without reading, so nothing
// that the caller may still want is taken from them.
func interruptible(src io.Reader) (io.Reader, *abort) {
	f, ok := src.(*os.File)
	if !ok {
		return src, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return src, nil
	}
	a := &abort{}
	if a.wait, a.wake, err = os.Pipe(); err != nil {
		return src, nil
	}
	wake, err := a.wait.SyscallConn()
	if err != nil {
		closeAll(a.wait, a.wake)
		return src, nil
	}
	return &pollReader{file: f, raw: raw, wake: wake}, a
}

// pollReader reads a file only when there is something to read.
type pollReader struct {
	file      *os.File
	raw, wake syscall.RawConn
}

func (r *pollReader) Read(p []byte) (int, error) {
	aborted, err := r.poll()
	if err != nil {
		return 0, err
	}
	if aborted {
		return 0, errAborted
	}
	return r.file.Read(p)
}

// poll waits until the file can be read, or reports that the abort came.
func (r *pollReader) poll() (aborted bool, err error) {
	var pollErr, fileErr error
	wakeErr := r.wake.Control(func(wfd uintptr) {
		fileErr = r.raw.Control(func(fd uintptr) {
			aborted, pollErr = pollEither(int32(fd), int32(wfd))
		})
	})
	return aborted, errors.Join(wakeErr, fileErr, pollErr)
}

// pollEither waits until one of the two can be read or has ended, and reports
// whether it is the second.
func pollEither(first, second int32) (bool, error) {
	fds := []unix.PollFd{{Fd: first, Events: unix.POLLIN}, {Fd: second, Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return fds[1].Revents != 0, err
		}
	}
}
