package kv

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
)

// Bounds of one transaction of a Copy, well inside MaxTxBytes and MaxTxOps.
const (
	copyBytes = 4 << 20
	copyRows  = 10_000
)

// Copy puts every row of the tables of src into dst, which must hold none, and
// makes it durable. It copies one moment of src, which may be in use. It returns
// the digest over everything it copied, which Digest of dst must equal. progress,
// if not nil, is told the number of rows and bytes so far.
func Copy(ctx context.Context, dst, src Store, tables []Table, progress func(rows, bytes int64)) (digest [32]byte, err error) {
	c := &copier{ctx: ctx, dst: dst, progress: progress, sum: sha256.New()}
	err = src.View(ctx, func(tx Reader) error {
		for _, t := range tables {
			if err := c.table(tx, t); err != nil {
				return fmt.Errorf("copy table %s: %w", t.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return digest, err
	}
	if err := c.flush(Durable); err != nil {
		return digest, err
	}
	return [32]byte(c.sum.Sum(nil)), nil
}

// Digest is the SHA-256 over every row of the tables: their names, keys and values.
func Digest(ctx context.Context, s Store, tables []Table) (digest [32]byte, err error) {
	sum := sha256.New()
	err = s.View(ctx, func(tx Reader) error {
		for _, t := range tables {
			addString(sum, t.Name)
			err := tx.Scan(t, nil, nil, func(k, v []byte) error {
				addRow(sum, k, v)
				return ctx.Err()
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return [32]byte(sum.Sum(nil)), err
}

// copier gathers rows and writes them in batches.
type copier struct {
	ctx         context.Context // of the Copy, whose call this is
	dst         Store
	progress    func(rows, bytes int64)
	sum         hash.Hash
	batch       []row
	size        int
	rows, bytes int64
}

type row struct {
	t          Table
	key, value []byte
}

func (c *copier) table(tx Reader, t Table) error {
	addString(c.sum, t.Name)
	return tx.Scan(t, nil, nil, func(k, v []byte) error {
		addRow(c.sum, k, v)
		if c.size+len(k)+len(v) > copyBytes || len(c.batch) == copyRows {
			if err := c.flush(Relaxed); err != nil {
				return err
			}
		}
		both := append(append(make([]byte, 0, len(k)+len(v)), k...), v...)
		c.batch = append(c.batch, row{t, both[:len(k):len(k)], both[len(k):]})
		c.size += len(both)
		return nil
	})
}

func (c *copier) flush(mode Mode) error {
	err := c.dst.Update(c.ctx, mode, func(tx Writer) error {
		for _, r := range c.batch {
			if err := tx.Put(r.t, r.key, r.value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.rows += int64(len(c.batch))
	c.bytes += int64(c.size)
	c.batch, c.size = c.batch[:0], 0
	if c.progress != nil {
		c.progress(c.rows, c.bytes)
	}
	return nil
}

func addString(h hash.Hash, s string) { addRow(h, []byte(s), nil) }

func addRow(h hash.Hash, k, v []byte) {
	var head [16]byte
	binary.BigEndian.PutUint64(head[:8], uint64(len(k)))
	binary.BigEndian.PutUint64(head[8:], uint64(len(v)))
	h.Write(head[:])
	h.Write(k)
	h.Write(v)
}
