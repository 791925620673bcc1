package workspace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// ExecRequest asks for a vault to run one command in.
type ExecRequest struct {
	ID         string   `json:"id"`
	Vault      string   `json:"vault"`
	Fork       string   `json:"fork,omitempty"` // make this fork and use it
	Command    []string `json:"command"`        // for the timeline
	Checkpoint bool     `json:"checkpoint"`     // keep the state before under a checkpoint
	ReadOnly   bool     `json:"read_only"`
	Driver     string   `json:"driver,omitempty"` // to mount with; empty is any
	Wait       bool     `json:"wait"`             // for another command in the vault; otherwise VaultBusy
	Limit      int      `json:"limit"`            // most changes to list
	// Mountpoint is where the caller expects the command to run, as MountFor says. If
	// it is another place by now, nothing happens and the error is MountMoved, with
	// the place among its details. Empty expects nothing.
	Mountpoint string `json:"mountpoint,omitempty"`

	Audit engine.AuditEntry `json:"audit"` // what the audit is to say, as far as it is known
}

// ExecCommand is the process that an exec has started, for whoever has to end it
// when the caller is gone.
type ExecCommand struct {
	PID    int    `json:"pid"`              // also its session
	Start  uint64 `json:"start,omitempty"`  // when it started, in units of the system
	Cgroup string `json:"cgroup,omitempty"` // the directory of its own cgroup, if it has one
}

// ExecLeft is an exec that has lost its caller or its owner.
type ExecLeft struct {
	ID      string
	Owner   int          // the process that owned the store; 0 is this one
	Command *ExecCommand // nil where the caller did not get to tell
}

// ExecOutcome says how the command of an exec ended, for the audit.
type ExecOutcome struct {
	Status     string `json:"status"`
	ExitCode   *int   `json:"exit_code"`
	DurationMS int64  `json:"duration_ms"`
}

// ExecBegun says where the command runs and what the state before is.
type ExecBegun struct {
	Vault      string `json:"vault"`
	Mountpoint string `json:"mountpoint"`
	Owner      int    `json:"owner"` // the process that serves the mount
	RootBefore string `json:"root_before"`
	Checkpoint string `json:"checkpoint,omitempty"`
}

// ExecEnded says what the command changed.
type ExecEnded struct {
	RootAfter   string              `json:"root_after"`
	Changes     []engine.FileChange `json:"changes"`
	Total       int                 `json:"total"`
	Event       uint64              `json:"event,omitempty"`
	Interrupted bool                `json:"interrupted,omitempty"` // the caller went away
	LimitsHit   []engine.Limit      `json:"limits_hit,omitempty"`  // of the quota, while the command ran
}

// OpExec holds a vault for one command. It writes an ExecBegun as a line of JSON
// to the output stream and reads lines from the input stream: one that says what
// was started, and one with the outcome, which the caller sends when the command has
// ended. Then it records the command and tells what changed. When the caller goes
// away, it ends what the caller has started first.
var OpExec = Op[ExecRequest, ExecEnded]{Name: "exec", Long: true, In: true, Run: runExec}

func runExec(ctx context.Context, o *Owner, req ExecRequest, s Streams) (ExecEnded, error) {
	if req.Fork != "" {
		if _, err := o.fork(ctx, ForkRequest{Vault: req.Vault, Name: req.Fork}); err != nil {
			return ExecEnded{}, o.notRun(ctx, req, err)
		}
		req.Vault = req.Fork
	}
	v, err := o.vault(ctx, req.Vault)
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, err)
	}
	if !req.ReadOnly {
		done, err := o.turn(ctx, req.Vault, req.Wait, s.Exec)
		if err != nil {
			return ExecEnded{}, o.notRun(ctx, req, err)
		}
		defer done()
		o.setTurn(o.turnOf(req.Vault), req.ID)
	}
	point, unuse, err := o.use(ctx, req.Vault, MountHow{ReadOnly: req.ReadOnly, Driver: req.Driver}, req.Mountpoint)
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, err)
	}
	defer unuse()
	if err := o.flush(ctx, req.Vault); err != nil {
		return ExecEnded{}, o.notRun(ctx, req, err)
	}
	defer o.noteExec(req)()
	u, err := v.Begin(ctx, req.begin())
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, err)
	}
	x := &held{o: o, v: v, u: u, req: req, point: point}
	return x.run(ctx, s)
}

// begin is what the store is told before the command runs.
func (req *ExecRequest) begin() engine.BeginOptions {
	opts := engine.BeginOptions{ID: req.ID, Command: req.Command, Audit: req.Audit, ReadOnly: req.ReadOnly, Owner: pid()}
	opts.Audit.Vault = req.Vault
	if req.Checkpoint {
		opts.Checkpoint = &engine.CheckpointOptions{Message: "before exec " + req.ID, Auto: true}
	}
	return opts
}

