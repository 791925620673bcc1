package badger_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/conformance"
)

// TestStore checks that Badger keeps the contract of a back end.
func TestStore(t *testing.T) {
	conformance.TestStore(t, badger.Driver{}, nil)
}
