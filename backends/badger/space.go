package badger

import (
	"context"
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
	// transientBytes bounds what logs and new tables take twice until they are merged.
	transientBytes = 512 << 20
	// maxNewTables is how many tables may wait when Badger does not merge them by
	// itself. With calmStallTables, making one more waits for that for ever.
	maxNewTables = calmStallTables - 3
)

// needSpace returns kv.ErrNoSpace unless need bytes are free where path is.
func needSpace(path string, need int64) error {
	free, err := storefile.FreeSpace(path)
	if err != nil {
		return err
	}
	if free < need {
		return &kv.SpaceError{Path: path, Free: free, Need: need}
	}
	return nil
}

// room returns kv.ErrNoSpace when the disk has no room for an update of mode that
// takes size bytes in the log, after it has tried to make some.
func (s *Store) room(mode kv.Mode, size int64) error {
	err := s.hasRoom(mode, size)
	if err == nil && s.calm && s.wal.mayEnd() && s.newTables() >= maxNewTables {
		if err := s.roomToMerge(s.mergeBytes()); err != nil {
			return err
		}
		return s.merge()
	}
	if mode&kv.Reclaim != 0 || !s.reclaimed || err == nil && !s.scarce() {
		return err
	}
	if s.roomToMerge(s.mergeBytes()) != nil {
		return err
	}
	if err := s.merge(); err != nil {
		return err
	}
	return s.hasRoom(mode, size)
}

// scarce reports whether what was deleted should be given back.
func (s *Store) scarce() bool {
	free, err := storefile.FreeSpace(s.path)
	if err != nil || free >= plenty {
		return false
	}
	free, err = s.FreeSpace()
	return err == nil && free <= kv.Scarce
}

// hasRoom returns kv.ErrNoSpace when the disk has no room for an update. One that may
// use the reserve needs room for itself alone, unless it may end the log, which then
// becomes a table at once.
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
		return &kv.SpaceError{Path: s.path, Free: free, Need: need}
	}
	return nil
}

// roomToClose returns kv.ErrNoSpace when the disk has no room for the tables that the
// logs become, if they hold anything.
func (s *Store) roomToClose() error {
	n := s.wal.unflushed(s.path)
	if n == 0 {
		return nil
	}
	return needSpace(s.path, n+slackBytes)
}

// newTables counts the tables that were not merged into the tree.
func (s *Store) newTables() (n int) {
	for _, l := range s.db.Levels() {
		if l.Level == 0 {
			n = l.NumTables
		}
	}
	return n
}

// isTight reports whether the disk lacks the room to merge all tables of the store
// at path, which Badger would begin to do by itself once the store is open.
func isTight(path string) (bool, error) {
	used, err := folderUse(path)
	if err != nil {
		return false, err
	}
	free, err := storefile.FreeSpace(path)
	return free < min(used+kv.Reserve, plenty), err
}

// mergeBytes bounds the disk space that it takes to make tables of the logs and to
// merge them with the newest tables, before the old files are removed.
func (s *Store) mergeBytes() int64 { return s.wal.unflushed(s.path) + s.newBytes() }

// newBytes is the size of the tables that merging the newest ones reads.
func (s *Store) newBytes() (sum int64) {
	for _, l := range s.db.Levels() {
		if l.Level == 0 || l.IsBaseLevel {
			sum += l.Size
		}
	}
	return sum
}

// roomToMerge returns kv.ErrNoSpace when the disk cannot hold the result of merging
// inputs bytes beside the inputs. That is never more than they are; where that does
// not fit, it counts what is alive, unless a reader may need what is not.
func (s *Store) roomToMerge(inputs int64) error {
	err := needSpace(s.path, inputs+slackBytes)
	if err == nil || s.readers.Load() > 0 {
		return err
	}
	live, liveErr := s.liveBytes()
	if liveErr != nil {
		return mapError(liveErr, s.path)
	}
	return needSpace(s.path, s.wal.unflushed(s.path)+live+slackBytes)
}

// liveBytes bounds what the tables take without what was deleted or overwritten.
func (s *Store) liveBytes() (sum int64, err error) {
	err = s.db.View(func(txn *db.Txn) error {
		it := newIterator(txn, nil)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			sum += it.Item().EstimatedSize() + entryOverhead
		}
		return nil
	})
	return sum + sum/16, err
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

// FreeSpace implements kv.FreeSpacer. What is put lies in a log until that is a table,
// so as long as not much is left it takes twice its size.
func (s *Store) FreeSpace() (int64, error) {
	free, err := storefile.FreeSpace(s.path)
	if err != nil || s.readOnly {
		return free, err
	}
	if err := s.gate.Enter(context.Background()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	logs, err := logsUse(s.path)
	if err != nil {
		return 0, err
	}
	left := free - kv.Reserve - slackBytes - logs - s.newBytes()
	return kv.Reserve + max(min(left, left/2), left-transientBytes), nil
}

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
