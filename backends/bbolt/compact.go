//go:build !windows

package bbolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	bolt "go.etcd.io/bbolt"
)

// copyTxBytes is the size of the transactions by which Compact fills the new file.
const copyTxBytes = 8 << 20

// Compact implements kv.Compacter. It copies what is in use to a new file, which
// takes the place of the old one at once, so a crash leaves one or the other. It
// needs room for both. Updates wait while it works; readers go on and keep the old
// file until they end. Windows cannot replace a file that is mapped, so there is no
// Compact there.
func (s *Store) Compact(ctx context.Context) (reclaimed int64, err error) {
	err = s.withWriter(ctx, func(old *handle) error {
		before, err := s.size()
		if err != nil {
			return err
		}
		if err := s.roomToCompact(old, before); err != nil {
			return err
		}
		if err := s.replace(ctx, old); err != nil {
			return mapError(err, s.path)
		}
		after, err := s.size()
		reclaimed = max(0, before-after)
		return err
	})
	return reclaimed, err
}

// roomToCompact returns kv.ErrNoSpace when the disk cannot hold a second file.
func (s *Store) roomToCompact(h *handle, size int64) error {
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return err
	}
	// It gives back more than it takes, so it may use the reserve.
	if need := size - int64(h.db.Stats().FreeAlloc) + allocBytes; free < need {
		return fmt.Errorf("%s: %d bytes free, %d needed: %w", s.path, free, need, kv.ErrNoSpace)
	}
	return nil
}

// replace puts a compact copy of old in its place.
func (s *Store) replace(ctx context.Context, old *handle) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	tmp, err := storefile.TempFile(s.path)
	if err != nil {
		return err
	}
	defer remove(tmp)
	lock, err := lockNew(tmp)
	if err != nil {
		return err
	}
	h, err := openHandle(lock, false, reserveMap())
	if err != nil {
		return err
	}
	err = copyHandle(ctx, old.db, h.db)
	if err == nil {
		err = errors.Join(os.Chmod(tmp, info.Mode().Perm()), ctx.Err())
	}
	if err == nil {
		err = os.Rename(tmp, s.path)
	}
	if err != nil {
		return errors.Join(err, h.db.Close())
	}
	s.swap(h)
	return storefile.SyncDir(filepath.Dir(s.path))
}

// swap makes h the file of the store. Readers of the old one keep it open.
func (s *Store) swap(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.cur
	s.cur = h
	s.scattered.Store(0)
	if old.retired = true; old.readers == 0 {
		s.closeErr = errors.Join(s.closeErr, old.db.Close())
	}
}

// copyHandle copies all buckets of src to the new database dst and makes it durable.
func copyHandle(ctx context.Context, src, dst *bolt.DB) (err error) {
	// Nobody knows of dst yet: one sync at the end is enough.
	dst.NoSync = true
	defer func() {
		dst.NoSync = false
		if err == nil {
			err = dst.Sync()
		}
	}()
	c := copier{ctx: ctx, dst: dst}
	defer func() { err = errors.Join(err, c.finish(err == nil)) }()
	return src.View(func(btx *bolt.Tx) error {
		return attempt(func() error { return btx.ForEach(c.bucket) })
	})
}

// copier fills dst in transactions of bounded size.
type copier struct {
	ctx   context.Context // of the Compact that copies
	dst   *bolt.DB
	btx   *bolt.Tx
	bytes int
}

// bucket copies one bucket.
func (c *copier) bucket(name []byte, b *bolt.Bucket) error {
	to, err := c.open(name)
	if err != nil {
		return err
	}
	return eachKey(c.ctx, b, func(_, k, v []byte) error {
		if c.bytes += len(k) + len(v); c.bytes > copyTxBytes {
			if err := c.finish(true); err != nil {
				return err
			}
			if to, err = c.open(name); err != nil {
				return err
			}
		}
		return to.Put(k, v)
	})
}

// open returns the bucket to write to, in the running transaction or a new one.
func (c *copier) open(name []byte) (to *bolt.Bucket, err error) {
	if c.btx == nil {
		c.bytes = 0
		if c.btx, err = c.dst.Begin(true); err != nil {
			return nil, err
		}
	}
	if to, err = c.btx.CreateBucketIfNotExists(name); err == nil {
		to.FillPercent = 1
	}
	return to, err
}

// finish ends the running transaction.
func (c *copier) finish(keep bool) error {
	btx := c.btx
	if c.btx = nil; btx == nil {
		return nil
	}
	if keep {
		return btx.Commit()
	}
	return btx.Rollback()
}

var _ kv.Compacter = (*Store)(nil)
