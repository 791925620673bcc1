package bbolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	bolt "go.etcd.io/bbolt"
)

// maxFindings bounds what Verify lists of a damaged store.
const maxFindings = 20

// Size implements kv.Sizer.
func (s *Store) Size() (int64, error) {
	if err := s.gate.Enter(context.Background()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	return s.size()
}

// size returns the length of the file.
func (s *Store) size() (int64, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Backup implements kv.Backuper. The copy is one snapshot with its free pages; it
// appears at path when it is whole and durable.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := storefile.MustNotExist(path); err != nil {
		return err
	}
	return s.withReader(ctx, func(_ *handle, btx *bolt.Tx) error {
		tmp, err := storefile.TempFile(path)
		if err != nil {
			return err
		}
		defer remove(tmp)
		if err := copyTo(ctx, btx, tmp); err != nil {
			return mapError(err, tmp)
		}
		return storefile.Publish(tmp, path)
	})
}

// copyTo writes the snapshot to the empty file tmp, durably.
func copyTo(ctx context.Context, btx *bolt.Tx, tmp string) error {
	f, err := os.OpenFile(tmp, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = btx.WriteTo(ctxWriter{ctx, f})
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ctxWriter is a writer that ends with its context.
type ctxWriter struct {
	ctx context.Context
	w   io.Writer
}

// Write implements io.Writer.
func (w ctxWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}

// Verify implements kv.Verifier. It reads every page in use. Updates wait while it
// works.
func (s *Store) Verify(ctx context.Context) error {
	return s.withReader(ctx, func(_ *handle, _ *bolt.Tx) error {
		return s.exclude(ctx, func(h *handle) error {
			err := h.db.View(func(btx *bolt.Tx) error { return check(ctx, btx) })
			if err != nil {
				return fmt.Errorf("%s: %w", s.path, err)
			}
			return nil
		})
	})
}

// check checks the pages of a snapshot against each other.
func check(ctx context.Context, btx *bolt.Tx) error {
	// bbolt checks in a goroutine of its own, where a bad pointer ends the
	// process; so follow all pointers here first.
	if err := attempt(func() error { return walk(ctx, btx) }); err != nil {
		return err
	}
	var found []error
	more := 0
	for err := range btx.Check() { // must be read to its end
		if len(found) < maxFindings {
			found = append(found, fmt.Errorf("%w: %w", kv.ErrCorrupt, err))
		} else {
			more++
		}
	}
	if more > 0 {
		found = append(found, fmt.Errorf("%w: and %d findings more", kv.ErrCorrupt, more))
	}
	return errors.Join(found...)
}

// walk reads every key and checks that they ascend.
func walk(ctx context.Context, btx *bolt.Tx) error {
	return btx.ForEach(func(name []byte, b *bolt.Bucket) error {
		if b == nil {
			return fmt.Errorf("%w: %q is no bucket", kv.ErrCorrupt, name)
		}
		return eachKey(ctx, b, func(before, key, _ []byte) error {
			if before != nil && string(before) >= string(key) {
				return fmt.Errorf("%w: bucket %q: key %x after %x", kv.ErrCorrupt, name, key, before)
			}
			return nil
		})
	})
}

// eachKey passes every key of b to fn with the one before it.
func eachKey(ctx context.Context, b *bolt.Bucket, fn func(before, key, value []byte) error) error {
	c := b.Cursor()
	var before []byte
	n := 0
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if n++; n%ctxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fn(before, k, v); err != nil {
			return err
		}
		before = k
	}
	return nil
}

// Durability implements kv.Durabler with the settings of the open database.
func (s *Store) Durability(ctx context.Context, _ kv.Mode) (setting string, holds bool, err error) {
	err = s.withWriter(ctx, func(h *handle) error {
		setting = fmt.Sprintf("NoSync=%v NoGrowSync=%v", h.db.NoSync, h.db.NoGrowSync)
		holds = !h.db.NoSync && !h.db.NoGrowSync
		return nil
	})
	return setting, holds, err
}

var (
	_ kv.Store      = (*Store)(nil)
	_ kv.Sizer      = (*Store)(nil)
	_ kv.FreeSpacer = (*Store)(nil)
	_ kv.Backuper   = (*Store)(nil)
	_ kv.Verifier   = (*Store)(nil)
	_ kv.Durabler   = (*Store)(nil)
)
