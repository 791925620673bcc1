// Package storetest holds what the tests of the back ends share: stores with rows in
// them, and small disks.
package storetest

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
)

// Kit makes stores of one back end and fills them.
type Kit struct {
	Driver kv.Driver
	// Rows is the table that is filled, with IDs set; More the other tables.
	Rows kv.Table
	More []kv.Table
}

// Create makes a store in a new folder. It is closed at the end of the test.
func (k Kit) Create(t *testing.T) (st kv.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.avfs")
	return k.Open(t, path, kv.Options{Create: true}), path
}

// Open opens a store that must open, with the tables of k. It is closed at the end of
// the test.
func (k Kit) Open(t *testing.T, path string, opts kv.Options) kv.Store {
	t.Helper()
	opts.Tables = append([]kv.Table{k.Rows}, k.More...)
	st, err := k.Driver.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// Value is what Put sets id to.
func Value(id uint64, sizeBytes int) []byte { return bytes.Repeat([]byte{byte(id)}, sizeBytes) }

// Put sets the ids from to to in one update, each to a value of sizeBytes.
func (k Kit) Put(t *testing.T, st kv.Store, mode kv.Mode, from, to uint64, sizeBytes int) error {
	t.Helper()
	return st.Update(t.Context(), mode, func(w kv.Writer) error {
		for id := from; id <= to; id++ {
			if err := w.Put(k.Rows, kv.ID(id), Value(id, sizeBytes)); err != nil {
				return err
			}
		}
		return nil
	})
}

// MustPut is a relaxed Put that must succeed.
func (k Kit) MustPut(t *testing.T, st kv.Store, from, to uint64, sizeBytes int) {
	t.Helper()
	if err := k.Put(t, st, kv.Relaxed, from, to, sizeBytes); err != nil {
		t.Fatal(err)
	}
}

// Delete deletes the ids from to to in one update.
func (k Kit) Delete(t *testing.T, st kv.Store, mode kv.Mode, from, to uint64) error {
	t.Helper()
	return st.Update(t.Context(), mode, func(w kv.Writer) error {
		for id := from; id <= to; id++ {
			if err := w.Delete(k.Rows, kv.ID(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// WantRows fails unless there are n rows, with the values that Put gives them.
func (k Kit) WantRows(t *testing.T, st kv.Store, n int) {
	t.Helper()
	got := 0
	err := st.View(t.Context(), func(r kv.Reader) error {
		return r.Scan(k.Rows, nil, nil, func(key, value []byte) error {
			got++
			if !bytes.Equal(value, Value(kv.ParseID(key), len(value))) {
				t.Errorf("row %d is wrong", kv.ParseID(key))
			}
			return nil
		})
	})
	if err != nil || got != n {
		t.Errorf("%d rows, %v, want %d", got, err, n)
	}
}
