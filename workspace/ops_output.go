package workspace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// OutputRequest asks for what is kept of what a command printed. Bytes are numbered
// from the first one that the command printed to the stream.
type OutputRequest struct {
	Vault  string `json:"vault"`
	Exec   string `json:"exec"`   // empty: the newest of the vault
	Stream string `json:"stream"` // stdout, stderr or combined; empty: what there is of stdout and combined
	From   int64  `json:"from"`
	To     *int64 `json:"to,omitempty"`   // without it; nil is the end
	Tail   *int64 `json:"tail,omitempty"` // only so many of the last bytes that are kept
}

// OutputPart says what was asked for, and what of it was written.
type OutputPart struct {
	engine.OutputInfo
	Stream string `json:"stream"`
	Bytes  int64  `json:"bytes"` // that the command has printed to the stream
	Kept   int64  `json:"kept"`
	From   int64  `json:"from"` // of what was written
	To     int64  `json:"to"`
}

// The names of the streams of a command.
const (
	StreamStdout   = "stdout"
	StreamStderr   = "stderr"
	StreamCombined = "combined"
)

// OpOutput writes what is kept of a stream of a command, which may still run, to the
// output stream.
var OpOutput = Op[OutputRequest, OutputPart]{Name: "output",
	Run: func(ctx context.Context, o *Owner, req OutputRequest, s Streams) (OutputPart, error) {
		o.flushPrinting(ctx)
		k, err := o.store.Output(ctx, req.Vault, req.Exec)
		if engine.KindOf(err) == engine.NotFound {
			return OutputPart{}, o.noOutput(ctx, req)
		}
		if err != nil {
			return OutputPart{}, err
		}
		defer k.Close()
		part, err := choosePart(k, req)
		if err == nil {
			err = k.WriteTo(ctx, s.out(), part.Stream, part.From, part.To)
		}
		return part, err
	}}

// choosePart decides which bytes of which stream are meant.
func choosePart(k *engine.KeptOutput, req OutputRequest) (OutputPart, error) {
	const op = "output"
	together := len(k.Streams) == 1 && k.Streams[0].Name == StreamCombined
	part := OutputPart{OutputInfo: k.OutputInfo, Stream: req.Stream}
	switch {
	case req.Stream == "" && together:
		part.Stream = StreamCombined
	case req.Stream == "":
		part.Stream = StreamStdout
	case req.Stream == StreamCombined && len(k.Streams) > 0 && !together:
		return part, &engine.Error{Kind: engine.Invalid, Op: op, Path: k.ExecID,
			Err: errors.New("the command ran without --combined, so its two streams have no common order")}
	case req.Stream != StreamCombined && together:
		return part, &engine.Error{Kind: engine.Invalid, Op: op, Path: k.ExecID,
			Err: errors.New("the command ran with --combined, so its two streams are one")}
	}
	have := k.Stream(part.Stream)
	part.Bytes, part.Kept = have.Bytes, have.Kept
	to := int64(math.MaxInt64)
	if req.To != nil {
		to = *req.To
	}
	if req.From < 0 || to < req.From || req.Tail != nil && *req.Tail < 0 {
		return part, &engine.Error{Kind: engine.Invalid, Op: op, Path: k.ExecID, Err: fmt.Errorf("there is no range from %d to %d", req.From, to)}
	}
	part.From, part.To = min(req.From, have.Kept), min(to, have.Kept)
	if req.Tail != nil {
		part.From = max(part.From, part.To-*req.Tail)
	}
	return part, nil
}

// noOutput says why nothing is kept of an exec, as far as the audit knows.
func (o *Owner) noOutput(ctx context.Context, req OutputRequest) error {
	e := &engine.Error{Kind: engine.NotFound, Op: "output", Path: req.Exec}
	if req.Exec == "" {
		e.Path, e.Err = req.Vault, errors.New("no command has run in the vault whose output is kept")
		return e
	}
	entries, err := o.store.Audit(ctx, 0)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.ExecID != req.Exec {
			continue
		}
		e.Details = map[string]any{"exec_id": entry.ExecID, "status": entry.Status}
		switch entry.Status {
		case "denied", "approval_required", notRunStatus, "failed_to_start":
			e.Err = fmt.Errorf("the command did not run (%s), and so printed nothing", strings.ReplaceAll(entry.Status, "_", " "))
		default:
			e.Err = errors.New("its output is kept no more")
		}
		return e
	}
	e.Err = errors.New("no such exec in the store")
	return e
}

// notePrinting has the owner know of the output of a command until the returned
// function is called.
func (o *Owner) notePrinting(exec string, out *engine.Output) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.printing[exec] = out
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.printing, exec)
	}
}

// flushPrinting puts what commands have printed until now where it can be read.
func (o *Owner) flushPrinting(ctx context.Context) {
	o.mu.Lock()
	outs := make([]*engine.Output, 0, len(o.printing))
	for _, out := range o.printing {
		outs = append(outs, out)
	}
	o.mu.Unlock()
	for _, out := range outs {
		out.Flush(ctx)
	}
}
