package engine_test

import (
	"testing"

	"github.com/agentvfs/avfs/conformance"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// TestVault runs the suite of vaults on the reference store.
func TestVault(t *testing.T) {
	conformance.TestVault(t, memkv.NewDriver(), &conformance.VaultOptions{InMemory: true})
}
