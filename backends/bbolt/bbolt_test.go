package bbolt_test

import (
	"testing"

	"github.com/agentvfs/avfs/backends/bbolt"
	"github.com/agentvfs/avfs/conformance"
)

// TestStore checks that bbolt keeps the contract of a back end.
func TestStore(t *testing.T) {
	conformance.TestStore(t, bbolt.Driver{}, nil)
}
