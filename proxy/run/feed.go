package run

import (
	"errors"
	"io"
	"os"
	"time"
)

// feed forwards the caller's input to the child. Its goroutine is stopped by
// stop, except that it may stay in a Read of the caller's reader.
type feed struct {
	pipe  *os.File
	abort *abort // nil if reading cannot be interrupted
	done  chan struct{}
	err   error // valid once done is closed
}

func startFeed(src io.Reader, pipe *os.File) *feed {
	f := &feed{pipe: pipe, done: make(chan struct{})}
	src, f.abort = interruptible(src)
	go f.run(src)
	return f
}

// run copies until the input or the child's interest in it ends. A child that
// stopped reading is no error.
func (f *feed) run(src io.Reader) {
	defer close(f.done)
	defer closeAll(f.pipe)
	defer f.abort.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, werr := f.pipe.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, errAborted) {
				f.err = err
			}
			return
		}
	}
}

// stop ends the forwarding and returns what went wrong with reading. A Read that
// cannot be interrupted is left alone, also one of a file that another process
// read empty in the moment between being ready and being read.
func (f *feed) stop() error {
	closeAll(f.pipe)
	if f.abort != nil {
		f.abort.stop()
		select {
		case <-f.done:
		case <-time.After(abortLimit):
		}
	}
	if closed(f.done) {
		return f.err
	}
	return nil
}

const abortLimit = 100 * time.Millisecond

var errAborted = errors.New("run is over")
