package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Retention says which entries of a vault's timeline stay: the newest ones, and of
// older ones the newest of each hour and of each day (UTC), for so long back. What
// no part of it keeps goes. Automatic checkpoints follow the same rule, counted by
// themselves. Checkpoints that people save are no part of it: they stay until they
// are deleted.
type Retention struct {
	Last  int `json:"last"`  // so many of the newest
	Hours int `json:"hours"` // one an hour, for so many hours back
	Days  int `json:"days"`  // one a day, for so many days back

	// Bytes bounds what all of that keeps and nothing else does, with the outputs of
	// commands: content before compression, and nodes as they are stored. The oldest
	// goes first. 0 is no bound. It holds after Prune, and in the background after Trim;
	// between them there may be more.
	Bytes int64 `json:"bytes"`
}

// DefaultRetention is the rule of a vault that has none of its own.
func DefaultRetention() Retention { return Retention{Last: 100, Hours: 24, Days: 30} }

// maxRetentionBytes is the largest bound in bytes of a rule: more than any store holds.
const maxRetentionBytes = 1 << 60

func (r Retention) valid() error {
	if r.Last < 0 || r.Hours < 0 || r.Days < 0 || r.Bytes < 0 {
		return &Error{Kind: Invalid, Err: errors.New("a retention rule has no negative numbers")}
	}
	if r.Bytes > maxRetentionBytes {
		return &Error{Kind: Invalid, Err: fmt.Errorf("a retention rule has a bound of at most %d bytes; 0 is no bound", int64(maxRetentionBytes))}
	}
	return nil
}

// keeper decides about entries that it is shown from the newest to the oldest.
type keeper struct {
	rule      Retention
	now       time.Time
	seen      int
	hour, day time.Time // of the newest entry kept for its hour, its day
}

// keep reports whether an entry of that time stays.
func (k *keeper) keep(at time.Time) bool {
	k.seen++
	at = at.UTC()
	stays := k.seen <= k.rule.Last
	for _, span := range []struct {
		length time.Duration
		count  int
		newest *time.Time
	}{{time.Hour, k.rule.Hours, &k.hour}, {24 * time.Hour, k.rule.Days, &k.day}} {
		start := at.Truncate(span.length)
		if int64(k.now.Sub(at)/span.length) < int64(span.count) && !start.Equal(*span.newest) {
			*span.newest = start
			stays = true
		}
	}
	return stays
}

// PruneReport says what a pruning dropped, or would drop.
type PruneReport struct {
	Rule            Retention `json:"rule"`
	DryRun          bool      `json:"dry_run"`
	Events          int       `json:"events"`      // entries of the timeline that went
	Checkpoints     int       `json:"checkpoints"` // automatic ones that went
	KeptEvents      int       `json:"kept_events"`
	KeptCheckpoints int       `json:"kept_checkpoints"` // automatic ones that stay
	Outputs         int       `json:"outputs"`          // of commands, that went
	KeptOutputs     int       `json:"kept_outputs"`
	// KeptBytes is what those that stay hold alone, as Retention counts, or a bound on
	// it where that is within the rule. 0 where the rule has no bound: it is not measured.
	KeptBytes int64 `json:"kept_bytes"`
}

// PruneOptions tunes Prune.
type PruneOptions struct {
	Rule   *Retention // nil is the vault's
	DryRun bool       // only say what would go
}

// Prune drops the entries of the timeline and the automatic checkpoints that the
// rule does not keep. GC frees what only they kept. An event that is gone cannot
// be undone. It works on a full disk. A rule with a bound in bytes may make it wait for
// a collection that is under way; what that measures is measured beside writers.
func (v *Vault) Prune(ctx context.Context, opts *PruneOptions) (PruneReport, error) {
	if opts == nil {
		opts = &PruneOptions{}
	}
	rule := v.Retention()
	if opts.Rule != nil {
		rule = *opts.Rule
	}
	rep, err := v.prune(ctx, rule, opts.DryRun)
	return rep, wrap(err, "prune", v.Name())
}

