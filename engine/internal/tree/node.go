package tree

import "bytes"

// Node is a decoded node: a leaf with keys and values, or a branch with
// separator keys and children. It is immutable and safe for concurrent use. It
// owns its memory, and the slices that it returns stay valid as long as they
// are referenced; they must not be modified.
type Node struct {
	level uint8
	size  int      // length of the record
	buf   []byte   // key and value of every entry, one after another
	off   []uint32 // 2n+1 offsets into buf: key, value, key, value, ..., end
	ids   []uint64 // ids of the children of a branch
}

// Level returns the height of n above the leaves; a leaf has level 0.
func (n *Node) Level() int { return int(n.level) }

// IsLeaf reports whether n holds keys and values, not children.
func (n *Node) IsLeaf() bool { return n.level == 0 }

// Len returns the number of entries of a leaf or of children of a branch.
func (n *Node) Len() int { return len(n.off) / 2 }

// Key returns the key of entry i of a leaf. In a branch it is the lower bound of
// child i, with an empty one for child 0: that bound stands in the parent.
func (n *Node) Key(i int) []byte {
	lo, hi := n.off[2*i], n.off[2*i+1]
	return n.buf[lo:hi:hi]
}

// Value returns the value of entry i of a leaf, never nil.
func (n *Node) Value(i int) []byte {
	lo, hi := n.off[2*i+1], n.off[2*i+2]
	return n.buf[lo:hi:hi]
}

// Child returns the reference to child i of a branch.
func (n *Node) Child(i int) Ref {
	return Ref{ID: n.ids[i], Digest: Digest(n.Value(i))}
}

// RecordSize returns the length in bytes of the encoded node.
func (n *Node) RecordSize() int { return n.size }

// MemSize returns about how many bytes of memory n occupies, for a cache's budget.
func (n *Node) MemSize() int {
	const fixed = 96
	return fixed + cap(n.buf) + 4*cap(n.off) + 8*cap(n.ids)
}

// Find returns the index of the first entry of a leaf whose key is not below
// key, and whether that key is equal.
func (n *Node) Find(key []byte) (i int, equal bool) {
	lo, hi := 0, n.Len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch order := bytes.Compare(n.Key(mid), key); {
		case order == 0:
			return mid, true
		case order < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

// childIndex returns the index of the child whose range holds key.
func (n *Node) childIndex(key []byte) int {
	lo, hi := 1, n.Len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(n.Key(mid), key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// bound returns the lower bound of child i, given that of n itself.
func (n *Node) bound(i int, own []byte) []byte {
	if i == 0 {
		return own
	}
	return n.Key(i)
}
