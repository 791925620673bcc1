package workspace

import (
	"context"

	"github.com/agentvfs/avfs/engine"
)

// CheckRequest asks for a check of the vault's store.
type CheckRequest struct {
	Vault    string `json:"vault"`
	ReadData bool   `json:"read_data"`
}

// OpCheck checks the whole store of a vault.
var OpCheck = Op[CheckRequest, engine.CheckReport]{Name: "check", Long: true,
	Run: func(ctx context.Context, o *Owner, req CheckRequest, _ Streams) (engine.CheckReport, error) {
		return o.store.Check(ctx, &engine.CheckOptions{ReadData: req.ReadData, History: true})
	}}

// OpGC collects the garbage of a vault's store.
var OpGC = Op[InVault, engine.GCReport]{Name: "gc", Long: true,
	Run: func(ctx context.Context, o *Owner, _ InVault, _ Streams) (engine.GCReport, error) {
		return o.store.GC(ctx)
	}}

func careOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpCheck)
	add(all, OpGC)
	add(all, OpBackup)
	add(all, OpCompact)
	return all
}
