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
	"sync"

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

	// Approval is used for the command, once; it has to be bound to Binding. Empty: the
	// command needs none.
	Approval string `json:"approval,omitempty"`
	Binding  string `json:"binding,omitempty"`

	// Session is the one that the command belongs to, as the exec SessionAfter has left
	// it. If another one has changed it, nothing happens and the error is SessionMoved.
	Session      string `json:"session,omitempty"`
	SessionAfter string `json:"session_after,omitempty"`

	// Looked is what the command was judged by. If the vault holds something else when its
	// turn has come, nothing happens and the error is StateMoved.
	Looked *Looked `json:"looked,omitempty"`

	// Service keeps the command running as the service of this name; see Service.
	Service string `json:"service,omitempty"`

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
	Status     string      `json:"status"`
	ExitCode   *int        `json:"exit_code"`
	DurationMS int64       `json:"duration_ms"`
	Error      engine.Kind `json:"error,omitempty"`   // what went wrong, if something did
	NotRun     bool        `json:"not_run,omitempty"` // nothing of the command was executed
	Session    *Session    `json:"session,omitempty"` // what the command leaves; nil: what there was
	// Unsent is what was printed to each stream beyond what the owner was sent, in bytes.
	Unsent map[string]int64 `json:"unsent,omitempty"`
}

// ExecBegun says where the command runs and what the state before is.
type ExecBegun struct {
	Vault      string `json:"vault"`
	Mountpoint string `json:"mountpoint"`
	Owner      int    `json:"owner"` // the process that serves the mount
	RootBefore string `json:"root_before"`
	Checkpoint string `json:"checkpoint,omitempty"`
	// Services run in the vault beside the command, which may change it meanwhile.
	Services []string `json:"services,omitempty"`
}

// ExecEnded says what the command changed.
type ExecEnded struct {
	RootAfter string              `json:"root_after"`
	Changes   []engine.FileChange `json:"changes"`
	Total     int                 `json:"total"`
	Event     uint64              `json:"event,omitempty"`      // 0: what did not run, or could change nothing, has none
	LimitsHit []engine.Limit      `json:"limits_hit,omitempty"` // of the quota, while the command ran
	Output    *engine.OutputInfo  `json:"output,omitempty"`     // what is kept of what it printed; nil: it did not run
}

// OpExec holds a vault for one command. It writes an ExecBegun as a line of JSON
// to the output stream and reads lines from the input stream: one that says what
// was started, and one with the outcome, which the caller sends when the command has
// ended. Then it records the command and tells what changed. When the caller goes
// away, it ends what the caller has started first. Where the command cannot run, the
// line says that the audit tells of it. A service does not keep the turn while it runs.
var OpExec = Op[ExecRequest, ExecEnded]{Name: "exec", Long: true, In: true, Run: runExec}

func runExec(ctx context.Context, o *Owner, req ExecRequest, s Streams) (ExecEnded, error) {
	defer o.asked(req.ID)()
	in, err := o.vault(ctx, req.Vault)
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	if req.Fork != "" {
		if _, err := o.fork(ctx, ForkRequest{Vault: req.Vault, Name: req.Fork}); err != nil {
			return ExecEnded{}, o.notRun(ctx, req, s, err)
		}
		req.Vault = req.Fork
	}
	v, err := o.vault(ctx, req.Vault)
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	svc, release, err := o.claimService(v, &req)
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	defer release()
	done := func() {}
	if !req.ReadOnly {
		if done, err = o.turn(ctx, req.Vault, req.Wait, s.Exec); err != nil {
			return ExecEnded{}, o.notRun(ctx, req, s, err)
		}
		done = sync.OnceFunc(done)
		defer done()
	}
	point, unuse, err := o.use(ctx, req.Vault, MountHow{ReadOnly: req.ReadOnly, Driver: req.Driver}, req.Mountpoint)
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	defer unuse()
	if err := o.flush(ctx, req.Vault); err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	if err := o.checkSession(ctx, v, &req); err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	if err := o.checkLooked(ctx, v, &req); err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	defer o.noteExec(req)()
	back, err := o.useApproval(ctx, in.Info().ID, &req)
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, err)
	}
	u, err := v.Begin(ctx, req.begin())
	if err != nil {
		return ExecEnded{}, o.notRun(ctx, req, s, errors.Join(err, back()))
	}
	switch {
	case svc != nil:
		svc.begin()
		done()
	case !req.ReadOnly: // from here on what others change is in the event, too
		o.setTurn(o.turnOf(req.Vault), req.ID)
	}
	x := &held{o: o, v: v, u: u, req: req, point: point, svc: svc}
	return x.run(ctx, s)
}

