package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// fullStore is a store on a disk that has not even the room that a database needs to be
// opened for writing. It is read meanwhile; an update opens it for writing as soon as
// there is room.
type fullStore struct {
	driver kv.Driver
	path   string

	mu    sync.RWMutex // guards what follows; whoever uses cur holds it for reading
	cur   kv.Store     // nil when it could not be opened at all, which cause tells
	cause error        // why cur cannot be written; nil once it can
}

// openFull opens a store for reading that could not be opened for writing, which is
// what cause says.
func openFull(driver kv.Driver, path string, cause error) (kv.Store, error) {
	s := &fullStore{driver: driver, path: path, cause: cause}
	var err error
	if s.cur, err = s.open(true); err != nil {
		return nil, errors.Join(cause, err)
	}
	return s, nil
}

func (s *fullStore) open(readOnly bool) (kv.Store, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a cancelled context does not wait for the lock
	return s.driver.Open(ctx, s.path, kv.Options{Tables: engine.Tables(), ReadOnly: readOnly})
}

// View implements kv.Store.
func (s *fullStore) View(ctx context.Context, fn func(kv.Reader) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.cur == nil {
		return s.cause
	}
	return s.cur.View(ctx, fn)
}

// Update implements kv.Store.
func (s *fullStore) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	if err := s.writable(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cur.Update(ctx, mode, fn)
}

// writable opens the store for writing if it is not yet. It does not wait for readers:
// one of them may be the caller's.
func (s *fullStore) writable() error {
	s.mu.RLock()
	cause := s.cause
	s.mu.RUnlock()
	if cause == nil || !s.mu.TryLock() {
		return cause
	}
	defer s.mu.Unlock()
	if s.cause == nil || s.cur == nil {
		return s.cause
	}
	if err := s.cur.Close(); err != nil {
		s.cur, s.cause = nil, err
		return err
	}
	if s.cur, s.cause = s.open(false); s.cause == nil {
		return nil
	}
	var err error
	if s.cur, err = s.open(true); err != nil {
		s.cause = errors.Join(s.cause, err)
	}
	return s.cause
}

// FreeSpace implements kv.FreeSpacer, by the database that is open now.
func (s *fullStore) FreeSpace() (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.cur == nil {
		return 0, s.cause
	}
	db, ok := kv.As[kv.FreeSpacer](s.cur)
	if !ok {
		return 0, fmt.Errorf("%s: %w", s.path, errors.ErrUnsupported)
	}
	return db.FreeSpace()
}

// Close implements kv.Store.
func (s *fullStore) Close() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.cur == nil {
		return nil
	}
	return s.cur.Close()
}

// Unwrap implements kv.Unwrapper.
func (s *fullStore) Unwrap() kv.Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cur
}