// notRun notes in the audit that the command of a request did not run, because of
// err, which it returns. A caller that only has to ask again is not told of.
func (o *Owner) notRun(ctx context.Context, req ExecRequest, err error) error {
	if engine.KindOf(err) == MountMoved {
		return err
	}
	req.Audit.Vault, req.Audit.ExecID = req.Vault, req.ID
	req.Audit.Status, req.Audit.Error = notRunStatus, string(kindOf(err))
	if _, aerr := o.auditOnce(context.WithoutCancel(ctx), req.Audit); aerr != nil {
		return errors.Join(err, aerr)
	}
	return err
}

// The statuses that the owner gives an exec.
const (
	interrupted  = "interrupted" // the caller went away
	ownerLost    = "owner_lost"  // the owner died while the command ran
	notRunStatus = "error"       // the command did not run
)

// OpAuditNotRun adds an entry about a command that did not run, unless there is one
// about that exec among the newest: the owner may have got to it before it died.
var OpAuditNotRun = Op[engine.AuditEntry, engine.AuditEntry]{Name: "audit.notrun",
	Run: func(ctx context.Context, o *Owner, e engine.AuditEntry, _ Streams) (engine.AuditEntry, error) {
		return o.auditOnce(ctx, e)
	}}

// auditRecent is among how many entries that of an exec is looked for which has just
// ended or failed.
const auditRecent = 1000

func (o *Owner) auditOnce(ctx context.Context, e engine.AuditEntry) (engine.AuditEntry, error) {
	o.auditing.Lock()
	defer o.auditing.Unlock()
	recent, err := o.store.Audit(ctx, auditRecent)
	if err != nil {
		return e, err
	}
	for _, have := range recent {
		if have.ExecID == e.ExecID {
			return have, nil
		}
	}
	return o.store.AppendAudit(ctx, e)
}

// held is a vault that a command runs in, at the owner.
type held struct {
	o     *Owner
	v     *engine.Vault
	u     *engine.Unfinished
	req   ExecRequest
	point string
}

// run tells the caller that its command can run, and follows it to its end.
func (x *held) run(ctx context.Context, s Streams) (ExecEnded, error) {
	refused := x.v.Refusals()
	line, err := json.Marshal(ExecBegun{
		Vault: x.req.Vault, Mountpoint: x.point, Owner: pid(), RootBefore: x.u.Before().String(), Checkpoint: x.u.Checkpoint(),
	})
	if err == nil {
		_, err = s.out().Write(append(line, '\n'))
	}
	ctx = context.WithoutCancel(ctx)
	entry := x.u.Audit()
	if err != nil { // there is no caller, and so no command
		entry.Status, entry.Error = notRunStatus, string(kindOf(err))
		return ExecEnded{}, errors.Join(err, x.u.NotRun(ctx, entry))
	}
	outcome, left := readOutcome(s.in())
	var endErr error
	if outcome.Status == interrupted {
		endErr = x.o.w.endCommand(ExecLeft{ID: x.req.ID, Command: left})
	}
	entry.Status, entry.ExitCode, entry.DurationMS = outcome.Status, outcome.ExitCode, outcome.DurationMS
	ended, err := x.finish(ctx, entry)
	ended.Interrupted = outcome.Status == interrupted
	ended.LimitsHit = x.v.Refusals().Since(refused)
	return ended, errors.Join(endErr, err)
}

// endCommand ends what is left of the command of an exec, if this process can.
func (w *Workspace) endCommand(left ExecLeft) error {
	if w.cfg.EndCommand == nil {
		return nil
	}
	return w.cfg.EndCommand(left)
}

// execLine is a line that the caller of an exec sends; one of both is there.
type execLine struct {
	Started *ExecCommand `json:"started,omitempty"`
	Ended   *ExecOutcome `json:"ended,omitempty"`
}

// readOutcome waits until the caller says how the command ended, or goes away; then
// what it has started is left.
func readOutcome(in io.Reader) (outcome ExecOutcome, started *ExecCommand) {
	lines := bufio.NewReader(in)
	for {
		text, err := lines.ReadBytes('\n')
		var line execLine
		if err != nil || json.Unmarshal(text, &line) != nil {
			return ExecOutcome{Status: interrupted}, started
		}
		if line.Ended != nil {
			return *line.Ended, nil
		}
		started = line.Started
	}
}

