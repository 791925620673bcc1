package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

type proxyCmds struct {
	Exec execCmd `cmd:"" help:"Run a command in a vault and report what it changed."`
}

type execCmd struct {
	Fork       string   `help:"Make this fork of the vault and run in it." placeholder:"NAME"`
	Cwd        string   `help:"Working directory in the vault; by default the top, or the session's." placeholder:"DIR"`
	Session    string   `help:"Begin where the last command of this session ended, with what it exported; the directory and the variables that a --shell script leaves are kept." placeholder:"NAME"`
	Timeout    string   `help:"End the command after this time; 0 is never, 300s without it, and never for a service." placeholder:"DURATION"`
	Readonly   bool     `help:"Every write fails."`
	Checkpoint string   `help:"Keep the state before under a checkpoint: auto (as the policy says), always or never." enum:"auto,always,never" default:"auto"`
	Shell      string   `help:"Run this script instead of a command." placeholder:"SCRIPT"`
	File       string   `short:"f" help:"Run the commands of this file, each by itself, until one fails; - is standard input." placeholder:"FILE"`
	KeepGoing  bool     `help:"With --file, go on behind a command that fails."`
	Stdin      bool     `help:"Pass standard input on; without it the command's input is empty."`
	Env        []string `help:"Set a variable; without a value it is taken from our environment." placeholder:"NAME[=VALUE]" sep:"none"`
	Events     bool     `help:"Print what happens as it happens, one JSON document a line; the last one holds the envelope."`
	EnvFile    []string `help:"Set the variables in this file, NAME=VALUE a line." type:"path" placeholder:"FILE" sep:"none"`
	Secret     []string `help:"Set a variable that only the command sees: its value is in a file, or printed by a script, and replaced wherever the command prints it." placeholder:"NAME=file:PATH|cmd:SCRIPT" sep:"none"`
	Combined   bool     `help:"Keep both output streams in one, in their true order."`
	Memory     string   `help:"What the command may use of memory, such as 512M." placeholder:"SIZE"`
	Pids       int      `help:"How many processes and threads it may have." placeholder:"N"`
	CPU        float64  `name:"cpu" help:"How many processors it may use, such as 1.5." placeholder:"N"`
	FileSize   string   `help:"How large a file it writes may be, such as 1G." placeholder:"SIZE"`
	NoWait     bool     `help:"Fail while another command runs in the vault."`
	Approval   string   `help:"Use this approval; without it the one that fits is used." placeholder:"ID"`
	DryRun     bool     `help:"Decide by policy and run nothing."`
	Changes    int      `help:"Report at most so many changed files; -1 is all." default:"1000" placeholder:"N"`
	driverFlag
	KeepRunning keepRunning `help:"Start a service, which goes on when this returns, and call it NAME, or else by the name of the program; see: avfs services." placeholder:"NAME"`
	Command     []string    `arg:"" optional:"" help:"The command, behind --."`
}

func (c *execCmd) run(a *app) error {
	if c.File != "" {
		return c.runFile(a)
	}
	req, err := c.request(a)
	if err != nil {
		return err
	}
	if req.Service != "" && !req.DryRun {
		return a.execService(req, c.Fork)
	}
	ctx, signals := a.relay()
	defer signals.close()
	req.Events = a.events
	var lines *eventLines
	if c.Events {
		a.surviveBrokenPipe()
		lines = &eventLines{w: a.stdout, broken: func() { signals.pass(brokenPipe) }}
		req.Events = lines.tell
	}
	w, rules, err := a.rules(c.Fork)
	if err != nil {
		env := (&proxy.Proxy{Workspace: w}).NotReady(a.ctx, req, err)
		if lines != nil {
			return a.endExec(env, lines.fail)
		}
		return a.reportExec(env, nil)
	}
	req.Interrupt = signals.forward
	p := &proxy.Proxy{Workspace: w, Policy: rules, Sole: !a.inner, Observe: func(s proxy.State) {
		a.trace("exec: %s", s)
		if s == proxy.Executing {
			signals.started()
		}
	}}
	if !c.Events && !c.Stdin {
		p.Ask = a.prompt()
	}
	if lines != nil {
		env := p.Exec(ctx, req)
		signals.close()
		return a.endExec(env, lines.fail)
	}
	if a.flags.JSON {
		env := p.Exec(ctx, req)
		signals.close()
		return a.reportExec(env, nil)
	}
	a.surviveBrokenPipe()
	out := &live{out: a.stdout, err: a.stderr, broken: func() { signals.pass(brokenPipe) }}
	req.Stdout, req.Stderr = out.stdout, out.stderr
	env := p.Exec(ctx, req)
	signals.close()
	return a.reportExec(env, out.fail)
}

