package sqlite_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/sqlite"
	"github.com/agentvfs/avfs/conformance"
)

// TestStore checks that SQLite keeps the contract of a back end.
func TestStore(t *testing.T) {
	conformance.TestStore(t, sqlite.Driver{}, nil)
}
