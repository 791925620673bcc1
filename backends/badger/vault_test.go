package badger_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/conformance"
)

// TestVault checks that vaults work on Badger.
func TestVault(t *testing.T) {
	conformance.TestVault(t, badger.Driver{}, &conformance.VaultOptions{
		MemoryUnbound: "Badger maps its tables and keeps several buffers of a table's size",
	})
}
