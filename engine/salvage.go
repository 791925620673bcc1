package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// salvageGap is how far salvaged counters are set beyond everything that is stored,
// since ids that are deleted already must not be used again.
const salvageGap = 1 << 20

// Salvage mends the records without which Open fails: those of vaults, and the
// counters. A vault's record is sealed again if the state that it names is whole,
// as its digest proves; everything in it counts as shared from then on. What proves
// nothing is left as it is. Like Repair it can be ended and run again. The caller
// opens the store next, and repairs it: counts may be wrong.
func Salvage(ctx context.Context, db kv.Store) ([]RepairAction, error) {
	s := &salvager{done: []RepairAction{}}
	err := db.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
		s.done = s.done[:0]
		format, ok, err := tx.Get(tableMeta, metaFormat)
		if err != nil {
			return err
		}
		if !ok || string(format) != fmt.Sprint(FormatVersion) {
			return fail(NotStore, "", "")
		}
		if err := s.counters(tx); err != nil {
			return err
		}
		return s.vaults(tx)
	})
	return s.done, wrap(err, "salvage", "store")
}

type salvager struct {
	done []RepairAction
	last counters
}

func (s *salvager) did(problem, action string) {
	s.done = append(s.done, RepairAction{problem, action})
}

// counters reads the counters, or finds new ones beyond everything that is stored.
func (s *salvager) counters(tx kv.Writer) error {
	ok, err := getJSON(tx, tableMeta, metaCounters, &s.last)
	if ok && err == nil {
		return nil
	}
	if err != nil && KindOf(err) != Corrupt {
		return err
	}
	s.last = counters{}
	for _, c := range []struct {
		table kv.Table
		id    func(k []byte) uint64
		into  *uint64
	}{
		{tableNodes, kv.ParseID, &s.last.Node},
		{tableChunks, kv.ParseID, &s.last.Chunk},
		{tableVaults, kv.ParseID, &s.last.Vault},
		{tableCheckpoints, func(k []byte) uint64 { return kv.ParseID(k[8:]) }, &s.last.Checkpoint},
		{tableTimeline, func(k []byte) uint64 { return ^kv.ParseID(k[8:]) }, &s.last.Event},
		{tableOutputs, func(k []byte) uint64 { return ^kv.ParseID(k[8:]) }, &s.last.Output},
	} {
		err := tx.Scan(c.table, nil, nil, func(k, _ []byte) error {
			if len(k) == 8 || len(k) == 16 {
				*c.into = max(*c.into, c.id(k))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.last.Node += salvageGap
	s.last.Chunk += salvageGap
	s.last.Vault = min(s.last.Vault+salvageGap/1024, maxVaults-1)
	s.did("the counters were damaged", "set beyond everything that is stored")
	return putJSON(tx, tableMeta, metaCounters, s.last)
}

func (s *salvager) vaults(tx kv.Writer) error {
	type damage struct{ key, value []byte }
	var list []damage
	err := tx.Scan(tableVaults, nil, nil, func(k, value []byte) error {
		var rec vaultRecord
		if parseJSON(tableVaults, k, value, &rec) != nil {
			list = append(list, damage{bytes.Clone(k), bytes.Clone(value)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range list {
		rec, err := s.vault(tx, d.key, d.value)
		if err != nil {
			return err
		}
		if err := putRecord(tx, rec); err != nil {
			return err
		}
		s.did("the record of vault "+rec.Name+" was damaged", "sealed again: the state that it names is whole; its name, quota and retention rule may have a wrong character")
	}
	return nil
}

// vault reads a damaged record, and trusts nothing of it that would delete or
// overwrite.
func (s *salvager) vault(tx kv.Reader, key, value []byte) (rec vaultRecord, err error) {
	bad := func(why error) (vaultRecord, error) {
		return rec, &Error{Kind: Corrupt, Op: "salvage", Path: fmt.Sprintf("vault record %x", key), Err: why}
	}
	if len(value) < sumLength {
		return bad(errDecode)
	}
	if err := strictJSON(append(bytes.Clone(value[:len(value)-sumLength]), '}'), &rec); err != nil {
		return bad(err)
	}
	if len(key) != 8 || rec.ID != kv.ParseID(key) || rec.Root.IsZero() {
		return bad(errors.New("it does not say what it should"))
	}
	if err := CheckVaultName(rec.Name); err != nil {
		return bad(err)
	}
	roots := []Root{rec.Root, rec.ForkedFrom, rec.Noted}
	rec.Lineage.roots(func(r Root) { roots = append(roots, r) })
	for _, root := range roots {
		if err := wholeNode(tx, root); err != nil {
			return bad(err)
		}
	}
	rec.NodeMark, rec.ChunkMark = s.last.Node, s.last.Chunk
	if rec.NextIno, err = freshIno(rec); err != nil {
		return bad(err)
	}
	rec.Count, rec.Bytes, rec.Checkpoints = 0, 0, 0
	err = tx.Scan(tableCheckpoints, key, nil, func(_, _ []byte) error {
		rec.Checkpoints++
		return nil
	})
	return rec, err
}

// inoJump is a quarter of the inode numbers of a vault, far more than any uses.
const inoJump = 1 << 38

// freshIno is an inode number that the vault has not reached, whatever digit of the
// one in its record is damaged.
func freshIno(rec vaultRecord) (uint64, error) {
	base := inoBase(rec.ID)
	used := rec.NextIno - base
	if rec.NextIno < base || used >= 4*inoJump {
		used = 0
	}
	next := (used/inoJump + 1) * inoJump
	if next >= 4*inoJump {
		return 0, errors.New("the vault has no inode numbers left")
	}
	return base + next, nil
}

// wholeNode reports whether the top node of a state is what its digest says.
func wholeNode(tx kv.Reader, root Root) error {
	if root.IsZero() {
		return nil
	}
	data, ok, err := tx.Get(tableNodes, kv.ID(root.ref.ID))
	if err == nil && !ok {
		err = errMissing
	}
	if err == nil {
		_, err = tree.Decode(data, root.ref)
	}
	return err
}