// finish records what the command did. A read-only one did nothing. The record is
// made even if a mount could not be flushed, which is an error all the same: what
// the command changed may be missing from it.
func (x *held) finish(ctx context.Context, entry engine.AuditEntry) (ExecEnded, error) {
	before := x.u.Before()
	ended := ExecEnded{RootAfter: before.String(), Changes: []engine.FileChange{}}
	var flushed error
	if !x.req.ReadOnly {
		flushed = x.o.flush(ctx, x.req.Vault)
	}
	ev, err := x.u.End(ctx, entry)
	if err != nil || x.req.ReadOnly {
		return ended, errors.Join(err, flushed)
	}
	ended.RootAfter, ended.Event = ev.After.String(), ev.Seq
	ended.Changes, ended.Total, err = x.o.store.Diff(ctx, before, ev.After, &engine.DiffOptions{Limit: x.req.Limit})
	return ended, errors.Join(err, flushed)
}

// recordLost records the commands that were running when the last owner of the store
// died, after ending what is left of them. Where that cannot be written now, or what
// is damaged is in the way, they wait for the next owner; the store opens all the
// same.
func (w *Workspace) recordLost(ctx context.Context, store *engine.Store) error {
	left := store.Unfinished()
	if len(left) == 0 {
		return nil
	}
	err := store.Unwrap().Update(ctx, kv.Relaxed, func(kv.Writer) error { return nil })
	if errors.Is(err, kv.ErrReadOnly) {
		return nil
	}
	for _, u := range left {
		if !runsIn(u.ID()) {
			// What cannot be ended has lost its mount, and changes nothing any more.
			_ = w.endCommand(ExecLeft{ID: u.ID(), Owner: u.Owner()})
		}
		entry := u.Audit()
		entry.Status = ownerLost
		_, err = u.End(ctx, entry)
		switch kindOf(err) {
		case "", engine.NoSpace, engine.Corrupt:
		default:
			return fmt.Errorf("record exec %s, whose owner died: %w", u.ID(), err)
		}
	}
	return nil
}

// runsIn reports whether this process is part of the command of an exec.
func runsIn(exec string) bool { return os.Getenv(execVar) == exec }

// noteExec has the owner know of an exec until the returned function is called.
func (o *Owner) noteExec(req ExecRequest) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.execs[req.ID] = RunningExec{ID: req.ID, Vault: req.Vault, Command: req.Command}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.execs, req.ID)
	}
}

// RunningExec is an exec whose command runs.
type RunningExec struct {
	ID      string   `json:"id"`
	Vault   string   `json:"vault"`
	Command []string `json:"command"`
}

// closeUnlessRunning has the owner take no more operations, unless a command runs in
// a vault. Then it is Busy and names the execs.
func (o *Owner) closeUnlessRunning() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.execs) == 0 {
		o.closing = true
		return nil
	}
	list := slices.SortedFunc(maps.Values(o.execs), func(a, b RunningExec) int { return strings.Compare(a.ID, b.ID) })
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = fmt.Sprintf("exec %s runs in vault %s", x.ID, x.Vault)
	}
	return &engine.Error{Kind: engine.Busy, Op: "stop the owner of the store", Err: errors.New(strings.Join(names, ", ")),
		Details: map[string]any{"execs": list}}
}

// Exec is a vault held for one command.
type Exec struct {
	ExecBegun
	in   *io.PipeWriter
	done chan execDone
}

type execDone struct {
	ended ExecEnded
	err   error
}

// BeginExec holds a vault for one command and returns when it can run. An empty
// vault is the current one. End must follow.
func (w *Workspace) BeginExec(ctx context.Context, req ExecRequest) (*Exec, error) {
	name, store, err := w.Locate(req.Vault)
	if err != nil {
		return nil, err
	}
	req.Vault = name
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	x := &Exec{in: inW, done: make(chan execDone, 1)}
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
	}()
	line, err := bufio.NewReader(outR).ReadBytes('\n')
	if err != nil {
		if d := <-x.done; d.err != nil {
			err = d.err
		}
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, outR) }() // nothing more comes
	if err := json.Unmarshal(line, &x.ExecBegun); err != nil {
		return nil, errors.Join(err, inW.Close())
	}
	return x, nil
}

// Started tells the owner what was started, so that it can end that if this process
// dies.
func (x *Exec) Started(c ExecCommand) error { return x.send(execLine{Started: &c}) }

func (x *Exec) send(l execLine) error {
	line, err := json.Marshal(l)
	if err == nil {
		_, err = x.in.Write(append(line, '\n'))
	}
	return err
}

// End says how the command has ended and returns what it changed.
func (x *Exec) End(outcome ExecOutcome) (ExecEnded, error) {
	err := x.send(execLine{Ended: &outcome})
	d := <-x.done
	if d.err == nil {
		d.err = err
	}
	return d.ended, d.err
}
