package workspace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine"
)

func pid() int { return os.Getpid() }

// ServeOptions says how long to serve and whom to tell.
type ServeOptions struct {
	// Linger is how long to stay when nothing needs the owner any more; negative
	// is for ever.
	Linger time.Duration
	// Ready is called once requests are answered.
	Ready func()
}

// shutdownWait is how long operations that are under way may go on when the
// server ends.
const shutdownWait = 5 * time.Second

// firstWait is how long an owner waits at least for its first request: whoever
// started it may be slow on a busy machine.
const firstWait = 2 * time.Second

// Serve opens the store and serves it until ctx ends, or nothing has needed it for
// the linger. Then every mount ends and the store is closed.
func (w *Workspace) Serve(ctx context.Context, path string, opts ServeOptions) (err error) {
	o, err := w.openWait(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.release()) }()
	o.clearDead()
	l, err := listen(path)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.mu.Lock()
	o.serving = true
	w.mu.Unlock()
	h := &server{o: o, ops: operations(), stop: stop}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }() // ends with the shutdown below
	var tending sync.WaitGroup
	tending.Go(func() { o.tend(ctx) })
	defer func() {
		o.close()
		stop()
		tending.Wait()
		err = errors.Join(err, shutdown(srv))
		h.running.Wait() // those that were cut off may still be recording what they did
		err = errors.Join(err, o.unmountAll(context.WithoutCancel(ctx)))
		if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
			err = errors.Join(err, serr)
		}
	}()
	if opts.Ready != nil {
		opts.Ready()
	}
	if opts.Linger < 0 {
		<-ctx.Done()
		return nil
	}
	return o.untilIdle(ctx, opts.Linger)
}

// untilIdle returns when nothing has needed the owner for the linger. Mounts that
// were made for commands end then, but not under somebody who still uses one.
func (o *Owner) untilIdle(ctx context.Context, linger time.Duration) error {
	o.rest(max(firstWait-linger, 0))
	for {
		wait, idle := o.idleIn(linger)
		if idle && wait <= 0 {
			if o.endIfIdle(ctx) {
				return nil
			}
			o.rest(0)
			wait = max(linger, firstWait)
		}
		var timer <-chan time.Time
		if idle {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer:
		case <-o.changed:
		}
	}
}

func shutdown(srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	return err
}

// openWait opens the store in this process and waits for who has it, unless they
// serve it.
func (w *Workspace) openWait(ctx context.Context, path string) (*Owner, error) {
	deadline := time.Now().Add(w.cfg.LockWait)
	for {
		o, err := w.open(path)
		if err == nil || engine.KindOf(err) != engine.Locked || time.Now().After(deadline) || listening(path) {
			return o, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryPause):
		}
	}
}

// server answers requests for one store.
type server struct {
	o       *Owner
	ops     map[string]handler
	stop    func()         // asks Serve to end
	running sync.WaitGroup // requests under way
}

const (
	headerProtocol = "Avfs-Protocol"
	opPrefix       = "/v1/op/"
	stopPath       = "/v1/stop"
	ifIdle         = "idle"  // the query of a stop that is only for an owner which nobody needs
	byForce        = "force" // that of one which also cuts off commands that run
)

// ServeHTTP answers one request. The two without a version of the protocol work
// between any two versions of avfs.
func (s *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer s.running.Done()
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/v1/owner":
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(s.o.Info()) // a client that is gone needs no answer
	case r.Method == http.MethodPost && r.URL.Path == stopPath:
		s.end(rw, r.URL.RawQuery)
	case s.o.begin():
		defer s.o.end()
		s.operate(rw, r)
	default: // the client looks for the next owner
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
}

// end ends the owner, or says why not.
func (s *server) end(rw http.ResponseWriter, how string) {
	switch how {
	case ifIdle:
		if !s.o.closeIfIdle() {
			rw.WriteHeader(http.StatusConflict)
			return
		}
	case byForce:
	default:
		if err := s.o.closeUnlessRunning(); err != nil {
			s.fault(rw, http.StatusConflict, NewFault(err))
			return
		}
	}
	s.stop()
}

// operate finds the operation that is asked for and runs it.
func (s *server) operate(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerProtocol) != strconv.Itoa(Protocol) {
		s.refuse(rw, http.StatusConflict, VersionSkew, fmt.Sprintf(
			"the owner of the store (pid %d, avfs %s) speaks another protocol version", pid(), s.o.w.cfg.Version))
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, opPrefix)
	h, known := s.ops[name]
	if r.Method != http.MethodPost || !ok || !known {
		s.refuse(rw, http.StatusNotFound, engine.Unsupported, "no such operation: "+r.URL.Path)
		return
	}
	s.run(rw, r, h)
}

