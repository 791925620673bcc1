package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

type policyCmds struct {
	Check   policyCheckCmd   `cmd:"" help:"Judge a command, as JSON, and run nothing."`
	Explain policyExplainCmd `cmd:"" help:"Judge a command, for people, and run nothing."`
	Lint    policyLintCmd    `cmd:"" help:"Find mistakes in a policy."`
	Test    policyTestCmd    `cmd:"" help:"Judge a list of commands whose answers are known."`
	Init    policyInitCmd    `cmd:"" help:"Write a policy of your own to start from: the default one, or with --vault an empty one for the vault."`
}

// judged is a command to judge.
type judged struct {
	Shell    string   `help:"A script instead of a command." placeholder:"SCRIPT"`
	Cwd      string   `help:"Working directory in the vault." default:"/" placeholder:"DIR"`
	Policy   string   `help:"Judge by this file." type:"path" placeholder:"FILE"`
	ExitCode bool     `help:"End with 77 if the command is denied and 78 if it needs approval."`
	Command  []string `arg:"" optional:"" help:"The command, behind --."`
}

// decide judges the command.
func (c *judged) decide(a *app) (policy.Decision, error) {
	if (len(c.Command) == 0) == (c.Shell == "") {
		return policy.Decision{}, usageError("give a command behind --, or a script with --shell: avfs policy check -- rm -rf /")
	}
	p, err := a.policy(c.Policy)
	if err != nil {
		return policy.Decision{}, err
	}
	question := policy.Command{Argv: c.Command, Shell: c.Shell, Cwd: c.Cwd}
	if a.flags.Vault == "" {
		return p.Decide(question), nil
	}
	w, err := a.workspace()
	if err != nil {
		return policy.Decision{}, err
	}
	if _, _, err := w.Locate(a.flags.Vault); err != nil {
		return policy.Decision{}, err
	}
	question.Mount = w.MountFor(a.ctx, a.flags.Vault, workspace.MountHow{})
	facts := proxy.NewFacts(a.ctx, w, a.flags.Vault, question.Mount)
	question.Facts = facts
	return p.Decide(question), facts.Err()
}

func (c *judged) end(d policy.Decision) error {
	if code := exitOfDecision(d.Action); c.ExitCode && code != exitOK {
		return &ended{code}
	}
	return nil
}

type policyCheckCmd struct{ judged }

// run always prints JSON: programs ask this way, people with explain.
func (c *policyCheckCmd) run(a *app) error {
	a.flags.JSON = true
	d, err := c.decide(a)
	if err != nil {
		return err
	}
	if err := a.printJSON(d); err != nil {
		return err
	}
	return c.end(d)
}

type policyExplainCmd struct{ judged }

func (c *policyExplainCmd) run(a *app) error {
	d, err := c.decide(a)
	if err != nil {
		return err
	}
	err = a.print(d, func(w io.Writer) {
		fmt.Fprintf(w, "%s (rule %s): %s\n", d.Action, d.Rule, safe(d.Reason))
		for _, s := range d.Segments {
			via, at := "", ""
			if s.Via != "" {
				via = " via " + safe(s.Via)
			}
			if s.Token != "" {
				at = ", because of " + safe(s.Token)
			}
			fmt.Fprintf(w, "  %-22s %s%s\n  %-22s rule %s%s: %s\n", s.Action, safe(s.Text), via, "", s.Rule, at, safe(s.Reason))
		}
	})
	if err != nil {
		return err
	}
	return c.end(d)
}

type policyLintCmd struct {
	File string `arg:"" optional:"" type:"path" help:"The policy; by default the one in force."`
}

func (c *policyLintCmd) run(a *app) error {
	p, err := a.policy(c.File)
	if err != nil {
		return err
	}
	found := p.Lint()
	err = a.print(found, func(w io.Writer) {
		for _, f := range found {
			fmt.Fprintf(w, "line %d: %s: %s: %s\n", f.Line, f.Rule, f.Kind, safe(f.Message))
		}
		if len(found) == 0 {
			fmt.Fprintln(w, "no findings")
		}
	})
	if err == nil && len(found) > 0 {
		err = &ended{exitFailure}
	}
	return err
}

// vaultPolicy is the start of a vault's own policy: it says nothing yet.
const vaultPolicy = `# The policy of one vault, and of its forks that have none of their own. It counts
# together with yours, and the stricter answer wins: it can forbid more, not less.

version: 1
default: allow
opaque: allow_with_checkpoint

rules: []
#  - id: no-network
#    network: true
#    action: deny
#    reason: this vault works without the network
`

type policyInitCmd struct{}

// initDoc is what 'policy init' prints.
type initDoc struct {
	Path string `json:"path"`
}

func (policyInitCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	path, text := w.PolicyFile(), policy.DefaultYAML()
	if a.flags.Vault != "" {
		name, _, err := w.Locate(a.flags.Vault)
		if err != nil {
			return err
		}
		path, text = w.VaultPolicyFile(name), []byte(vaultPolicy)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &engine.Error{Kind: engine.Exists, Op: "policy init", Path: path}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return a.print(initDoc{Path: path}, func(w io.Writer) {
		what := "replaces the default policy"
		if a.flags.Vault != "" {
			what = "can only make the answers in this vault stricter"
		}
		fmt.Fprintf(w, "wrote %s; it %s\n", safe(path), what)
	})
}
