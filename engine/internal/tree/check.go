package tree

import (
	"bytes"
	"context"
)

// Check reads the whole tree at root and verifies what Decode cannot see in one
// node: that levels decrease by one, that keys lie between the separators above
// them, that nodes are neither too small nor too large, and that every node
// from src matches its digest. A violation is a *CorruptError; an error of src
// is returned unchanged. Check stops at the first.
func Check(ctx context.Context, src Source, root Ref) error {
	return Audit(ctx, src, root, nil, func(d Damage) error { return d.Err })
}

// Damage is a node that Audit could not read or found wrong, and the range of
// keys that it held.
type Damage struct {
	Ref  Ref
	Low  []byte // nil: no lower bound
	High []byte // first key beyond the range; nil: no upper bound
	Err  error
}

// Audit verifies like Check, but goes on after damage: it calls report for each
// damaged node, continues beside it or, where only its size is wrong, below it,
// and ends when report returns an error. Like
// in Walk, enter may decline a node with all below it; nil enters all. Audit
// returns an error only from enter, from report or when ctx ends.
func Audit(ctx context.Context, src Source, root Ref,
	enter func(Ref) (bool, error), report func(Damage) error) error {
	if root.IsZero() {
		return nil
	}
	c := &checker{src: src, enter: enter, report: report, shape: standardShape()}
	return c.node(ctx, place{ref: root, above: -1, last: true})
}

type checker struct {
	src    Source
	enter  func(Ref) (bool, error)
	report func(Damage) error
	shape  shape
}

// place is where a node stands in its tree.
type place struct {
	ref       Ref
	above     int // level of the parent, negative for the root
	low, high []byte
	last      bool // on the right edge of the tree
}

func (c *checker) node(ctx context.Context, p place) error {
	if c.enter != nil {
		if ok, err := c.enter(p.ref); err != nil || !ok {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n, err := load(ctx, c.src, p.ref, p.above)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err == nil {
		err = verify(n, p)
	}
	if err != nil {
		return c.damaged(p, err)
	}
	if reason := c.sizeFault(n, p); reason != "" {
		if err := c.damaged(p, &CorruptError{Ref: p.ref, Reason: reason}); err != nil {
			return err
		}
	}
	return c.children(ctx, n, p)
}

func (c *checker) damaged(p place, err error) error {
	return c.report(Damage{Ref: p.ref, Low: p.low, High: p.high, Err: err})
}

func (c *checker) children(ctx context.Context, n *Node, p place) error {
	if n.IsLeaf() {
		return nil
	}
	for i := range n.Len() {
		child := place{
			ref: n.Child(i), above: n.Level(),
			low: n.bound(i, p.low), high: p.high, last: p.last && i+1 == n.Len(),
		}
		if i+1 < n.Len() {
			child.high = n.Key(i + 1)
		}
		if err := c.node(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// verify returns what makes n at place p unfit to be read.
func verify(n *Node, p place) error {
	if !n.within(p.low, p.high) {
		return &CorruptError{Ref: p.ref, Reason: "keys outside the bounds in the parent"}
	}
	if n.digest() != p.ref.Digest {
		return &CorruptError{Ref: p.ref, Reason: "decoded node does not match its digest"}
	}
	return nil
}

// within reports whether the keys of n lie in [low, high). The separator of a
// branch's first child is low itself, so the second must be above it.
func (n *Node) within(low, high []byte) bool {
	switch {
	case n.IsLeaf():
		if bytes.Compare(n.Key(0), low) < 0 {
			return false
		}
	case n.Len() == 1:
		return true
	case bytes.Compare(n.Key(1), low) <= 0:
		return false
	}
	return high == nil || bytes.Compare(n.Key(n.Len()-1), high) < 0
}

// sizeFault returns how n is out of shape, or "". Such a node is still read
// correctly; only Apply can have made it.
func (c *checker) sizeFault(n *Node, p place) string {
	root := p.above < 0
	switch {
	case root && !n.IsLeaf() && n.Len() < 2:
		return "root with a single child"
	case !p.last && n.size < c.shape.min:
		return "node too small"
	case n.size > c.shape.node && !n.hasLarge(c.shape.min):
		return "node too large"
	}
	return ""
}

// hasLarge reports whether n has an entry of about the given size or more,
// which may keep it from being divided.
func (n *Node) hasLarge(size int) bool {
	for i := range n.Len() {
		if len(n.Key(i))+len(n.Value(i))+entryOverhead+idSize >= size {
			return true
		}
	}
	return false
}

// digest computes the digest of n from what was decoded.
func (n *Node) digest() Digest {
	e := newEncoder(n.Level(), n.Len(), n.size)
	for i := range n.Len() {
		e.add(n.Key(i), n.Value(i))
	}
	return digestOf(e.rec)
}
