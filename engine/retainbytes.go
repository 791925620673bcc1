package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/internal/tree"
)

// What history alone keeps is found in two steps. The differences from each state to
// the one before it, added up from the present one back, are never less, and cost what
// has changed. Only where that is beyond the bound is it counted as GC counts: all that
// anything else holds is marked first, and then what each entry holds beside.

// cut says which entries of a vault's history go for their bytes: of each kind those
// up to a number. The zero value is none.
type cut struct{ event, checkpoint, output uint64 }

// pastKind is a kind of entries of a vault's history that the rule drops.
type pastKind uint8

const (
	pastEvent pastKind = iota
	pastCheckpoint
	pastOutput
)

// past is an entry of a vault's history that stays by the numbers of the rule.
type past struct {
	kind  pastKind
	seq   uint64
	at    int64  // in nanoseconds; see aging
	roots []Root // the newest first
}

// aging gives entries of one kind, which it is shown from the newest to the oldest, times
// that do not increase. A cut goes by the order of a kind, so an entry from before the
// clock was set back must not stand before those that came later.
func aging() func(at time.Time) int64 {
	newer := int64(math.MaxInt64)
	return func(at time.Time) int64 {
		newer = min(newer, at.UnixNano())
		return newer
	}
}

// add moves the cut so that the entry goes.
func (c *cut) add(p past) {
	into := map[pastKind]*uint64{pastEvent: &c.event, pastCheckpoint: &c.checkpoint, pastOutput: &c.output}[p.kind]
	*into = max(*into, p.seq)
}

// byAge puts entries in order, the newest first. An event comes before the checkpoint
// of the state that it began with.
func byAge(list []past) {
	slices.SortStableFunc(list, func(a, b past) int {
		switch {
		case a.at != b.at:
			return compareNewest(a.at, b.at)
		case a.kind != b.kind:
			return int(a.kind) - int(b.kind)
		}
		return compareNewest(a.seq, b.seq)
	})
}

func compareNewest[T int64 | uint64](a, b T) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// excess is what of a vault's history is beyond the bound in bytes of a rule, and how
// much the rest holds alone. Nothing is where it is at most slack beyond. kept is
// counted from above where that is enough to know. It reads states only, beside
// whatever else goes on; what becomes history meanwhile is for the next time. The
// caller holds care, so that no state is collected.
func (v *Vault) excess(ctx context.Context, rule Retention, slack int64) (c cut, kept int64, err error) {
	sel, err := v.selectHistory(ctx, rule, cut{})
	if err != nil || len(sel.kept) == 0 {
		return c, 0, err
	}
	byAge(sel.kept)
	pinned, err := v.s.pinVaults(ctx, []*Vault{v})
	for _, rec := range pinned {
		defer v.s.unpin(rec.Root)
	}
	if err != nil || len(pinned) == 0 {
		return c, 0, err
	}
	enough := rule.Bytes + min(slack, math.MaxInt64-rule.Bytes)
	kept, err = v.s.heldAtMost(ctx, pinned[0].Root, sel.kept, enough)
	if err != nil || kept <= enough {
		return c, kept, err
	}
	return v.exactExcess(ctx, sel.kept, rule.Bytes, enough)
}

// sizing adds up the records of the nodes that pass through it, each once.
type sizing struct {
	src   tree.Source
	seen  bitmap
	bytes int64
}

// Node implements tree.Source.
func (s *sizing) Node(ctx context.Context, ref tree.Ref) (*tree.Node, error) {
	n, err := s.src.Node(ctx, ref)
	if err == nil && s.seen.add(ref.ID) {
		s.bytes += int64(n.RecordSize())
	}
	return n, err
}

