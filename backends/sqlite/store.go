package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
)

const (
	walSuffix = "-wal"
	shmSuffix = "-shm"

	// maxReaders bounds the connections that read at the same time, idleReaders
	// those that are kept when they are not used. Each costs some 3 MB.
	maxReaders  = 64
	idleReaders = 8
)

// Store is an open SQLite store.
type Store struct {
	path   string
	tables kv.Tables
	absent map[string]bool // only when read-only
	lock   *storefile.Lock
	gate   *kv.Gate
	reads  connKind

	pageBytes int64 // 0 when read-only

	readerSlots chan struct{} // one token for each View that runs
	readersMu   sync.Mutex    // guards idle
	idle        []*conn

	writerSlot chan struct{} // one token while someone uses what follows
	writer     *conn         // nil when read-only
	wal        walState
}

// newStore opens the connections of the store at path.
func newStore(ctx context.Context, path string, tables kv.Tables, lock *storefile.Lock, readOnly bool) (*Store, error) {
	s := &Store{
		path: path, tables: tables, lock: lock, gate: kv.NewGate(), reads: readerConn,
		readerSlots: make(chan struct{}, maxReaders), writerSlot: make(chan struct{}, 1),
	}
	if readOnly {
		return s, s.startReadOnly(ctx)
	}
	return s, s.startWriter(ctx)
}

// startWriter opens the writing connection, which also replays what a crash left.
func (s *Store) startWriter(ctx context.Context) (err error) {
	c, err := openConn(ctx, s.path, writerConn)
	if err != nil {
		return s.mapErr(ctx, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(s.mapErr(ctx, err), c.close())
		}
	}()
	if err := checkVersion(c, s.path); err != nil {
		return err
	}
	missing, err := missingTables(c.db, s.tables)
	if err != nil {
		return err
	}
	if err := addTables(ctx, c, missing); err != nil {
		return err
	}
	if s.pageBytes, err = pragmaInt(c, `PRAGMA page_size`); err != nil {
		return err
	}
	s.writer = c
	// A process that died may have left a log, synced or not.
	s.wal.unsynced = true
	if info, err := os.Stat(s.path + walSuffix); err == nil {
		s.wal.bytes = info.Size()
	}
	c.db.WALHook(s.noteWAL)
	return nil
}

// startReadOnly opens the first reading connection. Without a log SQLite can read
// the file as it is; with one it needs its shared memory file beside it.
func (s *Store) startReadOnly(ctx context.Context) error {
	s.reads = immutableConn
	if info, err := os.Stat(s.path + walSuffix); err == nil && info.Size() > 0 {
		s.reads = readOnlyConn
	}
	c, err := openConn(ctx, s.path, s.reads)
	if err != nil {
		return s.mapErr(ctx, err)
	}
	if err := checkVersion(c, s.path); err != nil {
		return errors.Join(err, c.close())
	}
	missing, err := missingTables(c.db, s.tables)
	if err != nil {
		return errors.Join(s.mapErr(ctx, err), c.close())
	}
	s.absent = map[string]bool{}
	for _, t := range missing {
		s.absent[t.Name] = true
	}
	s.idle = append(s.idle, c)
	return nil
}

// checkVersion looks at the format version again, because a log may hold a newer
// one than the header of the file.
func checkVersion(c *conn, path string) error {
	v, err := pragmaInt(c, `PRAGMA user_version`)
	if err != nil {
		return err
	}
	if v > formatVersion {
		return &VersionError{Path: path, Have: uint32(v), Know: formatVersion}
	}
	return nil
}

// pragmaInt returns the one number that a pragma yields.
func pragmaInt(c *conn, sql string) (int64, error) {
	st, _, err := c.db.Prepare(sql)
	if err != nil {
		return 0, err
	}
	n, err := c.query(st)
	return n, errors.Join(err, st.Close())
}

// View implements kv.Store.
func (s *Store) View(ctx context.Context, fn func(kv.Reader) error) error {
	return s.withReader(ctx, func(c *conn) error {
		tx := &tx{c: c, guard: s.tables.Reader(), absent: s.absent}
		tx.fail = func(err error) error { return s.mapErr(ctx, err) }
		defer tx.guard.Finish()
		return fn(tx)
	})
}

// withReader runs fn with a connection that is inside a snapshot.
func (s *Store) withReader(ctx context.Context, fn func(*conn) error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	if err := s.gate.Acquire(ctx, s.readerSlots); err != nil {
		return err
	}
	defer func() { <-s.readerSlots }()
	c, err := s.takeReader(ctx)
	if err != nil {
		return s.mapErr(ctx, err)
	}
	// A reader whose transaction does not end cleanly, also by a panic in fn,
	// is rolled back or closed here.
	defer s.giveReader(c)
	c.db.SetInterrupt(ctx)
	if err := c.beginSnapshot(); err != nil {
		return s.mapErr(ctx, err)
	}
	return fn(c)
}

// beginSnapshot starts a read transaction at this moment; BEGIN alone would start
// it at the first read.
func (c *conn) beginSnapshot() error {
	if err := c.begin.Exec(); err != nil {
		return err
	}
	_, err := c.query(c.snapshot)
	return err
}