func (v *Vault) prune(ctx context.Context, rule Retention, dry bool) (PruneReport, error) {
	if err := rule.valid(); err != nil {
		return PruneReport{Rule: rule, DryRun: dry}, err
	}
	if !dry { // what only the newest event keeps is history as well
		if err := v.settleSaved(ctx); err != nil {
			return PruneReport{}, err
		}
	}
	c, kept, err := v.beyond(ctx, rule)
	if err != nil {
		return PruneReport{}, err
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	e := v.entry(ctx, AuditPrune)
	rep, err := v.pruneLocked(ctx, rule, c, dry)
	rep.KeptBytes = kept
	if !dry {
		err = errors.Join(err, v.tellPruned(ctx, e, rep))
	}
	return rep, err
}

// pruneItself is pruneLocked for what the rule drops without being asked for. The entry
// of the audit about it is nobody's but the process's that has the store open.
func (v *Vault) pruneItself(ctx context.Context, rule Retention, c cut) (PruneReport, error) {
	e := v.entry(context.Background(), AuditPrune)
	rep, err := v.pruneLocked(ctx, rule, c, false)
	return rep, errors.Join(err, v.tellPruned(ctx, e, rep))
}

// tellPruned completes the entry of the audit about what a pass has dropped, also where
// the rest of it failed, and adds it. Where that was nothing there is none. The caller
// holds commitMu.
func (v *Vault) tellPruned(ctx context.Context, e AuditEntry, rep PruneReport) error {
	if rep.Events+rep.Checkpoints+rep.Outputs == 0 {
		return nil
	}
	e = e.between(v.rec.Root, v.rec.Root)
	e.Subject = fmt.Sprintf("%d events, %d automatic checkpoints", rep.Events, rep.Checkpoints)
	if rep.Outputs > 0 {
		e.Subject += fmt.Sprintf(", %d outputs", rep.Outputs)
	}
	_, err := v.s.appendAudit(ctx, e, func(kv.Writer) error { return nil })
	return err
}

// settleSaved settles the vault, as it is stored where the disk has no room for what is
// pending.
func (v *Vault) settleSaved(ctx context.Context) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.commitLocked(ctx, commitRequest{}); err != nil && KindOf(err) != NoSpace {
		return err
	}
	return v.settleCommitted(ctx)
}

// beyond is excess for a rule that need not have a bound.
func (v *Vault) beyond(ctx context.Context, rule Retention) (cut, int64, error) {
	if rule.Bytes == 0 {
		return cut{}, 0, nil
	}
	v.s.care.Lock()
	defer v.s.care.Unlock()
	return v.excess(ctx, rule, 0)
}

// pruneLocked is Prune for a caller that holds commitMu, and has found out what goes
// for its bytes.
func (v *Vault) pruneLocked(ctx context.Context, rule Retention, c cut, dry bool) (PruneReport, error) {
	rep := PruneReport{Rule: rule, DryRun: dry}
	if err := errors.Join(v.open(), rule.valid()); err != nil {
		return rep, err
	}
	sel, err := v.selectHistory(ctx, rule, c)
	if err != nil {
		return rep, err
	}
	for _, p := range sel.kept {
		*[]*int{pastEvent: &rep.KeptEvents, pastCheckpoint: &rep.KeptCheckpoints, pastOutput: &rep.KeptOutputs}[p.kind]++
	}
	if dry {
		rep.Events, rep.Checkpoints, rep.Outputs = len(sel.events), len(sel.checkpoints), len(sel.outputs)
		return rep, nil
	}
	rep.Events, err = v.dropRows(ctx, tableTimeline, sel.events)
	if err == nil {
		rep.Checkpoints, err = v.dropRows(ctx, tableCheckpoints, sel.checkpoints)
	}
	if err == nil {
		rep.Outputs, err = v.dropRows(ctx, tableOutputs, sel.outputs)
	}
	return rep, err
}

// selection is what of a vault's history stays, and the keys of what goes.
type selection struct {
	kept                         []past
	events, checkpoints, outputs [][]byte
}

// selectHistory applies the numbers of a rule, and a cut.
func (v *Vault) selectHistory(ctx context.Context, rule Retention, c cut) (sel selection, err error) {
	now := v.s.opts.Clock().UTC()
	eventAt, checkpointAt := aging(), aging()
	events, checkpoints := keeper{rule: rule, now: now}, keeper{rule: rule, now: now}
	err = v.s.kv.View(ctx, func(tx kv.Reader) error {
		return eachEvent(tx, v.id, func(ev Event) error {
			at := eventAt(ev.At)
			if events.keep(ev.At) && ev.Seq > c.event {
				sel.kept = append(sel.kept, past{pastEvent, ev.Seq, at, []Root{ev.After, ev.Before}})
			} else {
				sel.events = append(sel.events, eventKey(v.id, ev.Seq))
			}
			return nil
		})
	})
	if err != nil {
		return sel, err
	}
	list, err := v.Checkpoints(ctx)
	if err != nil {
		return sel, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		cp := &list[i]
		seq, ok := parseCheckpointID(cp.ID)
		at := checkpointAt(cp.At)
		switch {
		case !ok || !cp.Auto:
		case checkpoints.keep(cp.At) && seq > c.checkpoint:
			sel.kept = append(sel.kept, past{pastCheckpoint, seq, at, []Root{cp.Root}})
		default:
			sel.checkpoints = append(sel.checkpoints, rowKey(v.id, seq))
		}
	}
	old, kept, err := v.oldOutputs(ctx, rule, c)
	sel.outputs, sel.kept = old, append(sel.kept, kept...)
	return sel, err
}

