package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Event is one entry of a vault's timeline: what changed its root, and the root
// before and after. Both stay readable while the entry is there.
type Event struct {
	Seq     uint64    `json:"seq"` // strictly increasing within the store
	VaultID uint64    `json:"vault_id"`
	Cause   string    `json:"cause"` // exec, restore, undo, import
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
)

// Record commits what is pending durably and adds ev to the timeline, with the
// new root as After, in one transaction. Before must be a root that the caller
// got from Pin; the timeline keeps it from now on and the pin is taken back. Seq,
// VaultID and At are filled in.
func (v *Vault) Record(ctx context.Context, ev Event) (Event, error) {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	ev, err := v.recordLocked(ctx, ev)
	if err != nil {
		return ev, wrap(err, "record "+ev.Cause, v.Name())
	}
	v.unpin(ev.Before)
	return ev, nil
}

func (v *Vault) recordLocked(ctx context.Context, ev Event) (Event, error) {
	ev = v.stamp(ev)
	err := v.commitLocked(ctx, commitRequest{durable: true, pin: true, more: func(tx kv.Writer, rec *vaultRecord) error {
		ev.After = rec.Root
		return putJSON(tx, tableTimeline, rowKey(v.id, ev.Seq), ev)
	}})
	return ev, err
}

func (v *Vault) stamp(ev Event) Event {
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
		return tx.Scan(tableTimeline, kv.ID(v.id), nil, func(_, value []byte) error {
			var ev Event
			if err := json.Unmarshal(value, &ev); err != nil {
				return &Error{Kind: Corrupt, Op: "read", Path: "timeline", Err: err}
			}
			events = append(events, ev)
			return nil
		})
	})
	if err != nil {
		return nil, wrap(err, "read timeline", v.Name())
	}
	for i, j := 0, len(events)-1; i < j; i, j = i+1, j-1 {
		events[i], events[j] = events[j], events[i]
	}
	if limit > 0 && len(events) > limit {
		events = events[:limit]
	}
	return events, nil
}
