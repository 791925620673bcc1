package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/redact"
)

// ApprovalState says how far an approval is.
type ApprovalState string

// The states. An approval is used once, and expires in every other state.
const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalApproved ApprovalState = "approved"
	ApprovalDenied   ApprovalState = "denied"
	ApprovalUsed     ApprovalState = "used"
	ApprovalExpired  ApprovalState = "expired"
)

// Kinds of errors of approvals.
const (
	ApprovalNotFound engine.Kind = "ApprovalNotFound"
	ApprovalInvalid  engine.Kind = "ApprovalInvalid" // it is for something else, or was decided, used, or expired
)

// How long an approval is good for: until somebody decides, and from then on.
const (
	DefaultApprovalWait = time.Hour
	DefaultApprovalUse  = 15 * time.Minute
	// approvalKeep is how long one that is over stays in the list.
	approvalKeep = 7 * 24 * time.Hour
)

// Approval is somebody's yes or no to one command, or the question for it.
type Approval struct {
	ID        string        `json:"id"`
	State     ApprovalState `json:"state"`
	Vault     string        `json:"vault"`
	VaultID   uint64        `json:"vault_id,omitempty"` // which the owner knows: a later vault of that name is another
	Fork      string        `json:"fork,omitempty"`
	Forks     int           `json:"forks,omitempty"` // in so many forks at once, of a fan-out; 0: it is none
	Argv      []string      `json:"argv,omitempty"`  // without secrets; the binding knows them
	Shell     string        `json:"shell,omitempty"` // likewise
	Cwd       string        `json:"cwd"`
	Env       []string      `json:"env,omitempty"` // the names of the variables that the command was to get beside the usual ones
	Policy    string        `json:"policy"`        // the digest of the policy that wants it
	Rule      string        `json:"rule"`
	Reason    string        `json:"reason"`
	Binding   string        `json:"binding"` // a digest of all that it is bound to
	Exec      string        `json:"exec_id"` // which asked for it first
	UID       int           `json:"uid"`     // who did
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt time.Time     `json:"expires_at"`

	DecidedAt *time.Time `json:"decided_at,omitempty"`
	By        string     `json:"by,omitempty"`      // who decided: a person at a terminal, "cli", "api", or the policy's approver
	Message   string     `json:"message,omitempty"` // of who decided
	UsedBy    string     `json:"used_by,omitempty"` // the exec
}

const noteApproval = "approval"

// secrets takes what looks like a secret out of command lines that are kept.
var secrets = redact.New()

func approvalOf(n *engine.Note, now time.Time) (Approval, error) {
	var a Approval
	if err := json.Unmarshal(n.Body, &a); err != nil {
		return a, &engine.Error{Kind: engine.Corrupt, Op: "read approval", Path: n.Name, Err: err}
	}
	if a.State != ApprovalUsed && !now.Before(a.ExpiresAt) {
		a.State = ApprovalExpired
	}
	return a, nil
}

func (a *Approval) note() (*engine.Note, error) {
	body, err := json.Marshal(a)
	return &engine.Note{Vault: a.Vault, VaultID: a.VaultID, Body: body}, err
}

// audit is an entry about what became of an approval.
func (a *Approval) audit() *engine.AuditEntry {
	return &engine.AuditEntry{
		Kind: engine.AuditApproval, Vault: a.Vault, ExecID: a.Exec, Argv: a.Argv, Shell: a.Shell, Cwd: a.Cwd,
		Action: "require_approval", Rule: a.Rule, Status: string(a.State), Approval: a.ID, By: a.By, UID: a.UID,
	}
}

