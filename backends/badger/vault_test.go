package badger_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/conformance"
)

// TestVault checks that vaults work on Badger.
func TestVault(t *testing.T) {
	conformance.TestVault(t, badger.Driver{}, &conformance.VaultOptions{
		Memory: &conformance.MemoryBound{
			Bytes: 2 << 30, Mapped: true,
			Reason: "Badger keeps its newest data in memory twice, and buffers for a dozen tables that it builds",
		},
	})
}