// heldAtMost is no less than what a history, the newest entry first, holds beside the
// present state. A chunk that a newer state has had is not counted again; one that is
// found at another path of the present state, or in another vault, is. It ends once it
// is beyond enough.
func (s *Store) heldAtMost(ctx context.Context, present Root, history []past, enough int64) (int64, error) {
	src := sizing{src: s.nodes}
	var seen bitmap
	var content int64
	count := func(k, newer, older []byte) error {
		if len(k) < keyHead || k[keyHead-1] != kindChunk {
			return nil
		}
		if newer != nil {
			ref, err := decodeChunkRef(newer)
			if err != nil {
				return err
			}
			seen.add(ref.id)
		}
		if older == nil {
			return nil
		}
		ref, err := decodeChunkRef(older)
		if err == nil && seen.add(ref.id) {
			content += int64(ref.length)
		}
		return err
	}
	for _, p := range history {
		for _, r := range p.roots {
			from := present
			if p.kind == pastOutput {
				from = Root{}
			}
			if err := tree.Diff(ctx, &src, from.ref, r.ref, count); err != nil {
				return 0, err
			}
			if p.kind != pastOutput {
				present = r
			}
		}
		if content+src.bytes > enough {
			break
		}
	}
	return content + src.bytes, nil
}

// exactExcess is excess by marks, where nothing goes if the history holds no more than
// enough, which is at least the bound. Its cost is that of a collection.
func (v *Vault) exactExcess(ctx context.Context, history []past, bound, enough int64) (c cut, kept int64, err error) {
	var live marks
	if err := v.markOthers(ctx, &live); err != nil {
		return c, 0, err
	}
	base, over := live.size(), -1
	for i, p := range history {
		for _, r := range p.roots {
			if err := v.s.mark(ctx, r, &live); err != nil {
				return c, 0, err
			}
		}
		switch held := live.size() - base; {
		case over < 0 && held <= bound:
			kept = held
		case over < 0:
			over = i
		}
	}
	if total := live.size() - base; total <= enough {
		return c, total, nil
	}
	for _, p := range history[over:] {
		c.add(p)
	}
	return c, kept, nil
}

// markOthers marks what anything but the history of this vault holds.
func (v *Vault) markOthers(ctx context.Context, live *marks) error {
	s := v.s
	pinned, err := s.pinVaults(ctx, s.allVaults())
	var roots []Root
	for _, rec := range pinned {
		defer s.unpin(rec.Root)
		roots = append(roots, rec.Root)
	}
	if err != nil {
		return err
	}
	name := v.Name()
	err = s.eachRoot(ctx, func(r keptRoot) error {
		own := r.vault == name && (r.kind == rootEvent || r.kind == rootOutput || r.kind == rootCheckpoint && r.auto)
		if !own && r.kind != rootLive { // which are pinned; these go on changing
			roots = append(roots, r.root)
		}
		return nil
	})
	for _, r := range roots {
		if err == nil {
			err = s.mark(ctx, r, live)
		}
	}
	return err
}

// Trim drops what is beyond the bound in bytes of the rule of a vault, in each that
// has one and is beyond it by a quarter, and counts the entries that went. It is for
// the background: it works beside writers, and where nothing has become history since
// the last time it costs nothing. A vault where it fails keeps no other from it; what
// fails is joined, in the order of the vaults' ids.
func (s *Store) Trim(ctx context.Context) (dropped int, err error) {
	s.care.Lock()
	defer s.care.Unlock()
	vaults := s.allVaults()
	slices.SortFunc(vaults, func(a, b *Vault) int { return cmp.Compare(a.id, b.id) })
	var failed []error
	for _, v := range vaults {
		n, err := v.trim(ctx)
		dropped += n
		if err != nil && KindOf(err) != Closed {
			failed = append(failed, wrap(err, "trim", v.Name()))
		}
	}
	return dropped, errors.Join(failed...)
}

// trim is Trim for one vault. The caller holds care.
func (v *Vault) trim(ctx context.Context) (int, error) {
	rule := v.Retention()
	looked := trimmed{rule, v.s.lastEvent.Load(), v.s.lastCheckpoint.Load(), v.s.lastOutput.Load()}
	if rule.Bytes == 0 || v.trimmed == looked {
		return 0, nil
	}
	c, _, err := v.excess(ctx, rule, rule.Bytes/4)
	if err != nil {
		return 0, err
	}
	var rep PruneReport
	if c != (cut{}) {
		v.commitMu.Lock()
		defer v.commitMu.Unlock()
		rep, err = v.pruneItself(ctx, rule, c)
	}
	if err == nil {
		v.trimmed = looked
	}
	return rep.Events + rep.Checkpoints + rep.Outputs, err
}

// trimmed says what there was in the store when a vault was last found to be within
// its bound.
type trimmed struct {
	rule                      Retention
	event, checkpoint, output uint64
}
