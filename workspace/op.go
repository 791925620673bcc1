package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// execVar names the variable that tells a command which exec it runs in.
const execVar = "AVFS_EXEC_ID"

// NoExec as Streams.Exec says that the operation is not asked for by a command, though
// this process may run in one: by the approver of the policy, for example.
const NoExec = "-"

// Op is one operation on a store, which any process may ask for. Req and Res are
// JSON-able.
type Op[Req, Res any] struct {
	Name string
	// Long operations go through an owner in a process of its own, so that
	// others can work meanwhile.
	Long bool
	// Brief operations need no owner that stays, whatever Config.Away says: many stores
	// are looked at one after the other.
	Brief bool
	// In operations read Streams.In, which others must not.
	In  bool
	Run func(ctx context.Context, o *Owner, req Req, s Streams) (Res, error)
}

// Streams are what an operation reads and writes beside request and result.
// Every field may be nil.
type Streams struct {
	In       io.Reader
	Out      io.Writer
	Progress func(Progress)
	// Exec is the exec that the caller itself runs in, if any.
	Exec string
}

func (s Streams) in() io.Reader {
	if s.In == nil {
		return eof{}
	}
	return s.In
}

func (s Streams) out() io.Writer {
	if s.Out == nil {
		return io.Discard
	}
	return s.Out
}

func (s Streams) progress(p Progress) {
	if s.Progress != nil {
		s.Progress(p)
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Progress says how far a long operation is. Totals are 0 while they are not known.
type Progress struct {
	Files      int64  `json:"files"`
	Bytes      int64  `json:"bytes"`
	TotalFiles int64  `json:"total_files,omitempty"`
	TotalBytes int64  `json:"total_bytes,omitempty"`
	Path       string `json:"path,omitempty"`
}

// handler is an operation whose request and result are JSON.
type handler struct {
	in  bool
	run func(ctx context.Context, o *Owner, req json.RawMessage, s Streams) (any, error)
}

// erase turns an Op into a handler.
func erase[Req, Res any](op Op[Req, Res]) handler {
	return handler{in: op.In, run: func(ctx context.Context, o *Owner, raw json.RawMessage, s Streams) (any, error) {
		var req Req
		if err := json.Unmarshal(raw, &req); err != nil {
			return nil, err
		}
		return op.Run(ctx, o, req, s)
	}}
}

// Call runs op on the store at path: in this process if nobody has the store open,
// else through its owner. An owner that ends before it takes the request is
// replaced by another.
func Call[Req, Res any](ctx context.Context, w *Workspace, store string, op Op[Req, Res], req Req, s Streams) (Res, error) {
	var res Res
	raw, err := json.Marshal(req)
	if err != nil {
		return res, err
	}
	by := w.actor(ctx, s.Exec, time.Now())
	s.Exec = by.Exec
	deadline := time.Now().Add(w.cfg.LockWait)
	for {
		c, err := w.connect(ctx, store, op.Long || w.cfg.Away && !op.Brief)
		if err != nil {
			return res, err
		}
		if c.local != nil {
			res, err = op.Run(engine.WithActor(ctx, by), c.local, req, s)
			return res, errors.Join(err, c.local.release())
		}
		out, err := c.remote.call(ctx, op.Name, op.In, raw, s, by)
		if errors.Is(err, errNotStarted) && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			return res, err
		}
		return res, json.Unmarshal(out, &res)
	}
}

// CallVault is Call on the store of a vault; bind gives the request for the
// vault's name, which is the current one's if vault is empty.
func CallVault[Req, Res any](ctx context.Context, w *Workspace, vault string, op Op[Req, Res], bind func(vault string) Req, s Streams) (Res, error) {
	name, store, err := w.Locate(vault)
	if err != nil {
		var none Res
		return none, err
	}
	return Call(ctx, w, store, op, bind(name), s)
}
