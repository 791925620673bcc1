package bbolt_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/bbolt"
	"github.com/agentvfs/avfs/conformance"
)

// TestVault checks that vaults work on bbolt.
func TestVault(t *testing.T) {
	conformance.TestVault(t, bbolt.Driver{}, nil)
}