// OpApprovalAsk finds the approval that is bound to what the request is, or makes a
// pending one. The audit of the exec tells of it. One that was denied counts until it
// expires.
var OpApprovalAsk = Op[Approval, Approval]{Name: "approval.ask",
	Run: func(ctx context.Context, o *Owner, req Approval, _ Streams) (Approval, error) {
		o.deciding.Lock()
		defer o.deciding.Unlock()
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return req, err
		}
		req.VaultID, req.Argv, req.Shell, req.Reason = v.Info().ID, secrets.Argv(req.Argv), secrets.Text(req.Shell), secrets.Text(req.Reason)
		list, damaged, err := o.approvals(ctx)
		if err != nil {
			return req, err
		}
		now := time.Now().UTC()
		if err := o.dropDamaged(ctx, damaged, now); err != nil {
			return req, err
		}
		for _, a := range list {
			over := a.State == ApprovalUsed || a.State == ApprovalExpired
			if !over && a.Binding == req.Binding && a.VaultID == req.VaultID {
				return a, nil
			}
			if over && now.Sub(a.ExpiresAt) > approvalKeep {
				if err := o.dropApproval(ctx, a.ID); err != nil {
					return req, err
				}
			}
		}
		wait := req.ExpiresAt.Sub(req.CreatedAt)
		if wait <= 0 {
			wait = DefaultApprovalWait
		}
		req.ID, req.State, req.CreatedAt, req.ExpiresAt = ulid.Make().String(), ApprovalPending, now, now.Add(wait)
		_, err = o.store.ChangeNote(ctx, noteApproval, req.ID, nil, func(*engine.Note) (*engine.Note, error) { return req.note() })
		return req, err
	}}

func (o *Owner) dropApproval(ctx context.Context, id string) error {
	_, err := o.store.ChangeNote(ctx, noteApproval, id, nil, func(*engine.Note) (*engine.Note, error) { return nil, nil })
	return err
}

