package engine

import (
	"context"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// AuditEntry tells of one command that somebody asked for, whether it ran or not.
// Entries are only ever added; they outlive the vault that they are about.
type AuditEntry struct {
	Seq        uint64    `json:"seq"` // strictly increasing within the store
	At         time.Time `json:"at"`  // when the entry was made: when the command had ended
	Kind       string    `json:"kind"`
	Vault      string    `json:"vault"`
	ExecID     string    `json:"exec_id,omitempty"`
	Argv       []string  `json:"argv,omitempty"`
	Shell      string    `json:"shell,omitempty"`
	Cwd        string    `json:"cwd,omitempty"`
	Action     string    `json:"action"` // what the policy said
	Rule       string    `json:"rule"`
	Status     string    `json:"status"`
	ExitCode   *int      `json:"exit_code,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	RootBefore string    `json:"root_before,omitempty"`
	RootAfter  string    `json:"root_after,omitempty"`
	Error      string    `json:"error,omitempty"` // the kind of the error that kept the command from running
	UID        int       `json:"uid"`             // of the user who asked; -1 where there are none
}

// AppendAudit adds an entry, durably, and returns it with Seq and At filled in.
func (s *Store) AppendAudit(ctx context.Context, e AuditEntry) (AuditEntry, error) {
	e = s.stampAudit(e)
	err := s.appendAudit(ctx, e, func(kv.Writer) error { return nil })
	return e, wrap(err, "audit", e.Vault)
}

// appendAudit adds an entry that is stamped, and does also, in one transaction. It
// may use the reserve: a command that was let begin on a full disk must be able to end.
func (s *Store) appendAudit(ctx context.Context, e AuditEntry, also func(tx kv.Writer) error) error {
	return s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
		if err := putAudit(tx, e); err != nil {
			return err
		}
		if err := also(tx); err != nil {
			return err
		}
		return s.putCounters(tx)
	})
}

// stampAudit fills in what the engine knows of an entry, and cuts off what is too
// long to keep.
func (s *Store) stampAudit(e AuditEntry) AuditEntry {
	e = e.shortened()
	e.Seq = s.lastAudit.Add(1)
	e.At = s.opts.Clock().UTC()
	return e
}

// shortened is the entry with what is beyond maxCommand bytes cut off.
func (e AuditEntry) shortened() AuditEntry {
	e.Argv = shortened(e.Argv)
	if len(e.Shell) > maxCommand {
		e.Shell = e.Shell[:maxCommand] + "..."
	}
	return e
}

func putAudit(tx kv.Writer, e AuditEntry) error { return putJSON(tx, tableAudit, kv.ID(e.Seq), e) }

// Audit lists the newest entries, oldest first; limit 0 lists all.
func (s *Store) Audit(ctx context.Context, limit int) ([]AuditEntry, error) {
	entries := []AuditEntry{}
	var from []byte
	if last := s.lastAudit.Load(); limit > 0 && last > uint64(limit) {
		from = kv.ID(last - uint64(limit) + 1)
	}
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		entries = entries[:0]
		return tx.Scan(tableAudit, nil, from, func(k, value []byte) error {
			var e AuditEntry
			if err := parseJSON(tableAudit, k, value, &e); err != nil {
				return err
			}
			entries = append(entries, e)
			return nil
		})
	})
	return entries, wrap(err, "read audit", "")
}

// shortened is a command line with what is beyond maxCommand bytes cut off; then
// it ends in an ellipsis.
func shortened(argv []string) []string {
	left := maxCommand
	for i, arg := range argv {
		if left -= len(arg); left < 0 {
			return append(slices.Clone(argv[:i]), "...")
		}
	}
	return argv
}