// takeReader returns an idle reading connection or a new one.
func (s *Store) takeReader(ctx context.Context) (*conn, error) {
	s.readersMu.Lock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.readersMu.Unlock()
		return c, nil
	}
	s.readersMu.Unlock()
	return openConn(ctx, s.path, s.reads)
}

// giveReader ends the read transaction and keeps the connection if it is sound
// and wanted. Nothing is lost with a reading connection, so a failure here only
// costs opening another.
func (s *Store) giveReader(c *conn) {
	c.db.SetInterrupt(context.Background())
	sound := c.db.GetAutocommit() || c.commit.Exec() == nil
	s.readersMu.Lock()
	if sound && len(s.idle) < idleReaders {
		s.idle = append(s.idle, c)
		c = nil
	}
	s.readersMu.Unlock()
	if c != nil {
		_ = c.close()
	}
}

// Update implements kv.Store. Updates run one after the other, so fn runs again only
// where there was no room for what it did and some could be made.
func (s *Store) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	return s.withWriter(ctx, func(c *conn) error {
		for first := true; ; first = false {
			if err := s.room(mode); err != nil {
				return err
			}
			free, err := storefile.FreeSpace(s.path)
			if err != nil {
				return err
			}
			if err = s.transact(ctx, c, mode, fn); err == nil {
				return s.afterCommit(mode)
			}
			if !errors.Is(err, kv.ErrNoSpace) || !s.makeRoom(free) || !first {
				return err
			}
		}
	})
}

// withWriter runs fn alone with the writing connection.
func (s *Store) withWriter(ctx context.Context, fn func(*conn) error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	if s.writer == nil {
		return kv.ErrReadOnly
	}
	if err := s.gate.Acquire(ctx, s.writerSlot); err != nil {
		return err
	}
	defer func() { <-s.writerSlot }()
	return fn(s.writer)
}

// transact runs fn in a write transaction and commits it.
func (s *Store) transact(ctx context.Context, c *conn, mode kv.Mode, fn func(kv.Writer) error) (err error) {
	c.db.SetInterrupt(ctx)
	committed := false
	// Runs also when fn panics.
	defer func() {
		c.db.SetInterrupt(context.Background())
		if !committed {
			if rbErr := c.rollback(); rbErr != nil {
				err = errors.Join(err, s.mapErr(ctx, rbErr))
			}
		}
	}()
	if err := c.rollback(); err != nil { // what an earlier failed rollback left
		return s.mapErr(ctx, err)
	}
	c.db.SetInterrupt(ctx)
	if err := c.setSync(mode); err != nil {
		return s.mapErr(ctx, err)
	}
	changes := c.db.TotalChanges()
	if err := c.begin.Exec(); err != nil {
		return s.mapErr(ctx, err)
	}
	guard := s.tables.Writer()
	if err := s.runUpdate(ctx, c, guard, fn); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// From here on a cancelled context must not stop the commit half way.
	c.db.SetInterrupt(context.Background())
	if mode&kv.Reclaim == 0 {
		if err := s.roomToCommit(guard); err != nil {
			return err
		}
	}
	if mode.Durable() && c.db.TotalChanges() == changes {
		if err := s.mustSync(); err != nil {
			return s.mapErr(ctx, err)
		}
	}
	if err := c.commit.Exec(); err != nil {
		return s.mapErr(ctx, err)
	}
	committed, s.wal.unsynced = true, !mode.Durable()
	return nil
}

// runUpdate calls fn and ends the guard, also when fn panics.
func (s *Store) runUpdate(ctx context.Context, c *conn, guard *kv.Guard, fn func(kv.Writer) error) (err error) {
	tx := &tx{c: c, guard: guard}
	// A failed statement may have ended the transaction, so nothing may commit.
	tx.fail = func(err error) error { return guard.Fail(s.mapErr(ctx, err)) }
	defer func() {
		if failed := guard.Finish(); err == nil {
			err = failed
		}
	}()
	return fn(tx)
}

// Close implements kv.Store. It leaves one whole file without sidecars.
func (s *Store) Close() error {
	if !s.gate.Close() {
		return nil
	}
	var errs []error
	for _, c := range s.idle {
		errs = append(errs, c.close())
	}
	if s.writer != nil {
		errs = append(errs, s.closeWriter())
	}
	if err := errors.Join(append(errs, s.lock.Release())...); err != nil {
		return fmt.Errorf("close %s: %w", s.path, mapError(err, s.path))
	}
	return nil
}

// closeWriter moves the log into the file, durably, and ends the writing
// connection, at which SQLite removes the empty sidecars.
func (s *Store) closeWriter() error {
	err := s.writer.setSync(kv.Durable)
	done, truncErr := s.truncateWAL(busyWait)
	if !done && truncErr == nil {
		truncErr = fmt.Errorf("the log stays beside the file, another program reads it: %w", kv.ErrLocked)
	}
	return errors.Join(err, truncErr, s.writer.close())
}
