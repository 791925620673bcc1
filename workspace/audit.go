package workspace

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine"
)

// notRun notes in the audit that the command of a request did not run, because of
// err, which it returns, and tells the caller so. A caller that only has to ask again
// is not told of.
func (o *Owner) notRun(ctx context.Context, req ExecRequest, s Streams, err error) error {
	if kind := engine.KindOf(err); kind == MountMoved || kind == SessionMoved || kind == StateMoved {
		return err
	}
	req.Audit.Vault, req.Audit.ExecID = req.Vault, req.ID
	req.Audit.Status, req.Audit.Error = notRunStatus, string(kindOf(err))
	if _, aerr := o.store.AppendAudit(context.WithoutCancel(ctx), req.Audit); aerr != nil {
		return errors.Join(err, aerr)
	}
	_ = tell(s, execBegun{Noted: true}) // a caller that is gone looks for itself
	return err
}

// OpAuditNotRun adds an entry about a command that did not run, for a caller that the
// owner has not told whether there is one. There may be: the owner may have got to it
// before it died, or before the caller gave up.
var OpAuditNotRun = Op[engine.AuditEntry, engine.AuditEntry]{Name: "audit.notrun",
	Run: func(ctx context.Context, o *Owner, e engine.AuditEntry, _ Streams) (engine.AuditEntry, error) {
		if err := o.awaitExec(ctx, e.ExecID); err != nil {
			return e, err
		}
		recent, err := o.store.Audit(ctx, auditRecent)
		if err != nil {
			return e, err
		}
		for _, have := range recent {
			if have.ExecID == e.ExecID {
				return have, nil
			}
		}
		return o.store.AppendAudit(ctx, e)
	}}

// auditRecent is among how many entries that of an exec is looked for which has just
// ended or failed.
const auditRecent = 1000

// asked notes that an exec is asked for, until the returned function is called.
func (o *Owner) asked(exec string) (done func()) {
	over := make(chan struct{})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asking[exec] = over
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.asking[exec] == over {
			delete(o.asking, exec)
		}
		close(over)
	}
}

// awaitExec returns when this owner is done with an exec, and so with its entry in the
// audit.
func (o *Owner) awaitExec(ctx context.Context, exec string) error {
	o.mu.Lock()
	over, is := o.asking[exec]
	o.mu.Unlock()
	if !is {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AuditRequest asks for entries of the audit of a vault's store.
type AuditRequest struct {
	Vault string            `json:"vault"` // whose store it is; the query may choose another vault
	Query engine.AuditQuery `json:"query"`
}

// OpAudit lists entries of the audit of a vault's store, oldest first.
var OpAudit = Op[AuditRequest, engine.AuditList]{Name: "audit",
	Run: func(ctx context.Context, o *Owner, req AuditRequest, _ Streams) (engine.AuditList, error) {
		return o.store.QueryAudit(ctx, req.Query)
	}}

// AuditVerifyRequest asks whether the audit of a vault's store is what was written.
type AuditVerifyRequest struct {
	Vault string             `json:"vault"`
	Heads []engine.AuditHead `json:"heads,omitempty"` // that were noted elsewhere
}

// OpAuditVerify follows the chain of the audit of a vault's store.
var OpAuditVerify = Op[AuditVerifyRequest, engine.AuditReport]{Name: "audit.verify",
	Run: func(ctx context.Context, o *Owner, req AuditVerifyRequest, _ Streams) (engine.AuditReport, error) {
		return o.store.VerifyAudit(ctx, req.Heads...)
	}}

// OpAuditHead tells the head of the audit of a vault's store.
var OpAuditHead = Op[InVault, engine.AuditHead]{Name: "audit.head",
	Run: func(ctx context.Context, o *Owner, _ InVault, _ Streams) (engine.AuditHead, error) {
		return o.store.AuditHead(ctx)
	}}