// rules opens the workspace and reads the policy of the vault, or of the fork that is
// to be made of it.
func (a *app) rules(fork string) (*workspace.Workspace, *policy.Policy, error) {
	w, err := a.workspace()
	if err != nil {
		return nil, nil, err
	}
	vault, _, err := w.Locate(a.flags.Vault)
	if err != nil {
		vault, fork = "", "" // the execution says so
	}
	rules, err := loadPolicy(a.ctx, w, vault, fork)
	return w, rules, err
}

// reportExec tells how an execution went and gives the exit code. output says why
// what the command printed could not be passed on.
func (a *app) reportExec(env *proxy.Envelope, output error) error {
	if a.flags.JSON {
		return a.endExec(env, a.printJSON(env))
	}
	a.summarise(env)
	return a.endExec(env, output)
}

// endExec gives the exit code. Output that could not be written is a failure of
// ours.
func (a *app) endExec(env *proxy.Envelope, output error) error {
	if output != nil {
		a.warn("%v", output)
		return &ended{exitExecError}
	}
	return &ended{exitOfExec(env)}
}

// request turns flags into a request.
func (c *execCmd) request(a *app) (proxy.Request, error) {
	req := proxy.Request{
		Vault: a.flags.Vault, Fork: c.Fork, Argv: c.Command, Shell: c.Shell, Cwd: c.Cwd, Checkpoint: proxy.Checkpoint(c.Checkpoint),
		ReadOnly: c.Readonly, Driver: c.Driver, NoWait: c.NoWait, Combined: c.Combined, DryRun: c.DryRun, Approval: c.Approval, Session: c.Session, Changes: c.Changes,
	}
	if err := c.check(); err != nil {
		return req, err
	}
	if c.Events && a.flags.JSON {
		return req, usageError("--events prints many documents and --json one; give one of them")
	}
	if (len(c.Command) == 0) == (c.Shell == "") {
		return req, usageError("give a command behind --, or a script with --shell: avfs exec -- ls -l")
	}
	if err := c.service(&req); err != nil {
		return req, err
	}
	timeout, err := time.ParseDuration(c.Timeout)
	switch {
	case c.Timeout == "":
	case c.Timeout == "0":
		req.Timeout = -1
	case err != nil || timeout < 0:
		return req, usageError("a timeout is a duration such as 90s or 5m, not %q", c.Timeout)
	case timeout == 0:
		req.Timeout = -1
	default:
		req.Timeout = timeout
	}
	if c.Changes == 0 {
		return req, usageError("--changes is a number above 0, or -1 for all")
	}
	if err := c.environ(a, &req); err != nil {
		return req, err
	}
	if err := c.limits(&req); err != nil {
		return req, err
	}
	if c.Stdin {
		req.Stdin = a.stdin
	}
	return req, nil
}

// limits turns the flags about resources into those of a request.
func (c *execCmd) limits(req *proxy.Request) error {
	for _, f := range []struct {
		text string
		to   *int64
	}{{c.Memory, &req.Limits.MemoryBytes}, {c.FileSize, &req.Limits.FileBytes}} {
		if f.text == "" {
			continue
		}
		n, err := parseLimit(f.text, sizeSuffixes)
		if err != nil || n <= 0 {
			return usageError("a limit is a size such as 512M or 1G, not %q", f.text)
		}
		*f.to = n
	}
	if c.Pids < 0 || c.CPU < 0 {
		return usageError("--pids and --cpu are above 0")
	}
	req.Limits.Processes, req.Limits.CPUs = c.Pids, c.CPU
	return nil
}

