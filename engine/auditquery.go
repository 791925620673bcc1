package engine

import (
	"context"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// AuditQuery chooses entries of the audit; the zero value chooses all. What is empty
// or zero does not restrict.
type AuditQuery struct {
	Since  time.Time `json:"since,omitzero"` // made at that time or later
	Until  time.Time `json:"until,omitzero"` // made at that time or earlier
	Kinds  []string  `json:"kinds,omitempty"`
	Vault  string    `json:"vault,omitempty"`
	Exec   string    `json:"exec,omitempty"` // about that exec, or asked for by its command
	Status string    `json:"status,omitempty"`
	// Path chooses what changed that path or something below it. The timeline tells
	// whether an entry did, while it has the entry's event.
	Path  string `json:"path,omitempty"`
	Limit int    `json:"limit,omitempty"` // the newest of those chosen
}

// AuditList is what a query finds, oldest first.
type AuditList struct {
	Entries []AuditEntry `json:"entries"`
	// Unknown counts the entries of which it is not known any more whether they
	// changed the path, since the history does not reach back to them.
	Unknown int `json:"unknown,omitempty"`
}

// Audit lists the newest entries, oldest first; limit 0 lists all.
func (s *Store) Audit(ctx context.Context, limit int) ([]AuditEntry, error) {
	list, err := s.QueryAudit(ctx, AuditQuery{Limit: limit})
	return list.Entries, err
}

// QueryAudit lists the entries that q chooses.
func (s *Store) QueryAudit(ctx context.Context, q AuditQuery) (AuditList, error) {
	list := AuditList{}
	var err error
	if list.Entries, err = s.auditEntries(ctx, q); err == nil && q.Path != "" {
		err = s.keepTouching(ctx, &list, q.Path)
	}
	list.Entries = newestOf(list.Entries, q.Limit)
	return list, wrap(err, "read audit", "")
}

func newestOf(entries []AuditEntry, limit int) []AuditEntry {
	if limit > 0 && len(entries) > limit {
		return entries[len(entries)-limit:]
	}
	return entries
}

// auditEntries lists what q chooses, but for its path and, with one, its limit.
func (s *Store) auditEntries(ctx context.Context, q AuditQuery) ([]AuditEntry, error) {
	var entries []AuditEntry
	limit := q.Limit
	if q.Path != "" {
		limit = 0
	}
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		entries = []AuditEntry{}
		from, prev, err := q.from(tx)
		if err != nil {
			return err
		}
		return tx.Scan(tableAudit, nil, from, func(k, row []byte) error {
			e, err := parseAudit(k, row)
			e.Prev, prev = prev, e.Hash
			if err != nil || !q.chooses(e) {
				return err
			}
			if entries = append(entries, e); limit > 0 && len(entries) >= 2*limit {
				entries = append(entries[:0], newestOf(entries, limit)...)
			}
			return nil
		})
	})
	return entries, err
}

// from is the key of the first entry to look at, and the hash of the one before, if
// that can be read.
func (q AuditQuery) from(tx kv.Reader) (key []byte, prev string, err error) {
	limit := q.Limit
	q.Limit = 0
	if limit == 0 || !q.all() {
		return nil, "", nil
	}
	head, err := readAuditHead(tx)
	if KindOf(err) == Corrupt {
		return nil, "", nil // the entries can be read without it
	}
	if err != nil || head.Seq <= uint64(limit) {
		return nil, "", err
	}
	before := kv.ID(head.Seq - uint64(limit))
	row, ok, err := tx.Get(tableAudit, before)
	if err != nil {
		return nil, "", err
	}
	if ok {
		e, _ := parseAudit(before, row) // a damaged one tells no hash, and is not asked for
		prev = e.Hash
	}
	return kv.ID(head.Seq - uint64(limit) + 1), prev, nil
}

// all reports whether q chooses every entry.
func (q AuditQuery) all() bool {
	return q.Since.IsZero() && q.Until.IsZero() && len(q.Kinds) == 0 && q.Vault == "" && q.Exec == "" && q.Status == "" && q.Path == ""
}

// chooses reports whether q chooses the entry, but for its path.
func (q AuditQuery) chooses(e AuditEntry) bool {
	switch {
	case !q.Since.IsZero() && e.At.Before(q.Since), !q.Until.IsZero() && e.At.After(q.Until):
		return false
	case len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Kind), q.Vault != "" && e.Vault != q.Vault, q.Status != "" && e.Status != q.Status:
		return false
	}
	return q.Exec == "" || e.ExecID == q.Exec || e.FromExec == q.Exec
}

// keepTouching keeps the entries that changed path or something below it.
func (s *Store) keepTouching(ctx context.Context, list *AuditList, path string) error {
	var kept []AuditEntry
	for _, e := range list.Entries {
		if e.RootBefore == "" || e.RootBefore == e.RootAfter {
			continue
		}
		touched, known, err := s.touches(ctx, e, path)
		if err != nil {
			return err
		}
		if !known {
			list.Unknown++
		}
		if touched {
			kept = append(kept, e)
		}
	}
	list.Entries = append([]AuditEntry{}, kept...)
	return nil
}

// touches reports whether what an entry is about changed path or something below it,
// and whether that is known.
func (s *Store) touches(ctx context.Context, e AuditEntry, path string) (touched, known bool, err error) {
	ev, known, err := s.auditedEvent(ctx, e)
	if err != nil || !known {
		return false, false, err
	}
	for _, root := range []Root{ev.Before, ev.After} {
		s.pin(root)
		defer s.unpin(root)
	}
	// An event that is still there was there when its states were pinned.
	if _, known, err = s.auditedEvent(ctx, e); err != nil || !known {
		return false, false, err
	}
	_, total, err := s.Diff(ctx, ev.Before, ev.After, &DiffOptions{Paths: []string{path}, Limit: 1})
	return total > 0, true, err
}

// auditedEvent is the event that an entry is about, while the timeline has it.
func (s *Store) auditedEvent(ctx context.Context, e AuditEntry) (ev Event, known bool, err error) {
	err = s.kv.View(ctx, func(tx kv.Reader) (err error) {
		ev = Event{}
		known, err = getJSON(tx, tableTimeline, eventKey(e.VaultID, e.Event), &ev)
		return err
	})
	return ev, known, err
}
