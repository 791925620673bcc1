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

// dial finds the owner of a store; nil if nobody listens.
func dial(ctx context.Context, store string) *remote {
	c, err := dialSocket(ctx, store)
	if err != nil {
		return nil
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

// stop asks the owner to end.
func (r *remote) stop(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://owner/v1/stop", nil)
	if err != nil {
		return err
	}
	resp, err := r.do(req, func() {})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotStarted, err)
	}
	return resp.Body.Close()
}

// errNotStarted says that the owner ended before it took the request.
var errNotStarted = errors.New("the owner of the store ended")

// call runs an operation at the owner. The input stream is sent only once the
// owner has taken the request, so that one that never began can be asked again.
func (r *remote) call(ctx context.Context, op string, raw json.RawMessage, s Streams) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The transport waits for the end of the body even after the owner has closed
	// the connection, so the body has to end with it.
	connected, lost := context.WithCancel(ctx)
	defer lost()
	body, bodyEnd := io.Pipe()
	taken := make(chan struct{})
	go func() { // ends when the request is over: the transport closes body
		_, err := bodyEnd.Write(append(raw, '\n'))
		if err == nil {
			select {
			case <-taken:
				_, err = io.Copy(bodyEnd, s.in())
			case <-connected.Done():
				err = connected.Err()
			}
		}
		_ = bodyEnd.CloseWithError(err) // never fails
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://owner/v1/op/"+op, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(headerProtocol, strconv.Itoa(Protocol))
	if s.Exec != "" {
		req.Header.Set(headerExec, s.Exec)
	}
	resp, err := r.do(req, lost)
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
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return res, err
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