// begin is what the store is told before the command runs.
func (req *ExecRequest) begin() engine.BeginOptions {
	opts := engine.BeginOptions{ID: req.ID, Command: req.Command, Audit: req.Audit, ReadOnly: req.ReadOnly, Shared: req.Service != "", Owner: pid()}
	opts.Audit.Vault = req.Vault
	if req.Checkpoint {
		opts.Checkpoint = &engine.CheckpointOptions{Message: "before exec " + req.ID, Auto: true}
	}
	return opts
}

// The statuses that the owner gives an exec.
const (
	interrupted  = "interrupted" // the caller went away
	ownerLost    = "owner_lost"  // the owner died while the command ran
	notRunStatus = "error"       // the command did not run
)

// held is a vault that a command runs in, at the owner.
type held struct {
	o     *Owner
	v     *engine.Vault
	u     *engine.Unfinished
	req   ExecRequest
	point string
	svc   *service // nil for a command that is no service
}

// run tells the caller that its command can run, and follows it to its end.
func (x *held) run(ctx context.Context, s Streams) (ExecEnded, error) {
	refused := x.v.Refusals()
	err := tell(s, execBegun{ExecBegun: ExecBegun{
		Vault: x.req.Vault, Mountpoint: x.point, Owner: pid(), RootBefore: x.u.Before().String(), Checkpoint: x.u.Checkpoint(),
		Services: x.o.servicesBeside(&x.req),
	}})
	x.svc.runs(s)
	ctx = context.WithoutCancel(ctx)
	if err != nil { // there is no caller, and so no command
		ended, ferr := x.finish(ctx, ExecOutcome{Status: notRunStatus, Error: kindOf(err), NotRun: true})
		return ended, errors.Join(err, ferr)
	}
	defer x.o.notePrinting(x.req.ID, x.u.Output())()
	outcome, left := x.await(ctx, s)
	var endErr error
	if outcome.Status == interrupted {
		endErr = x.o.w.endCommand(ExecLeft{ID: x.req.ID, Command: left})
	}
	ended, err := x.finish(ctx, outcome)
	err = errors.Join(err, x.o.serviceEnded(ctx, x.svc, &outcome))
	ended.LimitsHit = x.v.Refusals().Since(refused)
	return ended, errors.Join(endErr, err)
}

// await waits for the end of the command, as readOutcome does. While a service runs the
// owner may tend the store.
func (x *held) await(ctx context.Context, s Streams) (ExecOutcome, *ExecCommand) {
	if x.svc != nil {
		x.o.addHolding(1)
		defer x.o.addHolding(-1)
	}
	return readOutcome(ctx, s.in(), x.u.Output(), func(c ExecCommand) { x.o.serviceStarted(ctx, x.svc, c) })
}

// execBegun is the line that the owner writes when it is known whether the command can
// run.
type execBegun struct {
	ExecBegun
	Noted bool `json:"noted,omitempty"` // it cannot; the audit tells of it
}

func tell(s Streams, begun execBegun) error {
	line, err := json.Marshal(begun)
	if err == nil {
		_, err = s.out().Write(append(line, '\n'))
	}
	return err
}

