package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"github.com/agentvfs/avfs/search"
)

// indexDir is the folder with the search index of a store. It is a cache: it can be
// deleted whenever nobody searches.
func indexDir(store string) string { return strings.TrimSuffix(store, storeSuffix) + ".search" }

// indexPath is the database in the folder.
func indexPath(store string) string { return filepath.Join(indexDir(store), "index") }

// removeIndex deletes the search index of a store.
func removeIndex(store string) error { return os.RemoveAll(indexDir(store)) }

// searchIndex is the index of an open store. Who searches has the turn.
type searchIndex struct {
	turn chan struct{} // full while somebody searches

	// The holder of the turn alone uses what follows.
	db    kv.Store // nil while the index is not open
	index *search.Index
	// unkept says why the index is in memory and goes with this process; nil if it is
	// on disk.
	unkept error
}

func newSearchIndex() *searchIndex { return &searchIndex{turn: make(chan struct{}, 1)} }

// take waits for the turn.
func (s *searchIndex) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *searchIndex) give() { <-s.turn }

// close closes the index, if it is open.
func (s *searchIndex) close() error {
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db, s.index, s.unkept = nil, nil, nil
	return db.Close()
}

// openIndex opens the index of the store, and makes one where there is none, or none
// that this build can use. note tells people of the latter. The caller has the turn.
func (o *Owner) openIndex(ctx context.Context) (note string, err error) {
	s := o.searching
	if s.db != nil {
		return "", nil
	}
	err = o.openKept(ctx)
	if unusable(err) {
		note = "the search index could not be used and was made anew"
		if err = removeIndex(o.path); err == nil {
			err = o.openKept(ctx)
		}
	}
	if !unwritable(err) {
		return note, err
	}
	s.db, s.unkept = memkv.New(search.Tables()...), err
	s.index, err = search.Open(ctx, s.db, kv.Durable)
	return note, err
}

// openKept opens the index on disk, or makes it.
func (o *Owner) openKept(ctx context.Context) error {
	path := indexPath(o.path)
	opts := kv.Options{Tables: search.Tables()}
	d := o.w.cfg.Drivers[0]
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(indexDir(o.path), 0o700); err != nil {
			return err
		}
		opts.Create = true
	} else if d, err = o.w.recognise(path); err != nil {
		return err
	}
	db, err := d.Open(ctx, path, opts)
	if err != nil {
		return err
	}
	x, err := search.Open(ctx, db, kv.Relaxed)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	o.searching.db, o.searching.index = db, x
	return nil
}

// unusable reports whether err says that an index is damaged, or is none.
func unusable(err error) bool {
	if engine.KindOf(err) == engine.NotStore {
		return true
	}
	if _, ofStore := errors.AsType[*engine.Error](err); ofStore {
		return false // what is damaged is the store itself
	}
	return errors.Is(err, kv.ErrCorrupt) || errors.Is(err, kv.ErrNotStore) || errors.Is(err, kv.ErrVersion) ||
		errors.Is(err, kv.ErrNoTable) || errors.Is(err, fs.ErrExist)
}

// renewIndex deletes the index and makes a new one.
func (o *Owner) renewIndex(ctx context.Context) error {
	if err := errors.Join(o.searching.close(), removeIndex(o.path)); err != nil {
		return err
	}
	_, err := o.openIndex(ctx)
	return err
}
