//go:build !linux && !darwin

package mountpoint

import (
	"context"
	"errors"
)

// Detach takes the mount off point. Here only the library that mounted it can.
func Detach(context.Context, string, bool) error { return errors.ErrUnsupported }
