package main

import (
	"context"
	"os"
	"strings"

	"github.com/agentvfs/avfs/proxy"
)

type shellCmd struct {
	Fork string `help:"Make this fork of the vault and work in it." placeholder:"NAME"`
	Cwd  string `help:"Working directory in the vault." default:"/" placeholder:"DIR"`
	driverFlag
	Command []string `arg:"" optional:"" help:"What to run instead of your shell, behind --."`
}

// run opens a shell in the vault, with the terminal that avfs has, as one execution.
func (c *shellCmd) run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	in, ok := a.stdin.(*os.File)
	if !ok || !isTerminal(in) {
		return usageError("a shell needs a terminal; without one use: avfs exec")
	}
	w, rules, err := a.rules(c.Fork)
	req := proxy.Request{Vault: a.flags.Vault, Fork: c.Fork, Cwd: c.Cwd, Driver: c.Driver, Timeout: -1, Terminal: true, Env: a.shellEnv()}
	if req.Argv = c.Command; len(req.Argv) == 0 {
		req.Argv = []string{a.shell()}
		req.Env = append(req.Env, a.ownHome()...)
	}
	if err != nil {
		return a.reportExec((&proxy.Proxy{Workspace: w}).NotReady(a.ctx, req, err), nil)
	}
	t, err := openTerminal(in)
	if err != nil {
		return err
	}
	req.Wrap = t.command
	ctx, cancel := context.WithCancelCause(a.ctx)
	defer cancel(nil)
	p := &proxy.Proxy{Workspace: w, Policy: rules, Sole: true, Ask: a.prompt(), Observe: func(s proxy.State) {
		a.trace("shell: %s", s)
		if s == proxy.Executing {
			if err := t.join(); err != nil {
				cancel(err)
			}
		}
	}}
	env := p.Exec(ctx, req)
	if err := t.end(); err != nil {
		a.warn("%v", err)
	}
	return a.reportExec(env, nil)
}

// shell is the user's shell.
func (a *app) shell() string {
	if s := a.getenv("SHELL"); strings.HasPrefix(s, "/") {
		return s
	}
	return "/bin/sh"
}

// ownHome is the person's home, with the files that their shell starts with.
func (a *app) ownHome() []string {
	if home, ok := a.lookupEnv("HOME"); ok {
		return []string{"HOME=" + home}
	}
	return nil
}

// shellEnv are the variables that a person at a terminal needs, beside those that every
// command gets.
func (a *app) shellEnv() []string {
	var env []string
	for _, name := range []string{"TERM", "COLORTERM", "SHELL", "EDITOR", "VISUAL", "PAGER", "LESS", "NO_COLOR"} {
		if value, ok := a.lookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
