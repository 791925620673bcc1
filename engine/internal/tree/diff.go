package tree

import (
	"bytes"
	"cmp"
	"context"
)

// Diff calls fn for each key whose value differs between the trees at a and b,
// in key order. old is nil for an added key and new is nil for a deleted one;
// an empty value is not nil. Subtrees with equal digests are skipped unread
// wherever they stand, so the reads are proportional to the difference times
// the height. The first error ends it and is returned unchanged.
func Diff(ctx context.Context, src Source, a, b Ref, fn func(key, old, new []byte) error) error {
	x, y := newWalker(src, a), newWalker(src, b)
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
// may enter or pass by unread.
type walker struct {
	src   Source
	root  Ref
	ahead bool // the item is the root, still unread
	stack []spot
}

// spot is a node with the lower bound of its keys and a position in it.
type spot struct {
	node  *Node
	bound []byte
	index int
}

func newWalker(src Source, root Ref) *walker {
	return &walker{src: src, root: root, ahead: !root.IsZero()}
}

func (w *walker) done() bool { return !w.ahead && len(w.stack) == 0 }

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
	for len(w.stack) > 0 {
		t := w.top()
		if t.index++; t.index < t.node.Len() {
			return
		}
		w.stack = w.stack[:len(w.stack)-1]
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
	return nil
}
