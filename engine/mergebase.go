package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// lineage is where a vault comes from and what was merged and imported into it. It is part of the
// vault's record, so every root in it is kept. It is never modified, only replaced.
type lineage struct {
	Ancestors []ancestor    `json:"ancestors,omitempty"` // the nearest first
	Merges    []mergeRecord `json:"merges,omitempty"`    // the newest last
	Origins   []HostOrigin  `json:"origins,omitempty"`   // the newest last
}

// ancestor is a vault that others were forked from, and the state at which the way to
// this vault left it. Seq is the number of the first event, of any vault, that can have
// come after that state; 0 where it is not known.
type ancestor struct {
	Vault uint64    `json:"vault"`
	Name  string    `json:"name,omitempty"` // empty in what older versions wrote
	Root  Root      `json:"root"`           // zero where no merge can be asked for that needs it; see dropLineage
	At    time.Time `json:"at"`             // when that was the vault's state
	Seq   uint64    `json:"seq,omitempty"`
}

// before reports whether a vault had the state a before it had the state b. Events have
// increasing numbers, and states between two events have increasing roots; the clock, which
// can be set back, counts only where no number is known.
func (a ancestor) before(b ancestor) bool {
	switch {
	case a.Seq == 0 || b.Seq == 0:
		return a.At.Before(b.At)
	case a.Seq != b.Seq:
		return a.Seq < b.Seq
	}
	return a.Root.ref.ID < b.Root.ref.ID
}

// names lists the names of the ancestors, the nearest first, up to one that is not known.
func (l *lineage) names() []string {
	var names []string
	for _, a := range l.Ancestors {
		if a.Name == "" {
			break
		}
		names = append(names, a.Name)
	}
	return names
}

// mergeRecord says that the state Root of another vault was merged into this one.
type mergeRecord struct {
	Vault uint64    `json:"vault"`
	Root  Root      `json:"root"`
	At    time.Time `json:"at"`
	presence
}

// Bounds of a lineage. Vaults that are further away than so many forks have no common
// ancestor; of merges with one vault, and of all, the newest count.
const (
	maxAncestors      = 32
	maxMergesOfVault  = 4
	maxMergesOfRecord = 64
)

// lineageOf is the lineage of a record, never nil.
func lineageOf(rec vaultRecord) *lineage {
	if rec.Lineage == nil {
		return &lineage{}
	}
	return rec.Lineage
}

// roots calls fn for every root of the lineage. l may be nil.
func (l *lineage) roots(fn func(Root)) {
	if l == nil {
		return
	}
	for _, a := range l.Ancestors {
		if !a.Root.IsZero() {
			fn(a.Root)
		}
	}
	for _, m := range l.Merges {
		fn(m.Root)
	}
	for _, o := range l.Origins {
		fn(o.Root)
		for _, r := range o.AppliedStates() {
			fn(r)
		}
	}
}

// forked is the lineage of a fork that begins with the state p of the vault rec; next is
// the first node that comes after. Where that is a past state, an import whose host agrees
// with a newer one is none of the fork's: to apply from there would take back on the host
// what the fork never had.
func (l *lineage) forked(rec vaultRecord, p forkPoint, next uint64) *lineage {
	fork := *l.without(func(had presence) bool { return !had.in(p.root) })
	if p.root != rec.Root {
		fork.Origins = slices.DeleteFunc(fork.Origins, func(o HostOrigin) bool { return o.Root.ref.ID > p.root.ref.ID })
	}
	fork = *fork.turned(next, func(presence) bool { return true })
	own := append([]ancestor{{Vault: rec.ID, Name: rec.Name, Root: p.root, At: p.at, Seq: p.seq}}, l.Ancestors...)
	fork.Ancestors = own[:min(len(own), maxAncestors)]
	return &fork
}

// switched is the lineage of a vault that becomes the state to, whose next own nodes
// begin at next.
func (l *lineage) switched(to Root, next uint64) *lineage {
	return l.turned(next, func(p presence) bool { return p.in(to) })
}

// reversed is the lineage of a vault whose state root has taken back, everywhere, what led
// from the state to to the state after. What was taken back at some paths only is
// decided, and does not come again.
func (l *lineage) reversed(to, after, root Root) *lineage {
	return l.turned(root.ref.ID, func(p presence) bool {
		if p.in(to) != p.in(after) {
			return p.in(to)
		}
		return p.now()
	})
}

// turned is the lineage of a vault whose states from the node on have the merges and
// imports of which has says so.
func (l *lineage) turned(node uint64, has func(presence) bool) *lineage {
	if l == nil {
		return nil
	}
	turned := lineage{Ancestors: l.Ancestors, Merges: slices.Clone(l.Merges), Origins: slices.Clone(l.Origins)}
	for i := range turned.Merges {
		m := &turned.Merges[i]
		m.presence = m.from(node, has(m.presence))
	}
	for i := range turned.Origins {
		o := &turned.Origins[i]
		o.presence = o.from(node, has(o.presence))
	}
	return &turned
}

