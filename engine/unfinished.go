package engine

import (
	"context"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// BeginOptions describes a command that is about to run in a vault.
type BeginOptions struct {
	ID       string     // of the exec
	Command  []string   // for the timeline
	Audit    AuditEntry // what is known of the audit entry before the command ran
	ReadOnly bool       // the command can change nothing, and gets no event
	Owner    int        // the process that has the store open
	// Shared says that the command runs beside others, for long. Its event marks its
	// end and holds no changes: those that are in no other event are a mount's.
	Shared bool
	// Checkpoint, if not nil, keeps the state before under a checkpoint too.
	Checkpoint *CheckpointOptions
}

// Unfinished is a command that has begun in a vault and has not ended. The store
// holds a record of it meanwhile, so that the death of the process that has the
// store open does not hide what the command did: the next one finds the record, and
// ends it. The record keeps the root before.
type Unfinished struct {
	v          *Vault
	seq        uint64
	rec        unfinishedRecord
	checkpoint string
	pinned     bool
	out        *Output // nil for a command that a dead process has left
	runs       bool    // counts among the vault's running; guarded by its commitMu
}

// unfinishedRecord is the row of an Unfinished. Before has the name that it has in
// an Event, by which the roots of all rows are found.
type unfinishedRecord struct {
	VaultID  uint64     `json:"vault_id"`
	ID       string     `json:"id"`
	Command  []string   `json:"command,omitempty"`
	At       time.Time  `json:"at"`
	Before   Root       `json:"before"`
	ReadOnly bool       `json:"read_only,omitempty"`
	Shared   bool       `json:"shared,omitempty"`
	Owner    int        `json:"owner"`
	Audit    AuditEntry `json:"audit"`
}

// Begin commits what is pending. Then it settles the vault, keeps the root, and notes
// that a command begins, all in one transaction. What changes from then until End is
// the command's. It survives the death of the process, and with a
// checkpoint also a loss of power. End must follow.
func (v *Vault) Begin(ctx context.Context, opts BeginOptions) (*Unfinished, error) {
	done, err := v.eventTurn(ctx)
	if err != nil {
		return nil, wrap(err, "begin", v.Name())
	}
	defer done()
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	u, err := v.beginLocked(ctx, opts)
	return u, wrap(err, "begin", v.Name())
}

func (v *Vault) beginLocked(ctx context.Context, opts BeginOptions) (*Unfinished, error) {
	u := &Unfinished{v: v, seq: v.s.lastUnfinished.Add(1), pinned: true, out: v.newOutput(opts.ID), rec: unfinishedRecord{
		VaultID: v.id, ID: opts.ID, Command: storable(opts.Command), At: v.s.opts.Clock().UTC(),
		ReadOnly: opts.ReadOnly, Shared: opts.Shared, Owner: opts.Owner, Audit: opts.Audit.storable().by(actorOf(ctx)),
	}}
	var keep func(tx kv.Writer, rec *vaultRecord) error
	if opts.Checkpoint != nil {
		if err := v.checkCheckpointName(ctx, opts.Checkpoint.Name); err != nil {
			return nil, err
		}
		var cp *Checkpoint
		cp, keep = v.newCheckpoint(*opts.Checkpoint)
		u.checkpoint = cp.ID
	}
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return nil, err
	}
	mode := kv.Relaxed
	if keep != nil {
		mode = kv.Durable
	}
	err := v.keepPresent(ctx, mode, func(tx kv.Writer, rec *vaultRecord) error {
		if keep != nil {
			if err := keep(tx, rec); err != nil {
				return err
			}
		}
		u.rec.Before = rec.Root
		return putJSON(tx, tableUnfinished, u.key(), u.rec)
	})
	if err != nil {
		return nil, err
	}
	v.s.pin(u.rec.Before)
	u.run()
	return u, nil
}

// run has changes be the command's, until ended, unless it shares the vault. The caller holds commitMu, or is the
// only one that knows of the vault.
func (u *Unfinished) run() {
	if !u.rec.ReadOnly && !u.rec.Shared {
		u.v.running++
		u.runs = true
	}
}

// ended is when the command is over, whether or not that could be recorded: what changes
// from then on is not the command's. The caller holds commitMu.
func (u *Unfinished) ended() {
	if u.runs {
		u.v.running--
		u.runs = false
	}
}

func (u *Unfinished) key() []byte { return rowKey(u.rec.VaultID, u.seq) }

// ID is the exec's.
func (u *Unfinished) ID() string { return u.rec.ID }

// Owner is the process that had the store open when the command began.
func (u *Unfinished) Owner() int { return u.rec.Owner }

// Output keeps what the command prints. End completes its record.
func (u *Unfinished) Output() *Output { return u.out }

// Before is the root before the command.
func (u *Unfinished) Before() Root { return u.rec.Before }

// Checkpoint is the id of the checkpoint that Begin was to keep; empty without.
func (u *Unfinished) Checkpoint() string { return u.checkpoint }

// Audit is what was known of the audit entry when the command began.
func (u *Unfinished) Audit() AuditEntry { return u.rec.Audit }

