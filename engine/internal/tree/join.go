package tree

import (
	"context"
	"slices"
)

// repair joins drafts that are too small with a neighbour. The last node of a
// level may be small, because the next append fills it; it is joined only if
// both fit into one node.
func (a *applier) repair(ctx context.Context, items []item, last bool) ([]item, error) {
	for i := 0; i < len(items) && len(items) > 1; {
		d := items[i].draft
		if d == nil || d.size >= a.shape.min {
			i++
			continue
		}
		l := partner(items, i)
		left, err := a.open(ctx, items[l], d.level)
		if err != nil {
			return nil, err
		}
		right, err := a.open(ctx, items[l+1], d.level)
		if err != nil {
			return nil, err
		}
		final := last && l+2 == len(items)
		if final && i == l+1 && !a.fits(left, right) {
			break
		}
		for _, it := range items[l : l+2] {
			if it.draft == nil {
				a.dead = append(a.dead, it.ref)
			}
		}
		joined, err := a.join(ctx, items[l].sep, left, right, final)
		if err != nil {
			return nil, err
		}
		items = slices.Replace(items, l, l+2, joined...)
		i = l
	}
	return items, nil
}

// partner returns l such that the small draft i is joined as items l and l+1.
// It prefers a neighbour that is a draft, since that is to be written anyway.
func partner(items []item, i int) int {
	switch {
	case i == 0:
		return 0
	case items[i-1].draft != nil || i+1 == len(items) || items[i+1].draft == nil:
		return i - 1
	}
	return i
}

// open returns the draft of it, or the stored node of that level as a draft.
func (a *applier) open(ctx context.Context, it item, level int) (*draft, error) {
	if it.draft != nil {
		if it.draft.level > 0 {
			it.draft.items[0].sep = it.sep
		}
		return it.draft, nil
	}
	n, err := load(ctx, a.src, it.ref, level+1)
	if err != nil {
		return nil, err
	}
	d := &draft{level: n.Level(), size: n.RecordSize()}
	for i := range n.Len() {
		if n.IsLeaf() {
			d.entries = append(d.entries, entry{n.Key(i), n.Value(i)})
		} else {
			d.items = append(d.items, item{sep: n.bound(i, it.sep), ref: n.Child(i)})
		}
	}
	return d, nil
}

// fits reports whether two neighbours make one node. It errs on the side of
// no, so that it never finds room where packing had none.
func (a *applier) fits(left, right *draft) bool {
	size := left.size + right.size
	if right.level > 0 {
		size += len(right.items[0].sep)
	}
	return size <= a.shape.node
}

// join packs two neighbours anew.
func (a *applier) join(ctx context.Context, sep []byte, left, right *draft, last bool) ([]item, error) {
	if left.level > 0 {
		return a.settle(ctx, left.level, slices.Concat(left.items, right.items), last)
	}
	a.run.start(sep)
	for _, d := range []*draft{left, right} {
		for _, e := range d.entries {
			a.run.add(e.key, e.value)
		}
	}
	return a.endRun(packing(last, false))
}
