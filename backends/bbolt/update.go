package bbolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Update implements kv.Store. Updates run one after the other, so fn runs once.
// Every mode is synced.
func (s *Store) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	return s.withWriter(ctx, func(h *handle) error {
		room, err := s.room(h, mode)
		if err != nil {
			return err
		}
		return s.transact(ctx, h, room, fn)
	})
}

// withWriter runs fn alone with the file of the store.
func (s *Store) withWriter(ctx context.Context, fn func(*handle) error) error {
	if err := s.gate.Enter(ctx); err != nil {
		return err
	}
	defer s.gate.Leave()
	if s.readOnly {
		return kv.ErrReadOnly
	}
	return s.exclude(ctx, func(h *handle) error {
		if s.broken != nil {
			return fmt.Errorf("%s must be opened again: %w", s.path, s.broken)
		}
		return fn(h)
	})
}

// exclude runs fn while nobody changes the file.
func (s *Store) exclude(ctx context.Context, fn func(*handle) error) error {
	if err := s.gate.Acquire(ctx, s.writerSlot); err != nil {
		return err
	}
	defer func() { <-s.writerSlot }()
	defer catchFaults()()
	s.mu.Lock()
	h := s.cur
	s.mu.Unlock()
	return fn(h)
}

// transact runs fn in a write transaction and commits it, if the file need not grow
// by more than room bytes.
func (s *Store) transact(ctx context.Context, h *handle, room int64, fn func(kv.Writer) error) (err error) {
	btx, err := h.db.Begin(true)
	if err != nil {
		return mapError(err, s.path)
	}
	defer func() { // also when fn panics
		if rbErr := rollback(btx); rbErr != nil {
			s.broken = rbErr
			err = errors.Join(err, rbErr)
		}
	}()
	guard := s.tables.Writer()
	if err := runUpdate(newTx(ctx, s.path, h, btx, guard), fn); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.commit(ctx, h, btx, guard, room)
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

// rollback ends btx without effect, if it has not ended.
func rollback(btx *bolt.Tx) error {
	err := attempt(btx.Rollback)
	if errors.Is(err, bolterrors.ErrTxClosed) {
		return nil
	}
	return err
}

// commit commits btx. bbolt waits for all readers, and lets no new one begin, when it
// has to map more of the file; while that is possible, commit itself waits for them,
// within ctx and without stopping new ones.
func (s *Store) commit(ctx context.Context, h *handle, btx *bolt.Tx, guard *kv.Guard, room int64) error {
	if btx.Size()+s.worstGrowth(h, btx, guard) >= h.mapped {
		if err := s.lockAlone(ctx, h); err != nil {
			return err
		}
		defer s.mu.Unlock()
		defer h.noteMap()
	}
	id := btx.ID()
	// The field belongs to the writing transaction; bbolt offers no other way to
	// stop the file from growing once it is open.
	h.db.MaxSize = int(btx.Size() + room + allocBytes + 2*pageSize)
	err := attempt(btx.Commit)
	if err == nil {
		return nil
	}
	if errors.Is(err, bolterrors.ErrMaxSizeReached) {
		bytes, _ := guard.Size()
		err = s.refused(h, bytes)
	}
	err = mapCommitError(err, s.path)
	s.settle(h, id, err)
	return err
}

// lockAlone locks s.mu at a moment when h has no reader.
func (s *Store) lockAlone(ctx context.Context, h *handle) error {
	for {
		s.mu.Lock()
		if h.readers == 0 {
			return nil
		}
		if s.idle == nil {
			s.idle = make(chan struct{})
		}
		idle := s.idle
		s.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle looks whether the failed commit id is in force all the same, as after a sync
// that failed. Then nobody can say what the disk holds, and no update may build on it.
func (s *Store) settle(h *handle, id int, cause error) {
	if errors.Is(cause, kv.ErrCorrupt) {
		s.broken = cause
		return
	}
	err := attempt(func() error {
		return h.db.View(func(now *bolt.Tx) error {
			if now.ID() >= id {
				return cause
			}
			return nil
		})
	})
	if err != nil {
		s.broken = err
	}
}
