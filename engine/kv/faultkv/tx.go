package faultkv

import "github.com/agentvfs/avfs/engine/kv"

// scribbled is what an invalid slice is overwritten with.
const scribbled = 0xdb

// tx is a transaction that fails on purpose.
type tx struct {
	store *Store
	r     kv.Reader
	w     kv.Writer // nil in a View
	lent  [][]byte  // results of Get, valid until the transaction ends
}

// end makes everything that the transaction lent unreadable.
func (t *tx) end() { overwrite(t.lent...) }

// lend returns what the caller gets in place of b: b itself, or a copy that can be
// overwritten without harm to the store.
func (t *tx) lend(b []byte) []byte {
	if !t.store.scribble || b == nil {
		return b
	}
	return append(make([]byte, 0, len(b)), b...)
}

// overwrite makes slices that are no longer valid unreadable.
func overwrite(slices ...[]byte) {
	for _, b := range slices {
		for i := range b {
			b[i] = scribbled
		}
	}
}

// Get implements kv.Reader.
func (t *tx) Get(tb kv.Table, key []byte) ([]byte, bool, error) {
	if err := t.store.check(Get, tb.Name); err != nil {
		return nil, false, err
	}
	value, ok, err := t.r.Get(tb, key)
	value = t.lend(value)
	if t.store.scribble {
		t.lent = append(t.lent, value)
	}
	return value, ok, err
}

// Scan implements kv.Reader.
func (t *tx) Scan(tb kv.Table, prefix, from []byte, fn func(key, value []byte) error) error {
	if err := t.store.check(Scan, tb.Name); err != nil {
		return err
	}
	return t.r.Scan(tb, prefix, from, func(key, value []byte) error {
		if !t.store.scribble {
			return fn(key, value)
		}
		key, value = t.lend(key), t.lend(value)
		defer overwrite(key, value)
		return fn(key, value)
	})
}

// Put implements kv.Writer.
func (t *tx) Put(tb kv.Table, key, value []byte) error {
	if t.w == nil {
		return kv.ErrReadOnly
	}
	if err := t.store.check(Put, tb.Name); err != nil {
		return err
	}
	return t.w.Put(tb, key, value)
}

// Delete implements kv.Writer.
func (t *tx) Delete(tb kv.Table, key []byte) error {
	if t.w == nil {
		return kv.ErrReadOnly
	}
	if err := t.store.check(Delete, tb.Name); err != nil {
		return err
	}
	return t.w.Delete(tb, key)
}
