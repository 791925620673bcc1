package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
	db "github.com/dgraph-io/badger/v4"
)

// backupPending bounds the transactions of a backup that are on their way.
const backupPending = 2

// ignoreGone takes it as no error that a file is gone.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Size implements kv.Sizer.
func (s *Store) Size() (int64, error) {
	if err := s.gate.Enter(context.Background()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	return folderUse(s.path)
}

// Compact implements kv.Compacter. Updates wait while it works, and readers that
// begin wait while new tables are merged. It looks at ctx between its steps only. It
// needs room for the log and for all data that is alive.
func (s *Store) Compact(ctx context.Context) (reclaimed int64, err error) {
	err = s.withWriter(ctx, func() error {
		before, err := folderUse(s.path)
		if err != nil {
			return err
		}
		if err := s.roomToMerge(s.compactBytes()); err != nil {
			return err
		}
		if err := s.merge(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.db.Flatten(1); err != nil {
			return mapError(err, s.path)
		}
		after, err := folderUse(s.path)
		reclaimed = max(0, before-after)
		return err
	})
	return reclaimed, err
}

// compactBytes bounds the disk space that Compact takes before it gives some back.
func (s *Store) compactBytes() int64 {
	sum := s.mergeBytes()
	for _, l := range s.db.Levels() {
		if l.Level > 0 && !l.IsBaseLevel {
			sum += l.Size
		}
	}
	return sum
}

// Backup implements kv.Backuper. The copy is a folder that holds one snapshot; it
// appears at path when it is whole and durable.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := storefile.MustNotExist(path); err != nil {
		return err
	}
	return s.withReader(ctx, func(txn *db.Txn) error {
		size, err := folderUse(s.path)
		if err != nil {
			return err
		}
		tmp, err := storefile.TempDir(path)
		if err != nil {
			return err
		}
		defer remove(tmp)
		// Its log, the tables that it becomes, and merging them.
		if err := needSpace(tmp, size+3*memTableBytes+createBytes); err != nil {
			return err
		}
		err = build(tmp, func(to *db.DB) error { return copyTo(ctx, txn, to) })
		if err != nil {
			return mapError(err, tmp)
		}
		return publish(tmp, path)
	})
}

// copyTo copies the snapshot to an empty database.
func copyTo(ctx context.Context, txn *db.Txn, to *db.DB) error {
	it := newIterator(txn, nil)
	defer it.Close()
	batch := to.NewWriteBatch()
	defer batch.Cancel()
	batch.SetMaxPendingTxns(backupPending)
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		if n++; n%ctxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		item := it.Item()
		value, err := item.ValueCopy(nil)
		if err != nil {
			return err
		}
		e := db.NewEntry(item.KeyCopy(nil), value).WithMeta(item.UserMeta())
		e.ExpiresAt = item.ExpiresAt()
		if err := batch.SetEntry(e); err != nil {
			return err
		}
	}
	return errors.Join(ctx.Err(), batch.Flush())
}

// Verify implements kv.Verifier. It compares every block of every table with its
// checksum. The log has checksums too; Badger looks at them when it opens a store.
func (s *Store) Verify(ctx context.Context) error {
	return s.withReader(ctx, func(*db.Txn) error {
		if err := s.db.VerifyChecksum(); err != nil {
			return fmt.Errorf("%s: %w: %w", s.path, kv.ErrCorrupt, err)
		}
		return ctx.Err()
	})
}

// Durability implements kv.Durabler with the settings of the open database. What
// Badger does not sync by itself, a durable update does at its end.
func (s *Store) Durability(ctx context.Context, mode kv.Mode) (setting string, holds bool, err error) {
	err = s.withWriter(ctx, func() error {
		o := s.db.Opts()
		setting = fmt.Sprintf("SyncWrites=%v ValueThreshold=%d", o.SyncWrites, o.ValueThreshold)
		if mode.Durable() {
			setting += " Sync after each update"
		}
		// A value in the value log would need its sync as well.
		holds = o.ValueThreshold >= kv.MaxValue
		return nil
	})
	return setting, holds, err
}

var (
	_ kv.Store      = (*Store)(nil)
	_ kv.Compacter  = (*Store)(nil)
	_ kv.Sizer      = (*Store)(nil)
	_ kv.FreeSpacer = (*Store)(nil)
	_ kv.Backuper   = (*Store)(nil)
	_ kv.Verifier   = (*Store)(nil)
	_ kv.Durabler   = (*Store)(nil)
)
