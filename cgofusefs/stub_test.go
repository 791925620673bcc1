//go:build !cgo && !windows

package cgofusefs

import (
	"errors"
	"testing"
)

// TestUnavailable checks that a build without cgo says so, instead of ending the
// process as the library would.
func TestUnavailable(t *testing.T) {
	if err := Available(); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errNoCgo) {
		t.Errorf("Available: %v", err)
	}
	if w, err := Mount(t.Context(), nil, t.TempDir(), nil); w != nil || !errors.Is(err, ErrUnavailable) {
		t.Errorf("Mount: %v, %v", w, err)
	}
}
