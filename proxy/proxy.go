package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy/run"
	"github.com/agentvfs/avfs/workspace"
)

// Checkpoint says when the state before a command is kept under a checkpoint. The
// timeline keeps it in any case.
type Checkpoint string

// When to keep a checkpoint.
const (
	CheckpointAuto   Checkpoint = "auto" // when the policy says so
	CheckpointAlways Checkpoint = "always"
	CheckpointNever  Checkpoint = "never"
)

// DefaultTimeout ends a command that nobody gave a timeout.
const DefaultTimeout = 300 * time.Second

// DefaultChanges is how many changed files an envelope lists.
const DefaultChanges = 1000

// Request is one command to run. Exactly one of Argv and Shell is set.
type Request struct {
	Vault      string // empty: the current one
	Fork       string // make this fork of Vault and run in it
	Argv       []string
	Shell      string // a script for bash, or for sh where there is none
	Cwd        string // in the vault; empty is the top
	Env        []string
	Secrets    []Secret      // variables whose values nobody but the command sees
	Stdin      io.Reader     // nil: empty
	Timeout    time.Duration // 0: DefaultTimeout, none for a service; negative: none
	Checkpoint Checkpoint    // empty: CheckpointAuto
	ReadOnly   bool          // every write fails with EROFS
	Driver     string        // to mount with; empty: any
	NoWait     bool          // fail with VaultBusy while another command runs in the vault
	Combined   bool          // keep both streams in one, in true order
	DryRun     bool          // decide, and do nothing
	Limits     run.Limits    // what the command may use
	Session    string        // begin where the last command of this name has ended, with what it exported
	Approval   string        // use this approval, if one is needed; empty: the one that fits
	Service    string        // keep the command running as the service of this name; its changes are not told
	Changes    int           // most changed files to list; 0: DefaultChanges, negative: all

	// Terminal says that the command gets a terminal, at which a person types.
	Terminal bool
	// Wrap gives the command line to start instead, which has to become the one that was
	// decided about and is told of; may be nil.
	Wrap func([]string) []string

	Stdout, Stderr func(p []byte)   // live output; may be nil
	Events         func(Event)      // told of everything as it happens, one at a time; may be nil
	Interrupt      <-chan os.Signal // the first is passed on, the second kills

	looked   *workspace.Looked // what the decision was made by; nil: by the command alone
	forks    int               // of the fan-out that the request is; 0: it is none
	granted  *ApprovalDoc      // the approval that the fan-out has taken which the command is part of
	binding  string            // what an approval has to be bound to
	chosen   string            // the directory that the caller has asked for
	session  *session          // nil without
	revealed map[string]string // the values of the secrets, once the command may run
}

// Proxy runs commands.
type Proxy struct {
	Workspace *workspace.Workspace
	Policy    *policy.Policy
	// Sole says that this process does nothing but run one command at a time, so
	// that every process it adopts meanwhile is the command's (see package run).
	Sole bool
	// Ask is asked for a command that needs approval, where the policy's approver has
	// not answered; may be nil.
	Ask func(context.Context, workspace.Approval) Verdict
	// Running is told of a service when it has started, with what is known by then; may
	// be nil.
	Running func(*Envelope)
	// Observe is told of every state that an execution enters; may be nil.
	Observe func(State)
}

// State is a step of an execution.
type State string

// The states, in order.
const (
	Validating       State = "validating"
	Deciding         State = "deciding"
	Denied           State = "denied"
	ApprovalRequired State = "approval_required"
	Preparing        State = "preparing"
	Executing        State = "executing"
	Reporting        State = "reporting"
	Completed        State = "completed"
	Failed           State = "failed"
)

func (p *Proxy) enter(s State) {
	if p.Observe != nil {
		p.Observe(s)
	}
}

// Exec runs one command. Whatever happens, the envelope tells it. Cancelling ctx
// interrupts the command. After that, or after an interruption, a follower that does not
// take what it is told within a second is told no more.
func (p *Proxy) Exec(ctx context.Context, req Request) *Envelope {
	env := newEnvelope(ulid.Make().String(), &req)
	tell := newTeller(env.ID, req.Events)
	p.exec(ctx, env, req, tell)
	if tell.relay.drained(ctx, req.Interrupt) {
		tell.ended(env)
	}
	return env
}

