package badger

import (
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	db "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"
)

// fullBelow is the free space, in bytes, under which a failed write that names no
// cause counts as a full disk: Badger drops the cause of some.
const fullBelow = 1 << 20

// mapError turns an error of the database at path into one of kv.
func mapError(err error, path string) error {
	kind := classify(err, path)
	if err == nil || kind == nil || errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", path, kind, err)
}

// classify names the kv error that err amounts to, nil for none.
func classify(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case storefile.IsNoSpace(err):
		return kv.ErrNoSpace
	case errors.Is(err, db.ErrTxnTooBig):
		return kv.ErrTxTooLarge
	case errors.Is(err, y.ErrChecksumMismatch), errors.Is(err, y.ErrEOF), errors.Is(err, db.ErrTruncateNeeded):
		return kv.ErrCorrupt
	case errors.Is(err, db.ErrDBClosed), errors.Is(err, db.ErrBlockedWrites):
		return kv.ErrClosed
	}
	if free, spaceErr := storefile.FreeSpace(path); spaceErr == nil && free < fullBelow {
		return kv.ErrNoSpace
	}
	return nil
}
