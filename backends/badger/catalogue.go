package badger

import (
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
	db "github.com/dgraph-io/badger/v4"
)

const (
	// catalogueByte begins the keys of the catalogue of tables: the name of a
	// table follows; the value is its byte and its declaration.
	catalogueByte = 0x00
	// spareByte begins a key that exists for a moment only, see flush.
	spareByte = 0xFF
	// bannedByte must not stand for a table: Badger keeps keys that begin with
	// "!badger!" for itself.
	bannedByte = '!'

	maxTableName = 64 // of package kv, in bytes
)

// catalogue says which byte stands for which table.
type catalogue struct {
	ids   map[string]byte
	decls map[string]string
}

// readCatalogue reads the catalogue of the store.
func readCatalogue(d *db.DB) (*catalogue, error) {
	c := &catalogue{map[string]byte{}, map[string]string{}}
	return c, d.View(func(txn *db.Txn) error {
		it := newIterator(txn, []byte{catalogueByte})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			name := string(it.Item().Key()[1:])
			err := it.Item().Value(func(v []byte) error {
				if len(v) == 0 {
					return fmt.Errorf("table %q has no byte: %w", name, kv.ErrCorrupt)
				}
				c.ids[name], c.decls[name] = v[0], string(v[1:])
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// use returns those of tables that are not in the catalogue, or kv.ErrNoTable when
// it holds one under another declaration.
func (c *catalogue) use(tables kv.Tables) (missing []kv.Table, err error) {
	for _, t := range tables {
		switch have, ok := c.decls[t.Name]; {
		case !ok:
			missing = append(missing, t)
		case have != declaration(t):
			return nil, fmt.Errorf("table %q is declared as %q: %w", t.Name, have, kv.ErrNoTable)
		}
	}
	return missing, nil
}

// addTables gives each of tables a byte and notes it in the store and in c.
func addTables(d *db.DB, c *catalogue, tables []kv.Table) error {
	used := map[byte]bool{catalogueByte: true, spareByte: true, bannedByte: true}
	for _, id := range c.ids {
		used[id] = true
	}
	err := d.Update(func(txn *db.Txn) error {
		next := 0
		for _, t := range tables {
			for used[byte(next)] {
				if next++; next > 0xFF {
					return fmt.Errorf("table %q is one too many: %w", t.Name, kv.ErrLimit)
				}
			}
			used[byte(next)] = true
			c.ids[t.Name], c.decls[t.Name] = byte(next), declaration(t)
			key := append([]byte{catalogueByte}, t.Name...)
			if err := txn.Set(key, append([]byte{byte(next)}, declaration(t)...)); err != nil {
				return err
			}
		}
		return nil
	})
	// The tables must not be lost when later updates survive a power cut.
	return errors.Join(err, d.Sync())
}

// declaration is what the store keeps of a table besides its name.
func declaration(t kv.Table) string {
	kind := "keys"
	if t.IDs {
		kind = "ids"
	}
	if t.Text {
		kind += " text"
	}
	return kind
}