func (p *Proxy) exec(ctx context.Context, env *Envelope, req Request, tell *teller) *Envelope {
	p.enter(Validating)
	defer func() { env.redactEnd(&req) }() // it is revealed meanwhile
	if err := p.validate(&req); err != nil {
		return p.notRun(ctx, env, &req, err, workspace.OpAuditAppend)
	}
	env.Vault = req.Vault
	hold := p.prepare(ctx, env, &req)
	if hold == nil {
		return env
	}
	if env.Approval != nil {
		env.Approval.State = workspace.ApprovalUsed
	}
	env.Vault, env.Checkpoint, env.RootBefore = hold.Vault, hold.Checkpoint, hold.RootBefore
	env.beside(hold.Services, &req)
	p.enter(Executing)
	runErr := p.run(ctx, env, &req, hold, tell)
	if runErr != nil {
		env.fail(runErr)
	}
	p.enter(Reporting)
	err := errors.Join(runErr, report(env, hold))
	env.hitFileSize(req.Limits.FileBytes)
	if err != nil {
		return p.failed(env, err)
	}
	p.enter(Completed)
	return env
}

// maxMoves is how often the place where a command is to run, or what it was judged by,
// may change while it is prepared.
const maxMoves = 10

// maxTurns is how many other commands of its session may be faster than one: each time
// one of them has made its way, so that there are no more than wait.
const maxTurns = 1000

// prepare decides and has the vault held, if the command may run. It decides anew
// when the vault turns out to be at another place than the decision was made for, or to
// hold something else there than it was made by.
// It is nil if the command does not run; the envelope says why.
func (p *Proxy) prepare(ctx context.Context, env *Envelope, req *Request) *workspace.Exec {
	place := p.place(ctx, req)
	for moves, turns := 0, 0; ; moves++ {
		if err := p.loadSession(ctx, env, req, req.chosen); err != nil {
			p.notRun(ctx, env, req, err, workspace.OpAuditAppend)
			return nil
		}
		env.Command.Cwd = req.Cwd
		if req.binding == "" || req.session != nil {
			req.binding = p.binding(req)
		}
		if !p.decide(ctx, env, req, place) {
			return nil
		}
		p.enter(Preparing)
		if err := req.reveal(ctx); err != nil {
			p.notRun(ctx, env, req, err, workspace.OpAuditAppend)
			return nil
		}
		env.redact(req)
		hold, err := p.Workspace.BeginExec(ctx, beginRequest(env, req, place))
		if err == nil {
			return hold
		}
		if noted := (*workspace.NotedError)(nil); errors.As(err, &noted) {
			p.failed(env, noted.Err)
			if engine.KindOf(noted.Err) == workspace.ApprovalInvalid { // another command was faster
				env.Status = StatusApprovalRequired
			}
			return nil
		}
		if engine.KindOf(err) == workspace.SessionMoved && turns < maxTurns {
			moves, turns = moves-1, turns+1
			continue
		}
		moved, ok := movedTo(err, place)
		if !ok || moves == maxMoves {
			p.notRun(ctx, env, req, err, workspace.OpAuditNotRun)
			return nil
		}
		place = moved
		if req.Fork != "" { // which is made by now
			req.Vault, req.Fork = req.Fork, ""
		}
	}
}

// place is where the command would run now.
func (p *Proxy) place(ctx context.Context, req *Request) string {
	if req.Fork != "" {
		return p.Workspace.MountPoint(req.Fork, req.ReadOnly)
	}
	return p.Workspace.MountFor(ctx, req.Vault, workspace.MountHow{ReadOnly: req.ReadOnly, Driver: req.Driver})
}

// movedTo is the place that the owner would run the command in, if err says that
// something is not as it was at the decision, which was made for a place.
func movedTo(err error, was string) (place string, ok bool) {
	var e *engine.Error
	if !errors.As(err, &e) {
		return "", false
	}
	if e.Kind == workspace.StateMoved {
		return was, true
	}
	if e.Kind != workspace.MountMoved {
		return "", false
	}
	place, ok = e.Details["mountpoint"].(string)
	return place, ok
}

