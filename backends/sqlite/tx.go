package sqlite

import (
	"bytes"
	"errors"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/ncruces/go-sqlite3"
)

// tx is one transaction on a connection.
type tx struct {
	c     *conn
	guard *kv.Guard
	// fail turns an error of the database into one of kv.
	fail func(error) error
	// absent holds the tables that a store opened read-only does not have.
	absent map[string]bool
}

// Get implements kv.Reader.
func (t *tx) Get(tb kv.Table, key []byte) (value []byte, ok bool, err error) {
	if err := t.guard.Get(tb, key); err != nil || t.absent[tb.Name] {
		return nil, false, err
	}
	ts, err := t.c.stmts(tb)
	if err != nil {
		return nil, false, t.fail(err)
	}
	if err := bindKey(ts.get, tb, 1, key); err != nil {
		return nil, false, t.fail(err)
	}
	if ok = ts.get.Step(); ok {
		// The row dies with the next use of the statement, the result must not.
		value = ts.get.ColumnBlob(0, []byte{})
	}
	err = ts.get.Err()
	if resetErr := ts.get.Reset(); err == nil {
		err = resetErr
	}
	if err != nil {
		return nil, false, t.fail(err)
	}
	return value, ok, nil
}

// Scan implements kv.Reader.
func (t *tx) Scan(tb kv.Table, prefix, from []byte, fn func(key, value []byte) error) (err error) {
	if err := t.guard.BeginScan(tb); err != nil {
		return err
	}
	defer t.guard.EndScan()
	if t.absent[tb.Name] {
		return nil
	}
	ts, err := t.c.stmts(tb)
	if err != nil {
		return t.fail(err)
	}
	if tb.IDs {
		lo, hi, ok := idRange(prefix, from)
		if !ok {
			return nil
		}
		return t.scan(ts, true, fn, func(st *sqlite3.Stmt) error {
			return errors.Join(st.BindInt64(1, lo), st.BindInt64(2, hi))
		})
	}
	lo, hi := prefix, kv.PrefixEnd(prefix)
	if bytes.Compare(from, lo) > 0 {
		lo = from
	}
	return t.scan(ts, hi != nil, fn, func(st *sqlite3.Stmt) error {
		err := bindBytes(st, 1, lo, false)
		if hi != nil {
			err = errors.Join(err, bindBytes(st, 2, hi, false))
		}
		return err
	})
}

// scan runs one scan statement, bound by bind, and passes its rows to fn.
func (t *tx) scan(ts *tableStmts, bounded bool, fn func(key, value []byte) error, bind func(*sqlite3.Stmt) error) (err error) {
	st, err := t.c.takeScan(ts, bounded)
	if err != nil {
		return t.fail(err)
	}
	defer func() {
		if giveErr := ts.giveScan(st, bounded); giveErr != nil && err == nil {
			err = t.fail(giveErr)
		}
	}()
	if err := bind(st); err != nil {
		return t.fail(err)
	}
	var key, value []byte
	for st.Step() {
		// SQLite's own memory is not handed out: it may move or be unmapped.
		if ts.table.IDs {
			key = append(key[:0], kv.ID(uint64(st.ColumnInt64(0)))...)
		} else {
			key = st.ColumnBlob(0, key[:0])
		}
		value = st.ColumnBlob(1, value[:0])
		if err := fn(key, value); err != nil {
			if errors.Is(err, kv.Stop) {
				return nil
			}
			return err
		}
	}
	if err := st.Err(); err != nil {
		return t.fail(err)
	}
	return nil
}

// Put implements kv.Writer.
func (t *tx) Put(tb kv.Table, key, value []byte) error {
	if err := t.guard.Put(tb, key, value); err != nil {
		return err
	}
	ts, err := t.c.stmts(tb)
	if err != nil {
		return t.fail(err)
	}
	st, err := t.c.putStmt(ts)
	if err != nil {
		return t.fail(err)
	}
	if err := bindKey(st, tb, 1, key); err != nil {
		return t.fail(err)
	}
	if err := bindBytes(st, 2, value, tb.Text); err != nil {
		return t.fail(err)
	}
	if err := st.Exec(); err != nil {
		return t.fail(err)
	}
	return nil
}

// Delete implements kv.Writer.
func (t *tx) Delete(tb kv.Table, key []byte) error {
	if err := t.guard.Delete(tb, key); err != nil {
		return err
	}
	ts, err := t.c.stmts(tb)
	if err != nil {
		return t.fail(err)
	}
	st, err := t.c.delStmt(ts)
	if err != nil {
		return t.fail(err)
	}
	if err := bindKey(st, tb, 1, key); err != nil {
		return t.fail(err)
	}
	if err := st.Exec(); err != nil {
		return t.fail(err)
	}
	return nil
}
