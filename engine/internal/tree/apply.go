package tree

import (
	"bytes"
	"context"
	"fmt"
)

// Apply merges changes into the tree at root in one bottom-up pass and returns
// the new root. It costs the changed leaves times the height; what does not
// change is shared. Changes without effect rewrite nothing, so that a batch of
// them returns root itself. After an error the old tree is intact and what was
// put is garbage; the error of a Source, Sink or Changes is returned unchanged.
//
// Node boundaries depend on the old tree and the changes only, never on ids, so
// the same operations give the same digests in every store.
func Apply(ctx context.Context, src Source, root Ref, changes Changes, sink Sink) (Ref, error) {
	a := &applier{src: src, sink: sink, feed: feed{next: changes}, shape: standardShape()}
	return a.apply(ctx, root)
}

func (a *applier) apply(ctx context.Context, root Ref) (Ref, error) {
	if err := a.feed.advance(); err != nil {
		return Ref{}, err
	}
	if !a.feed.ok {
		return root, nil
	}
	items, level, err := a.top(ctx, root)
	for err == nil && len(items) > 1 {
		level++
		items, err = a.settle(ctx, level, items, true)
	}
	if err != nil {
		return Ref{}, err
	}
	next, err := a.finish(ctx, root, items)
	if err != nil {
		return Ref{}, err
	}
	for _, ref := range a.dead {
		a.sink.Dead(ref)
	}
	return next, nil
}

// applier is the state of one Apply.
//
// Nodes under construction are drafts. A draft is stored as soon as it can no
// longer need a neighbour: everything but the first and the last result of a
// subtree, since only those may yet be joined with a node outside it. So nothing
// is stored in vain, and memory holds a few drafts per level.
type applier struct {
	src   Source
	sink  Sink
	shape shape
	feed  feed
	run   leafRun
	dead  []Ref
}

// item is one child of a branch under construction.
type item struct {
	sep   []byte // lower bound of its keys; empty on the left edge of the tree
	ref   Ref    // the stored node, if draft is nil
	draft *draft
}

// draft is a node that is not stored yet: a leaf with entries, or a branch with
// items of which only the first and the last may be drafts themselves.
type draft struct {
	level   int
	size    int // of the record
	entries []entry
	items   []item
}

// feed looks one change ahead and checks order and limits.
type feed struct {
	next Changes
	cur  Change
	ok   bool
}

func (f *feed) advance() error {
	c, ok, err := f.next()
	if err != nil {
		return err
	}
	if ok {
		if len(c.Key) == 0 || len(c.Key) > MaxKey || (!c.Delete && len(c.Value) > MaxValue) {
			return fmt.Errorf("%w: key of %d bytes, value of %d", ErrLimit, len(c.Key), len(c.Value))
		}
		if f.ok && bytes.Compare(f.cur.Key, c.Key) >= 0 {
			return fmt.Errorf("%w: %x after %x", ErrOrder, c.Key, f.cur.Key)
		}
	}
	f.cur, f.ok = c, ok
	return nil
}

// below reports whether there is a change below hi; nil is above every key.
func (f *feed) below(hi []byte) bool {
	return f.ok && (hi == nil || bytes.Compare(f.cur.Key, hi) < 0)
}

// top applies the changes below the root and returns what takes its place, and
// the level of those nodes.
func (a *applier) top(ctx context.Context, root Ref) ([]item, int, error) {
	if !root.IsZero() {
		n, err := load(ctx, a.src, root, -1)
		if err != nil {
			return nil, 0, err
		}
		items, err := a.update(ctx, n, item{ref: root}, nil, true)
		return items, n.Level(), err
	}
	a.run.start(nil)
	for a.feed.ok {
		if c := a.feed.cur; !c.Delete {
			a.run.add(c.Key, c.Value)
		}
		if err := a.drain(ctx); err != nil {
			return nil, 0, err
		}
		if err := a.feed.advance(); err != nil {
			return nil, 0, err
		}
	}
	items, err := a.endRun(packLast)
	return items, 0, err
}

// update applies the changes below hi to the node n that it names, and returns
// the nodes that take its place: it itself if nothing changed. last says that n
// is the last node of its level.
func (a *applier) update(ctx context.Context, n *Node, it item, hi []byte, last bool) ([]item, error) {
	if n.IsLeaf() {
		return a.updateLeaf(ctx, n, it, hi, last)
	}
	items, changed, err := a.updateChildren(ctx, n, it, hi, last)
	if err != nil {
		return nil, err
	}
	if !changed {
		return []item{it}, nil
	}
	a.dead = append(a.dead, it.ref)
	if len(items) > 0 {
		items[0].sep = it.sep
	}
	return a.settle(ctx, n.Level(), items, last)
}

func (a *applier) updateChildren(ctx context.Context, n *Node, it item, hi []byte, last bool) (
	items []item, changed bool, err error) {
	items = make([]item, 0, n.Len()+2)
	for i := range n.Len() {
		child := item{sep: n.bound(i, it.sep), ref: n.Child(i)}
		childHi := hi
		if i+1 < n.Len() {
			childHi = n.Key(i + 1)
		}
		if !a.feed.below(childHi) {
			items = append(items, child)
			continue
		}
		sub, err := load(ctx, a.src, child.ref, n.Level())
		if err != nil {
			return nil, false, err
		}
		got, err := a.update(ctx, sub, child, childHi, last && i+1 == n.Len())
		if err != nil {
			return nil, false, err
		}
		if len(got) != 1 || got[0].draft != nil {
			changed = true
		}
		items = append(items, got...)
	}
	return items, changed, nil
}

