package workspace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// Exec is a vault held for one command.
type Exec struct {
	ExecBegun
	in   *io.PipeWriter
	done chan execDone
	lost chan struct{}
	stop chan struct{}

	mu      sync.Mutex       // guards what follows, and is held while something is sent
	printed map[string]int64 // bytes of each stream until now
}

// NotedError is why a command could not run, where the audit tells of it already.
type NotedError struct{ Err error }

// Error is that of Err.
func (e *NotedError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *NotedError) Unwrap() error { return e.Err }

type execDone struct {
	ended ExecEnded
	err   error
}

// BeginExec holds a vault for one command and returns when it can run. An empty
// vault is the current one. End must follow. An error of which the audit tells is a
// *NotedError.
func (w *Workspace) BeginExec(ctx context.Context, req ExecRequest) (*Exec, error) {
	name, store, err := w.Locate(req.Vault)
	if err != nil {
		return nil, err
	}
	req.Vault = name
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	x := &Exec{in: inW, done: make(chan execDone, 1), lost: make(chan struct{}), stop: make(chan struct{}), printed: map[string]int64{}}
	// Once the command runs, only End ends the operation.
	opCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	go func() { // ends with the operation, which End or the caller's death ends
		defer cancel()
		ended, err := Call(opCtx, w, store, OpExec, req, Streams{In: inR, Out: outW})
		closing := err
		if closing == nil {
			closing = io.EOF
		}
		_ = outW.CloseWithError(closing) // never fails
		_ = inR.CloseWithError(closing)  // never fails
		x.done <- execDone{ended, err}
		close(x.lost)
	}()
	lines := bufio.NewReader(outR)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		if d := <-x.done; d.err != nil {
			err = d.err
		}
		return nil, err
	}
	go x.listen(lines) // ends with the operation
	var begun execBegun
	if err := json.Unmarshal(line, &begun); err != nil {
		return nil, errors.Join(err, inW.Close())
	}
	if begun.Noted {
		d := <-x.done
		return nil, &NotedError{d.err}
	}
	x.ExecBegun = begun.ExecBegun
	return x, nil
}

// listen reads what the owner asks for while the command runs.
func (x *Exec) listen(lines *bufio.Reader) {
	asked := false
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var line execAsk
		if json.Unmarshal(text, &line) == nil && line.Stop && !asked {
			asked = true
			close(x.stop)
		}
	}
}

// Stop is closed when the owner wants the command of a service to end.
func (x *Exec) Stop() <-chan struct{} { return x.stop }

// Lost is closed when the owner holds the vault no more. Before End that means that it
// has ended: the command has lost its files, and has to be ended.
func (x *Exec) Lost() <-chan struct{} { return x.lost }

// Started tells the owner what was started, so that it can end that if this process
// dies.
func (x *Exec) Started(c ExecCommand) error { return x.send(execLine{Started: &c}) }

// Output has the owner keep what the command has printed to the stream of that name,
// up to engine.MaxOutput bytes; the rest is counted. Each stream has one caller at a
// time. An error says that the owner is gone.
func (x *Exec) Output(stream string, p []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	room := max(engine.MaxOutput-x.printed[stream], 0)
	x.printed[stream] += int64(len(p))
	p = p[:min(room, int64(len(p)))]
	if len(p) == 0 {
		return nil
	}
	return x.sendLocked(execLine{Printed: &execPrinted{Stream: stream, Bytes: len(p)}}, p)
}

func (x *Exec) send(l execLine) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sendLocked(l, nil)
}

// sendLocked sends a line and what belongs to it. The caller holds mu.
func (x *Exec) sendLocked(l execLine, content []byte) error {
	line, err := json.Marshal(l)
	if err == nil {
		_, err = x.in.Write(append(line, '\n'))
	}
	if err == nil && len(content) > 0 {
		_, err = x.in.Write(content)
	}
	return err
}

// unsent is what the command has printed beyond what Output has sent.
func (x *Exec) unsent() map[string]int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	var more map[string]int64
	for stream, n := range x.printed {
		if n > engine.MaxOutput {
			if more == nil {
				more = map[string]int64{}
			}
			more[stream] = n - engine.MaxOutput
		}
	}
	return more
}

// End says how the command has ended and returns what it changed.
func (x *Exec) End(outcome ExecOutcome) (ExecEnded, error) {
	outcome.Unsent = x.unsent()
	err := x.send(execLine{Ended: &outcome})
	d := <-x.done
	if d.err == nil {
		d.err = err
	}
	return d.ended, d.err
}