// End commits what is pending durably, adds the event of the command to the
// timeline and the entry to the audit, and takes the record back, in one
// transaction. The roots before and after are filled in. A command that could
// change nothing has no event; then the event that is returned has only its roots.
// After an error the record stays, and the next one to open the store ends it; what the
// command changed then goes into the next event of the vault.
func (u *Unfinished) End(ctx context.Context, audit AuditEntry) (Event, error) {
	ev := Event{Cause: CauseExec, ID: u.rec.ID, Command: u.rec.Command, Before: u.rec.Before, After: u.rec.Before}
	audit.RootBefore = u.rec.Before.String()
	over := u.over(ctx)
	var err error
	if u.rec.ReadOnly {
		audit.RootAfter = u.rec.Before.String()
		audit.VaultID = u.rec.VaultID
		_, err = u.v.s.appendAudit(ctx, audit, over)
	} else {
		ev, err = u.record(ctx, ev, audit, over)
	}
	u.unpin()
	if err == nil && u.out != nil {
		// The command is recorded; what goes on being wrong is told by Prune and Check.
		_ = u.v.pruneOutputs(context.WithoutCancel(ctx), u.out.seq)
	}
	return ev, wrap(err, "record "+CauseExec, u.v.Name())
}

// record is the end of a command that may have changed something.
func (u *Unfinished) record(ctx context.Context, ev Event, audit AuditEntry, over func(tx kv.Writer) error) (Event, error) {
	done, terr := u.v.eventTurn(ctx)
	if terr == nil {
		defer done()
	}
	u.v.commitMu.Lock()
	defer u.v.commitMu.Unlock()
	defer u.ended()
	if terr != nil {
		return ev, terr
	}
	if u.rec.Shared {
		return u.recordShared(ctx, ev, audit, over)
	}
	return u.v.recordLocked(ctx, ev, []AuditEntry{audit}, func(tx kv.Writer, ev Event) error {
		if err := over(tx); err != nil {
			return err
		}
		return u.v.putEvent(tx, ev)
	})
}

// recordShared is record for a command that ran beside others. Its event stands where
// the newest one ended, and leaves the changes since to whom they belong. The caller
// holds commitMu.
func (u *Unfinished) recordShared(ctx context.Context, ev Event, audit AuditEntry, over func(tx kv.Writer) error) (Event, error) {
	if err := u.v.settleLocked(ctx); err != nil {
		return ev, err
	}
	ev = u.v.stamp(ev)
	err := u.v.commitLocked(ctx, commitRequest{durable: true, pin: true, more: func(tx kv.Writer, rec *vaultRecord) error {
		ev.Before, ev.After = rec.Noted, rec.Noted
		audit.RootAfter, audit.Event, audit.VaultID = rec.Root.String(), ev.Seq, u.v.id
		if _, err := u.v.s.putAudit(tx, audit.by(actorOf(ctx))); err != nil {
			return err
		}
		if err := over(tx); err != nil {
			return err
		}
		return u.v.putEvent(tx, ev)
	}})
	if err == nil {
		u.v.pruneRecorded(ctx)
	}
	return ev, err
}

// over puts what is pending of the output into the store, and gives what else the
// last transaction of a command has to do.
func (u *Unfinished) over(ctx context.Context) func(tx kv.Writer) error {
	if u.out == nil {
		return u.remove
	}
	put := u.out.finish(ctx)
	return func(tx kv.Writer) error {
		if err := u.remove(tx); err != nil {
			return err
		}
		return put(tx)
	}
}

// NotRun adds the entry to the audit and takes the record back, in one transaction,
// for a command that did not run after all. It has no event.
func (u *Unfinished) NotRun(ctx context.Context, audit AuditEntry) error {
	u.v.commitMu.Lock()
	defer u.v.commitMu.Unlock()
	defer u.unpin()
	defer u.ended()
	audit.VaultID = u.rec.VaultID
	_, err := u.v.s.appendAudit(ctx, audit, u.remove)
	return wrap(err, "audit", u.v.Name())
}

// unpin takes the pin back: the event or the record keeps the root.
func (u *Unfinished) unpin() {
	if u.pinned {
		u.v.s.unpin(u.rec.Before)
		u.pinned = false
	}
}

func (u *Unfinished) remove(tx kv.Writer) error { return tx.Delete(tableUnfinished, u.key()) }

// Unfinished lists the commands that had begun and not ended when the store was
// opened: whoever had it open before has died. They are in the order in which they
// began in their vault.
func (s *Store) Unfinished() []*Unfinished { return s.left }

// loadUnfinished finds what a dead process left. Records that are damaged, or of
// vaults that are gone, are for Check and GC.
func (s *Store) loadUnfinished(tx kv.Reader) error {
	vaults := map[uint64]*Vault{}
	for _, v := range s.vaults {
		vaults[v.id] = v
	}
	return tx.Scan(tableUnfinished, nil, nil, func(k, value []byte) error {
		if len(k) != 16 {
			return nil
		}
		u := &Unfinished{v: vaults[kv.ParseID(k[:8])], seq: kv.ParseID(k[8:])}
		s.lastUnfinished.Store(max(s.lastUnfinished.Load(), u.seq))
		if u.v != nil && parseJSON(tableUnfinished, k, value, &u.rec) == nil {
			s.left = append(s.left, u)
			u.run()
		}
		return nil
	})
}
