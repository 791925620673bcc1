package engine

import (
	"context"
	"errors"

	"github.com/agentvfs/avfs/engine/kv"
)

// What may have become garbage since the last collection was stored since then, or
// is at most as much as there was: so a store that has grown by a share is worth a
// look, and the work stays in proportion to what is written.
const (
	collectShare = 2        // half as much again
	collectBytes = 64 << 20 // and so much at least
)

// GCDue reports whether so much was stored since the last collection that another
// one is worth its time. It costs next to nothing.
func (s *Store) GCDue() (bool, error) {
	size, ok, err := s.storedBytes()
	if err != nil || !ok {
		return false, wrap(err, "gc", "")
	}
	last := s.collectedBytes.Load()
	grown := size - last
	return grown > collectBytes && grown > last/collectShare, nil
}

// Collect is GC for the background: what it frees stays with the store, for new
// content, since giving it back to the file system would keep others waiting.
func (s *Store) Collect(ctx context.Context) (rep GCReport, err error) {
	s.care.Lock()
	defer s.care.Unlock()
	if err = s.collect(ctx, &rep); err == nil {
		err = s.noteCollected(ctx)
	}
	return rep, wrap(err, "gc", "")
}

// noteCollected remembers the size of the store after a collection.
func (s *Store) noteCollected(ctx context.Context) error {
	size, ok, err := s.storedBytes()
	if err != nil || !ok {
		return err
	}
	s.collectedBytes.Store(size)
	err = s.kv.Update(ctx, kv.Relaxed|kv.Reclaim, s.putCounters)
	if errors.Is(err, kv.ErrNoSpace) {
		err = nil // the next commit writes it
	}
	return err
}

// storedBytes is the size of the whole store, and whether the back end tells.
func (s *Store) storedBytes() (size int64, ok bool, err error) {
	d, ok := kv.As[kv.Sizer](s.kv)
	if ok {
		size, err = d.Size()
	}
	return size, ok, err
}