func (a *applier) updateLeaf(ctx context.Context, n *Node, it item, hi []byte, last bool) ([]item, error) {
	a.run.start(it.sep)
	m := leafMerge{node: n, run: &a.run}
	for a.feed.below(hi) {
		m.apply(a.feed.cur)
		// Before the first change there is nothing to pack: a leaf that stays
		// as it is must not be written, however large.
		if m.changed {
			if err := a.drain(ctx); err != nil {
				return nil, err
			}
		}
		if err := a.feed.advance(); err != nil {
			return nil, err
		}
	}
	if !m.changed {
		return []item{it}, nil
	}
	m.keep(n.Len())
	a.dead = append(a.dead, it.ref)
	return a.endRun(packing(last, m.appended && !m.inserted))
}

// leafMerge adds the entries of a leaf, with changes to them, to a run.
type leafMerge struct {
	node     *Node
	run      *leafRun
	index    int  // first entry of node that is not in run yet
	changed  bool // run differs from node
	inserted bool // there is a new key before the end of node
	appended bool // there is a new key behind it
}

// keep adds the entries below index end unchanged.
func (m *leafMerge) keep(end int) {
	for ; m.index < end; m.index++ {
		m.run.add(m.node.Key(m.index), m.node.Value(m.index))
	}
}

func (m *leafMerge) apply(c Change) {
	for m.index < m.node.Len() && bytes.Compare(m.node.Key(m.index), c.Key) < 0 {
		m.keep(m.index + 1)
	}
	atEnd := m.index == m.node.Len()
	if exists := !atEnd && bytes.Equal(m.node.Key(m.index), c.Key); exists {
		if !c.Delete && bytes.Equal(m.node.Value(m.index), c.Value) {
			m.keep(m.index + 1)
			return
		}
		m.index++
	} else if c.Delete {
		return
	} else if atEnd {
		m.appended = true
	} else {
		m.inserted = true
	}
	m.changed = true
	if !c.Delete {
		m.run.add(c.Key, c.Value)
	}
}

// settle turns the children items into branches of the given level. A lone
// child that is too small stays a draft, to be joined when its parent is.
func (a *applier) settle(ctx context.Context, level int, items []item, last bool) ([]item, error) {
	items, err := a.repair(ctx, items, last)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	sizes, err := branchSizes(items)
	if err != nil {
		return nil, err
	}
	var out []item
	for rest := sizes; len(items) > 0; {
		n, size := rest.cut(a.shape, packing(last, false))
		first, final := len(out) == 0, n == len(items)
		it := item{sep: items[0].sep, draft: &draft{level: level, size: size, items: items[:n:n]}}
		if err := a.storeInner(it.draft.items, first, final); err != nil {
			return nil, err
		}
		if !first && !final {
			if err := a.store(&it); err != nil {
				return nil, err
			}
		}
		out = append(out, it)
		items, rest = items[n:], rest[n:]
	}
	return out, nil
}

// storeInner stores the children of a branch, except those on an edge that may
// still be joined with a neighbour outside it.
func (a *applier) storeInner(items []item, keepFirst, keepLast bool) error {
	for i := range items {
		if (keepFirst && i == 0) || (keepLast && i == len(items)-1) {
			continue
		}
		if err := a.store(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

// store puts the draft of it, its children first; a stored node stays as it is.
func (a *applier) store(it *item) error {
	d := it.draft
	if d == nil {
		return nil
	}
	for i := range d.items {
		if err := a.store(&d.items[i]); err != nil {
			return err
		}
	}
	ref, rec := d.encode(a.sink.NewID())
	if err := a.sink.Put(ref, rec); err != nil {
		return err
	}
	it.ref, it.draft = ref, nil
	return nil
}

func (d *draft) encode(id uint64) (Ref, []byte) {
	e := newEncoder(d.level, len(d.entries)+len(d.items), d.size)
	for i := range d.entries {
		e.add(d.entries[i].key, d.entries[i].value)
	}
	for i := range d.items {
		sep := d.items[i].sep
		if i == 0 {
			sep = nil
		}
		e.add(sep, d.items[i].ref.Digest[:])
	}
	return e.seal(id, d.items)
}

// finish stores the new root, which is the only one of items. A branch with one
// child gives way to that child.
func (a *applier) finish(ctx context.Context, root Ref, items []item) (Ref, error) {
	if len(items) == 0 {
		return Ref{}, nil
	}
	it := items[0]
	for it.draft != nil && it.draft.level > 0 && len(it.draft.items) == 1 {
		it = it.draft.items[0]
	}
	if it.draft != nil {
		err := a.store(&it)
		return it.ref, err
	}
	for it.ref != root {
		n, err := load(ctx, a.src, it.ref, -1)
		if err != nil {
			return Ref{}, err
		}
		if n.IsLeaf() || n.Len() > 1 {
			break
		}
		a.dead = append(a.dead, it.ref)
		it.ref = n.Child(0)
	}
	return it.ref, nil
}
