package kv

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxTableName is the longest name of a table, in bytes.
const maxTableName = 64

// Tables is a checked set of table declarations, by name.
type Tables map[string]Table

// NewTables checks the declarations in list: names, and that none comes twice.
func NewTables(list []Table) (Tables, error) {
	ts := make(Tables, len(list))
	for _, t := range list {
		if !validName(t.Name) {
			return nil, fmt.Errorf("table name %q: %w", t.Name, ErrLimit)
		}
		if _, dup := ts[t.Name]; dup {
			return nil, fmt.Errorf("table %q is declared twice: %w", t.Name, ErrLimit)
		}
		ts[t.Name] = t
	}
	return ts, nil
}

// validName reports whether every database takes name as the name of a table.
func validName(name string) bool {
	if name == "" || len(name) > maxTableName || strings.HasPrefix(name, "sqlite_") {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// Reader returns the guard of a new read transaction.
func (ts Tables) Reader() *Guard { return &Guard{tables: ts} }

// Writer returns the guard of a new Update. A re-run of fn needs a new one.
func (ts Tables) Writer() *Guard { return &Guard{tables: ts, writable: true} }

// Guard applies, for one transaction, the rules that are the same on every back
// end: limits, declared tables, transaction size, no change under a scan, no use
// after the end. A back end calls it before it touches its database.
type Guard struct {
	tables   Tables
	writable bool
	done     bool
	scanning []string // tables with a scan under way, innermost last
	bytes    int
	ops      int
	failed   error
}

// Get checks a read of key.
func (g *Guard) Get(t Table, key []byte) error {
	if err := g.use(t); err != nil {
		return err
	}
	return checkKey(t, key)
}

// BeginScan checks and notes a scan of t. When it returns nil, EndScan must follow.
func (g *Guard) BeginScan(t Table) error {
	if err := g.use(t); err != nil {
		return err
	}
	g.scanning = append(g.scanning, t.Name)
	return nil
}

// EndScan notes that the innermost scan is over.
func (g *Guard) EndScan() { g.scanning = g.scanning[:len(g.scanning)-1] }

// Put checks a put and adds it to the size of the transaction.
func (g *Guard) Put(t Table, key, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("table %s: value of %d bytes: %w", t.Name, len(value), ErrLimit)
	}
	if t.Text && !utf8.Valid(value) {
		return fmt.Errorf("table %s: value is not UTF-8: %w", t.Name, ErrLimit)
	}
	return g.change(t, key, len(value))
}

// Delete checks a delete and adds it to the size of the transaction.
func (g *Guard) Delete(t Table, key []byte) error { return g.change(t, key, 0) }

// change checks what Put and Delete share.
func (g *Guard) change(t Table, key []byte, valueSize int) error {
	if err := g.use(t); err != nil {
		return err
	}
	if !g.writable {
		return ErrReadOnly
	}
	if err := checkKey(t, key); err != nil {
		return err
	}
	for _, name := range g.scanning {
		if name == t.Name {
			return fmt.Errorf("table %s: %w", t.Name, ErrMutating)
		}
	}
	g.bytes += len(key) + valueSize
	g.ops++
	if g.bytes > MaxTxBytes || g.ops > MaxTxOps {
		return g.Fail(fmt.Errorf("%d bytes in %d operations: %w", g.bytes, g.ops, ErrTxTooLarge))
	}
	return nil
}

// use checks that the transaction runs and that t is declared.
func (g *Guard) use(t Table) error {
	if g.done {
		return ErrTxDone
	}
	if g.failed != nil {
		return g.failed
	}
	if declared, ok := g.tables[t.Name]; !ok || declared != t {
		return fmt.Errorf("table %q: %w", t.Name, ErrNoTable)
	}
	return nil
}

// Fail makes the transaction unable to commit, because the database may have
// dropped part of it, and returns err. The first failure stays; every later call
// and Finish report it, even when fn overlooked it.
func (g *Guard) Fail(err error) error {
	if g.failed == nil {
		g.failed = err
	}
	return err
}

// Size returns how many bytes and operations the transaction has put or deleted.
func (g *Guard) Size() (bytes, ops int) { return g.bytes, g.ops }

// Finish ends the transaction: every later use is ErrTxDone. It returns the error
// that forbids the commit, if there is one.
func (g *Guard) Finish() error {
	g.done = true
	return g.failed
}

// checkKey checks key against the limits of its table.
func checkKey(t Table, key []byte) error {
	if !t.IDs {
		if len(key) == 0 || len(key) > MaxKey {
			return fmt.Errorf("table %s: key of %d bytes: %w", t.Name, len(key), ErrLimit)
		}
		return nil
	}
	if len(key) != 8 {
		return fmt.Errorf("table %s: id of %d bytes: %w", t.Name, len(key), ErrLimit)
	}
	if id := ParseID(key); id == 0 || id > MaxID {
		return fmt.Errorf("table %s: id %d: %w", t.Name, id, ErrLimit)
	}
	return nil
}

// PrefixEnd returns the smallest key above every key that has prefix, nil when
// there is none because prefix is empty or all 0xff.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
