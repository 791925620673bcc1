package tree

import (
	"context"
	"errors"
)

// Diff calls fn for each key whose value differs between the trees at a and b,
// in key order. old is nil for an added key and new is nil for a deleted one.
func Diff(ctx context.Context, src Source, a, b Ref, fn func(key, old, new []byte) error) error {
	return errors.ErrUnsupported
}
