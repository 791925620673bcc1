package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

// Verdict is an answer to the question whether a command may run.
type Verdict struct {
	Answered bool // false: nobody said yes or no, and the question stays open
	Approve  bool
	By       string // who answered
	Message  string
}

// ApprovalDoc is what an envelope tells of the approval that a command needs, or had.
type ApprovalDoc struct {
	ID        string                  `json:"id"`
	State     workspace.ApprovalState `json:"state"`
	ExpiresAt time.Time               `json:"expires_at"`
	By        string                  `json:"by,omitempty"`
	Message   string                  `json:"message,omitempty"`
}

// binding is a digest of all that an approval of the request is bound to: what runs,
// where, with which variables, and under which policy.
func (p *Proxy) binding(req *Request) string {
	env := append(req.session.variables(), req.Env...)
	for _, s := range req.Secrets {
		env = append(env, s.Name+"="+s.From)
	}
	slices.SortStableFunc(env, func(a, b string) int { // of two of one name the order counts
		return strings.Compare(variable(a), variable(b))
	})
	bound := []any{
		"avfs.approval/v1", req.Vault, req.Fork, req.Argv, req.Shell, req.Cwd, env, req.ReadOnly, req.Stdin != nil, req.Terminal,
		req.session.unset(), req.Service != "", p.Policy.Digest(),
	}
	if req.forks > 0 {
		bound = append(bound, req.forks)
	}
	text, err := json.Marshal(bound)
	if err != nil {
		panic("proxy: a request cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// variable is the name in NAME=VALUE.
func variable(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

// approve looks for an approval of the command, asks for one where there is none, and
// reports whether the command may run. The envelope says how it stands.
func (p *Proxy) approve(ctx context.Context, env *Envelope, req *Request) (bool, error) {
	if req.DryRun {
		return false, nil
	}
	a, err := p.findApproval(ctx, env, req)
	if err != nil {
		return false, err
	}
	if a.State == workspace.ApprovalPending {
		if v := p.ask(ctx, &a); v.Answered {
			decided, err := p.decideApproval(ctx, req, &a, v)
			if engine.KindOf(err) == workspace.ApprovalInvalid { // somebody else was faster
				decided, err = p.findApproval(ctx, env, req)
			}
			if err != nil {
				return false, err
			}
			a = decided
		}
	}
	env.Approval = &ApprovalDoc{ID: a.ID, State: a.State, ExpiresAt: a.ExpiresAt, By: a.By, Message: a.Message}
	req.Approval = a.ID
	return a.State == workspace.ApprovalApproved, nil
}

// findApproval is the approval that the request names, or the one that is bound to it.
func (p *Proxy) findApproval(ctx context.Context, env *Envelope, req *Request) (workspace.Approval, error) {
	if req.Approval != "" {
		a, err := workspace.CallVault(ctx, p.Workspace, req.Vault, workspace.OpApproval, func(v string) workspace.ApprovalRequest {
			return workspace.ApprovalRequest{Vault: v, ID: req.Approval}
		}, workspace.Streams{})
		if err == nil && a.Binding != req.binding {
			err = &engine.Error{Kind: workspace.ApprovalInvalid, Op: "approval", Path: a.ID,
				Err: errors.New("it is for another command, vault, directory, environment or policy")}
		}
		return a, err
	}
	ask := workspace.Approval{
		Vault: req.Vault, Fork: req.Fork, Forks: req.forks, Argv: req.Argv, Shell: req.Shell, Cwd: req.Cwd, Policy: p.Policy.Digest(),
		Rule: env.Decision.Rule, Reason: env.Decision.Reason, Binding: req.binding, Exec: env.ID, UID: os.Getuid(),
	}
	for _, kv := range append(req.session.variables(), req.Env...) {
		if name := variable(kv); !slices.Contains(ask.Env, name) {
			ask.Env = append(ask.Env, name)
		}
	}
	for _, s := range req.Secrets {
		ask.Env = append(ask.Env, s.Name)
	}
	if who := p.Policy.Approver(); who != nil && who.ExpiresSeconds > 0 {
		ask.ExpiresAt = ask.CreatedAt.Add(time.Duration(who.ExpiresSeconds) * time.Second)
	}
	return workspace.CallVault(ctx, p.Workspace, req.Vault, workspace.OpApprovalAsk, func(string) workspace.Approval { return ask }, workspace.Streams{})
}

// ask asks the policy's approver, and then whoever the caller knows.
func (p *Proxy) ask(ctx context.Context, a *workspace.Approval) Verdict {
	if who := p.Policy.Approver(); who != nil {
		if v := askApprover(ctx, who, a); v.Answered {
			return v
		}
	}
	if p.Ask != nil {
		return p.Ask(ctx, *a)
	}
	return Verdict{}
}

func (p *Proxy) decideApproval(ctx context.Context, req *Request, a *workspace.Approval, v Verdict) (workspace.Approval, error) {
	return workspace.CallVault(ctx, p.Workspace, req.Vault, workspace.OpApprovalDecide, func(vault string) workspace.ApprovalDecision {
		return workspace.ApprovalDecision{Vault: vault, ID: a.ID, Approve: v.Approve, By: v.By, Message: v.Message, UID: os.Getuid()}
	}, workspace.Streams{Exec: workspace.NoExec})
}

// needsApproval decides about a command that the policy wants approval for, and
// reports whether it is to run.
func (p *Proxy) needsApproval(ctx context.Context, env *Envelope, req *Request) bool {
	if req.granted != nil {
		granted := *req.granted
		env.Approval = &granted
		return true
	}
	ok, err := p.approve(ctx, env, req)
	if ok {
		return true
	}
	env.Status = StatusApprovalRequired
	end := ApprovalRequired
	if env.Approval != nil && env.Approval.State == workspace.ApprovalDenied {
		env.Status, end = StatusDenied, Denied
	}
	p.refused(ctx, env, req)
	if err != nil {
		env.Error = workspace.NewFault(err)
	}
	p.enter(end)
	return false
}

// allowsCheckpoint is the action that a command has which is allowed by approval.
func allowsCheckpoint(a policy.Action) policy.Action {
	if a == policy.RequireApproval {
		return policy.AllowWithCheckpoint
	}
	return a
}
