package tree

import (
	"context"
	"errors"
)

type item struct{ ref Ref }

// Apply merges changes into the tree at root and returns the new root.
func Apply(ctx context.Context, src Source, root Ref, changes Changes, sink Sink) (Ref, error) {
	return Ref{}, errors.ErrUnsupported
}
