package bbolt

import (
	"context"
	"errors"
	"math"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	bolt "go.etcd.io/bbolt"
)

// A commit writes changed pages to free pages of the file and, when those do not
// fit, behind its end. So the free pages are part of the room: a delete on a full
// disk makes some, and the next update takes them.

// room returns by how many bytes the file may grow in an update of mode. Without
// kv.Reclaim it leaves kv.Reserve free, and fails with kv.ErrNoSpace where the disk
// and the free pages together are less than that.
func (s *Store) room(h *handle, mode kv.Mode) (int64, error) {
	if mode&kv.Reclaim != 0 {
		return math.MaxInt32, nil // the disk itself is the limit
	}
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return 0, err
	}
	if inside := int64(h.db.Stats().FreeAlloc); free+inside < kv.Reserve {
		return 0, &kv.SpaceError{Path: s.path, Free: free + inside, Need: kv.Reserve}
	}
	return min(max(0, free-kv.Reserve), math.MaxInt32), nil
}

// worstGrowth bounds how far the commit of btx can move the end of the file. A change
// rewrites its leaf, which holds up to two of the largest values and a page of small
// ones, and the pages above it, and all that at most as often as there are pages.
func (s *Store) worstGrowth(h *handle, btx *bolt.Tx, guard *kv.Guard) int64 {
	const leaf = 3 * kv.MaxValue
	bytes, ops := guard.Size()
	worst := min(int64(ops)*leaf, 2*btx.Size())
	return 4*int64(bytes) + worst + 2*int64(h.db.Stats().FreelistInuse) + allocBytes
}

// refused is the error for an update of bytes that needs the file to grow by more than
// it may. The free pages of the file were of no use to it: bbolt wants those of a value
// side by side.
func (s *Store) refused(h *handle, bytes int) error {
	s.scattered.Store(int64(h.db.Stats().FreeAlloc))
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return errors.Join(kv.ErrNoSpace, err)
	}
	return &kv.SpaceError{Path: s.path, Free: free, Need: max(kv.Reserve+int64(bytes), free+pageSize)}
}

// FreeSpace implements kv.FreeSpacer. The free pages of the file count as well, but for
// those that the newest refused update had no use for.
func (s *Store) FreeSpace() (int64, error) {
	free, err := storefile.FreeSpace(s.path)
	if err != nil || s.readOnly {
		return free, err
	}
	if err := s.gate.Enter(context.Background()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	s.mu.Lock()
	inside := int64(s.cur.db.Stats().FreeAlloc)
	s.mu.Unlock()
	scattered := s.scattered.Load()
	if inside < scattered { // some were used after all
		s.scattered.CompareAndSwap(scattered, inside)
		return free, nil
	}
	return free + inside - scattered, nil
}