// decide asks the policy and reports whether the command is to run.
func (p *Proxy) decide(ctx context.Context, env *Envelope, req *Request, place string) bool {
	p.enter(Deciding)
	facts := NewFacts(ctx, p.Workspace, req.Vault, place)
	q := question(req, place)
	q.Facts = facts
	env.Decision, env.policy = p.Policy.Decide(q), p.Policy.Digest()
	req.looked = facts.looked
	end := Completed
	switch {
	case facts.Err() != nil:
		p.notRun(ctx, env, req, facts.Err(), workspace.OpAuditAppend)
		return false
	case env.Decision.Action == policy.Deny:
		env.Status, end = StatusDenied, Denied
		p.refused(ctx, env, req)
	case !env.Decision.Action.Allows():
		return p.needsApproval(ctx, env, req)
	case req.DryRun:
		env.Status = StatusCompleted
	default:
		return true
	}
	p.enter(end)
	return false
}

// beginRequest asks for the vault.
func beginRequest(env *Envelope, req *Request, place string) workspace.ExecRequest {
	return workspace.ExecRequest{
		ID: env.ID, Vault: req.Vault, Fork: req.Fork, Command: newRedactor(req.revealed).texts(commandLine(req)),
		Checkpoint: req.wantsCheckpoint(env.Decision.Action), ReadOnly: req.ReadOnly, Driver: req.Driver, Wait: !req.NoWait, Limit: req.Changes,
		Mountpoint: place, Audit: auditEntry(env), Approval: env.toTake(req), Binding: req.binding,
		Session: req.Session, SessionAfter: req.session.after(), Service: req.Service, Looked: req.looked,
	}
}

// auditEntry is what the audit says of an execution, as far as it is known.
func auditEntry(env *Envelope) engine.AuditEntry {
	e := engine.AuditEntry{
		Kind: engine.AuditExec, Vault: env.Vault, ExecID: env.ID, Argv: env.Command.Argv, Shell: env.Command.Shell, Cwd: env.Command.Cwd,
		Action: string(env.Decision.Action), Rule: env.Decision.Rule, Policy: env.policy, Status: string(env.Status),
	}
	if env.Approval != nil {
		e.Approval, e.By = env.Approval.ID, env.Approval.By
	}
	return e
}

// refused notes a command that did not run in the audit. It stays refused where
// that fails; the envelope says so.
func (p *Proxy) refused(ctx context.Context, env *Envelope, req *Request) {
	if req.DryRun {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditWait) // also of a caller that gave up while it waited for an approval
	defer cancel()
	_, err := workspace.CallVault(ctx, p.Workspace, req.Vault, workspace.OpAuditAppend, func(string) engine.AuditEntry {
		return auditEntry(env)
	}, workspace.Streams{})
	env.Error = workspace.NewFault(err)
}

// NotReady is the end of an execution for which there is no policy, because of err.
// Without a Workspace no audit tells of it.
func (p *Proxy) NotReady(ctx context.Context, req Request, err error) *Envelope {
	env := newEnvelope(ulid.Make().String(), &req)
	p.notRun(ctx, env, &req, err, workspace.OpAuditAppend)
	newTeller(env.ID, req.Events).ended(env)
	return env
}

// auditWait is how long the audit may take of a command that did not run, of which
// the caller may have given up.
const auditWait = 10 * time.Second

// notRun is the end of an execution whose command did not run, because of err. The
// audit tells of it where there is a vault whose store can be used: by note, which
// looks first whether it does already if the owner may have been asked for the command.
func (p *Proxy) notRun(ctx context.Context, env *Envelope, req *Request, err error, note workspace.Op[engine.AuditEntry, engine.AuditEntry]) *Envelope {
	p.failed(env, err)
	if p.Workspace == nil || req.DryRun || env.Error.Kind == engine.Locked {
		return env
	}
	vault, _, lerr := p.Workspace.Locate(req.Vault)
	if lerr != nil {
		return env // err says so, or there is no vault to tell of
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditWait)
	defer cancel()
	entry := auditEntry(env)
	entry.Vault, entry.Error = vault, string(env.Error.Kind)
	_, aerr := workspace.CallVault(ctx, p.Workspace, vault, note, func(string) engine.AuditEntry { return entry }, workspace.Streams{})
	if aerr != nil && workspace.NewFault(aerr).Kind != env.Error.Kind {
		env.fail(errors.Join(err, aerr))
	}
	return env
}

func (p *Proxy) failed(env *Envelope, err error) *Envelope {
	env.fail(err)
	p.enter(Failed)
	return env
}

