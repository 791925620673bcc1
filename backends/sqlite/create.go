package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	"github.com/ncruces/go-sqlite3"
)

// create makes the store at path and returns the lock on it. The file is built
// under another name and appears at path whole and locked, so a crash leaves
// either a store or nothing at path.
func create(ctx context.Context, path string, tables kv.Tables, pageSize int) (*storefile.Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := mustNotExist(path); err != nil {
		return nil, err
	}
	tmp, err := storefile.TempFile(path)
	if err != nil {
		return nil, err
	}
	defer removeDatabase(tmp)
	if err := build(tmp, tables, pageSize); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, mapError(err, tmp))
	}
	lock, err := storefile.OpenLock(tmp, false)
	if err != nil {
		return nil, err
	}
	if ok, err := lock.Try(); err != nil || !ok {
		return nil, errors.Join(&kv.LockedError{Path: tmp}, err, lock.Release())
	}
	if err := storefile.Publish(tmp, path); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// mustNotExist fails with fs.ErrExist when there is something at path, or a log
// that a lost store left beside it: SQLite would replay that into the new file.
func mustNotExist(path string) error { return storefile.MustNotExist(path, path+walSuffix) }

// build writes an empty store to the empty file tmp and leaves no sidecar.
func build(tmp string, tables kv.Tables, pageSize int) (err error) {
	db, err := sqlite3.OpenFlags(tmp, sqlite3.OPEN_READWRITE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	setup := fmt.Sprintf(`PRAGMA page_size=%d;
		PRAGMA auto_vacuum=INCREMENTAL;
		PRAGMA fullfsync=ON;
		PRAGMA synchronous=FULL;
		BEGIN;
		PRAGMA application_id=%d;
		PRAGMA user_version=%d;`, pageSize, applicationID, formatVersion)
	for _, t := range tables {
		setup += declaration(t) + ";"
	}
	return db.Exec(setup + "COMMIT; PRAGMA journal_mode=WAL;")
}

// removeDatabase removes a temporary database with its sidecars, as far as they
// exist. What it leaves is only a stray temporary file.
func removeDatabase(tmp string) {
	for _, suffix := range []string{"", "-journal", walSuffix, shmSuffix} {
		_ = os.Remove(tmp + suffix)
	}
}
