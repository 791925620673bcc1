// Package badger keeps a store in a folder through github.com/dgraph-io/badger/v4, a
// log-structured merge tree.
//
// All values lie in the tree. Badger's separate value log is never used: without
// syncs it came back damaged from power cuts. Every update goes to a write-ahead log
// first. Badger writes all its files through memory maps, where a full disk is a bus
// error that ends the process, so an update begins only when the disk has room for
// it, for the table that its log becomes, and for merging the newest tables. A store
// therefore needs about twice the room of its newest data.
//
// Memory is the price of large updates: a log of 64 MiB is kept in memory up to three
// times over, and Badger keeps up to eight buffers of twice that size from making tables
// of logs. Writing 4.5 GB took 1.7 GiB at the peak, where Badger's usual settings took
// 6 GiB; a small store takes 30 MB. Badger maps its tables besides. The pages of these
// files count as the process's own where the system shows its size, until the system
// wants them for something else.
//
// A key is stored behind one byte that stands for its table. The first bytes of the
// manifest, which Badger lets an application choose, make the folder ours.
package badger

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
	db "github.com/dgraph-io/badger/v4"
)

const (
	// appMagic stands with the format version in the manifest. A change that an
	// older build could not read raises the version.
	appMagic      = 0xAF00
	formatVersion = 1

	manifestMagic = "Bdgr"
	manifestHead  = 8 // magic, application's number, Badger's version

	// lockName is a file that exists for its lock. Badger's own lock is kept as
	// well, against Badger's tools.
	lockName = "avfs.lock"
)

// Driver opens Badger stores.
type Driver struct{}

// Name returns "badger".
func (Driver) Name() string { return "badger" }

// Recognise implements kv.Driver by the first bytes of the manifest.
func (Driver) Recognise(path string) bool {
	err := checkFolder(path)
	return err == nil || errors.Is(err, kv.ErrVersion)
}

// Open implements kv.Driver. A store that was not closed is opened for writing, also
// to read it only: Badger has to move the log into the tree first.
func (Driver) Open(ctx context.Context, path string, opts kv.Options) (kv.Store, error) {
	tables, err := kv.NewTables(opts.Tables)
	if err != nil {
		return nil, err
	}
	if opts.Create {
		if err := create(ctx, path); err != nil {
			return nil, err
		}
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err := checkFolder(path); err != nil {
		return nil, err
	}
	lock, err := storefile.LockPath(ctx, filepath.Join(path, lockName), opts.ReadOnly)
	if err != nil {
		return nil, renameLocked(err, path)
	}
	s, err := openLocked(path, tables, lock, opts.ReadOnly)
	if err != nil {
		return nil, errors.Join(mapError(err, path), lock.Release())
	}
	return s, nil
}

// renameLocked makes a *kv.LockedError speak of the store, not of its lock file. A
// folder without one is no store.
func renameLocked(err error, path string) error {
	var locked *kv.LockedError
	switch {
	case errors.As(err, &locked):
		return &kv.LockedError{Path: path, PID: locked.PID}
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", path, kv.ErrNotStore)
	}
	return err
}

// checkFolder returns nil for a store that this build can open, or an error that
// wraps kv.ErrNotStore or kv.ErrVersion.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder: %w", path, kv.ErrNotStore)
	}
	head, err := readHead(filepath.Join(path, db.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", path, kv.ErrNotStore)
	}
	if err != nil {
		return err
	}
	app := binary.BigEndian.Uint16(head[len(manifestMagic):])
	if string(head[:len(manifestMagic)]) != manifestMagic || app&0xFF00 != appMagic {
		return fmt.Errorf("%s: %w", path, kv.ErrNotStore)
	}
	if have := app & 0xFF; have > formatVersion {
		return fmt.Errorf("%s: %w: format %d, this build knows up to %d", path, kv.ErrVersion, have, formatVersion)
	}
	return nil
}

// readHead reads the head of a manifest.
func readHead(path string) (head [manifestHead]byte, err error) {
	// Opening a pipe would wait for its other end, so look first.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return head, errors.Join(err, fs.ErrNotExist)
	}
	f, err := os.Open(path)
	if err != nil {
		return head, err
	}
	defer f.Close()
	_, err = io.ReadFull(f, head[:])
	return head, err
}

// create makes an empty store at path. It is built under another name and appears at
// path whole, so a crash leaves either a store or nothing at path.
func create(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := storefile.MustNotExist(path); err != nil {
		return err
	}
	tmp, err := storefile.TempDir(path)
	if err != nil {
		return err
	}
	defer remove(tmp)
	if err := needSpace(tmp, createBytes); err != nil {
		return err
	}
	if err := build(tmp, func(*db.DB) error { return nil }); err != nil {
		return fmt.Errorf("create %s: %w", path, mapError(err, tmp))
	}
	return publish(tmp, path)
}

// build makes a store in the empty folder dir and fills it by fill.
func build(dir string, fill func(*db.DB) error) error {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := lock.Close(); err != nil {
		return err
	}
	d, err := db.Open(options(dir, nil, false))
	if err != nil {
		return err
	}
	return errors.Join(fill(d), d.Close())
}

// publish gives the finished folder tmp the name path, which must be free, and makes
// the name durable. The system refuses to put a folder over one that is not empty.
func publish(tmp, path string) error {
	if err := storefile.MustNotExist(path); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return storefile.SyncDir(filepath.Dir(path))
}

// remove removes a temporary folder that may have got its final name. What it leaves
// is only a stray temporary folder.
func remove(tmp string) { _ = os.RemoveAll(tmp) }