// dropRows deletes rows of the vault's history, the last ones first, so that what
// is left after an interruption is the newest, and counts them. The caller holds
// commitMu, which keeps the rows from going otherwise.
func (v *Vault) dropRows(ctx context.Context, t kv.Table, keys [][]byte) (dropped int, err error) {
	for len(keys) > 0 {
		part := keys[max(0, len(keys)-sweepBatch):]
		rec := v.rec
		switch t {
		case tableCheckpoints:
			rec.Checkpoints -= len(part)
		case tableTimeline: // no redo brings back what is not in it any more
			rec.Lineage = rec.Lineage.without(func(p presence) bool {
				return !p.now() && slices.ContainsFunc(part, func(k []byte) bool { return bytes.Equal(k, eventKey(v.id, p.Seq)) })
			})
		}
		err := v.s.kv.Update(ctx, kv.Relaxed|kv.Reclaim, func(tx kv.Writer) error {
			for _, k := range part {
				if err := tx.Delete(t, k); err != nil {
					return err
				}
			}
			if t == tableOutputs {
				return nil
			}
			return putRecord(tx, rec)
		})
		if err != nil {
			return dropped, err
		}
		v.setRecord(rec)
		keys = keys[:len(keys)-len(part)]
		dropped += len(part)
	}
	return dropped, nil
}

// Retention is the rule that the vault's history follows.
func (v *Vault) Retention() Retention {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.retention()
}

// retention is Retention for a caller that holds commitMu or mu.
func (v *Vault) retention() Retention {
	switch {
	case v.rec.Retention != nil:
		return *v.rec.Retention
	case v.s.opts.Retention != nil:
		return *v.s.opts.Retention
	}
	return DefaultRetention()
}

// SetRetention gives the vault a rule of its own, durably; nil takes it back. Forks
// inherit it. It is applied with one of the next events.
func (v *Vault) SetRetention(ctx context.Context, rule *Retention) error {
	const op = "set retention"
	if rule != nil {
		if err := rule.valid(); err != nil {
			return wrap(err, op, v.Name())
		}
		own := *rule
		rule = &own
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return wrap(err, op, v.Name())
	}
	rec := v.rec
	rec.Retention = rule
	e := v.entry(ctx, AuditRetentionSet).between(rec.Root, rec.Root)
	err := v.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
		if _, err := v.s.putAudit(tx, e); err != nil {
			return err
		}
		return putRecord(tx, rec)
	})
	if err != nil {
		return wrap(err, op, v.Name())
	}
	v.setRecord(rec)
	return nil
}

// pruneRecorded applies the vault's rule after an event was added, now and then. A
// failure is left to the next time: the event is safe, and what goes on being wrong
// is told by Prune and Check. The caller holds commitMu.
func (v *Vault) pruneRecorded(ctx context.Context) {
	seq := v.recorded
	v.recorded = 0
	if seq == 0 || !pruneDue(seq) {
		return
	}
	rule := v.retention()
	n, err := v.countEvents(ctx)
	if most := rule.Last + rule.Hours + rule.Days; err != nil || n <= most+most/4+pruneEvery {
		return
	}
	_, _ = v.pruneItself(context.WithoutCancel(ctx), rule, cut{})
}

// pruneEvery is how many events lie between two looks at the number of them.
const pruneEvery = 16

// pruneDue picks about one event in pruneEvery, evenly also where the vaults of a
// store take turns. So nothing need be counted from process to process.
func pruneDue(seq uint64) bool {
	const golden = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio: Knuth, TAOCP 3, 6.4
	return seq*golden < 1<<63/(pruneEvery/2)
}

// countEvents counts the entries of the timeline without parsing them.
func (v *Vault) countEvents(ctx context.Context) (n int, err error) {
	err = v.s.kv.View(ctx, func(tx kv.Reader) error {
		n = 0
		return tx.Scan(tableTimeline, kv.ID(v.id), nil, func(_, _ []byte) error {
			n++
			return nil
		})
	})
	return n, err
}