// validate completes the request and rejects what makes no sense.
func (p *Proxy) validate(req *Request) error {
	invalid := func(format string, args ...any) error {
		return &engine.Error{Kind: engine.Invalid, Op: "exec", Err: fmt.Errorf(format, args...)}
	}
	if (len(req.Argv) == 0) == (req.Shell == "") {
		return invalid("give a command or a shell script, and not both")
	}
	if len(req.Argv) > 0 && req.Argv[0] == "" {
		return invalid("the name of the program is empty")
	}
	for _, s := range append([]string{req.Shell, req.Cwd}, req.Argv...) {
		if strings.IndexByte(s, 0) >= 0 {
			return invalid("a command has no NUL bytes")
		}
	}
	for _, s := range req.Secrets {
		if err := s.check(); err != nil {
			return invalid("%w", err)
		}
	}
	switch req.Checkpoint {
	case "":
		req.Checkpoint = CheckpointAuto
	case CheckpointAuto, CheckpointAlways, CheckpointNever:
	default:
		return invalid("checkpoint is auto, always or never, not %q", req.Checkpoint)
	}
	if err := req.checkService(); err != nil {
		return err
	}
	if req.Timeout == 0 && req.Service == "" {
		req.Timeout = DefaultTimeout
	}
	if req.Timeout < 0 {
		req.Timeout = 0
	}
	if req.Changes == 0 {
		req.Changes = DefaultChanges
	}
	req.Changes = max(req.Changes, 0)
	req.chosen = req.Cwd
	req.Cwd = path.Clean("/" + req.Cwd)
	if req.Session != "" {
		if err := workspace.CheckSessionName(req.Session); err != nil {
			return err
		}
	}
	name, _, err := p.Workspace.Locate(req.Vault)
	req.Vault = name
	if err == nil && req.Fork != "" {
		err = engine.CheckVaultName(req.Fork)
	}
	return err
}

// question is the request as the policy sees it, for a vault at place.
func question(req *Request, place string) policy.Command {
	extra := map[string]string{}
	// What the session takes away stays unknown to the policy, which is the stricter.
	for _, kv := range append(req.session.variables(), req.Env...) {
		if name, value, ok := strings.Cut(kv, "="); ok {
			extra[name] = value
		}
	}
	for _, s := range req.Secrets {
		extra[s.Name] = redacted
	}
	return policy.Command{
		Argv: req.Argv, Shell: req.Shell, Cwd: req.Cwd, Env: extra, Mount: place, Terminal: req.Terminal,
	}
}

func (req *Request) wantsCheckpoint(a policy.Action) bool {
	a = allowsCheckpoint(a)
	switch req.Checkpoint {
	case CheckpointAlways:
		return true
	case CheckpointNever:
		return false
	}
	return a == policy.AllowWithCheckpoint && !req.ReadOnly
}

func commandLine(req *Request) []string {
	if req.Shell != "" {
		return []string{"sh", "-c", req.Shell}
	}
	return req.Argv
}

// run runs the command in the mounted vault.
func (p *Proxy) run(ctx context.Context, env *Envelope, req *Request, hold *workspace.Exec, tell *teller) error {
	dir, err := insideDir(hold.Mountpoint, req.Cwd)
	if err != nil {
		return err
	}
	argv := req.Argv
	if script := req.Shell; script != "" {
		if req.session != nil {
			if script, err = req.session.script(p.Workspace, req); err != nil {
				return err
			}
		}
		argv = []string{shell(), "-c", script}
	}
	if req.Wrap != nil {
		argv = req.Wrap(argv)
	}
	h, err := newHome(p.Workspace, hold.Vault, os.Environ(), req.variables())
	if err != nil {
		return err
	}
	env.useHome(h)
	base := h.base(os.Environ())
	given := environment(base, req.variables(), hold.Vault, env.ID, dir)
	vars := environment(req.session.environ(base), append(req.session.variables(), req.variables()...), hold.Vault, env.ID, dir)
	env.Isolation.Applied = append(env.Isolation.Applied, "session", "environment allow-list")
	if req.ReadOnly {
		env.Isolation.Applied = append(env.Isolation.Applied, "read-only mount")
	}
	interrupt, stopped := req.interrupts(hold)
	res, err := run.Run(ctx, run.Spec{
		Argv: argv, Dir: dir, Env: vars, Stdin: req.Stdin,
		Timeout: req.Timeout, Stdout: both(req.Stdout, tell, outKind(req)), Stderr: both(req.Stderr, tell, EventStderr), Ending: tell.relay.release, Combined: req.Combined, Interrupt: interrupt,
		Filter: req.filter(), ShortNames: len(req.revealed) > 0, Limits: req.Limits,
		Sink: func(s run.Stream, p []byte) error { return hold.Output(s.String(), p) },
		Sole: p.Sole, Elsewhere: hold.Owner != os.Getpid(), Abort: hold.Lost(),
		Started: func(c run.Command) {
			// An owner that cannot be told has ended; the end of the hold says so.
			_ = hold.Started(workspace.ExecCommand{PID: c.PID, Start: c.Start, Cgroup: c.Cgroup})
			tell.relay.put(0, func() { tell.send(Event{Kind: EventStarted, Vault: hold.Vault, PID: c.PID}) })
			p.running(env, req, c.PID)
		},
	})
	wasStopped := stopped()
	if req.session != nil {
		next, serr := req.session.ended(req, hold.Mountpoint, given)
		err = errors.Join(err, serr)
		env.session = next
	}
	if err != nil {
		return err
	}
	env.ran(res)
	if wasStopped && env.Status == StatusInterrupted {
		env.Status = StatusStopped
	}
	return nil
}