// summarise tells people how an execution went, on standard error.
func (a *app) summarise(env *proxy.Envelope) {
	for _, n := range env.Notes {
		a.note("avfs: %s", safe(n))
	}
	if env.Error != nil {
		a.warn("%s", env.Error.Message)
		if hint := a.hint(env.Error, env.Error.Err()); hint != "" {
			fmt.Fprintln(a.stderr, "hint:", hint)
		}
	}
	switch env.Status {
	case proxy.StatusDenied, proxy.StatusApprovalRequired:
		a.warn("%s: %s (rule %s)", strings.ReplaceAll(string(env.Status), "_", " "), env.Decision.Reason, env.Decision.Rule)
		a.approvalHint(env)
		return
	case proxy.StatusError:
		return
	}
	if a.flags.Quiet {
		return
	}
	fmt.Fprintf(a.stderr, "avfs: %s\n", execLine(env))
	changeLines(a.stderr, env.ChangedFiles, shownChanges, env.ChangedTotal)
}

// approvalHint says what can be done about a command that needs approval.
func (a *app) approvalHint(env *proxy.Envelope) {
	switch ap := env.Approval; {
	case ap == nil:
	case ap.State == workspace.ApprovalDenied:
		a.warn("approval %s was denied by %s %s", ap.ID, safe(ap.By), safe(ap.Message))
	case ap.State == workspace.ApprovalPending:
		vault := ""
		if a.flags.Vault != "" {
			vault = "--vault " + a.flags.Vault + " "
		}
		fmt.Fprintf(a.stderr, "hint: approve it with: avfs %sapprovals approve %s; then run the command again\n", vault, ap.ID)
	default:
		fmt.Fprintf(a.stderr, "hint: approval %s is %s; run the command again without --approval to ask for a new one\n", ap.ID, ap.State)
	}
}

// execLine is the one line about an execution.
func execLine(env *proxy.Envelope) string {
	parts := []string{strings.ReplaceAll(string(env.Status), "_", " ")}
	if env.DryRun && env.Status == proxy.StatusCompleted {
		parts[0] = "nothing was run"
	}
	if env.ExitCode != nil && *env.ExitCode != 0 {
		parts[0] += fmt.Sprintf(" with exit code %d", *env.ExitCode)
	}
	if env.Status == proxy.StatusRunning {
		parts[0] += fmt.Sprintf(" as service %s, pid %d", env.Service.Name, env.Service.PID)
	}
	if env.Signal != nil {
		parts[0] += " by " + *env.Signal
	}
	if env.ExitCode != nil {
		parts = append(parts, (time.Duration(env.DurationMS) * time.Millisecond).String())
	}
	if env.Decision.Action != policy.Allow {
		parts = append(parts, string(env.Decision.Action)+" by rule "+env.Decision.Rule)
	}
	if env.Checkpoint != "" {
		parts = append(parts, "checkpoint "+env.Checkpoint)
	}
	if env.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("%d changed", env.ChangedTotal))
	}
	return strings.Join(parts, ", ")
}

// live passes a command's output on as it comes.
type live struct {
	out, err io.Writer
	broken   func() // called once, when nobody reads the output any more
	gone     bool   // of stdout; only its goroutine uses it
	fail     error  // why output could not be passed on; a reader that has gone is no failure
}

func (l *live) stdout(p []byte) {
	if l.gone {
		return
	}
	if _, err := l.out.Write(p); err != nil {
		l.gone = true
		if !isBrokenPipe(err) {
			l.fail = err
		}
		l.broken()
	}
}

func (l *live) stderr(p []byte) { _, _ = l.err.Write(p) } // there is nowhere to tell it
