package badger

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	db "github.com/dgraph-io/badger/v4"
)

const (
	// createBytes is the disk space for a new store.
	createBytes = 4 << 20
	// slackBytes is for what is small: the manifest, the ends of files.
	slackBytes = 512 << 10
	// plenty is so much free space, in bytes, that nothing need be measured: more
	// than the newest tables ever take before they are merged.
	plenty = 4 << 30
)

// needSpace returns kv.ErrNoSpace unless need bytes are free where path is.
func needSpace(path string, need int64) error {
	free, err := storefile.FreeSpace(path)
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%s: %d bytes free, %d needed: %w", path, free, need, kv.ErrNoSpace)
	}
	return nil
}

// room returns kv.ErrNoSpace when the disk has no room for an update of mode that
// takes size bytes in the log, after it has tried to make some.
func (s *Store) room(mode kv.Mode, size int64) error {
	err := s.hasRoom(mode, size)
	if err == nil || mode&kv.Reclaim != 0 || !s.reclaimed {
		return err
	}
	if needSpace(s.path, s.mergeBytes()+slackBytes) != nil {
		return err
	}
	if err := s.merge(); err != nil {
		return err
	}
	return s.hasRoom(mode, size)
}

// hasRoom returns kv.ErrNoSpace when the disk has no room for an update. An update that may use the reserve needs room for
// itself alone, unless it may end the log, which then becomes a table at once.
func (s *Store) hasRoom(mode kv.Mode, size int64) error {
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return err
	}
	if free >= plenty {
		return nil
	}
	need := size + slackBytes
	if mode&kv.Reclaim == 0 {
		need += kv.Reserve + s.mergeBytes()
	} else if s.wal.mayEnd() {
		need += s.wal.unflushed(s.path)
	}
	if free < need {
		return fmt.Errorf("%s: %d bytes free, %d needed: %w", s.path, free, need, kv.ErrNoSpace)
	}
	return nil
}

// mergeBytes bounds the disk space that it takes to make tables of the logs and to
// merge them with the newest tables, before the old files are removed.
func (s *Store) mergeBytes() int64 {
	sum := s.wal.unflushed(s.path)
	for _, l := range s.db.Levels() {
		if l.Level == 0 || l.IsBaseLevel {
			sum += l.Size
		}
	}
	return sum
}

// merge makes tables of the logs and merges all new tables into the tree, which takes
// away what was deleted. Readers that begin wait while it works.
func (s *Store) merge() error {
	// Badger offers this as a part of dropping keys with a prefix, if there are any.
	spare := []byte{spareByte}
	if err := s.wal.before(s.db, 2*entryOverhead); err != nil {
		return mapError(err, s.path)
	}
	err := s.db.Update(func(txn *db.Txn) error { return txn.Set(spare, nil) })
	if err == nil {
		err = s.db.DropPrefix(spare)
	}
	if err != nil {
		return mapError(err, s.path)
	}
	s.reclaimed = false
	return mapError(s.wal.begin(s.path, 0), s.path)
}

// FreeSpace implements kv.FreeSpacer.
func (s *Store) FreeSpace() (int64, error) { return storefile.FreeSpace(s.path) }

// folderUse sums the disk space of the files in a store. Files may come and go.
func folderUse(path string) (sum int64, err error) {
	err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return nil
		}
		used, err := diskUse(name)
		if err == nil {
			sum += used
		}
		return ignoreGone(err)
	})
	return sum, err
}