// outKind is what the first stream of a command is told as.
func outKind(req *Request) EventKind {
	if req.Combined {
		return EventCombined
	}
	return EventStdout
}

// both passes output on to live, and tells it, through the relay.
func both(live func([]byte), tell *teller, kind EventKind) func([]byte) {
	if tell.tell == nil {
		return tell.relay.writer(live)
	}
	return tell.relay.writer(func(p []byte) {
		if live != nil {
			live(p)
		}
		tell.printed(kind, p)
	})
}

// report ends the hold on the vault and notes what changed. Until here only a command
// that did not run is an error: run fails before it executes anything.
func report(env *Envelope, hold *workspace.Exec) error {
	outcome := workspace.ExecOutcome{
		Session: env.session,
		Status:  string(env.Status), ExitCode: env.ExitCode, DurationMS: env.DurationMS,
		NotRun: env.Status == StatusError || env.Status == StatusFailedToStart,
	}
	if env.Error != nil {
		outcome.Error = env.Error.Kind
	}
	ended, err := hold.End(outcome)
	env.RootAfter = ended.RootAfter
	if ended.Changes != nil {
		env.ChangedFiles = ended.Changes
	}
	env.ChangedTotal = ended.Total
	if ended.Output != nil {
		env.OutputKept = &KeptOutput{Streams: ended.Output.Streams, Cut: ended.Output.Cut}
	}
	for _, l := range ended.LimitsHit {
		env.LimitsHit = append(env.LimitsHit, string(l))
	}
	return err
}

// hitFileSize notes a limit on the size of a file that a child has reached: the file ends
// just there, and nothing else tells.
func (env *Envelope) hitFileSize(limit int64) {
	if limit <= 0 || slices.Contains(env.LimitsHit, run.LimitFileSize) {
		return
	}
	for i := range env.ChangedFiles {
		if size := env.ChangedFiles[i].SizeAfter; size != nil && *size == limit {
			env.LimitsHit = append(env.LimitsHit, run.LimitFileSize)
			return
		}
	}
}

// insideDir is the directory cwd below the mount point. Links are resolved, and
// must not lead out.
func insideDir(mountpoint, cwd string) (string, error) {
	if !filepath.IsAbs(mountpoint) { // an empty one would be the caller's own directory
		return "", &engine.Error{Kind: engine.Internal, Op: "working directory", Err: fmt.Errorf("the mount point %q is no absolute path", mountpoint)}
	}
	top, err := filepath.EvalSymlinks(mountpoint)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(top, filepath.FromSlash(cwd)))
	if err != nil {
		return "", &engine.Error{Kind: engine.NotFound, Op: "working directory", Path: cwd, Err: err}
	}
	if dir != top && !strings.HasPrefix(dir, top+string(filepath.Separator)) {
		return "", &engine.Error{Kind: engine.Invalid, Op: "working directory", Path: cwd, Err: errors.New("leads out of the vault")}
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &engine.Error{Kind: engine.NotDirectory, Op: "working directory", Path: cwd}
	}
	return dir, err
}

// shell is the program that runs shell scripts.
func shell() string {
	for _, sh := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if _, err := os.Stat(sh); err == nil {
			return sh
		}
	}
	return "/bin/sh"
}