// endCommand ends what is left of the command of an exec, if this process can.
func (w *Workspace) endCommand(left ExecLeft) error {
	if w.cfg.EndCommand == nil {
		return nil
	}
	return w.cfg.EndCommand(left)
}

// execLine is a line that the caller of an exec sends; one of them is there.
type execLine struct {
	Started *ExecCommand `json:"started,omitempty"`
	Printed *execPrinted `json:"printed,omitempty"`
	Ended   *ExecOutcome `json:"ended,omitempty"`
}

// execPrinted says that so many bytes follow the line, which the command has printed.
type execPrinted struct {
	Stream string `json:"stream"`
	Bytes  int    `json:"bytes"`
}

// maxPrinted bounds the bytes that may follow a line.
const maxPrinted = 1 << 20

// readOutcome keeps what the command prints until the caller says how it ended, or
// goes away; then what it has started is left. told is told of that when it starts.
func readOutcome(ctx context.Context, in io.Reader, out *engine.Output, told func(ExecCommand)) (outcome ExecOutcome, started *ExecCommand) {
	lines := bufio.NewReaderSize(in, 64<<10)
	var buf []byte
	for {
		text, err := lines.ReadBytes('\n')
		var line execLine
		if err != nil || json.Unmarshal(text, &line) != nil {
			return ExecOutcome{Status: interrupted}, started
		}
		switch p := line.Printed; {
		case line.Ended != nil:
			for stream, n := range line.Ended.Unsent {
				out.Count(stream, n)
			}
			return *line.Ended, nil
		case p != nil && p.Bytes >= 0 && p.Bytes <= maxPrinted:
			buf = slices.Grow(buf[:0], p.Bytes)[:p.Bytes]
			n, err := io.ReadFull(lines, buf)
			out.Write(ctx, p.Stream, buf[:n])
			if err != nil {
				return ExecOutcome{Status: interrupted}, started
			}
		case line.Started != nil:
			started = line.Started
			told(*started)
		default:
			return ExecOutcome{Status: interrupted}, started
		}
	}
}

// finish records what the command did. A read-only one did nothing. The record is
// made even if a mount could not be flushed, which is an error all the same: what
// the command changed may be missing from it.
func (x *held) finish(ctx context.Context, outcome ExecOutcome) (ExecEnded, error) {
	before := x.u.Before()
	ended := ExecEnded{RootAfter: before.String(), Changes: []engine.FileChange{}}
	entry := x.u.Audit()
	entry.Status, entry.ExitCode, entry.DurationMS, entry.Error = outcome.Status, outcome.ExitCode, outcome.DurationMS, string(outcome.Error)
	flushed := x.keepSession(ctx, outcome.Session)
	if !x.req.ReadOnly {
		flushed = errors.Join(flushed, x.o.flush(ctx, x.req.Vault))
	}
	if !x.req.ReadOnly && x.svc == nil {
		x.o.setTurn(x.o.turnOf(x.req.Vault), "") // what others change from here on may be too late for the event
	}
	if outcome.NotRun && (x.svc != nil || x.unchanged(ctx)) {
		return ended, errors.Join(x.u.NotRun(ctx, entry), flushed)
	}
	ev, err := x.u.End(ctx, entry)
	info := x.u.Output().Info()
	ended.Output = &info
	if err != nil || x.req.ReadOnly || x.svc != nil {
		return ended, errors.Join(err, flushed)
	}
	ended.RootAfter, ended.Event = ev.After.String(), ev.Seq
	ended.Changes, ended.Total, err = x.o.store.Diff(ctx, before, ev.After, &engine.DiffOptions{Limit: x.req.Limit})
	return ended, errors.Join(err, flushed)
}

// unchanged reports whether nothing has changed since the command was to begin. What
// others changed meanwhile needs the event, whether the command ran or not.
func (x *held) unchanged(ctx context.Context) bool {
	if x.req.ReadOnly {
		return true
	}
	now, err := x.v.Commit(ctx, false)
	return err == nil && now.Same(x.u.Before())
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
