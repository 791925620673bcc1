package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// OwnerInfo describes the process that has a store open.
type OwnerInfo struct {
	PID      int         `json:"pid"`
	Version  string      `json:"version"`
	Protocol int         `json:"protocol"`
	Store    string      `json:"store"`
	Backend  string      `json:"backend"`
	Mounts   []MountInfo `json:"mounts"`
}

// Info describes this owner.
func (o *Owner) Info() OwnerInfo {
	return OwnerInfo{
		PID: pid(), Version: o.w.cfg.Version, Protocol: Protocol, Store: o.path, Backend: o.driver.Name(), Mounts: o.mountInfos(),
	}
}

// remote speaks to an owner in another process.
type remote struct {
	store string
	first net.Conn // made already, for the first request; then nil
}

// dial finds the owner of a store; nil if nobody listens, or only a process that was
// killed. That one answers no more, and holds the store until it is set free.
func (w *Workspace) dial(ctx context.Context, store string) *remote {
	c, err := dialSocket(ctx, store)
	if err != nil {
		return nil
	}
	if pid := listenerOf(c); pid != 0 && w.cfg.Mounter != nil {
		if freed, err := w.cfg.Mounter.FreeKilled(pid); freed && err == nil {
			_ = c.Close() // nobody reads what was sent
			return nil
		}
	}
	return &remote{store: store, first: c}
}

// do sends a request over a connection of its own. lost is called when that
// connection has ended.
func (r *remote) do(req *http.Request, lost func()) (*http.Response, error) {
	tr := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c := r.first
			r.first = nil
			if c == nil {
				var err error
				if c, err = dialSocket(ctx, r.store); err != nil {
					return nil, err
				}
			}
			return &watchedConn{c, lost}, nil
		},
	}
	return (&http.Client{Transport: tr}).Do(req)
}

// watchedConn is a connection that tells when nothing can be read from it any more.
type watchedConn struct {
	net.Conn
	lost func()
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.lost()
	}
	return n, err
}

// info asks the owner who it is.
func (r *remote) info(ctx context.Context) (OwnerInfo, error) {
	var info OwnerInfo
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://owner/v1/owner", nil)
	if err != nil {
		return info, err
	}
	resp, err := r.do(req, func() {})
	if err != nil {
		return info, err
	}
	defer resp.Body.Close()
	return info, json.NewDecoder(resp.Body).Decode(&info)
}

// errInUse says that an owner goes on because somebody needs it.
var errInUse = errors.New("the owner of the store is in use")

// stop asks the owner to end; how is empty, ifIdle or byForce. With ifIdle it fails
// with errInUse while somebody needs the owner.
func (r *remote) stop(ctx context.Context, how string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://owner"+stopPath+"?"+how, nil)
	if err != nil {
		return err
	}
	resp, err := r.do(req, func() {})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotStarted, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode != http.StatusConflict:
		return nil
	case how == ifIdle:
		return errInUse
	}
	return refused(resp)
}

// errNotStarted says that the owner ended before it took the request.
var errNotStarted = errors.New("the owner of the store ended")

// cancelWait is how long an operation may take to come to an end after it was
// cancelled.
const cancelWait = 10 * time.Second

// call runs an operation at the owner. in says that it has an input stream, which
// is sent only once the owner has taken the request, so that one that never began
// can be asked again. An operation without input is told when ctx ends, and still
// gives its answer; one with input is cut off.
func (r *remote) call(ctx context.Context, op string, in bool, raw json.RawMessage, s Streams, by engine.Actor) (json.RawMessage, error) {
	reqCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// The transport waits for the end of the body even after the owner has closed
	// the connection, so the body has to end with it.
	connected, lost := context.WithCancel(reqCtx)
	defer lost()
	body, bodyEnd := io.Pipe()
	taken := make(chan struct{})
	go func() { // ends when the request is over: the transport closes body
		_, err := bodyEnd.Write(append(raw, '\n'))
		if err == nil && in {
			err = sendInput(ctx, connected, bodyEnd, taken, s.in())
		} else if err == nil {
			err = sendCancel(ctx, connected, bodyEnd)
		}
		if ctx.Err() != nil {
			cancel()
		}
		_ = bodyEnd.CloseWithError(err) // never fails
	}()
	resp, err := r.post(reqCtx, op, body, by, lost)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		return nil, errNotStarted
	default:
		return nil, refused(resp)
	}
	close(taken)
	res, err := readAnswer(resp.Body, s)
	if engine.KindOf(err) == OwnerLost && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return res, err
}

func (r *remote) post(ctx context.Context, op string, body io.Reader, by engine.Actor, lost func()) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://owner"+opPrefix+op, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(headerProtocol, strconv.Itoa(Protocol))
	setActor(req.Header, by)
	return r.do(req, lost)
}

// sendInput sends the input stream once the owner has taken the request. It
// returns at the end of ctx, which cuts the operation off.
func sendInput(ctx, connected context.Context, w io.Writer, taken <-chan struct{}, in io.Reader) error {
	stop := make(chan struct{})
	defer close(stop)
	sent := make(chan error, 1)
	go func() { // ends with the input, or with the next byte of it after the request
		select {
		case <-taken:
			_, err := io.Copy(w, in)
			sent <- err
		case <-stop:
		}
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-connected.Done():
		return connected.Err()
	}
}

// sendCancel waits for the end of ctx, sends a byte, which is what an operation
// without input takes for that, and gives it some time.
func sendCancel(ctx, connected context.Context, w io.Writer) error {
	select {
	case <-connected.Done():
		return nil
	case <-ctx.Done():
	}
	if _, err := w.Write([]byte{'\n'}); err != nil {
		return err
	}
	select {
	case <-connected.Done():
		return nil
	case <-time.After(cancelWait):
		return ctx.Err()
	}
}

func refused(resp *http.Response) error {
	var f Fault
	if err := json.NewDecoder(resp.Body).Decode(&f); err != nil {
		return fmt.Errorf("the owner of the store answered %s: %w", resp.Status, err)
	}
	return f.Err()
}

// errOutput marks a failure of the caller's own output stream.
type errOutput struct{ error }

func (e errOutput) Unwrap() error { return e.error }

func readAnswer(r io.Reader, s Streams) (json.RawMessage, error) {
	var parts []byte
	for {
		kind, content, err := readFrame(r)
		if err != nil {
			return nil, &engine.Error{Kind: OwnerLost, Err: fmt.Errorf("the owner of the store ended during the operation: %w", err)}
		}
		switch kind {
		case frameData:
			if _, err := s.out().Write(content); err != nil {
				return nil, errOutput{err}
			}
		case frameProgress:
			var p Progress
			if json.Unmarshal(content, &p) == nil {
				s.progress(p)
			}
		case framePart:
			parts = append(parts, content...)
		case frameResult:
			return append(parts, content...), nil
		case frameFault:
			var f Fault
			if err := json.Unmarshal(append(parts, content...), &f); err != nil {
				return nil, err
			}
			return nil, f.Err()
		default:
			return nil, &engine.Error{Kind: VersionSkew, Err: fmt.Errorf("the owner of the store sent an unknown frame %q", kind)}
		}
	}
}
