package engine

import (
	"context"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Event is one entry of a vault's timeline: what changed its root, and the root
// before and after. Both stay readable while the entry is there.
type Event struct {
	Seq     uint64    `json:"seq"` // strictly increasing within the store
	VaultID uint64    `json:"vault_id"`
	Cause   string    `json:"cause"` // exec, write, restore, undo, import
	ID      string    `json:"id,omitempty"`
	Command []string  `json:"command,omitempty"`
	At      time.Time `json:"at"`
	Before  Root      `json:"before"`
	After   Root      `json:"after"`
	Undoes  uint64    `json:"undoes,omitempty"` // the event that an undo took back
}

// The causes of events.
const (
	CauseExec    = "exec"
	CauseRestore = "restore"
	CauseUndo    = "undo"
	CauseImport  = "import"
	CauseWrite   = "write" // files were written, moved or removed without a command
)

// Record commits what is pending durably and adds ev to the timeline, with the
// new root as After, in one transaction. Before must be a root that the caller
// got from Pin; the timeline keeps it from now on and the pin is taken back. Seq,
// VaultID and At are filled in. Audit entries are added in the same transaction;
// the new root is filled in as their RootAfter.
func (v *Vault) Record(ctx context.Context, ev Event, audit ...AuditEntry) (Event, error) {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	ev, err := v.recordLocked(ctx, ev, audit)
	if err != nil {
		return ev, wrap(err, "record "+ev.Cause, v.Name())
	}
	v.s.unpin(ev.Before)
	return ev, nil
}

func (v *Vault) recordLocked(ctx context.Context, ev Event, audit []AuditEntry) (Event, error) {
	ev = v.stamp(ev)
	for i := range audit {
		audit[i] = v.s.stampAudit(audit[i])
	}
	err := v.commitLocked(ctx, commitRequest{durable: true, pin: true, more: func(tx kv.Writer, rec *vaultRecord) error {
		ev.After = rec.Root
		for _, e := range audit {
			e.RootAfter = rec.Root.String()
			if err := putAudit(tx, e); err != nil {
				return err
			}
		}
		return putJSON(tx, tableTimeline, eventKey(v.id, ev.Seq), ev)
	}})
	return ev, err
}

// maxCommand bounds the command that an event keeps, in bytes.
const maxCommand = 64 << 10

// stamp fills in what the engine knows of an event, and cuts off a command that is
// too long to keep.
func (v *Vault) stamp(ev Event) Event {
	ev.Command = shortened(ev.Command)
	ev.Seq = v.s.lastEvent.Add(1)
	ev.VaultID = v.id
	ev.At = v.s.opts.Clock().UTC()
	return ev
}

// Timeline lists the newest events, newest first; limit 0 lists all.
func (v *Vault) Timeline(ctx context.Context, limit int) ([]Event, error) {
	var events []Event
	err := v.s.kv.View(ctx, func(tx kv.Reader) error {
		events = []Event{}
		return eachEvent(tx, v.id, func(ev Event) error {
			events = append(events, ev)
			if len(events) == limit {
				return kv.Stop
			}
			return nil
		})
	})
	if err != nil {
		return nil, wrap(err, "read timeline", v.Name())
	}
	return events, nil
}

// eventKey orders the events of a vault from the newest to the oldest, so that
// the newest are found without reading all.
func eventKey(vault, seq uint64) []byte { return rowKey(vault, ^seq) }

// eachEvent calls fn for the events of a vault, newest first.
func eachEvent(tx kv.Reader, vault uint64, fn func(Event) error) error {
	return tx.Scan(tableTimeline, kv.ID(vault), nil, func(k, value []byte) error {
		var ev Event
		if err := parseJSON(tableTimeline, k, value, &ev); err != nil {
			return err
		}
		return fn(ev)
	})
}

// PruneTimeline deletes the events older than before, except the newest keep, and
// returns how many there were. GC frees what only they kept. An event that is gone
// cannot be undone.
func (v *Vault) PruneTimeline(ctx context.Context, keep int, before time.Time) (pruned int, err error) {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return 0, wrap(err, "prune timeline", v.Name())
	}
	var gone [][]byte
	err = v.s.kv.View(ctx, func(tx kv.Reader) error {
		gone = nil
		seen := 0
		return eachEvent(tx, v.id, func(ev Event) error {
			if seen++; seen > keep && ev.At.Before(before) {
				gone = append(gone, eventKey(v.id, ev.Seq))
			}
			return nil
		})
	})
	for len(gone) > 0 && err == nil {
		n := min(len(gone), deleteBatch)
		if err = v.s.deleteKeys(ctx, tableTimeline, gone[:n]); err == nil {
			gone, pruned = gone[n:], pruned+n
		}
	}
	return pruned, wrap(err, "prune timeline", v.Name())
}