func (s *server) refuse(rw http.ResponseWriter, status int, kind engine.Kind, message string) {
	s.fault(rw, status, &Fault{Kind: kind, Message: message})
}

func (s *server) fault(rw http.ResponseWriter, status int, f *Fault) {
	rw.WriteHeader(status)
	b, err := json.Marshal(f)
	if err == nil {
		_, _ = rw.Write(b) // a client that is gone needs no answer
	}
}

// run reads the request line, says that it has it, and runs the operation. The
// operation's context ends when the client goes away.
func (s *server) run(rw http.ResponseWriter, r *http.Request, h handler) {
	rc := http.NewResponseController(rw)
	if err := rc.EnableFullDuplex(); err != nil {
		s.refuse(rw, http.StatusInternalServerError, engine.Internal, err.Error())
		return
	}
	body := bufio.NewReaderSize(r.Body, 64<<10)
	line, err := body.ReadBytes('\n')
	if err != nil {
		s.refuse(rw, http.StatusBadRequest, engine.Invalid, "the request has no line of JSON")
		return
	}
	rw.WriteHeader(http.StatusOK)
	if err := rc.Flush(); err != nil {
		return // the client is gone before anything happened
	}
	by := actorIn(r.Header)
	ctx, cancel := context.WithCancel(engine.WithActor(r.Context(), by))
	defer cancel()
	in := newInput(body, h.in, cancel)
	out := &answer{w: rw, flush: rc.Flush}
	res, err := h.run(ctx, s.o, line, Streams{In: in, Out: out, Progress: out.progress, Exec: by.Exec})
	out.finish(res, err)
	in.drain()
}

// input reads a request's body all the time, so that the end of the connection is
// seen even while the operation does not read.
type input struct {
	*io.PipeReader
	done chan struct{} // closed at the end of the body
}

// newInput starts to read. What comes is the operation's input, if it wants one;
// if not, the first byte says that the operation is cancelled. When the client
// cancels or goes away, gone is called.
func newInput(body io.Reader, wanted bool, gone func()) *input {
	r, w := io.Pipe()
	in := &input{PipeReader: r, done: make(chan struct{})}
	if !wanted {
		_ = r.Close() // never fails
	}
	go func() { // ends with the body, which ends with the request at the latest
		defer close(in.done)
		_, err := io.Copy(w, body)
		if errors.Is(err, io.ErrClosedPipe) {
			if !wanted {
				gone()
			}
			_, err = io.Copy(io.Discard, body)
		}
		if err != nil {
			gone()
		}
		_ = w.CloseWithError(err) // never fails
	}()
	return in
}

// drain waits for the client to end the connection, once the answer is sent. If
// the server did that, a client that still sends would lose the answer.
func (in *input) drain() {
	_ = in.Close() // never fails
	select {
	case <-in.done:
	case <-time.After(drainWait):
	}
}

// drainWait is how long a client may take to read an answer that is sent.
const drainWait = 5 * time.Second

// answer writes frames; the operation may use it from several goroutines.
type answer struct {
	mu    sync.Mutex // held for a frame
	w     io.Writer
	flush func() error
}

func (a *answer) frame(kind byte, content []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := writeFrame(a.w, kind, content); err != nil {
		return err
	}
	return a.flush()
}

// Write implements io.Writer for the output stream.
func (a *answer) Write(p []byte) (int, error) {
	if err := a.frame(frameData, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (a *answer) progress(p Progress) {
	if b, err := json.Marshal(p); err == nil {
		_ = a.frame(frameProgress, b) // progress is not worth failing for
	}
}

// finish sends the result, a long one in parts.
func (a *answer) finish(res any, err error) {
	kind := byte(frameResult)
	if err != nil {
		kind, res = frameFault, NewFault(err)
	}
	b, merr := json.Marshal(res)
	if merr != nil {
		kind = frameFault
		b, _ = json.Marshal(NewFault(merr))
	}
	for len(b) > maxFrame {
		if a.frame(framePart, b[:maxFrame]) != nil {
			return // a client that is gone needs no answer
		}
		b = b[maxFrame:]
	}
	_ = a.frame(kind, b) // likewise
}
