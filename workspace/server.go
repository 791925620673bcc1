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
	// Started is called with the owner before Ready, such as to mount.
	Started func(ctx context.Context, o *Owner) error
}

const idlePoll = 50 * time.Millisecond

// shutdownWait is how long operations that are under way may go on when the
// server ends.
const shutdownWait = 5 * time.Second

// Serve opens the store and serves it until ctx ends, or nothing has needed it for
// the linger. Then every mount ends and the store is closed.
func (w *Workspace) Serve(ctx context.Context, path string, opts ServeOptions) (err error) {
	o, err := w.openWait(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.release()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o.stop = stop
	l, err := listen(path)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler:           &server{o: o, ops: operations()},
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       nil,
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	defer func() {
		err = errors.Join(err, shutdown(srv), o.unmountAll(context.WithoutCancel(ctx)))
		if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
			err = errors.Join(err, serr)
		}
	}()
	if opts.Started != nil {
		if err := opts.Started(ctx, o); err != nil {
			return err
		}
	}
	if opts.Ready != nil {
		opts.Ready()
	}
	o.end0()
	return o.untilIdle(ctx, opts.Linger)
}

// end0 starts the idle clock.
func (o *Owner) end0() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Now()
}

func (o *Owner) untilIdle(ctx context.Context, linger time.Duration) error {
	tick := time.NewTicker(idlePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if since, ok := o.idle(); ok && linger >= 0 && time.Since(since) >= linger {
				return nil
			}
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

// openWait opens the store in this process and waits for who has it.
func (w *Workspace) openWait(ctx context.Context, path string) (*Owner, error) {
	deadline := time.Now().Add(w.cfg.LockWait)
	for {
		o, err := w.open(path)
		if err == nil || engine.KindOf(err) != engine.Locked || time.Now().After(deadline) {
			return o, err
		}
		if r := dial(ctx, path); r != nil {
			return nil, err // somebody serves it already
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
	o   *Owner
	ops map[string]handler
}

const headerProtocol = "Avfs-Protocol"

func (s *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.o.begin()
	defer s.o.end()
	if r.Method == http.MethodGet && r.URL.Path == "/v1/owner" {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(s.o.Info()) // a client that is gone needs no answer
		return
	}
	if r.Header.Get(headerProtocol) != strconv.Itoa(Protocol) {
		s.refuse(rw, http.StatusConflict, VersionSkew, fmt.Sprintf(
			"the owner of the store (pid %d, avfs %s) speaks another protocol version; end it with: avfs serve --stop", pid(), s.o.w.cfg.Version))
		return
	}
	h, ok := s.ops[r.PathValue("op")]
	if !ok {
		h, ok = s.ops[opName(r.URL.Path)]
	}
	if r.Method != http.MethodPost || !ok {
		s.refuse(rw, http.StatusNotFound, engine.Unsupported, "no such operation: "+r.URL.Path)
		return
	}
	s.run(rw, r, h)
}

func opName(path string) string {
	const prefix = "/v1/op/"
	if len(path) <= len(prefix) || path[:len(prefix)] != prefix {
		return ""
	}
	return path[len(prefix):]
}

func (s *server) refuse(rw http.ResponseWriter, status int, kind engine.Kind, message string) {
	rw.WriteHeader(status)
	b, err := json.Marshal(&Fault{Kind: kind, Message: message})
	if err == nil {
		_, _ = rw.Write(b) // a client that is gone needs no answer
	}
}

// run reads the request line, says that it has it, and runs the operation.
func (s *server) run(rw http.ResponseWriter, r *http.Request, h handler) {
	rc := http.NewResponseController(rw)
	if err := rc.EnableFullDuplex(); err != nil {
		s.refuse(rw, http.StatusInternalServerError, engine.Internal, err.Error())
		return
	}
	in := bufio.NewReaderSize(r.Body, 64<<10)
	line, err := in.ReadBytes('\n')
	if err != nil {
		s.refuse(rw, http.StatusBadRequest, engine.Invalid, "the request has no line of JSON")
		return
	}
	rw.WriteHeader(http.StatusOK)
	if err := rc.Flush(); err != nil {
		return // the client is gone before anything happened
	}
	out := &answer{w: rw, flush: rc.Flush}
	res, err := h(r.Context(), s.o, line, Streams{In: in, Out: out, Progress: out.progress})
	out.finish(res, err)
}

// answer writes frames; the operation may use it from several goroutines.
type answer struct {
	mu    sync.Mutex
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
	_ = a.frame(kind, b) // a client that is gone needs no answer
}
