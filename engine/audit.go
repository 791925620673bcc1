package engine

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/redact"
)

// AuditEntry tells of one command that somebody asked for, whether it ran or not, or
// of one change of a vault, its history, its limits or the policy. Entries are only
// ever added; they outlive the vault that they are about. Each carries the hash of
// the one before and its own, so that none can be changed, moved or removed without
// a trace; VerifyAudit finds it.
type AuditEntry struct {
	Seq        uint64    `json:"seq"` // strictly increasing within the store, without a gap
	At         time.Time `json:"at"`  // when the entry was made: when the command had ended
	Kind       string    `json:"kind"`
	Vault      string    `json:"vault"`
	VaultID    uint64    `json:"vault_id,omitempty"`
	Subject    string    `json:"subject,omitempty"` // what else it is about; see the kinds
	ExecID     string    `json:"exec_id,omitempty"`
	Argv       []string  `json:"argv,omitempty"`
	Shell      string    `json:"shell,omitempty"`
	Cwd        string    `json:"cwd,omitempty"`
	Action     string    `json:"action"` // what the policy said
	Rule       string    `json:"rule"`
	Policy     string    `json:"policy,omitempty"` // the digest of the one that was asked
	Status     string    `json:"status"`
	ExitCode   *int      `json:"exit_code,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	RootBefore string    `json:"root_before,omitempty"`
	RootAfter  string    `json:"root_after,omitempty"`
	Event      uint64    `json:"event,omitempty"`    // the entry of the timeline that tells of the same
	Error      string    `json:"error,omitempty"`    // the kind of the error that kept the command from running, or an edit from being whole
	Approval   string    `json:"approval,omitempty"` // the id of the approval that it is about, or that the command needed
	By         string    `json:"by,omitempty"`       // who decided about the approval
	UID        int       `json:"uid"`                // of the user who asked; -1 where there are none
	PID        int       `json:"pid,omitempty"`      // of the process that asked
	User       string    `json:"user,omitempty"`     // the name of the user, where it is known
	FromExec   string    `json:"from_exec,omitempty"`
	Prev       string    `json:"prev,omitempty"` // the hash of the entry before; the first has none
	Hash       string    `json:"hash,omitempty"` // of everything above

	began time.Time // when the change was asked for; zero: not known
}

// The kinds of audit entries, and what their subjects are. Changes that fail have no
// entry; commands always have one.
const (
	AuditExec             = "exec"
	AuditPolicyChange     = "policy.change"      // the digest of the policy before
	AuditQuotaSet         = "quota.set"          //
	AuditRetentionSet     = "retention.set"      //
	AuditCheckpointSave   = "checkpoint.save"    // the id, and the name if it has one
	AuditCheckpointDelete = "checkpoint.delete"  // likewise
	AuditRestore          = "checkpoint.restore" // what asked for it, such as the id
	AuditUndo             = "undo"               //
	AuditRedo             = "redo"               //
	AuditMount            = "mount"              // the session in which programs changed files
	AuditImport           = "import"             //
	AuditMerge            = "merge"              // the vault that was merged
	AuditWrite            = "write"              //
	AuditPrune            = "prune"              // what was dropped, in transactions before that of the entry, also by the rule itself
	AuditVaultCreate      = "vault.create"       //
	AuditVaultFork        = "vault.fork"         // the vault that was forked
	AuditVaultMerge       = "vault.merge"        // the vault that was merged into this one
	AuditVaultDelete      = "vault.delete"       //
	AuditRepair           = "repair"             // what was mended
	AuditApproval         = "approval"           //
)

// auditKind is the kind of the entry about an event. Other causes are kinds themselves.
func auditKind(cause string) string {
	switch cause {
	case CauseRestore:
		return AuditRestore
	case CauseMerge:
		return AuditVaultMerge
	}
	return cause
}

// The decision and the status of changes.
const (
	auditAllow = "allow"
	auditDone  = "completed"

	auditFailed      = "error"
	auditInterrupted = "interrupted"
)

// Actor is who asks for something, for the audit.
type Actor struct {
	UID  int    `json:"uid"` // -1 where there are none
	PID  int    `json:"pid,omitempty"`
	User string `json:"user,omitempty"` // the name, where it is known
	Exec string `json:"exec,omitempty"` // the exec that the process is part of, if any
	// Asked is when, in this process, for the duration in the entry; zero is not known.
	Asked time.Time `json:"-"`
}

type actorKey struct{}

// WithActor names who asks for what is done with the context. Without it, that is
// this process.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorIn is whom WithActor has named, if it has.
func ActorIn(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

func actorOf(ctx context.Context) Actor {
	if a, ok := ActorIn(ctx); ok {
		return a
	}
	return Actor{UID: os.Getuid(), PID: os.Getpid()}
}

type failureKey struct{}

// WithFailure has the audit say of the changes that are recorded with the context that what
// made them failed, for err, and left them unfinished. With a nil err it is ctx.
func WithFailure(ctx context.Context, err error) context.Context {
	if err == nil {
		return ctx
	}
	return context.WithValue(ctx, failureKey{}, KindOf(err))
}

// by fills in who asks, unless the entry says so already.
func (e AuditEntry) by(a Actor) AuditEntry {
	if e.PID == 0 {
		e.UID, e.PID, e.User, e.FromExec = a.UID, a.PID, a.User, a.Exec
	}
	return e
}

// entry begins the entry about a change of a vault that ctx asks for. Whoever makes
// the change completes it and hands it to putAudit, in the transaction of the change.
// The caller holds commitMu, or nobody else knows the vault.
func (v *Vault) entry(ctx context.Context, kind string) AuditEntry {
	a := actorOf(ctx)
	e := AuditEntry{Kind: kind, Vault: v.rec.Name, VaultID: v.id, Action: auditAllow, Status: auditDone, began: a.Asked}
	return e.by(a)
}

// eventEntry is entry for a change that the timeline tells of too.
func (v *Vault) eventEntry(ctx context.Context, ev Event) AuditEntry {
	e := v.entry(ctx, auditKind(ev.Cause))
	e.Event, e.Argv, e.Subject = ev.Seq, ev.Command, ev.ID
	switch kind, _ := ctx.Value(failureKey{}).(Kind); kind {
	case "":
	case Interrupted:
		e.Status = auditInterrupted
	default:
		e.Status, e.Error = auditFailed, string(kind)
	}
	if ev.Source != "" {
		e.Subject = ev.Source
	}
	return e
}

// between completes an entry with the roots before and after.
func (e AuditEntry) between(before, after Root) AuditEntry {
	e.RootBefore, e.RootAfter = before.String(), after.String()
	return e
}

// AppendAudit adds an entry, durably, and returns it as it is stored. Who asks is
// taken from ctx if the entry does not say.
func (s *Store) AppendAudit(ctx context.Context, e AuditEntry) (AuditEntry, error) {
	e, err := s.appendAudit(ctx, e, func(kv.Writer) error { return nil })
	return e, wrap(err, "audit", e.Vault)
}

// appendAudit adds an entry, and does also, in one transaction. It may use the
// reserve: a command that was let begin on a full disk must be able to end.
func (s *Store) appendAudit(ctx context.Context, e AuditEntry, also func(tx kv.Writer) error) (AuditEntry, error) {
	e = e.by(actorOf(ctx))
	stored := e
	err := s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) (err error) {
		if stored, err = s.putAudit(tx, e); err != nil {
			return err
		}
		return also(tx)
	})
	return stored, err
}

// secrets takes what looks like a secret out of everything that is stored about
// commands, whichever door they came through. It knows no literal values.
var secrets = redact.New()

// storable is the entry without secrets, and with what is beyond maxCommand bytes cut
// off.
func (e AuditEntry) storable() AuditEntry {
	e.Argv, e.Shell, e.Subject = storable(e.Argv), secrets.Text(e.Shell), secrets.Text(e.Subject)
	if len(e.Shell) > maxCommand {
		e.Shell = e.Shell[:maxCommand] + "..."
	}
	return e
}

// storable is a command line without secrets, and with what is beyond maxCommand bytes
// cut off; then it ends in an ellipsis.
func storable(argv []string) []string {
	argv = secrets.Argv(argv)
	left := maxCommand
	for i, arg := range argv {
		if left -= len(arg); left < 0 {
			return append(slices.Clone(argv[:i]), "...")
		}
	}
	return argv
}