// dropDamaged drops the damaged approvals of the given ids once they are so old that a
// sound one could be dropped, which the ids tell. Until then a repair may mend them.
func (o *Owner) dropDamaged(ctx context.Context, ids []string, now time.Time) error {
	for _, id := range ids {
		if made, err := ulid.ParseStrict(id); err == nil && now.Sub(ulid.Time(made.Time())) <= approvalKeep {
			continue
		}
		if err := o.dropApproval(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// ApprovalRequest names an approval of the store of a vault.
type ApprovalRequest struct {
	Vault string `json:"vault"`
	ID    string `json:"id"`
}

// OpApproval finds an approval.
var OpApproval = Op[ApprovalRequest, Approval]{Name: "approval.show",
	Run: func(ctx context.Context, o *Owner, req ApprovalRequest, _ Streams) (Approval, error) {
		n, err := o.store.Note(ctx, noteApproval, req.ID)
		if err != nil {
			return Approval{}, err
		}
		if n == nil {
			return Approval{}, noApproval(req.ID)
		}
		return approvalOf(n, time.Now())
	}}

func noApproval(id string) error {
	return &engine.Error{Kind: ApprovalNotFound, Op: "find approval", Path: id, Err: errors.New("no such approval")}
}

// OpApprovals lists the approvals of the store of a vault, the newest first. Those that
// are damaged are not among them: nothing can be done with one, and a check names it.
var OpApprovals = Op[InVault, []Approval]{Name: "approval.list",
	Run: func(ctx context.Context, o *Owner, _ InVault, _ Streams) ([]Approval, error) {
		list, _, err := o.approvals(ctx)
		return list, err
	}}

// approvals lists the approvals, the newest first, and the ids of those that are
// damaged.
func (o *Owner) approvals(ctx context.Context) (list []Approval, damaged []string, err error) {
	notes, damaged, err := o.store.Notes(ctx, noteApproval)
	if err != nil {
		return nil, nil, err
	}
	list = []Approval{}
	for i := range notes {
		a, err := approvalOf(&notes[i], time.Now())
		if err != nil {
			return nil, nil, err
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Approval) int { return cmp.Compare(b.ID, a.ID) })
	return list, damaged, nil
}

// ApprovalDecision is somebody's answer.
type ApprovalDecision struct {
	Vault   string        `json:"vault"`
	ID      string        `json:"id"`
	Approve bool          `json:"approve"`
	By      string        `json:"by"`
	Message string        `json:"message,omitempty"`
	Use     time.Duration `json:"use,omitempty"` // how long an approved one may be used; 0: DefaultApprovalUse
	UID     int           `json:"uid"`
}

// OpApprovalDecide answers a pending approval. A command that runs in a vault cannot:
// it would approve itself. (It is honest about where it runs; the boundary is the
// command, not the process.)
var OpApprovalDecide = Op[ApprovalDecision, Approval]{Name: "approval.decide",
	Run: func(ctx context.Context, o *Owner, req ApprovalDecision, s Streams) (Approval, error) {
		if s.Exec != "" {
			return Approval{}, &engine.Error{Kind: engine.Permission, Op: "decide approval", Path: req.ID,
				Err: errors.New("a command that runs in a vault cannot approve or deny"), Details: map[string]any{"exec_id": s.Exec}}
		}
		a, err := OpApproval.Run(ctx, o, ApprovalRequest{ID: req.ID}, s)
		if err != nil {
			return a, err
		}
		decide := func(a *Approval) error {
			if a.State != ApprovalPending {
				return notNow(a)
			}
			now := time.Now().UTC()
			use := req.Use
			if use <= 0 {
				use = DefaultApprovalUse
			}
			a.State = ApprovalDenied
			if req.Approve {
				a.State = ApprovalApproved
				a.ExpiresAt = now.Add(use)
			}
			a.DecidedAt, a.By, a.Message = &now, req.By, req.Message
			return nil
		}
		if err := decide(&a); err != nil { // for the entry; whether it is so is seen again
			return a, err
		}
		entry := a.audit()
		entry.UID = req.UID
		return o.changeApproval(ctx, req.ID, entry, decide)
	}}

// notNow says why an approval cannot be decided or used.
func notNow(a *Approval) error {
	return &engine.Error{Kind: ApprovalInvalid, Op: "approval", Path: a.ID, Err: fmt.Errorf("it is %s", a.State), Details: map[string]any{"state": a.State}}
}

// changeApproval changes an approval in one transaction; change may refuse.
func (o *Owner) changeApproval(ctx context.Context, id string, entry *engine.AuditEntry, change func(*Approval) error) (Approval, error) {
	var a Approval
	_, err := o.store.ChangeNote(ctx, noteApproval, id, entry, func(n *engine.Note) (*engine.Note, error) {
		if n == nil {
			return nil, noApproval(id)
		}
		var err error
		if a, err = approvalOf(n, time.Now()); err == nil {
			err = change(&a)
		}
		if err != nil {
			return nil, err
		}
		return a.note()
	})
	return a, err
}

// ApprovalUse asks to take an approval for commands that are about to run.
type ApprovalUse struct {
	Vault   string `json:"vault"` // where it was asked for
	ID      string `json:"id"`
	Binding string `json:"binding"`
	Exec    string `json:"exec_id"` // who uses it
}

// OpApprovalUse takes the approval of a fan-out, which its commands have in common. That
// of one command is taken by OpExec.
var OpApprovalUse = Op[ApprovalUse, Approval]{Name: "approval.use",
	Run: func(ctx context.Context, o *Owner, req ApprovalUse, s Streams) (Approval, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return Approval{}, err
		}
		a, err := OpApproval.Run(ctx, o, ApprovalRequest{ID: req.ID}, s)
		if err != nil {
			return a, err
		}
		take := takeApproval(v.Info().ID, req.Binding, req.Exec)
		if err := take(&a); err != nil { // for the entry; whether it is so is seen again
			return a, err
		}
		entry := a.audit()
		entry.ExecID = req.Exec
		return o.changeApproval(ctx, req.ID, entry, take)
	}}

// takeApproval uses an approval that was asked for in the vault of that id, once.
func takeApproval(asked uint64, binding, exec string) func(*Approval) error {
	return func(a *Approval) error {
		if a.State != ApprovalApproved {
			return notNow(a)
		}
		if a.Binding != binding || a.VaultID != asked {
			return &engine.Error{Kind: ApprovalInvalid, Op: "approval", Path: a.ID, Err: errors.New("it is for another command, vault, directory, environment or policy")}
		}
		a.State, a.UsedBy = ApprovalUsed, exec
		return nil
	}
}

// useApproval takes the approval of an exec that was asked for in the vault of that id.
// Nobody can use it again. The returned function gives it back, for a command that does
// not run after all.
func (o *Owner) useApproval(ctx context.Context, asked uint64, req *ExecRequest) (back func() error, err error) {
	if req.Approval == "" {
		return func() error { return nil }, nil
	}
	_, err = o.changeApproval(ctx, req.Approval, nil, takeApproval(asked, req.Binding, req.ID))
	back = func() error {
		_, err := o.changeApproval(context.WithoutCancel(ctx), req.Approval, nil, func(a *Approval) error {
			if a.UsedBy == req.ID {
				a.State, a.UsedBy = ApprovalApproved, ""
			}
			return nil
		})
		return err
	}
	return back, err
}

func approvalOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpApprovalAsk)
	add(all, OpApproval)
	add(all, OpApprovals)
	add(all, OpApprovalDecide)
	add(all, OpApprovalUse)
	return all
}
