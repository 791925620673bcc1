package engine

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Event is one entry of a vault's timeline: what changed its root, and the root
// before and after. Both stay readable while the entry is there, which the vault's
// Retention decides.
type Event struct {
	Seq     uint64    `json:"seq"` // strictly increasing within the store
	VaultID uint64    `json:"vault_id"`
	Cause   string    `json:"cause"`        // one of the causes below
	ID      string    `json:"id,omitempty"` // of the exec, of the mount session, or of the checkpoint that was restored
	Command []string  `json:"command,omitempty"`
	At      time.Time `json:"at"`
	Before  Root      `json:"before"`
	After   Root      `json:"after"`

	Mountpoint string `json:"mountpoint,omitempty"` // of a mount session
	Undoes     uint64 `json:"undoes,omitempty"`     // the event that an undo or a redo took back; the oldest of several
	Through    uint64 `json:"through,omitempty"`    // the newest, where it took back all that are between
	Paths      []Path `json:"paths,omitempty"`      // it took back no more than what is at these and below them
	Partly     bool   `json:"partly,omitempty"`     // there are more paths than can be listed: also what it changed

	// Source is the vault that a merge brought changes from, and SourceRoot its state.
	Source     string `json:"source,omitempty"`
	SourceRoot Root   `json:"source_root,omitzero"`
}

// limited reports whether an undo took back some paths only.
func (ev *Event) limited() bool { return len(ev.Paths) > 0 || ev.Partly }

// The causes of events.
const (
	CauseExec    = "exec"
	CauseRestore = "restore"
	CauseUndo    = "undo"
	CauseRedo    = "redo"
	CauseImport  = "import"
	CauseWrite   = "write" // files were written, moved or removed without a command
	CauseMerge   = "merge"
	CauseMount   = "mount" // programs changed files through a mount, or what did it died before it could tell
)

// Record commits what is pending durably and adds ev to the timeline, with the
// new root as After, in one transaction. Seq, VaultID, At and Before are filled in: the
// event leads from where the newest one ended. Audit entries are added in the same
// transaction; the new root is filled in as their RootAfter.
// Without any, one about the event is added. ev.Before may be a root
// that the caller got from Pin; the pin is taken back. BeginEvent and Begin are for
// whoever wants what happened before apart.
func (v *Vault) Record(ctx context.Context, ev Event, audit ...AuditEntry) (Event, error) {
	done, err := v.eventTurn(ctx)
	if err != nil {
		return ev, wrap(err, "record "+ev.Cause, v.Name())
	}
	defer done()
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	pinned := ev.Before
	ev, err = v.recordLocked(ctx, ev, audit, func(tx kv.Writer, ev Event) error {
		if len(audit) > 0 {
			return v.putEvent(tx, ev)
		}
		return v.putNoted(ctx, tx, ev)
	})
	if err != nil {
		return ev, wrap(err, "record "+ev.Cause, v.Name())
	}
	v.s.unpin(pinned)
	return ev, nil
}

// putNoted writes an event, and the entry of the audit about it.
func (v *Vault) putNoted(ctx context.Context, tx kv.Writer, ev Event) error {
	if _, err := v.s.putAudit(tx, v.eventEntry(ctx, ev).between(ev.Before, ev.After)); err != nil {
		return err
	}
	return v.putEvent(tx, ev)
}

func (v *Vault) putEvent(tx kv.Writer, ev Event) error {
	return putJSON(tx, tableTimeline, eventKey(v.id, ev.Seq), ev)
}

// recordLocked is Record for a caller that holds commitMu. put writes the event, in
// the transaction of the commit.
func (v *Vault) recordLocked(ctx context.Context, ev Event, audit []AuditEntry, put func(tx kv.Writer, ev Event) error) (Event, error) {
	ev = v.stamp(ev)
	ev.Before = v.rec.Noted
	err := v.commitLocked(ctx, commitRequest{durable: true, pin: true, more: func(tx kv.Writer, rec *vaultRecord) error {
		ev.After, rec.Noted = rec.Root, rec.Root
		for _, e := range audit {
			e.RootAfter, e.Event, e.VaultID = rec.Root.String(), ev.Seq, v.id
			if _, err := v.s.putAudit(tx, e.by(actorOf(ctx))); err != nil {
				return err
			}
		}
		return put(tx, ev)
	}})
	if err == nil {
		v.pruneRecorded(ctx)
	}
	return ev, err
}

// maxCommand bounds the command that an event keeps, in bytes.
const maxCommand = 64 << 10

// stamp fills in what the engine knows of an event, and cuts off a command that is
// too long to keep. The caller holds commitMu.
func (v *Vault) stamp(ev Event) Event {
	ev.Command = storable(ev.Command)
	ev.Seq = v.s.lastEvent.Add(1)
	v.recorded = ev.Seq
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

// FindEvent finds an event of the timeline by its number, or by its id, which an exec
// has; by id the newest one. "#" or "event:" may stand before a number, "exec:" before an
// id. An event that retention has dropped is EventNotFound.
// By number it costs one read, by id one for each newer event.
func (v *Vault) FindEvent(ctx context.Context, idOrSeq string) (Event, error) {
	ev, ok := Event{}, false
	id, exec := strings.CutPrefix(idOrSeq, "exec:")
	number := strings.TrimPrefix(strings.TrimPrefix(id, "event:"), "#")
	err := v.s.kv.View(ctx, func(tx kv.Reader) (err error) {
		ev, ok = Event{}, false
		if seq, perr := strconv.ParseUint(number, 10, 64); perr == nil && !exec {
			ok, err = getJSON(tx, tableTimeline, eventKey(v.id, seq), &ev)
			return err
		}
		return eachEvent(tx, v.id, func(e Event) error {
			// The id of a restore is that of the checkpoint.
			if ok = id != "" && e.ID == id && e.Cause != CauseRestore; ok {
				ev = e
				return kv.Stop
			}
			return nil
		})
	})
	if err == nil && !ok {
		err = fail(EventNotFound, "", "")
	}
	return ev, wrap(err, "find event", idOrSeq)
}

// eventKey orders the events of a vault from the newest to the oldest, so that
// the newest are found without reading all.
func eventKey(vault, seq uint64) []byte { return rowKey(vault, ^seq) }

// eachEvent calls fn for the events of a vault, newest first.
func eachEvent(tx kv.Reader, vault uint64, fn func(Event) error) error {
	return eachEventBefore(tx, vault, math.MaxUint64, fn)
}

// eachEventBefore is eachEvent for those before seq.
func eachEventBefore(tx kv.Reader, vault, seq uint64, fn func(Event) error) error {
	return tx.Scan(tableTimeline, kv.ID(vault), eventKey(vault, seq-1), func(k, value []byte) error {
		var ev Event
		if err := parseJSON(tableTimeline, k, value, &ev); err != nil {
			return err
		}
		return fn(ev)
	})
}
