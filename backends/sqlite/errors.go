package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	"github.com/ncruces/go-sqlite3"
)

// fullBelow is the free space, in bytes, under which a failed write that names no
// cause counts as a full disk.
const fullBelow = 1 << 20

// mapErr turns an error of the database into one of kv, or into the error of ctx
// when that is why it stopped.
func (s *Store) mapErr(ctx context.Context, err error) error {
	// A wait for a foreign lock that ctx ends is reported as busy.
	if ctx.Err() != nil && (errors.Is(err, sqlite3.INTERRUPT) || errors.Is(err, sqlite3.BUSY)) {
		return ctx.Err()
	}
	return mapError(err, s.path)
}

// mapError turns an error of the database at path into one of kv.
func mapError(err error, path string) error {
	var code sqlite3.ExtendedErrorCode
	if err == nil || !errors.As(err, &code) {
		return err
	}
	kind := classify(err, code, path)
	if kind == nil || errors.Is(err, kind) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s: %w: %w", path, kind, err)
}

// classify names the kv error that err amounts to, nil for none.
func classify(err error, code sqlite3.ExtendedErrorCode, path string) error {
	if storefile.IsNoSpace(err) {
		return kv.ErrNoSpace
	}
	switch code {
	case sqlite3.IOERR_CORRUPTFS, sqlite3.IOERR_DATA, sqlite3.IOERR_SHORT_READ:
		return kv.ErrCorrupt
	}
	switch code.Code() {
	case sqlite3.FULL:
		return kv.ErrNoSpace
	case sqlite3.CORRUPT, sqlite3.NOTADB:
		return kv.ErrCorrupt
	case sqlite3.BUSY, sqlite3.LOCKED:
		return &kv.LockedError{Path: path}
	case sqlite3.READONLY:
		return kv.ErrReadOnly
	case sqlite3.IOERR:
		// The library reports a full disk as an input/output error and keeps
		// the cause only until its next system call.
		if free, spaceErr := storefile.FreeSpace(path); spaceErr == nil && free < fullBelow {
			return kv.ErrNoSpace
		}
	}
	return nil
}
