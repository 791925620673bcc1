package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/ncruces/go-sqlite3"
)

const (
	// busyWait bounds the wait for a lock that a foreign program, such as the
	// sqlite3 shell, holds on the database. Our own connections hold none that
	// the other needs.
	busyWait = 5 * time.Second

	writerCacheKiB = 16 << 10 // one transaction of the largest size seldom spills
	readerCacheKiB = 2 << 10
)

// conn is a connection with its prepared statements. One goroutine uses it at a time.
type conn struct {
	db     *sqlite3.Conn
	sync   int // PRAGMA synchronous in force; 0: not set by us
	tables map[string]*tableStmts

	begin     *sqlite3.Stmt
	snapshot  *sqlite3.Stmt
	commit    *sqlite3.Stmt
	pageCount *sqlite3.Stmt
	freeCount *sqlite3.Stmt
}

// connKind says what a connection is for.
type connKind uint8

const (
	writerConn    connKind = iota
	readerConn             // beside a writer
	readOnlyConn           // of a store opened read-only
	immutableConn          // as readOnlyConn, where no log holds data
)

// openConn opens a connection to path for tables that exist.
func openConn(ctx context.Context, path string, kind connKind) (c *conn, err error) {
	db, err := openDB(ctx, path, kind)
	if err != nil {
		return nil, err
	}
	c = &conn{db: db, tables: map[string]*tableStmts{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if err := db.BusyTimeout(busyWait); err != nil {
		return nil, err
	}
	if err := db.Exec(pragmas(kind)); err != nil {
		return nil, err
	}
	return c, c.prepareAll(kind)
}

// openDB opens the database with the flags that kind needs.
func openDB(ctx context.Context, path string, kind connKind) (*sqlite3.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch kind {
	case readOnlyConn:
		return sqlite3.OpenFlags(uri(path, ""), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	case immutableConn:
		// SQLite then reads the file without locks and sidecars.
		return sqlite3.OpenFlags(uri(path, "immutable=1"), sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	default:
		// The log holds the same data as the file and gets the same permissions.
		return sqlite3.OpenFlags(uri(path, "modeof="+escape(path)), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	}
}

// uri names path, which is absolute, with query parameters.
func uri(path, query string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // C:/...
	}
	return "file://" + escape(p) + "?" + query
}

// escape is url.QueryEscape in the dialect of SQLite, which takes a plus as it is.
// It leaves slashes alone.
func escape(path string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(path))
}

// pragmas returns the settings of a connection. fullfsync matters on macOS only,
// where a plain fsync does not reach the medium.
func pragmas(kind connKind) string {
	const common = `PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;
		PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON;`
	if kind == writerConn {
		return common + fmt.Sprintf(`PRAGMA cache_size=-%d; PRAGMA journal_mode=WAL; PRAGMA journal_size_limit=%d;`,
			writerCacheKiB, walKeepBytes)
	}
	return common + fmt.Sprintf(`PRAGMA cache_size=-%d; PRAGMA query_only=ON;`, readerCacheKiB)
}

// prepareAll prepares the statements that need no table.
func (c *conn) prepareAll(kind connKind) (err error) {
	begin := `BEGIN`
	if kind == writerConn {
		begin = `BEGIN IMMEDIATE`
	}
	for _, p := range []struct {
		st  **sqlite3.Stmt
		sql string
	}{
		{&c.begin, begin},
		{&c.snapshot, `SELECT 1 FROM sqlite_schema LIMIT 1`},
		{&c.commit, `COMMIT`},
		{&c.pageCount, `PRAGMA page_count`},
		{&c.freeCount, `PRAGMA freelist_count`},
	} {
		if *p.st, err = c.prepare(p.sql); err != nil {
			return err
		}
	}
	return nil
}

// prepare compiles a statement that lives as long as the connection.
func (c *conn) prepare(sql string) (*sqlite3.Stmt, error) {
	st, _, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	return st, err
}

// close ends the statements and the connection.
func (c *conn) close() error {
	var errs []error
	for _, st := range []*sqlite3.Stmt{c.begin, c.snapshot, c.commit, c.pageCount, c.freeCount} {
		errs = append(errs, st.Close())
	}
	for _, t := range c.tables {
		errs = append(errs, t.close())
	}
	return errors.Join(append(errs, c.db.Close())...)
}

// query returns the one number that st yields.
func (c *conn) query(st *sqlite3.Stmt) (int64, error) {
	var n int64
	if st.Step() {
		n = st.ColumnInt64(0)
	}
	err := st.Err()
	return n, errors.Join(err, st.Reset())
}

// setSync sets what a commit waits for. In WAL mode NORMAL syncs at checkpoints
// only, which loses a tail to a power cut and never mixes states; FULL also syncs
// the log at each commit, and with it every earlier commit that it holds. OFF is
// never used: it came back damaged.
func (c *conn) setSync(mode kv.Mode) error {
	level, name := syncNormal, "NORMAL"
	if mode.Durable() {
		level, name = syncFull, "FULL"
	}
	if c.sync == level {
		return nil
	}
	if err := c.db.Exec(`PRAGMA synchronous=` + name); err != nil {
		return err
	}
	c.sync = level
	return nil
}

// Values of PRAGMA synchronous.
const (
	syncNormal = 1
	syncFull   = 2
)

// rollback ends the transaction if there is still one: SQLite ends it by itself
// after some failures.
func (c *conn) rollback() error {
	if c.db.GetAutocommit() {
		return nil
	}
	c.db.SetInterrupt(context.Background())
	return c.db.Exec(`ROLLBACK`)
}

// rollbackAfter rolls back and returns err, with what the rollback met.
func (c *conn) rollbackAfter(err error) error { return errors.Join(err, c.rollback()) }
