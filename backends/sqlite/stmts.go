package sqlite

import (
	"errors"
	"fmt"
	"math"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/ncruces/go-sqlite3"
)

// idleScans is how many finished scan statements of a table a connection keeps.
const idleScans = 2

// tableStmts are the statements of one table on one connection.
type tableStmts struct {
	table    kv.Table
	get      *sqlite3.Stmt
	put, del *sqlite3.Stmt // nil until first used
	scans    []*sqlite3.Stmt
	openEnd  []*sqlite3.Stmt // scans without an upper bound
}

// stmts returns the statements of t, preparing them at first use.
func (c *conn) stmts(t kv.Table) (*tableStmts, error) {
	if ts := c.tables[t.Name]; ts != nil {
		return ts, nil
	}
	get, err := c.prepare(fmt.Sprintf(`SELECT value FROM "%s" WHERE %s = ?1`, t.Name, keyColumn(t)))
	if err != nil {
		return nil, err
	}
	ts := &tableStmts{table: t, get: get}
	c.tables[t.Name] = ts
	return ts, nil
}

// keyColumn returns the name of the key's column.
func keyColumn(t kv.Table) string {
	if t.IDs {
		return "id"
	}
	return "key"
}

// putStmt returns the statement that sets a key.
func (c *conn) putStmt(ts *tableStmts) (_ *sqlite3.Stmt, err error) {
	if ts.put == nil {
		ts.put, err = c.prepare(fmt.Sprintf(`REPLACE INTO "%s" VALUES (?1, ?2)`, ts.table.Name))
	}
	return ts.put, err
}

// delStmt returns the statement that removes a key.
func (c *conn) delStmt(ts *tableStmts) (_ *sqlite3.Stmt, err error) {
	if ts.del == nil {
		ts.del, err = c.prepare(fmt.Sprintf(`DELETE FROM "%s" WHERE %s = ?1`, ts.table.Name, keyColumn(ts.table)))
	}
	return ts.del, err
}

// takeScan returns a scan statement that nobody uses; giveScan takes it back.
func (c *conn) takeScan(ts *tableStmts, bounded bool) (*sqlite3.Stmt, error) {
	free := &ts.scans
	if !bounded {
		free = &ts.openEnd
	}
	if n := len(*free); n > 0 {
		st := (*free)[n-1]
		*free = (*free)[:n-1]
		return st, nil
	}
	key, upper := keyColumn(ts.table), ""
	if bounded {
		upper = fmt.Sprintf(` AND %s <= ?2`, key)
		if !ts.table.IDs {
			upper = fmt.Sprintf(` AND %s < ?2`, key)
		}
	}
	return c.prepare(fmt.Sprintf(`SELECT %s, value FROM "%s" WHERE %s >= ?1%s ORDER BY 1`, key, ts.table.Name, key, upper))
}

// giveScan ends a scan and keeps its statement for the next one.
func (ts *tableStmts) giveScan(st *sqlite3.Stmt, bounded bool) error {
	free := &ts.scans
	if !bounded {
		free = &ts.openEnd
	}
	err := st.Reset()
	if len(*free) >= idleScans {
		return errors.Join(err, st.Close())
	}
	*free = append(*free, st)
	return err
}

// close ends all statements.
func (ts *tableStmts) close() error {
	errs := []error{ts.get.Close(), ts.put.Close(), ts.del.Close()}
	for _, st := range append(ts.scans, ts.openEnd...) {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

// bindKey binds key, which the guard has checked, in the form of its table.
func bindKey(st *sqlite3.Stmt, t kv.Table, param int, key []byte) error {
	if t.IDs {
		return st.BindInt64(param, int64(kv.ParseID(key)))
	}
	return bindBytes(st, param, key, false)
}

// bindBytes binds b, which may be nil, as a blob or as text but never as NULL.
func bindBytes(st *sqlite3.Stmt, param int, b []byte, text bool) error {
	if text {
		return st.BindText(param, string(b))
	}
	if len(b) == 0 {
		return st.BindZeroBlob(param, 0)
	}
	return st.BindBlob(param, b)
}

// idRange turns the bounds of a scan, which need not be whole keys, into the ids
// that they span. ok is false when they span none.
func idRange(prefix, from []byte) (lo, hi int64, ok bool) {
	if len(prefix) > 8 {
		return 0, 0, false
	}
	first, last := pad(prefix, 0x00), pad(prefix, 0xff)
	if start := pad(from, 0x00); start > first {
		first = start
	}
	if len(from) > 8 && first == pad(from[:8], 0x00) {
		if first == math.MaxUint64 {
			return 0, 0, false
		}
		first++ // a key of eight bytes is below any longer one that begins with it
	}
	last = min(last, kv.MaxID)
	return int64(first), int64(last), first <= last
}

// pad reads the first eight bytes of b as a number, filling up with fill.
func pad(b []byte, fill byte) uint64 {
	key := [8]byte{fill, fill, fill, fill, fill, fill, fill, fill}
	copy(key[:], b)
	return kv.ParseID(key[:])
}
