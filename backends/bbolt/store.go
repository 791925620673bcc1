package bbolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine/kv"
	bolt "go.etcd.io/bbolt"
)

// Store is an open bbolt store.
type Store struct {
	path     string
	tables   kv.Tables
	readOnly bool
	gate     *kv.Gate

	writerSlot chan struct{} // one token while someone changes the file
	broken     error         // belongs to the slot: why no update may run any more
	scattered  atomic.Int64  // bytes of free pages that an update had no use for

	mu       sync.Mutex    // guards the rest and starts read transactions
	cur      *handle       // the file of the store
	idle     chan struct{} // closed, if somebody waits, when cur has no reader
	closeErr error         // from closing retired handles
}

// newStore returns a store on h.
func newStore(path string, tables kv.Tables, h *handle, readOnly bool) *Store {
	return &Store{
		path: path, tables: tables, readOnly: readOnly, gate: kv.NewGate(),
		writerSlot: make(chan struct{}, 1), cur: h,
	}
}

// declare compares the declared tables with those of the file and adds what is
// missing.
func (s *Store) declare() error {
	defer catchFaults()()
	var missing []kv.Table
	err := s.cur.db.View(func(btx *bolt.Tx) error {
		return attempt(func() (err error) {
			missing, err = missingTables(btx, s.tables)
			return err
		})
	})
	if err != nil || len(missing) == 0 || s.readOnly {
		return err
	}
	btx, err := s.cur.db.Begin(true)
	if err != nil {
		return err
	}
	err = attempt(func() error { return addTables(btx, missing) })
	if err == nil {
		err = attempt(btx.Commit)
	}
	if err != nil {
		return errors.Join(err, rollback(btx))
	}
	return nil
}

// missingTables returns those of tables that the file does not hold, or
// kv.ErrNoTable when it holds one under another declaration.
func missingTables(btx *bolt.Tx, tables kv.Tables) (missing []kv.Table, err error) {
	decls := btx.Bucket([]byte(marker))
	if decls == nil {
		return nil, kv.ErrNotStore
	}
	for _, t := range tables {
		switch have := decls.Get([]byte(t.Name)); {
		case have == nil:
			missing = append(missing, t)
		case string(have) != declaration(t) || btx.Bucket([]byte(t.Name)) == nil:
			return nil, fmt.Errorf("table %q is declared as %q: %w", t.Name, have, kv.ErrNoTable)
		}
	}
	return missing, nil
}

// addTables makes the buckets of tables and notes their declarations.
func addTables(btx *bolt.Tx, tables []kv.Table) error {
	decls := btx.Bucket([]byte(marker))
	for _, t := range tables {
		if _, err := btx.CreateBucket([]byte(t.Name)); err != nil {
			return err
		}
		if err := decls.Put([]byte(t.Name), []byte(declaration(t))); err != nil {
			return err
		}
	}
	return nil
}

// declaration is what the file keeps of a table besides its name.
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

// View implements kv.Store.
func (s *Store) View(ctx context.Context, fn func(kv.Reader) error) error {
	return s.withReader(ctx, func(h *handle, btx *bolt.Tx) error {
		tx := newTx(ctx, s.path, h, btx, s.tables.Reader())
		defer tx.guard.Finish()
		return fn(tx)
	})
}

// withReader runs fn with a snapshot of this moment.
func (s *Store) withReader(ctx context.Context, fn func(*handle, *bolt.Tx) error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	defer catchFaults()()
	h, btx, err := s.beginRead()
	if err != nil {
		return mapError(err, s.path)
	}
	defer s.leave(h)
	defer func() { _ = btx.Rollback() }() // fails only for a transaction that has ended
	return fn(h, btx)
}

// beginRead starts a read transaction. leave must follow its end.
func (s *Store) beginRead() (h *handle, btx *bolt.Tx, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h = s.cur
	err = attempt(func() (err error) {
		btx, err = h.db.Begin(false)
		return err
	})
	if err == nil {
		h.readers++
	}
	return h, btx, err
}

// leave notes the end of a read transaction.
func (s *Store) leave(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.readers--; h.readers > 0 {
		return
	}
	if h.retired {
		s.closeErr = errors.Join(s.closeErr, h.db.Close())
	} else if s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Close implements kv.Store.
func (s *Store) Close() error {
	if !s.gate.Close() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.closeErr, s.cur.db.Close()); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	return nil
}
