package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/ncruces/go-sqlite3"
)

// create makes the store at path and returns the lock on it. The file is built
// under another name and appears at path whole and locked, so a crash leaves
// either a store or nothing at path.
func create(ctx context.Context, path string, tables kv.Tables, pageSize int) (*fileLock, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := mustNotExist(path); err != nil {
		return nil, err
	}
	tmp, err := tempName(path)
	if err != nil {
		return nil, err
	}
	defer removeDatabase(tmp)
	if err := build(tmp, tables, pageSize); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, mapError(err, tmp))
	}
	lock, err := openLock(tmp, false)
	if err != nil {
		return nil, err
	}
	if ok, err := lock.try(); err != nil || !ok {
		return nil, errors.Join(&kv.LockedError{Path: tmp}, err, lock.release())
	}
	if err := publish(tmp, path); err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return lock, nil
}

// mustNotExist fails with fs.ErrExist when there is something at path, or a log
// that a lost store left beside it: SQLite would replay that into the new file.
func mustNotExist(path string) error {
	for _, p := range []string{path, path + walSuffix} {
		if _, err := os.Lstat(p); err == nil {
			return &fs.PathError{Op: "create", Path: p, Err: fs.ErrExist}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// tempName reserves a name in the folder of path.
func tempName(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

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

// publish gives the finished file tmp the name path, which must be free, and makes
// the name durable.
func publish(tmp, path string) error {
	err := os.Link(tmp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without hard links. Another creator could take the
		// name between the look and the rename, which nothing can rule out.
		if err = mustNotExist(path); err == nil {
			err = os.Rename(tmp, path)
		}
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeDatabase removes a temporary database with its sidecars, as far as they
// exist. What it leaves is only a stray temporary file.
func removeDatabase(tmp string) {
	for _, suffix := range []string{"", "-journal", walSuffix, shmSuffix} {
		_ = os.Remove(tmp + suffix)
	}
}
