package bbolt

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/agentvfs/avfs/internal/storefile"
	bolt "go.etcd.io/bbolt"
)

const (
	// pageSize is the size of a page of a new store, in bytes.
	pageSize = 4096
	// allocBytes is the step by which the file grows. Each costs a sync; what is
	// not used of it is a hole.
	allocBytes = 1 << 20
	// flockWait bounds the wait for bbolt's own lock, which conflicts only with a
	// foreign program that does not look at ours.
	flockWait = time.Second
)

// handle is one open database file. Compact replaces the one of a store while
// readers still use it.
type handle struct {
	db *bolt.DB
	// mapped is a lower bound of the size of the memory map. bbolt must wait for
	// all readers to map more.
	mapped int64
	// touched counts what was read since the last look at the map.
	touched atomic.Int64
	// readers and retired belong to the store's mutex.
	readers int
	retired bool // not the store's file any more: whoever leaves last closes it
}

// openHandle opens the file that lock holds and maps at least mapBytes of it. The
// handle takes the lock over, also when opening fails.
func openHandle(lock *storefile.Lock, readOnly bool, mapBytes int) (h *handle, err error) {
	defer func() {
		if p := recover(); p != nil {
			h, err = nil, errors.Join(damage(p), lock.Release())
		}
	}()
	defer catchFaults()()
	db, err := bolt.Open(lock.File().Name(), 0o600, &bolt.Options{
		Timeout:         flockWait,
		FreelistType:    bolt.FreelistMapType,
		PageSize:        pageSize,
		InitialMmapSize: mapBytes,
		ReadOnly:        readOnly,
		// Verify needs it, and loads it without a lock where it was not loaded.
		PreLoadFreelist: readOnly,
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return lock.File(), nil },
	})
	if err != nil {
		return nil, err
	}
	db.AllocSize = allocBytes
	info, err := lock.File().Stat()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &handle{db: db, mapped: mapSize(max(info.Size(), int64(mapBytes)))}, nil
}

// noteMap raises the bound of the map to what the file needs now.
func (h *handle) noteMap() {
	err := attempt(func() error {
		return h.db.View(func(btx *bolt.Tx) error {
			h.mapped = max(h.mapped, mapSize(btx.Size()))
			return nil
		})
	})
	_ = err // the old bound holds as well
}

// mapSize returns how much bbolt maps for size bytes: the next power of two from
// 32 KiB, from 1 GiB on the next GiB. Never more, so that it is a lower bound.
func mapSize(size int64) int64 {
	for s := int64(1 << 15); s <= 1<<30; s <<= 1 {
		if size <= s {
			return s
		}
	}
	return (size + 1<<30 - 1) >> 30 << 30
}
