package badger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	db "github.com/dgraph-io/badger/v4"
)

// Store is an open Badger store.
type Store struct {
	path     string
	tables   map[string]byte // first byte of the keys of each table
	decls    kv.Tables
	readOnly bool
	lock     *storefile.Lock
	gate     *kv.Gate
	log      *logger
	db       *db.DB
	readers  atomic.Int64 // Views that run
	calm     bool         // Badger merges nothing by itself

	writerSlot chan struct{} // one token while someone uses what follows
	wal        wal
	reclaimed  bool // something was deleted since the tables were merged
}

// openLocked opens the store at path, which lock holds. lock stays the caller's when
// it fails.
func openLocked(path string, tables kv.Tables, lock *storefile.Lock, readOnly bool) (*Store, error) {
	if err := removeEmpty(path); err != nil {
		return nil, err
	}
	logs, err := logFiles(path)
	if err != nil {
		return nil, err
	}
	pure := readOnly && len(logs) == 0 && canReadOnly
	if !pure {
		if err := prepareLogs(path, logs); err != nil {
			return nil, err
		}
	}
	s := &Store{
		path: path, decls: tables, readOnly: readOnly, lock: lock, gate: kv.NewGate(),
		log: &logger{}, writerSlot: make(chan struct{}, 1),
	}
	if s.calm, err = isTight(path); err != nil {
		return nil, err
	}
	if s.db, err = db.Open(options(path, s.log, s.calm).WithReadOnly(pure)); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// start reads the catalogue of tables and adds what is missing.
func (s *Store) start() error {
	if !s.db.Opts().ReadOnly {
		if err := s.wal.begin(s.path, 0); err != nil {
			return err
		}
	}
	catalogue, err := readCatalogue(s.db)
	if err != nil {
		return err
	}
	missing, err := catalogue.use(s.decls)
	if err != nil {
		return err
	}
	s.tables = catalogue.ids
	if len(missing) == 0 || s.readOnly {
		return nil
	}
	if err := s.hasRoom(kv.Relaxed, 0); err != nil {
		return err
	}
	size := int64(len(missing)+1) * 2 * (entryOverhead + maxTableName)
	if err := s.wal.before(s.db, size); err != nil {
		return err
	}
	if err := addTables(s.db, catalogue, missing); err != nil {
		return err
	}
	return s.wal.after(s.path, size)
}

// View implements kv.Store.
func (s *Store) View(ctx context.Context, fn func(kv.Reader) error) error {
	return s.withReader(ctx, func(txn *db.Txn) error {
		tx := s.newTx(ctx, txn, s.decls.Reader())
		defer tx.guard.Finish()
		return fn(tx)
	})
}

// withReader runs fn with a snapshot of this moment.
func (s *Store) withReader(ctx context.Context, fn func(*db.Txn) error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	s.readers.Add(1)
	defer s.readers.Add(-1)
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	return fn(txn)
}

// Update implements kv.Store. Updates run one after the other, so fn runs once.
func (s *Store) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	return s.withWriter(ctx, func() error {
		if err := s.log.err(); err != nil {
			return mapError(err, s.path)
		}
		if err := s.room(mode, 0); err != nil {
			return err
		}
		txn := s.db.NewTransaction(false)
		defer txn.Discard()
		tx := s.newTx(ctx, txn, s.decls.Writer())
		if err := runUpdate(tx, fn); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.commit(tx, mode)
	})
}

// withWriter runs fn alone.
func (s *Store) withWriter(ctx context.Context, fn func() error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	if s.readOnly {
		return kv.ErrReadOnly
	}
	if err := s.gate.Acquire(ctx, s.writerSlot); err != nil {
		return err
	}
	defer func() { <-s.writerSlot }()
	return fn()
}

// runUpdate calls fn and ends the guard, also when fn panics.
func runUpdate(tx *tx, fn func(kv.Writer) error) (err error) {
	defer func() {
		if failed := tx.guard.Finish(); err == nil {
			err = failed
		}
	}()
	return fn(tx)
}

// commit writes what tx has changed and keeps the promise of mode.
func (s *Store) commit(tx *tx, mode kv.Mode) error {
	if tx.pending.Len() > 0 {
		size := tx.logBytes()
		if err := s.room(mode, size); err != nil {
			return err
		}
		if err := s.wal.before(s.db, size); err != nil {
			return mapError(err, s.path)
		}
		if err := s.write(tx); err != nil {
			return mapError(errors.Join(err, s.log.err()), s.path)
		}
		if err := s.wal.after(s.path, size); err != nil {
			return mapError(err, s.path)
		}
		s.reclaimed = s.reclaimed || mode&kv.Reclaim != 0
	}
	if mode.Durable() {
		return mapError(s.wal.sync(s.db, s.path), s.path)
	}
	return nil
}

// write commits what tx has changed in one transaction of Badger.
func (s *Store) write(tx *tx) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for it := tx.pending.Iter(); it.Next(); {
		if err := it.Value().writeTo(txn, []byte(it.Key())); err != nil {
			return err
		}
	}
	return txn.Commit()
}

// Close implements kv.Store. It moves the log into the tree. Where the disk has no
// room for that, the store stays open, and with it locked, until the process ends;
// nothing is lost, the next Open reads the log.
func (s *Store) Close() error {
	if !s.gate.Close() {
		return nil
	}
	if !s.db.Opts().ReadOnly {
		if err := s.roomToClose(); err != nil {
			return fmt.Errorf("close %s: %w", s.path, errors.Join(err, s.db.Sync()))
		}
	}
	if err := errors.Join(s.db.Close(), s.lock.Release()); err != nil {
		return fmt.Errorf("close %s: %w", s.path, mapError(err, s.path))
	}
	return nil
}
