package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/proxy/run"
	"github.com/agentvfs/avfs/workspace"
)

type approvalsCmds struct {
	List    approvalsListCmd    `cmd:"" help:"List the approvals of a vault's store, newest first."`
	Show    approvalsShowCmd    `cmd:"" help:"Show one approval."`
	Approve approvalsApproveCmd `cmd:"" help:"Let the command run, once."`
	Deny    approvalsDenyCmd    `cmd:"" help:"Refuse the command."`
}

type approvalsListCmd struct {
	All bool `help:"Also those that are used or expired."`
}

func (c *approvalsListCmd) run(a *app) error {
	list, err := call(a, workspace.OpApprovals, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	shown := []workspace.Approval{}
	for _, ap := range list {
		if c.All || ap.State != workspace.ApprovalUsed && ap.State != workspace.ApprovalExpired {
			shown = append(shown, ap)
		}
	}
	return a.print(shown, func(w io.Writer) {
		rows := [][]string{}
		for _, ap := range shown {
			rows = append(rows, []string{ap.ID, string(ap.State), ap.Vault, clock(ap.ExpiresAt), safe(approvalCommand(&ap))})
		}
		table(w, rows)
	})
}

type approvalArg struct {
	ID string `arg:"" help:"The id of the approval, as the envelope tells it."`
}

type approvalsShowCmd struct{ approvalArg }

func (c *approvalsShowCmd) run(a *app) error {
	ap, err := call(a, workspace.OpApproval, func(v string) workspace.ApprovalRequest {
		return workspace.ApprovalRequest{Vault: v, ID: c.ID}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(ap, func(w io.Writer) { describeApproval(w, &ap) })
}

type approvalsApproveCmd struct {
	approvalArg
	For     time.Duration `help:"How long the command may be run." default:"15m" placeholder:"DURATION"`
	Message string        `short:"m" help:"A word about it, for the envelope and the audit." placeholder:"TEXT"`
}

func (c *approvalsApproveCmd) run(a *app) error {
	if c.For <= 0 {
		return usageError("--for is a duration above 0")
	}
	return a.decide(workspace.ApprovalDecision{ID: c.ID, Approve: true, Use: c.For, Message: c.Message})
}

type approvalsDenyCmd struct {
	approvalArg
	Message string `short:"m" help:"A word about it, for the envelope and the audit." placeholder:"TEXT"`
}

func (c *approvalsDenyCmd) run(a *app) error {
	return a.decide(workspace.ApprovalDecision{ID: c.ID, Message: c.Message})
}

// decide answers an approval. Whoever runs in a vault is told on to the owner, which
// refuses.
func (a *app) decide(d workspace.ApprovalDecision) error {
	d.By, d.UID = a.door, os.Getuid()
	ap, err := call(a, workspace.OpApprovalDecide, func(v string) workspace.ApprovalDecision {
		d.Vault = v
		return d
	}, workspace.Streams{Exec: a.insideRun()})
	if err != nil {
		return err
	}
	return a.print(ap, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", ap.State, safe(approvalCommand(&ap))) })
}

// approvalCommand is the command of an approval in one line.
func approvalCommand(ap *workspace.Approval) string {
	if ap.Shell != "" {
		return ap.Shell
	}
	return strings.Join(ap.Argv, " ")
}

func describeApproval(w io.Writer, ap *workspace.Approval) {
	rows := [][]string{
		{"approval", ap.ID}, {"state", string(ap.State)}, {"vault", ap.Vault}, {"command", safe(approvalCommand(ap))}, {"directory", safe(ap.Cwd)},
		{"reason", safe(ap.Reason) + " (rule " + safe(ap.Rule) + ")"}, {"asked", clock(ap.CreatedAt)}, {"expires", clock(ap.ExpiresAt)},
	}
	if ap.Fork != "" {
		rows = append(rows, []string{"fork", ap.Fork})
	}
	if ap.Forks > 0 {
		rows = append(rows, []string{"forks", strconv.Itoa(ap.Forks)})
	}
	if len(ap.Env) > 0 {
		rows = append(rows, []string{"variables", safe(strings.Join(ap.Env, " "))})
	}
	if ap.By != "" {
		rows = append(rows, []string{"by", safe(ap.By)}, []string{"message", safe(ap.Message)})
	}
	if ap.UsedBy != "" {
		rows = append(rows, []string{"used by exec", ap.UsedBy})
	}
	table(w, rows)
}

// prompt asks the person at the terminal, nil where there is none or a command asks.
func (a *app) prompt() func(context.Context, workspace.Approval) proxy.Verdict {
	if a.flags.JSON || !isTerminal(a.stdin) || !isTerminal(a.stderr) || run.InsideRun() != "" {
		return nil
	}
	return func(ctx context.Context, ap workspace.Approval) proxy.Verdict {
		describeApproval(a.stderr, &ap)
		fmt.Fprint(a.stderr, "run it? yes, no, or nothing to decide later: ")
		answer := make(chan string, 1)
		go func() { // ends with the line, or with the program
			line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end of the input is no answer
			answer <- strings.ToLower(strings.TrimSpace(line))
		}()
		select {
		case <-ctx.Done():
			return proxy.Verdict{}
		case s := <-answer:
			yes := s == "y" || s == "yes"
			return proxy.Verdict{Answered: yes || s == "n" || s == "no", Approve: yes, By: "terminal"}
		}
	}
}
