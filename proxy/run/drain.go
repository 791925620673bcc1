package run

import (
	"errors"
	"os"
	"time"
)

// Sizes of the read buffer. Most commands print little, so a drain starts small
// and grows, with its pipe, when a read fills the buffer.
const (
	smallRead = 4 << 10
	largeRead = 256 << 10
)

// drain reads one pipe to its end. Its goroutine is stopped by cut.
type drain struct {
	pipe   *os.File
	stream Stream
	keep   capture
	tee    func([]byte)
	sink   func(Stream, []byte) error
	filter Filter // nil without
	done   chan struct{}

	sinkErr error // valid once done is closed
}

func (s *Spec) newDrain(pipe *os.File, stream Stream) *drain {
	d := &drain{pipe: pipe, stream: stream, sink: s.Sink, tee: s.Stdout, done: make(chan struct{})}
	if stream == StreamErr {
		d.tee = s.Stderr
	}
	if s.Filter != nil {
		d.filter = s.Filter()
	}
	d.keep = capture{headMax: s.HeadBytes, tailMax: s.TailBytes}
	return d
}

// run reads until the last writer has closed the pipe or, after cut, until what
// was in the pipe at that moment is read: a writer that goes on cannot hold it.
func (d *drain) run() {
	defer close(d.done)
	defer d.finish()
	buf := make([]byte, smallRead)
	left := -1 // bytes to read after the cut, -1 before it
	for left != 0 {
		part := buf
		if left > 0 {
			part = buf[:min(left, len(buf))]
		}
		n, err := d.pipe.Read(part)
		d.take(part[:n])
		if left > 0 {
			left -= n
		}
		if left < 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			left = pending(d.pipe)
			// On failure the next read ends the loop.
			err = d.pipe.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return
		}
		if n == len(buf) && n < largeRead {
			buf = make([]byte, largeRead)
			widen(d.pipe, largeRead)
		}
	}
}

func (d *drain) take(p []byte) {
	if d.filter != nil && len(p) > 0 {
		p = d.filter.Write(p)
	}
	d.pass(p)
}

// finish passes on what the filter holds back.
func (d *drain) finish() {
	if d.filter != nil {
		d.pass(d.filter.Close())
	}
}

func (d *drain) pass(p []byte) {
	if len(p) == 0 {
		return
	}
	d.keep.write(p)
	if d.tee != nil {
		d.tee(p)
	}
	if d.sink != nil && d.sinkErr == nil {
		d.sinkErr = d.sink(d.stream, p)
	}
}

// cut makes run stop soon, with everything written before the cut.
func (d *drain) cut() {
	if err := d.pipe.SetReadDeadline(time.Unix(1, 0)); err != nil {
		// Pipes without deadlines (Windows) are unblocked by closing them.
		closeAll(d.pipe)
	}
}

// closeAll closes files that hold no unwritten data, so their errors say nothing.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
