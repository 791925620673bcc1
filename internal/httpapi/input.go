package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds on what is read of a body that nobody wants. Whoever sends more, or waits for
// the answer before the rest, gets the answer on a connection that then closes.
const (
	maxDrain  = 64 << 20
	drainWait = time.Second      // without a byte
	drainTime = 30 * time.Second // in all
)

// input is a request's body as standard input. A client that goes away while it sends
// cancels: a part of its input must not pass for all of it.
//
// The server may not go on to the next request while the body has a rest or a reader, and
// a client that sends may only look for the answer when it has sent all: so end comes
// before the answer.
type input struct {
	rw   http.ResponseWriter
	body io.Reader
	// asks says that the client sends nothing before it is told to, which the first
	// read does.
	asks bool
	gone func()
	over atomic.Bool // the command wants no more

	mu    sync.Mutex // guards what follows, and is held while something is read
	begun bool
	whole bool // the body has been read to its end
}

// newInput takes the body of a request as the input of one command.
func newInput(rw http.ResponseWriter, r *http.Request, gone func()) *input {
	asks := strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	return &input{rw: rw, body: r.Body, asks: asks, gone: gone}
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over.Load() {
		return 0, io.EOF
	}
	n, err := in.next(p)
	if err != nil && !errors.Is(err, io.EOF) && !in.over.Load() {
		in.gone()
	}
	return n, err
}

// next reads a piece. The caller holds mu.
func (in *input) next(p []byte) (int, error) {
	in.begun = true
	n, err := in.body.Read(p)
	in.whole = in.whole || errors.Is(err, io.EOF)
	return n, err
}

// end takes the input away from its reader and reads the rest of the body. Where that
// cannot be, the connection closes after the answer.
func (in *input) end() {
	if in == nil {
		return
	}
	in.over.Store(true)
	if err := in.drain(); err != nil {
		in.rw.Header().Set("Connection", "close")
	}
}

// errNotDrained says that a body has a rest.
var errNotDrained = errors.New("the body has a rest")

func (in *input) drain() error {
	rc := http.NewResponseController(in.rw)
	if err := rc.SetReadDeadline(time.Now().Add(drainWait)); err != nil { // also for who reads now
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.asks && !in.begun {
		return errNotDrained
	}
	piece := make([]byte, 64<<10)
	start := time.Now()
	for total := 0; !in.whole; {
		if total > maxDrain || time.Since(start) > drainTime {
			return errNotDrained
		}
		if err := rc.SetReadDeadline(time.Now().Add(drainWait)); err != nil {
			return err
		}
		n, err := in.next(piece)
		if total += n; err != nil && !in.whole {
			return err
		}
	}
	return rc.SetReadDeadline(time.Time{})
}

// answering is called before an answer begins while the command still runs: if there is
// a rest of the body by then, nothing can be said of the connection later.
func (in *input) answering() {
	if in == nil {
		return
	}
	if !in.mu.TryLock() { // it is being read
		in.rw.Header().Set("Connection", "close")
		return
	}
	defer in.mu.Unlock()
	if !in.whole {
		in.rw.Header().Set("Connection", "close")
	}
}
