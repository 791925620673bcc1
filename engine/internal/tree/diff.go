package tree

import (
	"bytes"
	"cmp"
	"context"
	"sort"
)

// Diff calls fn for each key whose value differs between the trees at a and b,
// in key order. old is nil for an added key and new is nil for a deleted one;
// an empty value is not nil. Subtrees with equal digests are skipped unread
// wherever they stand, so the reads are proportional to the difference times
// the height. The first error ends it and is returned unchanged.
func Diff(ctx context.Context, src Source, a, b Ref, fn func(key, old, new []byte) error) error {
	return DiffRange(ctx, src, a, b, nil, nil, fn)
}

// DiffRange is Diff for the keys that are not below from and are below to; nil is no
// bound. Nodes that have no such key are not read.
func DiffRange(ctx context.Context, src Source, a, b Ref, from, to []byte, fn func(key, old, new []byte) error) error {
	x, y := newWalker(src, a, from, to), newWalker(src, b, from, to)
	for {
		var err error
		switch {
		case x.done() && y.done():
			return nil
		case y.done():
			err = deleted(ctx, x, fn)
		case x.done():
			err = added(ctx, y, fn)
		default:
			err = diffStep(ctx, x, y, fn)
		}
		if err != nil {
			return err
		}
	}
}

// diffStep compares the items that x and y stand on. What has the lower bound
// is entered or reported first, so that the other side stays a subtree that may
// turn out to be shared.
func diffStep(ctx context.Context, x, y *walker, fn func(key, old, new []byte) error) error {
	xLevel, yLevel := x.level(), y.level()
	if xLevel >= 0 && yLevel >= 0 && x.child().Digest == y.child().Digest {
		x.pass()
		y.pass()
		return nil
	}
	switch order := bytes.Compare(x.low(), y.low()); {
	case order < 0:
		return deleted(ctx, x, fn)
	case order > 0:
		return added(ctx, y, fn)
	}
	switch order := cmp.Compare(xLevel, yLevel); {
	case order > 0:
		return x.enter(ctx)
	case order < 0:
		return y.enter(ctx)
	case xLevel >= 0:
		if err := x.enter(ctx); err != nil {
			return err
		}
		return y.enter(ctx)
	}
	key, old, new := x.low(), x.value(), y.value()
	x.pass()
	y.pass()
	if bytes.Equal(old, new) {
		return nil
	}
	return fn(key, old, new)
}

// deleted handles an item below everything that the new tree has left.
func deleted(ctx context.Context, x *walker, fn func(key, old, new []byte) error) error {
	if x.level() >= 0 {
		return x.enter(ctx)
	}
	key, old := x.low(), x.value()
	x.pass()
	return fn(key, old, nil)
}

// added handles an item below everything that the old tree has left.
func added(ctx context.Context, y *walker, fn func(key, old, new []byte) error) error {
	if y.level() >= 0 {
		return y.enter(ctx)
	}
	key, new := y.low(), y.value()
	y.pass()
	return fn(key, nil, new)
}

// walker stands on one item of a tree: an entry of a leaf, or a child that it
// may enter or pass by unread. It goes through the items from from to to only.
type walker struct {
	src      Source
	root     Ref
	from, to []byte // nil is no bound
	ahead    bool   // the item is the root, still unread
	stack    []spot
}

// spot is a node with the lower bound of its keys and a position in it.
type spot struct {
	node  *Node
	bound []byte
	index int
}

func newWalker(src Source, root Ref, from, to []byte) *walker {
	return &walker{src: src, root: root, from: from, to: to, ahead: !root.IsZero()}
}

func (w *walker) done() bool {
	if w.ahead {
		return false
	}
	return len(w.stack) == 0 || w.to != nil && bytes.Compare(w.low(), w.to) >= 0
}

func (w *walker) top() *spot { return &w.stack[len(w.stack)-1] }

// level returns that of the child, or -1 for an entry. The level of an unread
// root is not known; it counts as the highest.
func (w *walker) level() int {
	const highest = 1 << 8
	if w.ahead {
		return highest
	}
	return w.top().node.Level() - 1
}

// low returns the key of the entry or the lower bound of the child.
func (w *walker) low() []byte {
	if w.ahead {
		return nil
	}
	t := w.top()
	if t.node.IsLeaf() {
		return t.node.Key(t.index)
	}
	return t.node.bound(t.index, t.bound)
}

func (w *walker) value() []byte { return w.top().node.Value(w.top().index) }

func (w *walker) child() Ref {
	if w.ahead {
		return w.root
	}
	return w.top().node.Child(w.top().index)
}

// pass moves behind the item.
func (w *walker) pass() {
	w.ahead = false
	if len(w.stack) > 0 {
		w.top().index++
		w.settle()
	}
}

// settle leaves the nodes that are at their end.
func (w *walker) settle() {
	for len(w.stack) > 0 && w.top().index >= w.top().node.Len() {
		w.stack = w.stack[:len(w.stack)-1]
		if len(w.stack) > 0 {
			w.top().index++
		}
	}
}

// enter reads the child and moves to its first item.
func (w *walker) enter(ctx context.Context) error {
	above := -1
	if !w.ahead {
		above = w.top().node.Level()
	}
	n, err := load(ctx, w.src, w.child(), above)
	if err != nil {
		return err
	}
	w.stack = append(w.stack, spot{node: n, bound: w.low()})
	w.ahead = false
	w.skip()
	return nil
}

// skip passes by the items of the top node that end before from.
func (w *walker) skip() {
	if w.from == nil {
		return
	}
	t := w.top()
	t.index = sort.Search(t.node.Len(), func(i int) bool {
		if t.node.IsLeaf() {
			return bytes.Compare(t.node.Key(i), w.from) >= 0
		}
		return i+1 == t.node.Len() || bytes.Compare(t.node.bound(i+1, t.bound), w.from) > 0
	})
	w.settle()
}
