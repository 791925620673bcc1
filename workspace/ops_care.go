package workspace

import (
	"context"
	"errors"
	"path/filepath"

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
		o.interruptTending()
		return o.store.Check(ctx, &engine.CheckOptions{ReadData: req.ReadData, History: true})
	}}

// OpRepair checks the whole store of a vault with all content and mends what can be
// mended, and removes what processes that died left beside it.
var OpRepair = Op[InVault, engine.RepairReport]{Name: "repair", Long: true,
	Run: func(ctx context.Context, o *Owner, _ InVault, _ Streams) (engine.RepairReport, error) {
		sweep(filepath.Dir(o.path))
		o.interruptTending()
		return o.store.Repair(ctx)
	}}

// Repair is OpRepair, also for a store that does not open because a record is
// damaged that it needs.
func (w *Workspace) Repair(ctx context.Context, vault string, s Streams) (engine.RepairReport, error) {
	name, store, err := w.Locate(vault)
	if err != nil {
		return engine.RepairReport{}, err
	}
	req := InVault{Vault: name}
	rep, err := Call(ctx, w, store, OpRepair, req, s)
	if engine.KindOf(err) != engine.Corrupt {
		return rep, err
	}
	salvaged, serr := w.salvage(ctx, store)
	if serr != nil || len(salvaged) == 0 {
		return rep, err // what was wrong in the first place says more
	}
	rep, err = Call(ctx, w, store, OpRepair, req, s)
	rep.Repaired = append(salvaged, rep.Repaired...)
	return rep, err
}

func (w *Workspace) salvage(ctx context.Context, store string) ([]engine.RepairAction, error) {
	_, db, err := w.openDatabase(store)
	if err != nil {
		return nil, err
	}
	done, err := engine.Salvage(ctx, db)
	return done, errors.Join(err, db.Close())
}

// OpGC collects the garbage of a vault's store, and what processes that died left
// beside it.
var OpGC = Op[InVault, engine.GCReport]{Name: "gc", Long: true,
	Run: func(ctx context.Context, o *Owner, _ InVault, _ Streams) (engine.GCReport, error) {
		sweep(filepath.Dir(o.path))
		o.interruptTending()
		return o.store.GC(ctx)
	}}

// PruneRequest asks to drop old history of a vault.
type PruneRequest struct {
	Vault string `json:"vault"`
	// Last, Hours, Days and Bytes change the rule that is used, each if it is not nil.
	Last   *int   `json:"last,omitempty"`
	Hours  *int   `json:"hours,omitempty"`
	Days   *int   `json:"days,omitempty"`
	Bytes  *int64 `json:"bytes,omitempty"`
	Save   bool   `json:"save,omitempty"` // the rule is the vault's from now on
	DryRun bool   `json:"dry_run,omitempty"`
}

// OpPrune drops the history that the vault's rule, or another one, does not keep.
var OpPrune = Op[PruneRequest, engine.PruneReport]{Name: "prune", Long: true,
	Run: func(ctx context.Context, o *Owner, req PruneRequest, _ Streams) (engine.PruneReport, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return engine.PruneReport{}, err
		}
		rule := v.Retention()
		for _, f := range []struct{ to, from *int }{{&rule.Last, req.Last}, {&rule.Hours, req.Hours}, {&rule.Days, req.Days}} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
		if req.Bytes != nil {
			rule.Bytes = *req.Bytes
		}
		if rule.Bytes > 0 {
			o.interruptTending()
		}
		if req.Save && !req.DryRun {
			if err := v.SetRetention(ctx, &rule); err != nil {
				return engine.PruneReport{}, err
			}
		}
		return v.Prune(ctx, &engine.PruneOptions{Rule: &rule, DryRun: req.DryRun})
	}}

// OpStats measures what fills a vault's store.
var OpStats = Op[InVault, engine.Stats]{Name: "stats", Long: true,
	Run: func(ctx context.Context, o *Owner, _ InVault, _ Streams) (engine.Stats, error) {
		o.interruptTending()
		return o.store.Stats(ctx)
	}}

// OpAuditAppend adds an entry about a command that did not run.
var OpAuditAppend = Op[engine.AuditEntry, engine.AuditEntry]{Name: "audit.append",
	Run: func(ctx context.Context, o *Owner, e engine.AuditEntry, _ Streams) (engine.AuditEntry, error) {
		return o.store.AppendAudit(ctx, e)
	}}

func careOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpCheck)
	add(all, OpRepair)
	add(all, OpGC)
	add(all, OpPrune)
	add(all, OpStats)
	add(all, OpBackup)
	add(all, OpCompact)
	add(all, OpAuditAppend)
	add(all, OpAudit)
	add(all, OpAuditVerify)
	add(all, OpAuditHead)
	return all
}
