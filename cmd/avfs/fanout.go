package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
)

type fanoutCmd struct {
	Count      int      `arg:"" help:"How many forks to make."`
	From       string   `help:"The vault to fork, by default the current one." placeholder:"VAULT"`
	Parallel   int      `help:"Run so many at a time; by default one for each processor." placeholder:"P"`
	Name       string   `help:"Name of the forks, before - and the index; by default that of the vault and -fan, with a number where forks of an earlier fan-out stay." placeholder:"NAME"`
	Keep       string   `help:"Keep one fork and drop the others: first-success, which also ends the others, or an index." placeholder:"WHICH"`
	Drop       bool     `help:"Drop all forks in the end."`
	Cwd        string   `help:"Working directory in the vault." default:"/" placeholder:"DIR"`
	Timeout    string   `help:"End each command after this time; 0 is never." default:"300s" placeholder:"DURATION"`
	Shell      string   `help:"Run this script instead of a command." placeholder:"SCRIPT"`
	Env        []string `help:"Set a variable; without a value it is taken from our environment." placeholder:"NAME[=VALUE]" sep:"none"`
	Checkpoint string   `help:"Keep the state before under a checkpoint: auto (as the policy says), always or never." enum:"auto,always,never" default:"never"`
	Approval   string   `help:"Use this approval; without it the one that fits is used." placeholder:"ID"`
	Changes    int      `help:"Report at most so many changed files each; -1 is all." default:"1000" placeholder:"N"`
	driverFlag
	Command []string `arg:"" optional:"" help:"The command, behind --. It finds its index, from 0, in AVFS_FANOUT_INDEX."`
}

func (c *fanoutCmd) run(a *app) error {
	req, err := c.request(a)
	if err != nil {
		return err
	}
	a.flags.Vault = req.Vault
	w, rules, err := a.rules("")
	if err != nil {
		return err
	}
	if !a.flags.JSON && !a.flags.Quiet {
		req.Ran = func(r proxy.FanoutRun) { fmt.Fprintf(a.stderr, "avfs: %d: %s\n", r.Index, execLine(r.Envelope)) }
	}
	ctx, signals := a.relay() // any number of signals: the forks have to go
	defer signals.close()
	out := (&proxy.Proxy{Workspace: w, Policy: rules, Ask: a.prompt()}).Fanout(ctx, req)
	if err := a.print(out, func(w io.Writer) { a.describeFanout(w, out) }); err != nil {
		return err
	}
	return endFanout(out)
}

// request turns flags into a request.
func (c *fanoutCmd) request(a *app) (req proxy.FanoutRequest, err error) {
	vault, err := a.oneVault(c.From)
	if err != nil {
		return req, err
	}
	one := execCmd{
		Cwd: c.Cwd, Timeout: c.Timeout, Shell: c.Shell, Env: c.Env, Checkpoint: c.Checkpoint, Approval: c.Approval, Changes: c.Changes, driverFlag: c.driverFlag, Command: c.Command,
	}
	if req.Request, err = one.request(a); err != nil {
		return req, err
	}
	req.Vault, req.Count, req.Parallel, req.Name, req.Drop = vault, c.Count, c.Parallel, c.Name, c.Drop
	if c.Parallel < 0 {
		return req, usageError("--parallel is a number, 1 or more")
	}
	switch index, err := strconv.Atoi(c.Keep); {
	case c.Keep == "":
	case c.Keep == "first-success":
		req.KeepFirst = true
	case err == nil:
		req.KeepIndex = &index
	default:
		return req, usageError("--keep takes first-success or the index of a fork, not %q", c.Keep)
	}
	return req, nil
}

// endFanout gives the exit code: of the fork that was kept, or failure unless the
// command succeeded in all.
func endFanout(out *proxy.Fanout) error {
	switch {
	case out.Refused != nil:
		if f := out.Refused.Error; f != nil && out.Refused.Status == proxy.StatusError {
			return &ended{exitOf(f.Kind)}
		}
		return &ended{exitOfExec(out.Refused)}
	case out.Stopped:
		return &ended{exitOf(engine.Interrupted)}
	case len(out.Problems) > 0:
		return &ended{exitFailure}
	case out.Kept != nil:
		return &ended{exitOfExec(out.Runs[*out.Kept].Envelope)}
	}
	for i := range out.Runs {
		if !out.Runs[i].Succeeded() {
			return &ended{exitFailure}
		}
	}
	return nil
}

// describeFanout shows the comparison.
func (a *app) describeFanout(w io.Writer, out *proxy.Fanout) {
	if out.Refused != nil {
		a.summarise(out.Refused)
		return
	}
	rows := [][]string{{"", "FORK", "STATUS", "EXIT", "TIME", "CHANGED", "GROUP"}}
	for _, r := range out.Runs {
		code, group, mark := "", "", ""
		if r.ExitCode != nil {
			code = strconv.Itoa(*r.ExitCode)
		}
		if r.Group >= 0 {
			group = strconv.Itoa(r.Group)
		}
		switch {
		case out.Kept != nil && *out.Kept == r.Index:
			mark = "*"
		case r.Dropped:
			mark = "-"
		}
		took := (time.Duration(r.DurationMS) * time.Millisecond).String()
		rows = append(rows, []string{mark, r.Vault, strings.ReplaceAll(string(r.Status), "_", " "), code, took, strconv.Itoa(r.Changed), group})
	}
	table(w, rows)
	fmt.Fprintf(w, "%d different results\n", len(out.Groups))
	for _, p := range out.Problems {
		a.warn("%s", p)
	}
}
