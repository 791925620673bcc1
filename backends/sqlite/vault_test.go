package sqlite_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/sqlite"
	"github.com/agentvfs/avfs/conformance"
)

// TestVault checks that vaults work on SQLite.
func TestVault(t *testing.T) {
	conformance.TestVault(t, sqlite.Driver{}, nil)
}
