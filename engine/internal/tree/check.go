package tree

import (
	"context"
	"errors"
)

// Check reads the whole tree at root and verifies it.
func Check(ctx context.Context, src Source, root Ref) error {
	return errors.ErrUnsupported
}
