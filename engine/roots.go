package engine

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/agentvfs/avfs/engine/kv"
)

// pin keeps root from GC until unpin. The caller makes sure that it is kept until
// then.
func (s *Store) pin(root Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins[root]++
}

func (s *Store) unpin(root Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[root]--; s.pins[root] <= 0 {
		delete(s.pins, root)
	}
}

// pinKept pins root if something keeps it, and fails otherwise: what GC may have
// taken apart must not become a vault's root again.
func (s *Store) pinKept(ctx context.Context, root Root) error {
	s.sweep.RLock()
	defer s.sweep.RUnlock()
	kept := false
	err := s.eachRoot(ctx, func(r keptRoot) error {
		if kept = r.root == root; kept {
			return kv.Stop
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !kept {
		return &Error{Kind: NotFound, Err: fmt.Errorf("nothing keeps the state %s any more", root)}
	}
	s.pin(root)
	return nil
}

// keptRoot is a root that something refers to.
type keptRoot struct {
	root  Root
	kind  rootKind
	vault string // empty for a pin
	seq   uint64 // of the checkpoint or timeline entry
	auto  bool   // an automatic checkpoint
}

type rootKind uint8

const (
	rootLive rootKind = iota // the present root of a vault
	rootForkPoint
	rootNoted   // what the newest event left
	rootLineage // what a later merge goes back to
	rootPin
	rootCheckpoint
	rootEvent
	rootUnfinished
	rootOutput // no file system: the chunks of what a command printed
)

// owner says for people what keeps the root.
func (r keptRoot) owner() string {
	switch r.kind {
	case rootLive:
		return "vault " + r.vault
	case rootForkPoint:
		return "the fork point of " + r.vault
	case rootNoted:
		return "the newest entry of the timeline of " + r.vault
	case rootLineage:
		return "what was merged into " + r.vault + ", or it comes from"
	case rootPin:
		return "a running command"
	case rootCheckpoint:
		return "checkpoint " + checkpointID(r.seq) + " of " + r.vault
	}
	if r.kind == rootUnfinished {
		return "a command that has begun in " + r.vault
	}
	if r.kind == rootOutput {
		return "the output of a command in " + r.vault
	}
	return fmt.Sprintf("timeline entry %d of %s", r.seq, r.vault)
}

// eachRoot calls fn for every root that must stay: of vaults, their fork points and
// what their newest events left, of lineages, pins, checkpoints, timelines and commands that have begun, as often as something refers to it. kv.Stop
// from fn ends it. While the caller holds sweep alone, no root comes or goes. fn
// takes no lock.
func (s *Store) eachRoot(ctx context.Context, fn func(keptRoot) error) error {
	return s.eachNewRoot(ctx, nil, fn)
}

// rowSet holds rows of checkpoints and timelines, which never change, by table and
// key.
type rowSet map[string]bool

// add puts a row in and reports whether it was new.
func (s rowSet) add(t kv.Table, key []byte) bool {
	if t != tableCheckpoints && t != tableTimeline {
		return true
	}
	id := t.Name + string(key)
	known := s[id]
	s[id] = true
	return !known
}

// eachNewRoot is eachRoot without the rows in known, to which it adds the others;
// nil leaves none out. What is known need not be parsed, and costs little.
func (s *Store) eachNewRoot(ctx context.Context, known rowSet, fn func(keptRoot) error) error {
	names := map[uint64]string{}
	var list []keptRoot
	for _, v := range s.allVaults() {
		v.mu.RLock()
		rec := v.rec
		v.mu.RUnlock()
		names[v.id] = rec.Name
		list = append(list, keptRoot{root: rec.Root, kind: rootLive, vault: rec.Name},
			keptRoot{root: rec.ForkedFrom, kind: rootForkPoint, vault: rec.Name}, keptRoot{root: rec.Noted, kind: rootNoted, vault: rec.Name})
		rec.Lineage.roots(func(r Root) { list = append(list, keptRoot{root: r, kind: rootLineage, vault: rec.Name}) })
	}
	s.mu.Lock()
	for r := range s.pins {
		list = append(list, keptRoot{root: r, kind: rootPin})
	}
	s.mu.Unlock()
	for _, r := range list {
		if r.root.IsZero() {
			continue
		}
		if err := fn(r); err != nil {
			return stopped(err)
		}
	}
	damaged := func(err error) error { return err }
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		if err := eachStoredRoot(tx, fn, damaged); err != nil {
			return err
		}
		for _, t := range rowTables() {
			if err := eachRowRoot(tx, t, names, known, fn, damaged); err != nil {
				return err
			}
		}
		return nil
	})
	return stopped(err)
}

// eachStoredRoot is eachRoot for the records of vaults as they are stored. They
// differ from those in memory after a commit that failed for all its caller knows
// and yet reached the disk. damaged decides about records that cannot be read.
func eachStoredRoot(tx kv.Reader, fn func(keptRoot) error, damaged func(error) error) error {
	var failed error
	err := tx.Scan(tableVaults, nil, nil, func(k, value []byte) error {
		var rec vaultRecord
		if err := parseJSON(tableVaults, k, value, &rec); err != nil {
			failed = damaged(err)
			return failed
		}
		list := []keptRoot{{root: rec.Root, vault: rec.Name}, {root: rec.ForkedFrom, kind: rootForkPoint, vault: rec.Name}, {root: rec.Noted, kind: rootNoted, vault: rec.Name}}
		rec.Lineage.roots(func(r Root) { list = append(list, keptRoot{root: r, kind: rootLineage, vault: rec.Name}) })
		for _, r := range list {
			if failed == nil && !r.root.IsZero() {
				failed = fn(r)
			}
		}
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

// eachRowRoot is eachNewRoot for the rows of one table. Rows of deleted vaults do
// not count.
func eachRowRoot(tx kv.Reader, t kv.Table, names map[uint64]string, known rowSet, fn func(keptRoot) error, damaged func(error) error) error {
	var failed error // also kv.Stop, which would otherwise end one scan only
	err := tx.Scan(t, nil, nil, func(k, value []byte) error {
		if len(k) != 16 {
			failed = damaged(&Error{Kind: Corrupt, Op: "read", Path: fmt.Sprintf("%s record %x", t.Name, k), Err: errDecode})
			return failed
		}
		name, ok := names[kv.ParseID(k[:8])]
		if !ok || known != nil && !known.add(t, k) {
			return nil
		}
		var row struct {
			Root   Root `json:"root"`
			Before Root `json:"before"`
			After  Root `json:"after"`
			Auto   bool `json:"auto"`
		}
		if err := parseJSON(t, k, value, &row); err != nil {
			failed = damaged(err)
			return failed
		}
		r := keptRoot{root: row.Root, kind: rootCheckpoint, vault: name, seq: kv.ParseID(k[8:]), auto: row.Auto}
		switch t {
		case tableUnfinished:
			r.root, r.kind = row.Before, rootUnfinished
		case tableOutputs:
			r.kind, r.seq = rootOutput, ^kv.ParseID(k[8:])
		case tableTimeline:
			r = keptRoot{root: row.Before, kind: rootEvent, vault: name, seq: ^kv.ParseID(k[8:])}
			if !r.root.IsZero() {
				if failed = fn(r); failed != nil {
					return failed
				}
			}
			r.root = row.After
		}
		if !r.root.IsZero() {
			failed = fn(r)
		}
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

// stopped is err without kv.Stop.
func stopped(err error) error {
	if errors.Is(err, kv.Stop) {
		return nil
	}
	return err
}

// allVaults lists the vaults that are registered now.
func (s *Store) allVaults() []*Vault {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Vault, 0, len(s.vaults))
	for _, v := range s.vaults {
		list = append(list, v)
	}
	return list
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

// nextGap returns the first id from id on that is not in the set, and the first
// one after that which is, or limit where there is none below it.
func (b bitmap) nextGap(id, limit uint64) (low, high uint64) {
	for low = id; low < limit && b.has(low); low++ {
	}
	for high = low; high < limit && !b.has(high); high++ {
		if high%64 == 63 {
			for word := high/64 + 1; word < uint64(len(b)) && b[word] == 0 && word*64 < limit; word++ {
				high += 64
			}
		}
	}
	return low, min(high, limit)
}

// count is the number of ids in the set.
func (b bitmap) count() int64 {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return int64(n)
}
