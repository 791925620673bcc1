package search

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/agentvfs/avfs/engine/kv"
)

// Index is an open index. One goroutine uses it at a time.
type Index struct {
	db    kv.Store
	mode  kv.Mode
	state state
	floor int64 // garbageFloor, but in tests
}

// Open opens the index in db, which has Tables, or makes a new one where db is empty.
// It fails with kv.ErrCorrupt where the index cannot be used. mode is that of its
// updates. Closing db is up to the caller.
func Open(ctx context.Context, db kv.Store, mode kv.Mode) (*Index, error) {
	x := &Index{db: db, mode: mode, floor: garbageFloor}
	if err := x.load(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// load reads the state: also again, since of a transaction that failed nobody knows
// whether it took place.
func (x *Index) load(ctx context.Context) error {
	return x.db.View(ctx, func(tx kv.Reader) error {
		st, ok, err := readState(tx)
		if err == nil && !ok {
			st = state{Format: format, NextNumber: 1, NextSegment: 1}
		}
		if err == nil {
			x.state = st
		}
		return err
	})
}

// garbageFloor is how many rows may be in an index besides twice those of its beginning
// before it counts as overgrown.
const garbageFloor = 50_000

// Overgrown reports whether so much was added since the index was new that it is worth
// its time to make it anew: most of it may be of states that are gone.
func (x *Index) Overgrown() bool { return x.state.Base > 0 && x.state.Rows > 2*x.state.Base+x.floor }

// batch writes rows in transactions of a bounded size.
type batch struct {
	x    *Index
	rows []row
	size int
}

// Bounds of one transaction.
const (
	batchBytes = 2 << 20
	batchRows  = 10_000
	dropRows   = 500 // that are deleted: those of segments are large
)

func (b *batch) put(ctx context.Context, r row) error {
	b.rows = append(b.rows, r)
	b.size += len(r.key) + len(r.value)
	if b.size < batchBytes && len(b.rows) < batchRows {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.rows) == 0 {
		return nil
	}
	err := b.x.update(ctx, b.rows)
	b.rows, b.size = b.rows[:0], 0
	return err
}

func (x *Index) update(ctx context.Context, rows []row) error {
	return x.db.Update(ctx, x.mode, func(tx kv.Writer) error {
		for _, r := range rows {
			if err := tx.Put(r.table, r.key, r.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// commit writes rows and the state that counts with them in one transaction.
func (x *Index) commit(ctx context.Context, rows []row, next state) error {
	r, err := stateRow(next)
	if err != nil {
		return err
	}
	if err := x.update(ctx, append(rows, r)); err != nil {
		return err
	}
	x.state = next
	return nil
}

// dropSegment deletes the rows of a segment that the state does not list.
func (x *Index) dropSegment(ctx context.Context, id uint64) error {
	prefix := binary.BigEndian.AppendUint64(nil, id)
	for _, t := range []kv.Table{docsTable(), blocksTable()} {
		for more := true; more; {
			var keys [][]byte
			err := x.db.View(ctx, func(tx kv.Reader) error {
				return tx.Scan(t, prefix, nil, func(key, _ []byte) error {
					if keys = append(keys, bytes.Clone(key)); len(keys) >= dropRows {
						return kv.Stop
					}
					return nil
				})
			})
			if err == nil {
				err = x.delete(ctx, t, keys)
			}
			if err != nil {
				return err
			}
			more = len(keys) == dropRows
		}
	}
	return nil
}

func (x *Index) delete(ctx context.Context, t kv.Table, keys [][]byte) error {
	return x.db.Update(ctx, x.mode|kv.Reclaim, func(tx kv.Writer) error {
		for _, k := range keys {
			if err := tx.Delete(t, k); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweep removes what an update left that did not end.
func (x *Index) sweep(ctx context.Context) error {
	known := map[uint64]bool{}
	for _, s := range x.state.Segments {
		known[s.ID] = true
	}
	for _, t := range []kv.Table{docsTable(), blocksTable()} {
		for next, found := uint64(0), true; found; next++ {
			found = false
			err := x.db.View(ctx, func(tx kv.Reader) error {
				return tx.Scan(t, nil, kv.ID(next), func(key, _ []byte) error {
					if len(key) < 8 {
						return damaged(t, key)
					}
					found, next = true, binary.BigEndian.Uint64(key)
					return kv.Stop
				})
			})
			if err == nil && found && !known[next] {
				err = x.dropSegment(ctx, next)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
