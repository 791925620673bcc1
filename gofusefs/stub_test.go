//go:build !linux

package gofusefs

import (
	"errors"
	"testing"
)

// TestUnavailable checks that other systems are told what to use instead.
func TestUnavailable(t *testing.T) {
	if err := Available(); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errNotLinux) {
		t.Errorf("Available: %v", err)
	}
	if w, err := Mount(t.Context(), nil, t.TempDir(), nil); w != nil || !errors.Is(err, ErrUnavailable) {
		t.Errorf("Mount: %v, %v", w, err)
	}
}
