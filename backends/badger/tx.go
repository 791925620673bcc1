package badger

import (
	"bytes"
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine/kv"
	db "github.com/dgraph-io/badger/v4"
	"github.com/tidwall/btree"
)

// ctxEvery is how many keys a scan passes between two looks at its context.
const ctxEvery = 64

// neverExpires is a time, in seconds since 1970, that Badger takes for the future.
const neverExpires = 1 << 62

// change is a put or a delete that is not committed yet.
type change struct {
	value   []byte
	deleted bool
}

// writeTo adds the change of key to a transaction of Badger. A value that is too long by one byte
// to lie in the tree gives its last byte to the one that Badger keeps with each
// entry for the application, and gets an expiry time, far away, to mark that.
func (c change) writeTo(txn *db.Txn, key []byte) error {
	if c.deleted {
		return txn.Delete(key)
	}
	e := db.NewEntry(key, c.value)
	if len(c.value) == inlineBelow {
		last := len(c.value) - 1
		e.Value, e.ExpiresAt, e.UserMeta = c.value[:last:last], neverExpires, c.value[last]
	}
	return txn.SetEntry(e)
}

// itemValue returns the value of an item, which lives as long as the item.
func itemValue(item *db.Item) (value []byte, err error) {
	err = item.Value(func(v []byte) error {
		value = v
		return nil
	})
	if item.ExpiresAt() != 0 {
		value = append(value[:len(value):len(value)], item.UserMeta())
	}
	return value, err
}

// tx is one transaction: a snapshot and, in an update, what was changed on top of it.
// Badger's own transactions allow one iterator while they write; a scan may nest.
type tx struct {
	ctx     context.Context // of the call that runs the transaction, for its scans
	store   *Store
	txn     *db.Txn
	guard   *kv.Guard
	pending btree.Map[string, change]
	bytes   int
}

// newTx returns a transaction on txn.
func (s *Store) newTx(ctx context.Context, txn *db.Txn, guard *kv.Guard) *tx {
	return &tx{ctx: ctx, store: s, txn: txn, guard: guard}
}

// fail turns an error of the database into one of kv. Nothing may commit after it.
func (t *tx) fail(err error) error { return t.guard.Fail(mapError(err, t.store.path)) }

// key returns the key of tb as it is stored; ok is false where a store opened
// read-only has no such table.
func (t *tx) key(tb kv.Table, key []byte) (stored []byte, ok bool) {
	id, ok := t.store.tables[tb.Name]
	return append([]byte{id}, key...), ok
}

// Get implements kv.Reader.
func (t *tx) Get(tb kv.Table, key []byte) (value []byte, ok bool, err error) {
	if err := t.guard.Get(tb, key); err != nil {
		return nil, false, err
	}
	stored, ok := t.key(tb, key)
	if !ok {
		return nil, false, nil
	}
	if c, ok := t.pending.Get(string(stored)); ok {
		return c.value, !c.deleted, nil
	}
	item, err := t.txn.Get(stored)
	if errors.Is(err, db.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err == nil {
		value, err = itemValue(item)
	}
	if err != nil {
		return nil, false, t.fail(err)
	}
	return value, true, nil
}

// Put implements kv.Writer.
func (t *tx) Put(tb kv.Table, key, value []byte) error {
	if err := t.guard.Put(tb, key, value); err != nil {
		return err
	}
	t.set(tb, key, change{value: append([]byte{}, value...)})
	return nil
}

// Delete implements kv.Writer.
func (t *tx) Delete(tb kv.Table, key []byte) error {
	if err := t.guard.Delete(tb, key); err != nil {
		return err
	}
	t.set(tb, key, change{deleted: true})
	return nil
}

// set notes a change.
func (t *tx) set(tb kv.Table, key []byte, c change) {
	stored, _ := t.key(tb, key) // only a store opened read-only lacks a table
	t.bytes += len(stored) + len(c.value)
	if old, replaced := t.pending.Set(string(stored), c); replaced {
		t.bytes -= len(stored) + len(old.value)
	}
}

// logBytes bounds what the changes take in the log, and in memory, in bytes.
func (t *tx) logBytes() int64 { return int64(t.bytes) + int64(t.pending.Len()+1)*entryOverhead }

// Scan implements kv.Reader.
func (t *tx) Scan(tb kv.Table, prefix, from []byte, fn func(key, value []byte) error) error {
	if err := t.guard.BeginScan(tb); err != nil {
		return err
	}
	defer t.guard.EndScan()
	storedPrefix, ok := t.key(tb, prefix)
	if !ok {
		return nil
	}
	start, _ := t.key(tb, from)
	if bytes.Compare(start, storedPrefix) < 0 {
		start = storedPrefix
	}
	it := newIterator(t.txn, storedPrefix)
	defer it.Close()
	it.Seek(start)
	m := merge{it: it, prefix: storedPrefix, pending: t.pending.Iter()}
	m.more = m.pending.Seek(string(start))
	for n := 1; ; n++ {
		key, value, err := m.next()
		if err != nil {
			return t.fail(err)
		}
		if key == nil {
			return nil
		}
		if err := fn(key[1:], value); err != nil {
			if errors.Is(err, kv.Stop) {
				return nil
			}
			return err
		}
		if n%ctxEvery == 0 && t.ctx.Err() != nil {
			return t.ctx.Err()
		}
	}
}

// newIterator returns an iterator over keys with prefix.
func newIterator(txn *db.Txn, prefix []byte) *db.Iterator {
	o := db.DefaultIteratorOptions
	o.Prefix = prefix
	o.PrefetchValues = false // one goroutine for each value
	return txn.NewIterator(o)
}

// merge walks the snapshot and the changes on top of it together. The guard keeps
// the changes from changing meanwhile.
type merge struct {
	it      *db.Iterator
	passed  bool // the item of it was handed out
	prefix  []byte
	pending btree.MapIter[string, change]
	more    bool // pending stands on a change
}

// next returns the next key and value, a nil key at the end.
func (m *merge) next() (key, value []byte, err error) {
	if m.passed {
		m.it.Next()
		m.passed = false
	}
	for {
		var stored []byte
		if m.it.Valid() {
			stored = m.it.Item().Key()
		}
		changed := m.more && bytes.HasPrefix([]byte(m.pending.Key()), m.prefix)
		if !changed || stored != nil && string(stored) < m.pending.Key() {
			if stored == nil {
				return nil, nil, nil
			}
			m.passed = true
			value, err = itemValue(m.it.Item())
			return stored, value, err
		}
		key, c := m.pending.Key(), m.pending.Value()
		m.more = m.pending.Next()
		if string(stored) == key {
			m.it.Next()
		}
		if !c.deleted {
			return []byte(key), c.value, nil
		}
	}
}
