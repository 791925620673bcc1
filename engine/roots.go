package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
)

// keptRoot is a root that something refers to.
type keptRoot struct {
	root  Root
	owner string // for people: "vault v", "checkpoint c3 of v"
	vault uint64
	live  bool // the present root of a vault
}

// keptRoots lists every root that must stay: of vaults and their fork points, of
// checkpoints, timelines and pins.
func (s *Store) keptRoots(ctx context.Context) ([]keptRoot, error) {
	s.mu.Lock()
	byID := map[uint64]*Vault{}
	for _, v := range s.vaults {
		byID[v.id] = v
	}
	s.mu.Unlock()
	var list []keptRoot
	add := func(r Root, vault uint64, live bool, format string, args ...any) {
		if !r.IsZero() {
			list = append(list, keptRoot{root: r, owner: fmt.Sprintf(format, args...), vault: vault, live: live})
		}
	}
	for id, v := range byID {
		v.commitMu.Lock()
		rec := v.rec
		for r := range v.pins {
			add(r, id, false, "a running command in %s", rec.Name)
		}
		v.commitMu.Unlock()
		add(rec.Root, id, true, "vault %s", rec.Name)
		add(rec.ForkedFrom, id, false, "the fork point of %s", rec.Name)
	}
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		for _, t := range []kv.Table{tableCheckpoints, tableTimeline} {
			err := tx.Scan(t, nil, nil, func(k, value []byte) error {
				var row struct {
					VaultID uint64 `json:"vault_id"`
					ID      string `json:"id"`
					Seq     uint64 `json:"seq"`
					Root    Root   `json:"root"`
					Before  Root   `json:"before"`
					After   Root   `json:"after"`
				}
				if err := json.Unmarshal(value, &row); err != nil {
					return &Error{Kind: Corrupt, Op: "read", Path: t.Name, Err: err}
				}
				v := byID[row.VaultID]
				if v == nil {
					return nil // of a deleted vault
				}
				name := v.Name()
				add(row.Root, row.VaultID, false, "checkpoint %s of %s", row.ID, name)
				add(row.Before, row.VaultID, false, "timeline entry %d of %s", row.Seq, name)
				add(row.After, row.VaultID, false, "timeline entry %d of %s", row.Seq, name)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// bitmap is a set of ids.
type bitmap []uint64

// add puts id in and reports whether it was new.
func (b *bitmap) add(id uint64) bool {
	word, bit := id/64, uint64(1)<<(id%64)
	for uint64(len(*b)) <= word {
		*b = append(*b, make([]uint64, max(1024, len(*b)))...)
	}
	if (*b)[word]&bit != 0 {
		return false
	}
	(*b)[word] |= bit
	return true
}

func (b bitmap) has(id uint64) bool {
	word := id / 64
	return word < uint64(len(b)) && b[word]&(1<<(id%64)) != 0
}
