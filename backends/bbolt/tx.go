package bbolt

import (
	"bytes"
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine/kv"
	bolt "go.etcd.io/bbolt"
)

const (
	// ctxEvery is how many keys a scan passes between two looks at its context.
	ctxEvery = 64
	// trimEvery is how much is read, in bytes, between two looks at how much of
	// the map is resident.
	trimEvery = 4 << 20
)

// tx is one transaction.
type tx struct {
	ctx     context.Context // of the call that runs the transaction, for its scans
	path    string
	h       *handle
	btx     *bolt.Tx
	guard   *kv.Guard
	buckets map[string]*bolt.Bucket // as they were looked up
}

// newTx returns a transaction on btx.
func newTx(ctx context.Context, path string, h *handle, btx *bolt.Tx, guard *kv.Guard) *tx {
	return &tx{ctx: ctx, path: path, h: h, btx: btx, guard: guard}
}

// touch notes that size bytes of a value, and the page that they are on, were handed
// out.
func (t *tx) touch(size int) {
	if n := t.h.touched.Add(int64(size + pageSize)); n > trimEvery {
		t.h.touched.Store(0)
		t.h.trim(t.btx.Size())
	}
}

// fail turns an error of the database into one of kv. Nothing may commit after it.
func (t *tx) fail(err error) error { return t.guard.Fail(mapError(err, t.path)) }

// bucket returns the bucket of tb, nil where a store opened read-only has none.
func (t *tx) bucket(tb kv.Table) *bolt.Bucket {
	b, ok := t.buckets[tb.Name]
	if !ok {
		if b = t.btx.Bucket([]byte(tb.Name)); b != nil && tb.IDs {
			// Ids grow, so a page that is split half full stays so.
			b.FillPercent = 1
		}
		if t.buckets == nil {
			t.buckets = map[string]*bolt.Bucket{}
		}
		t.buckets[tb.Name] = b
	}
	return b
}

// Get implements kv.Reader.
func (t *tx) Get(tb kv.Table, key []byte) (value []byte, ok bool, err error) {
	if err := t.guard.Get(tb, key); err != nil {
		return nil, false, err
	}
	err = attempt(func() error {
		b := t.bucket(tb)
		if b == nil {
			return nil
		}
		// Bucket.Get does not tell an empty value that was just put from none.
		k, v := b.Cursor().Seek(key)
		if ok = k != nil && bytes.Equal(k, key); ok {
			value = v
		}
		return nil
	})
	if err != nil {
		return nil, false, t.fail(err)
	}
	t.touch(len(value))
	return value, ok, nil
}

// Scan implements kv.Reader.
func (t *tx) Scan(tb kv.Table, prefix, from []byte, fn func(key, value []byte) error) error {
	if err := t.guard.BeginScan(tb); err != nil {
		return err
	}
	defer t.guard.EndScan()
	var c *bolt.Cursor
	var k, v []byte
	err := attempt(func() error {
		if b := t.bucket(tb); b != nil {
			c = b.Cursor()
			k, v = c.Seek(later(prefix, from))
		}
		return nil
	})
	for n := 1; err == nil && k != nil && bytes.HasPrefix(k, prefix); n++ {
		t.touch(len(v))
		if err := fn(k, v); err != nil {
			if errors.Is(err, kv.Stop) {
				return nil
			}
			return err
		}
		if n%ctxEvery == 0 && t.ctx.Err() != nil {
			return t.ctx.Err()
		}
		err = attempt(func() error {
			k, v = c.Next()
			return nil
		})
	}
	if err != nil {
		return t.fail(err)
	}
	return nil
}

// later returns the key that comes later.
func later(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

// Put implements kv.Writer.
func (t *tx) Put(tb kv.Table, key, value []byte) error {
	if err := t.guard.Put(tb, key, value); err != nil {
		return err
	}
	// bbolt copies the key and keeps the value until the commit.
	value = bytes.Clone(value)
	if err := attempt(func() error { return t.bucket(tb).Put(key, value) }); err != nil {
		return t.fail(err)
	}
	return nil
}

// Delete implements kv.Writer.
func (t *tx) Delete(tb kv.Table, key []byte) error {
	if err := t.guard.Delete(tb, key); err != nil {
		return err
	}
	if err := attempt(func() error { return t.bucket(tb).Delete(key) }); err != nil {
		return t.fail(err)
	}
	return nil
}
