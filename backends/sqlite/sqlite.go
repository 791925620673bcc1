// Package sqlite keeps a store in one SQLite database file, through the pure Go
// build of SQLite by ncruces and its low-level connection.
//
// One connection writes and a few read, in WAL mode, so that readers and the
// writer never wait for each other. A table with ids is a rowid table, because its
// sequential keys then cost least; any other is a WITHOUT ROWID table. Values of a
// text table are TEXT, so that "sqlite3 FILE 'select value from audit'" shows them.
package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
)

const (
	// applicationID stands at offset 68 of the file: "avfs" in ASCII.
	applicationID = 0x61766673
	// formatVersion stands at offset 60 as the user version. A change that an
	// older build could not read raises it.
	formatVersion = 1

	headerSize = 100
	magic      = "SQLite format 3\x00"
)

// Driver opens SQLite stores.
type Driver struct{}

// Name returns "sqlite".
func (Driver) Name() string { return "sqlite" }

// Recognise implements kv.Driver by the magic string and the application id.
func (Driver) Recognise(path string) bool {
	_, err := readHeader(path)
	return err == nil || errors.Is(err, kv.ErrVersion)
}

// Open implements kv.Driver.
func (Driver) Open(ctx context.Context, path string, opts kv.Options) (kv.Store, error) {
	tables, err := kv.NewTables(opts.Tables)
	if err != nil {
		return nil, err
	}
	if opts.Create {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		lock, err := create(ctx, path, tables, pageSize)
		if err != nil {
			return nil, err
		}
		return openLocked(ctx, path, tables, lock, opts.ReadOnly)
	}
	// SQLite puts its sidecars beside the file itself, not beside a link to it.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if _, err := readHeader(path); err != nil {
		return nil, err
	}
	lock, err := storefile.LockPath(ctx, path, opts.ReadOnly)
	if err != nil {
		return nil, err
	}
	return openLocked(ctx, path, tables, lock, opts.ReadOnly)
}

// openLocked opens the store at path, which lock holds, and lets go of lock when
// that fails. The end of ctx has bounded the wait for the lock; it says nothing
// about a store that was free.
func openLocked(ctx context.Context, path string, tables kv.Tables, lock *storefile.Lock, readOnly bool) (kv.Store, error) {
	s, err := newStore(context.WithoutCancel(ctx), path, tables, lock, readOnly)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return s, nil
}

// readHeader returns the format version of the store at path.
func readHeader(path string) (version uint32, err error) {
	// Opening a pipe would wait for its other end, so look first.
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is no regular file: %w", path, kv.ErrNotStore)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var head [headerSize]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, fmt.Errorf("%s is too short: %w", path, kv.ErrNotStore)
		}
		return 0, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	if string(head[:len(magic)]) != magic || binary.BigEndian.Uint32(head[68:]) != applicationID {
		return 0, fmt.Errorf("%s: %w", path, kv.ErrNotStore)
	}
	version = binary.BigEndian.Uint32(head[60:])
	if version > formatVersion {
		return version, &VersionError{Path: path, Have: version, Know: formatVersion}
	}
	return version, nil
}

// VersionError says that a newer version of this program wrote a store.
type VersionError struct {
	Path string
	Have uint32 // format version of the store
	Know uint32 // newest format version that this build knows
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s: %v: format %d, this build knows up to %d", e.Path, kv.ErrVersion, e.Have, e.Know)
}

// Unwrap makes errors.Is(err, kv.ErrVersion) hold.
func (e *VersionError) Unwrap() error { return kv.ErrVersion }
