package sqlite

import (
	"errors"
	"fmt"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/ncruces/go-sqlite3"
)

const (
	// walStepBytes is how much the log grows between two tries to move it into
	// the file. Smaller steps sync more often, larger ones make a commit now and
	// then wait longer.
	walStepBytes = 8 << 20
	// walKeepBytes is the size to which SQLite cuts the log when it starts it
	// from the beginning again.
	walKeepBytes = 16 << 20
	// walForceBytes is the size at which a commit waits up to walForceWait for
	// readers of old snapshots to end, so that the log can start again although
	// readers overlap without a pause. With each step more that the log has, it
	// waits so much longer.
	walForceBytes = 64 << 20
	walForceWait  = 50 * time.Millisecond
	walForceSteps = 5 // one long reader, such as a backup, must not cost more than that
)

// walState says how long the log is and when to work on it next.
type walState struct {
	bytes     int64 // after the newest commit
	nextBytes int64 // try a checkpoint when bytes reaches this
	// unsynced says that the log may hold commits that are not durable yet.
	unsynced bool
}

// noteWAL is called by SQLite after each commit.
func (s *Store) noteWAL(_ *sqlite3.Conn, _ string, pages int) error {
	n := int64(pages) * s.pageBytes
	if n < s.wal.bytes {
		s.wal.nextBytes = walStepBytes // the log began again
	}
	s.wal.bytes = n
	return nil
}

// afterCommit keeps the log short. The update is committed, so nothing that goes
// wrong here is its failure: the log stays as it is and the next commit tries again.
func (s *Store) afterCommit(mode kv.Mode) error {
	if s.wal.bytes >= max(s.wal.nextBytes, walStepBytes) {
		s.wal.nextBytes = s.wal.bytes + walStepBytes
		if s.wal.bytes >= walForceBytes {
			steps := min(1+(s.wal.bytes-walForceBytes)/walStepBytes, walForceSteps)
			_, _ = s.truncateWAL(time.Duration(steps) * walForceWait)
		} else {
			_, _, _ = s.writer.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
		}
	}
	if mode&kv.Reclaim != 0 {
		_ = s.giveBack()
	}
	return nil
}

// mustSync prepares the commit of a durable update that changed nothing: SQLite would
// write nothing and so sync nothing, but the promise covers every update before it.
// Setting the version that is already there makes it write a page.
func (s *Store) mustSync() error {
	if !s.wal.unsynced {
		return nil
	}
	return s.writer.db.Exec(fmt.Sprintf(`PRAGMA user_version=%d`, formatVersion))
}

// truncateWAL moves the whole log into the file and cuts it to nothing, waiting at
// most wait for readers of old snapshots. done is false when one is still there.
func (s *Store) truncateWAL(wait time.Duration) (done bool, err error) {
	db := s.writer.db
	if err := db.BusyTimeout(wait); err != nil {
		return false, err
	}
	_, _, err = db.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if done = err == nil; done {
		s.wal = walState{} // a checkpoint syncs the log before it moves it
	}
	if errors.Is(err, sqlite3.BUSY) {
		err = nil
	}
	return done, errors.Join(err, db.BusyTimeout(busyWait))
}