// without is the lineage without the merges and imports of which drop says so.
func (l *lineage) without(drop func(presence) bool) *lineage {
	if l == nil {
		return nil
	}
	rest := lineage{Ancestors: l.Ancestors}
	rest.Merges = slices.DeleteFunc(slices.Clone(l.Merges), func(m mergeRecord) bool { return drop(m.presence) })
	rest.Origins = slices.DeleteFunc(slices.Clone(l.Origins), func(o HostOrigin) bool { return drop(o.presence) })
	return &rest
}

// merges lists the merges that the vault's state has.
func (r vaultRecord) merges() []mergeRecord {
	return slices.DeleteFunc(slices.Clone(lineageOf(r).Merges), func(m mergeRecord) bool { return !m.in(r.Root) })
}

// merged is the lineage with one more merge, after which no redo brings back another.
// useful says which vaults a merge may still be asked for.
func (l *lineage) merged(m mergeRecord, useful map[uint64]bool) *lineage {
	var list []mergeRecord
	of := map[uint64]int{m.Vault: 1}
	for _, old := range slices.Backward(l.Merges) {
		if !old.now() {
			continue
		}
		if of[old.Vault]++; useful[old.Vault] && of[old.Vault] <= maxMergesOfVault && len(list) < maxMergesOfRecord-1 {
			list = append(list, old)
		}
	}
	slices.Reverse(list)
	return &lineage{Ancestors: l.Ancestors, Merges: append(list, m), Origins: l.Origins}
}

// line is a vault as one that its descendants have in common: a point in its history,
// which for the vault itself is the present.
type line struct {
	ancestor
	present bool
}

// follows reports whether l has the state that was merged: l left its vault after that.
func (l line) follows(m mergeRecord) bool {
	switch {
	case l.present:
		return true
	case l.Seq == 0:
		return !m.At.After(l.At)
	}
	return m.Seq < l.Seq
}

// lines is the vault and its ancestors, the nearest first.
func lines(rec vaultRecord) []line {
	list := []line{{ancestor{Vault: rec.ID}, true}}
	for _, a := range lineageOf(rec).Ancestors {
		list = append(list, line{ancestor: a})
	}
	return list
}

// errNoAncestor says that nothing tells what two vaults have in common.
var errNoAncestor = errors.New("the vaults have no common ancestor: neither is a fork of the other, nor are both forks of one vault")

// mergeBase finds the state that two vaults have in common: that of the newest merge
// between them, or with an ancestor of the other; else the one at which the first of
// them left the history of the vault that both come from.
func mergeBase(src, dst vaultRecord) (Root, error) {
	var newest *mergeRecord
	note := func(into vaultRecord, of []line) {
		for _, m := range into.merges() {
			for _, l := range of {
				if m.Vault == l.Vault && l.follows(m) && (newest == nil || newest.Seq < m.Seq) {
					newest = &m
				}
			}
		}
	}
	note(dst, lines(src))
	note(src, lines(dst))
	if newest != nil {
		return newest.Root, nil
	}
	for _, a := range lines(src) {
		for _, b := range lines(dst) {
			switch {
			case a.Vault != b.Vault || !a.present && a.Root.IsZero() || !b.present && b.Root.IsZero():
			case a.present:
				return b.Root, nil
			case b.present:
				return a.Root, nil
			case a.before(b.ancestor):
				return a.Root, nil
			default:
				return b.Root, nil
			}
		}
	}
	return Root{}, &Error{Kind: NoAncestor, Err: errNoAncestor}
}

// family lists the vaults that a merge may be asked for, now or of their forks: all
// that there are, and their ancestors.
func family(recs []vaultRecord) map[uint64]bool {
	all := map[uint64]bool{}
	for _, rec := range recs {
		for _, l := range lines(rec) {
			all[l.Vault] = true
		}
	}
	return all
}

// noteMerge records that the state root of src was merged, where that changed nothing
// else. The caller holds commitMu.
func (v *Vault) noteMerge(ctx context.Context, src uint64, root Root) error {
	if err := v.open(); err != nil {
		return err
	}
	rec := v.rec
	m := mergeRecord{Vault: src, Root: root, At: v.s.opts.Clock().UTC(), presence: presence{Seq: v.s.lastEvent.Add(1), Since: rec.Root.ref.ID}}
	rec.Lineage = lineageOf(rec).merged(m, family(v.s.records()))
	err := v.s.kv.Update(ctx, kv.Durable, func(tx kv.Writer) error {
		if err := putRecord(tx, rec); err != nil {
			return err
		}
		return v.s.putCounters(tx)
	})
	if err == nil {
		v.setRecord(rec)
	}
	return err
}
