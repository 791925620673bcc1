package sqlite

import (
	"context"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/ncruces/go-sqlite3"
)

// declaration returns the statement that creates t. SQLite keeps its text, so it
// also serves to compare a table that exists with the one that is asked for.
func declaration(t kv.Table) string {
	typ := "BLOB"
	if t.Text {
		typ = "TEXT"
	}
	if t.IDs {
		return fmt.Sprintf(`CREATE TABLE "%s" (id INTEGER PRIMARY KEY, value %s NOT NULL)`, t.Name, typ)
	}
	return fmt.Sprintf(`CREATE TABLE "%s" (key BLOB NOT NULL PRIMARY KEY, value %s NOT NULL) WITHOUT ROWID`, t.Name, typ)
}

// missingTables returns which of tables the database does not hold, and
// kv.ErrNoTable when it holds one under another declaration.
func missingTables(db *sqlite3.Conn, tables kv.Tables) (missing []kv.Table, err error) {
	st, _, err := db.Prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	held := map[string]string{}
	for st.Step() {
		held[st.ColumnText(0)] = st.ColumnText(1)
	}
	if err := st.Err(); err != nil {
		return nil, err
	}
	for _, t := range tables {
		switch sql, ok := held[t.Name]; {
		case !ok:
			missing = append(missing, t)
		case sql != declaration(t):
			return nil, fmt.Errorf("table %q has another declaration: %w", t.Name, kv.ErrNoTable)
		}
	}
	return missing, nil
}

// addTables creates the missing tables, durably and all at once.
func addTables(ctx context.Context, c *conn, missing []kv.Table) error {
	if len(missing) == 0 {
		return nil
	}
	c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(context.Background())
	if err := c.setSync(kv.Durable); err != nil {
		return err
	}
	sql := "BEGIN IMMEDIATE;"
	for _, t := range missing {
		sql += declaration(t) + ";"
	}
	if err := c.db.Exec(sql + "COMMIT"); err != nil {
		return c.rollbackAfter(err)
	}
	return nil
}
