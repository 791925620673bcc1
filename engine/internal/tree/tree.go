package tree

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
)

// Limits of the format. All sizes are in bytes.
const (
	MaxKey   = 1024      // longest key
	MaxValue = 128 << 10 // longest value

	// NodeSize is the size that a stored node aims for and does not exceed,
	// unless it holds an entry larger than a third of it.
	NodeSize = 4096

	// MinNode is the smallest size of a stored node that is neither the root
	// nor the last of its level.
	MinNode = NodeSize / 3

	// MaxRecord bounds every stored node, also one with a large value: what
	// fits before that value, the value with its key, and a remainder too
	// small to stand alone.
	MaxRecord = NodeSize + MaxValue + MaxKey + entryOverhead + MinNode
)

// Errors that callers test for with errors.Is.
var (
	// ErrCorrupt marks a stored node that is not what its reference promises.
	ErrCorrupt = errors.New("tree node is damaged")
	// ErrOrder marks changes whose keys do not strictly increase.
	ErrOrder = errors.New("changes out of order")
	// ErrLimit marks a key or value outside MaxKey and MaxValue, or an empty key.
	ErrLimit = errors.New("key or value outside the limits")
)

// CorruptError says which node is damaged and how. It matches ErrCorrupt.
type CorruptError struct {
	Ref    Ref // zero if the fault lies between nodes
	Reason string
}

// Error describes the damage in one line.
func (e *CorruptError) Error() string {
	if e.Ref.IsZero() {
		return "tree is damaged: " + e.Reason
	}
	return fmt.Sprintf("tree node %d is damaged: %s", e.Ref.ID, e.Reason)
}

// Is reports whether target is ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Digest is the first 16 bytes of a SHA-256.
type Digest [16]byte

// String returns d in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Ref names a node: its id and the digest of its content. The zero Ref is the
// empty tree.
type Ref struct {
	ID     uint64
	Digest Digest
}

// IsZero reports whether r is the empty tree.
func (r Ref) IsZero() bool { return r == Ref{} }

// Source reads nodes. A Source that several goroutines use at once, each in
// its own call of this package, must allow that.
type Source interface {
	// Node returns the decoded node that ref names. The engine implements it
	// with Decode and a cache; the node is immutable and may be shared.
	// Errors pass through this package unchanged.
	Node(ctx context.Context, ref Ref) (*Node, error)
}

// Sink takes the nodes that Apply makes.
type Sink interface {
	// NewID returns the id of the next node, never zero and never one that
	// this store has used before.
	NewID() uint64

	// Put stores a new encoded node. The sink owns data after the call.
	Put(ref Ref, data []byte) error

	// Dead reports a node of the old tree that the new tree does not use.
	// Each is reported exactly once, after the last Put of a successful
	// Apply; a failed Apply reports none.
	Dead(ref Ref)
}

// Change is one put or delete.
type Change struct {
	Key    []byte
	Value  []byte // ignored for a delete
	Delete bool
}

// Changes yields changes one at a time with strictly increasing keys, and ok
// false at the end. The slices must stay unmodified until Apply returns. An
// error ends Apply, which returns it unchanged.
type Changes func() (c Change, ok bool, err error)

// Slice returns Changes that yield the elements of list.
func Slice(list []Change) Changes {
	i := 0
	return func() (Change, bool, error) {
		if i == len(list) {
			return Change{}, false, nil
		}
		i++
		return list[i-1], true, nil
	}
}
