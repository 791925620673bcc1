package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
)

// How many free pages one step gives back. It moves as many pages through the log,
// so on a full disk a step must fit the reserve.
const (
	vacuumPages     = 2048
	vacuumPagesFull = 128
)

// In WAL mode every change, also a delete, first takes new space in the log, and
// later as much again in the file when the log is moved there. So updates that do
// not reclaim stop while that is still covered, with kv.Reserve left for those that do.

// room prepares the disk for an update of mode.
func (s *Store) room(mode kv.Mode) error {
	if mode&kv.Reclaim != 0 {
		return s.roomToReclaim()
	}
	return s.roomToBegin()
}

// roomToBegin returns kv.ErrNoSpace when the disk has no room for more data, after
// it has tried to make some.
func (s *Store) roomToBegin() error {
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return err
	}
	if free >= kv.Reserve+s.wal.bytes {
		return nil
	}
	if s.hasRoom() == nil {
		return nil
	}
	if err := s.giveBack(); err != nil {
		return err
	}
	return s.hasRoom()
}

// hasRoom compares the free space with the reserve and with what the file has yet
// to grow by when the log is moved into it.
func (s *Store) hasRoom() error {
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return err
	}
	growth, err := s.pendingGrowth(s.writer)
	if err != nil {
		return s.mapErr(context.Background(), err)
	}
	if free < kv.Reserve+growth {
		return &kv.SpaceError{Path: s.path, Free: free, Need: kv.Reserve + growth}
	}
	return nil
}

// pendingGrowth returns how much larger the file becomes with the log moved into it,
// up to what c sees.
func (s *Store) pendingGrowth(c *conn) (int64, error) {
	pages, err := c.query(c.pageCount)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return 0, err
	}
	return max(0, pages*s.pageBytes-info.Size()), nil
}

// roomToCommit returns kv.ErrNoSpace when committing the running transaction would
// eat into the reserve. Only when a generous estimate does not fit does it measure,
// by letting SQLite write the changed pages to the log.
func (s *Store) roomToCommit(guard *kv.Guard) error {
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return err
	}
	bytes, ops := guard.Size()
	worst := 4*int64(bytes) + 2*int64(ops)*s.pageBytes
	if free >= kv.Reserve+s.wal.bytes+worst {
		return nil
	}
	if err := s.writer.db.CacheFlush(); err != nil {
		return s.mapErr(context.Background(), err)
	}
	return s.hasRoom()
}

// makeRoom gives back what it can after an update found no room: what did not fit may
// lie in the log, rolled back, and the log may go to free pages of the file. It
// reports whether more than free bytes are free now. What goes wrong here only means
// that the update stays refused.
func (s *Store) makeRoom(free int64) bool {
	_, _ = s.truncateWAL(walForceWait)
	_ = s.giveBack()
	now, err := storefile.FreeSpace(s.path)
	return err == nil && now > free
}

// roomToReclaim moves the log into the file when the disk is nearly full, so that an
// update which frees space finds the log's room free. Whether that is enough, the
// update itself will tell.
func (s *Store) roomToReclaim() error {
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return err
	}
	if free < 2*kv.Reserve {
		_, _ = s.truncateWAL(walForceWait)
	}
	return nil
}

// giveBack returns space to the file system while the disk is nearly full: the log,
// then free pages until there is room again. A reader of an old snapshot prevents
// both; then there is nothing to give.
func (s *Store) giveBack() error {
	free, err := storefile.FreeSpace(s.path)
	if err != nil {
		return err
	}
	if free >= 2*kv.Reserve+s.wal.bytes {
		return nil
	}
	return s.vacuum(context.Background(), vacuumPagesFull, func(logEmpty bool) bool {
		free, err := storefile.FreeSpace(s.path)
		return logEmpty && err == nil && free < 2*kv.Reserve
	})
}

// vacuum moves the log into the file and cuts free pages off its end, step pages at
// a time, while more says so and some are left. more learns whether the log could be
// emptied, without which the file does not shrink yet.
func (s *Store) vacuum(ctx context.Context, step int, more func(logEmpty bool) bool) error {
	for {
		logEmpty, err := s.truncateWAL(walForceWait)
		if err != nil {
			return s.mapErr(ctx, err)
		}
		pages, err := s.writer.query(s.writer.freeCount)
		if err != nil {
			return s.mapErr(ctx, err)
		}
		if pages == 0 || !more(logEmpty) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.vacuumStep(step); err != nil {
			return s.mapErr(ctx, err)
		}
	}
}

// vacuumStep cuts up to pages free pages off the file.
func (s *Store) vacuumStep(pages int) error {
	if err := s.writer.setSync(kv.Relaxed); err != nil {
		return err
	}
	err := s.writer.db.Exec(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, pages))
	return errors.Join(err, s.writer.rollback())
}

// FreeSpace implements kv.FreeSpacer. The log counts as free, since it is moved into
// the file before an update is refused, less what the file then grows by.
func (s *Store) FreeSpace() (int64, error) {
	free, err := storefile.FreeSpace(s.path)
	if err != nil || s.writer == nil {
		return free, err
	}
	err = s.withReader(context.Background(), func(c *conn) error {
		unused, err := c.query(c.freeCount)
		if err != nil {
			return s.mapErr(context.Background(), err)
		}
		growth, err := s.pendingGrowth(c)
		if err != nil {
			return s.mapErr(context.Background(), err)
		}
		free += unused*s.pageBytes - growth
		return nil
	})
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(s.path + walSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return free, nil
	}
	if err != nil {
		return 0, err
	}
	return free + info.Size(), nil
}
