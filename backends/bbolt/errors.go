package bbolt

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	bolterrors "go.etcd.io/bbolt/errors"
)

// fullBelow is the free space, in bytes, under which a failed write that names no
// cause counts as a full disk: bbolt drops the cause of some.
const fullBelow = 1 << 20

// mapError turns an error of the database at path into one of kv.
func mapError(err error, path string) error {
	kind := classify(err)
	if err == nil || kind == nil || errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", path, kind, err)
}

// classify names the kv error that err amounts to, nil for none.
func classify(err error) error {
	switch {
	case storefile.IsNoSpace(err), errors.Is(err, bolterrors.ErrMaxSizeReached):
		return kv.ErrNoSpace
	case errors.Is(err, bolterrors.ErrTimeout):
		return kv.ErrLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return kv.ErrCorrupt
	case errors.Is(err, bolterrors.ErrDatabaseReadOnly):
		return kv.ErrReadOnly
	}
	return nil
}

// mapCommitError is mapError for a commit that failed.
func mapCommitError(err error, path string) error {
	if classify(err) == nil {
		if free, spaceErr := storefile.FreeSpace(path); spaceErr == nil && free < fullBelow {
			return fmt.Errorf("%s: %w: %w", path, kv.ErrNoSpace, err)
		}
	}
	return mapError(err, path)
}

// catchFaults makes a read of the memory map that the file system cannot serve, as
// behind a bad pointer or on a bad medium, a panic of this goroutine instead of the
// end of the process. The function that it returns undoes that.
func catchFaults() func() {
	before := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(before) }
}

// attempt runs a call of the database, which panics where it finds a page that is
// not what it should be.
func attempt(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damage(p)
		}
	}()
	return call()
}

// damage is the error for a panic of the database.
func damage(p any) error { return fmt.Errorf("%w: %v", kv.ErrCorrupt, p) }
