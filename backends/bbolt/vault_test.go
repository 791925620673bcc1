package bbolt_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/bbolt"
	"github.com/agentvfs/avfs/conformance"
)

// TestVault checks that vaults work on bbolt.
func TestVault(t *testing.T) {
	conformance.TestVault(t, bbolt.Driver{}, &conformance.VaultOptions{
		Memory: &conformance.MemoryBound{
			Bytes: 300 << 20, Mapped: true,
			Reason: "bbolt maps its file, and pages that it has read stay for as long as the system has room",
		},
	})
}
