package engine

import (
	"context"
	"math"
	"slices"

	"github.com/agentvfs/avfs/engine/kv"
)

// takenBack is what an undo or a redo in force has taken back: the events from one to
// another, all of them or, with paths, what they did there, without what has been done
// again since.
type takenBack struct {
	from, through uint64
	where         *scope // nil: everywhere
	except        []*scope
}

func (t *takenBack) has(seq uint64) bool { return t.from <= seq && seq <= t.through }

func (t *takenBack) whole() bool { return t.where == nil && len(t.except) == 0 }

// covers reports whether what was done at a path is taken back.
func (t *takenBack) covers(p string) bool {
	return (t.where == nil || t.where.has(p)) && !slices.ContainsFunc(t.except, func(s *scope) bool { return s.has(p) })
}

// standing is an event with what newer events have taken back of it.
type standing struct {
	ev    Event
	gone  []takenBack // parts of it
	whole bool        // all of it
}

// load finds out what left needs to know.
func (s *standing) load(ctx context.Context, st *Store) error {
	for _, t := range s.gone {
		for _, where := range append(slices.Clone(t.except), t.where) {
			if where == nil {
				continue
			}
			if err := where.load(ctx, st); err != nil {
				return err
			}
		}
	}
	return nil
}

// left reports whether what the event did at a path stands. It is loaded.
func (s *standing) left(p string) bool {
	for i := range s.gone {
		if s.gone[i].covers(p) {
			return false
		}
	}
	return true
}

// stepper follows a timeline from its newest event to its oldest. An undo takes back
// the events that it names, and a redo an undo, so that what that had taken back
// stands again. One that is itself taken back counts for nothing.
type stepper struct{ gone []takenBack }

func (p *stepper) next(ev Event) standing {
	s := standing{ev: ev}
	for _, t := range p.gone {
		if !t.has(ev.Seq) {
			continue
		}
		if t.whole() {
			s.whole = true
			return s
		}
		s.gone = append(s.gone, t)
	}
	if ev.Undoes != 0 {
		t := takenBack{from: ev.Undoes, through: max(ev.Undoes, ev.Through)}
		if ev.limited() {
			t.where = scopeOf(ev)
		}
		for _, part := range s.gone {
			if part.where != nil {
				t.except = append(t.except, part.where)
			}
		}
		p.gone = append(p.gone, t)
	}
	return s
}

// texts turns paths into strings.
func texts(paths []Path) []string {
	var list []string
	for _, p := range paths {
		list = append(list, string(p))
	}
	return list
}

// exact turns strings into paths.
func exact(paths []string) []Path {
	var list []Path
	for _, p := range paths {
		list = append(list, Path(p))
	}
	return list
}

// stepsBatch is how many events one transaction reads.
const stepsBatch = 32

// eachStep calls fn for what stands of the events of a vault, newest first, beginning
// with gap, if that is not nil. kv.Stop from fn ends it. fn may read the store. The
// caller holds commitMu.
func (v *Vault) eachStep(ctx context.Context, gap *Event, fn func(standing) error) error {
	var p stepper
	if gap != nil {
		if err := fn(p.next(*gap)); err != nil {
			return stopped(err)
		}
	}
	for before := uint64(math.MaxUint64); before > 1; {
		var batch []Event
		err := v.s.kv.View(ctx, func(tx kv.Reader) error {
			batch = batch[:0]
			return eachEventBefore(tx, v.id, before, func(ev Event) error {
				batch = append(batch, ev)
				if len(batch) == stepsBatch {
					return kv.Stop
				}
				return nil
			})
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, ev := range batch {
			before = ev.Seq
			s := p.next(ev)
			if s.whole || ev.Before.Same(ev.After) {
				continue
			}
			if err := fn(s); err != nil {
				return stopped(err)
			}
		}
	}
	return nil
}

// LogEntry is an event with what it comes to now.
type LogEntry struct {
	Event
	Changed bool `json:"changed"` // before and after are not the same state
	Undone  bool `json:"undone"`  // it is taken back, and not done again
}

// Log lists the newest events, newest first; limit 0 lists all.
func (v *Vault) Log(ctx context.Context, limit int) ([]LogEntry, error) {
	events, err := v.Timeline(ctx, limit)
	if err != nil {
		return nil, err
	}
	list := make([]LogEntry, len(events))
	var p stepper
	for i, ev := range events {
		list[i] = LogEntry{Event: ev, Changed: !ev.Before.Same(ev.After), Undone: p.next(ev).whole}
	}
	return list, nil
}
