// Package bbolt keeps a store in one file through go.etcd.io/bbolt, a copy-on-write
// B+tree that is mapped into memory.
//
// Each table is a top-level bucket. A marker bucket, whose name sorts before all of
// them, makes the file ours and holds the declarations of the tables.
//
// Every commit is synced, also a relaxed one: bbolt without its syncs came back
// damaged from power cuts. A reader that stays open keeps every page of its moment,
// so the file grows as long as updates go on; the room is used again afterwards and
// given back by Compact only.
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

// Driver opens bbolt stores.
type Driver struct{}

// Name returns "bbolt".
func (Driver) Name() string { return "bbolt" }

// Recognise implements kv.Driver. It reads the page that describes the file and the
// one that lists its buckets.
func (Driver) Recognise(path string) bool {
	err := checkFile(path)
	return err == nil || errors.Is(err, kv.ErrVersion) || errors.Is(err, kv.ErrCorrupt)
}

// Open implements kv.Driver.
func (Driver) Open(ctx context.Context, path string, opts kv.Options) (kv.Store, error) {
	tables, err := kv.NewTables(opts.Tables)
	if err != nil {
		return nil, err
	}
	lock, path, err := claim(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	h, err := openHandle(lock, opts.ReadOnly, reserveMap())
	if err != nil {
		return nil, mapError(err, path)
	}
	s := newStore(path, tables, h, opts.ReadOnly)
	if err := s.declare(); err != nil {
		return nil, errors.Join(mapError(err, path), h.db.Close())
	}
	return s, nil
}

// claim returns the lock on the store that opts asks for and its absolute path.
func claim(ctx context.Context, path string, opts kv.Options) (lock *storefile.Lock, abs string, err error) {
	if opts.Create {
		if abs, err = filepath.Abs(path); err != nil {
			return nil, "", err
		}
		lock, err = create(ctx, abs)
		return lock, abs, err
	}
	// Compact replaces the file itself, not a link to it.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, "", err
	}
	if abs, err = filepath.Abs(path); err != nil {
		return nil, "", err
	}
	if err := checkFile(abs); err != nil {
		return nil, "", err
	}
	if lock, err = storefile.LockPath(ctx, abs, opts.ReadOnly); err != nil {
		return nil, "", err
	}
	// Whoever held the store until now may have changed it.
	if err := checkFile(abs); err != nil {
		return nil, "", errors.Join(err, lock.Release())
	}
	return lock, abs, nil
}

// create makes an empty store at path and returns the lock on it. The file is built
// under another name and appears at path whole and locked, so a crash leaves either
// a store or nothing at path.
func create(ctx context.Context, path string) (*storefile.Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := storefile.MustNotExist(path); err != nil {
		return nil, err
	}
	tmp, err := storefile.TempFile(path)
	if err != nil {
		return nil, err
	}
	defer remove(tmp)
	if err := build(tmp); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, mapError(err, tmp))
	}
	lock, err := lockNew(tmp)
	if err != nil {
		return nil, err
	}
	if err := storefile.Publish(tmp, path); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// build writes a store without tables to the empty file tmp.
func build(tmp string) error {
	lock, err := lockNew(tmp)
	if err != nil {
		return err
	}
	h, err := openHandle(lock, false, reserveMap())
	if err != nil {
		return err
	}
	err = h.db.Update(func(btx *bolt.Tx) error {
		_, err := btx.CreateBucket([]byte(marker))
		return err
	})
	return errors.Join(err, h.db.Close())
}

// lockNew takes the lock on a file that nobody else knows of.
func lockNew(tmp string) (*storefile.Lock, error) {
	lock, err := storefile.OpenLock(tmp, false)
	if err != nil {
		return nil, err
	}
	if ok, err := lock.Try(); err != nil || !ok {
		return nil, errors.Join(&kv.LockedError{Path: tmp}, err, lock.Release())
	}
	return lock, nil
}

// remove removes a temporary file that may have got its final name. What it leaves
// is only a stray temporary file.
func remove(tmp string) { _ = os.Remove(tmp) }
