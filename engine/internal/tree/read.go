package tree

import (
	"context"
)

// Get returns the value of key in the tree at root and whether it exists. The
// value is never nil when it exists.
func Get(ctx context.Context, src Source, root Ref, key []byte) (value []byte, ok bool, err error) {
	if root.IsZero() {
		return nil, false, nil
	}
	for ref, above := root, -1; ; {
		n, err := load(ctx, src, ref, above)
		if err != nil {
			return nil, false, err
		}
		if n.IsLeaf() {
			if i, equal := n.Find(key); equal {
				return n.Value(i), true, nil
			}
			return nil, false, nil
		}
		ref, above = n.Child(n.childIndex(key)), n.Level()
	}
}

// load reads a node whose parent has level above, or that is a root if above
// is negative. A wrong level would let a damaged tree send a reader in circles.
func load(ctx context.Context, src Source, ref Ref, above int) (*Node, error) {
	n, err := src.Node(ctx, ref)
	if err != nil {
		return nil, err
	}
	if above >= 0 && n.Level() != above-1 {
		return nil, &CorruptError{Ref: ref, Reason: "level does not fit its parent"}
	}
	return n, nil
}

// Cursor iterates over a tree in key order. It reads each node once. A new
// Cursor stands nowhere until Seek. A Cursor serves one goroutine.
type Cursor struct {
	src   Source
	root  Ref
	stack []frame // branches from the root down
	leaf  *Node   // nil when the cursor is not valid
	index int
	err   error
}

// frame is a node and the position in it.
type frame struct {
	node  *Node
	index int
}

// NewCursor returns a cursor over the tree at root.
func NewCursor(src Source, root Ref) *Cursor {
	return &Cursor{src: src, root: root}
}

// Seek moves to the first entry whose key is not below key (nil: the first
// entry) and reports whether there is one. It clears an earlier error.
func (c *Cursor) Seek(ctx context.Context, key []byte) bool {
	c.stack, c.leaf, c.err = c.stack[:0], nil, nil
	if c.root.IsZero() {
		return false
	}
	if !c.descend(ctx, c.root, -1, key) {
		return false
	}
	if c.index < c.leaf.Len() {
		return true
	}
	return c.nextLeaf(ctx)
}

// Next moves to the next entry and reports whether there is one.
func (c *Cursor) Next(ctx context.Context) bool {
	if c.leaf == nil {
		return false
	}
	c.index++
	if c.index < c.leaf.Len() {
		return true
	}
	return c.nextLeaf(ctx)
}

// Valid reports whether the cursor stands on an entry.
func (c *Cursor) Valid() bool { return c.leaf != nil }

// Key returns the key of the current entry. It stays valid after the cursor moves.
func (c *Cursor) Key() []byte { return c.leaf.Key(c.index) }

// Value returns the value of the current entry. It stays valid after the cursor moves.
func (c *Cursor) Value() []byte { return c.leaf.Value(c.index) }

// Err returns the error that ended the iteration, nil at its natural end.
func (c *Cursor) Err() error { return c.err }

// descend goes from ref to the leaf that may hold key.
func (c *Cursor) descend(ctx context.Context, ref Ref, above int, key []byte) bool {
	for {
		n, err := load(ctx, c.src, ref, above)
		if err != nil {
			c.leaf, c.err = nil, err
			return false
		}
		if n.IsLeaf() {
			c.leaf = n
			c.index, _ = n.Find(key)
			return true
		}
		i := n.childIndex(key)
		c.stack = append(c.stack, frame{n, i})
		ref, above = n.Child(i), n.Level()
	}
}

// nextLeaf moves to the first entry of the leaf after the current one.
func (c *Cursor) nextLeaf(ctx context.Context) bool {
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		top.index++
		if top.index < top.node.Len() {
			return c.descend(ctx, top.node.Child(top.index), top.node.Level(), nil)
		}
		c.stack = c.stack[:len(c.stack)-1]
	}
	c.leaf = nil
	return false
}

// Walk visits the nodes of the tree at root, parents before children and
// neighbours in key order. Before it reads a node it asks enter, which may
// decline the node with all below it, so that a marker skips what it has seen
// without a read; nil enters all. The first error ends the walk.
func Walk(ctx context.Context, src Source, root Ref,
	enter func(Ref) (bool, error), visit func(Ref, *Node) error) error {
	if root.IsZero() {
		return nil
	}
	return walk(ctx, src, root, -1, enter, visit)
}

func walk(ctx context.Context, src Source, ref Ref, above int,
	enter func(Ref) (bool, error), visit func(Ref, *Node) error) error {
	if enter != nil {
		if ok, err := enter(ref); err != nil || !ok {
			return err
		}
	}
	n, err := load(ctx, src, ref, above)
	if err != nil {
		return err
	}
	if err := visit(ref, n); err != nil {
		return err
	}
	if n.IsLeaf() {
		return nil
	}
	for i := range n.Len() {
		if err := walk(ctx, src, n.Child(i), n.Level(), enter, visit); err != nil {
			return err
		}
	}
	return nil
}
