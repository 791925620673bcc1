package memkv_test

import (
	"testing"

	"github.com/agentvfs/avfs/conformance"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// TestStore checks that the reference keeps the contract.
func TestStore(t *testing.T) {
	conformance.TestStore(t, memkv.NewDriver(), &conformance.StoreOptions{InMemory: true})
}
