package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/agentvfs/avfs/engine/kv"
)

// records are those of all vaults, in memory.
func (s *Store) records() []vaultRecord {
	vaults := s.allVaults()
	recs := make([]vaultRecord, len(vaults))
	for i, v := range vaults {
		v.mu.RLock()
		recs[i] = v.rec
		v.mu.RUnlock()
	}
	return recs
}

// serving is the lineage of the vault self without the states that no merge can go back
// to, because no other vault is, or comes from, the one that had them. A fork that is made
// later is no other such vault: what it has in common with the one that it comes from is
// newer. It is l itself where nothing goes.
func (l *lineage) serving(self uint64, recs []vaultRecord) *lineage {
	if l == nil {
		return nil
	}
	others := map[uint64]bool{}
	for _, rec := range recs {
		if rec.ID == self {
			continue
		}
		for _, line := range lines(rec) {
			others[line.Vault] = true
		}
	}
	idle := func(m mergeRecord) bool { return !others[m.Vault] }
	far := func(a ancestor) bool { return !others[a.Vault] && !a.Root.IsZero() }
	if !slices.ContainsFunc(l.Merges, idle) && !slices.ContainsFunc(l.Ancestors, far) {
		return l
	}
	rest := lineage{Ancestors: slices.Clone(l.Ancestors), Merges: slices.DeleteFunc(slices.Clone(l.Merges), idle), Origins: l.Origins}
	for i := range rest.Ancestors {
		if a := &rest.Ancestors[i]; far(*a) {
			a.Root = Root{} // its name still tells where the vault comes from
		}
	}
	return &rest
}

// dropLineage drops from the records of all vaults the states that only merges with
// vaults that are gone would need. A record that cannot be read may be that of a vault
// which needs them, so then they stay.
func (s *Store) dropLineage(ctx context.Context) error {
	sound := true
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		return eachStoredRoot(tx, func(keptRoot) error { return nil }, func(error) error { sound = false; return kv.Stop })
	})
	if err = stopped(err); err != nil || !sound {
		return err
	}
	var all error
	for _, v := range s.allVaults() {
		if err := v.dropLineage(ctx); err != nil && KindOf(err) != Closed && KindOf(err) != NoSpace {
			all = errors.Join(all, err)
		}
	}
	return all
}

func (v *Vault) dropLineage(ctx context.Context) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return err
	}
	rec := v.rec
	if rec.Lineage = rec.Lineage.serving(v.id, v.s.records()); rec.Lineage == v.rec.Lineage {
		return nil
	}
	err := v.s.kv.Update(ctx, kv.Relaxed|kv.Reclaim, func(tx kv.Writer) error { return putRecord(tx, rec) })
	if err == nil {
		v.setRecord(rec)
	}
	return err
}
