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

// pageSize is the size of a page of a new store, in bytes. Measured with pages of 4,
// 8 and 16 KiB: a relaxed commit of one small put takes 18, 23 and 31 us; 1,000 nodes
// of 4,000 bytes in one update 20, 16 and 12 ms; 40 chunks of 128 KiB 24, 16 and 16 ms;
// a view and a read of one node 9.8, 9.6 and 12.5 us, of one chunk 111, 81 and 75 us.
// The nodes take 1.05, 1.04 and 1.09 times their size on disk.
const pageSize = 8192

// backupPages is how many pages a backup copies between two looks at its context.
const backupPages = 256

// Compact implements kv.Compacter. Updates wait while it works. Under a reader of an
// old snapshot the file shrinks only later, when the log can be moved into it.
func (s *Store) Compact(ctx context.Context) (reclaimed int64, err error) {
	err = s.withWriter(ctx, func(*conn) error {
		before, err := s.size()
		if err != nil {
			return err
		}
		if err := s.vacuum(ctx, vacuumPages, func(bool) bool { return true }); err != nil {
			return err
		}
		after, err := s.size()
		reclaimed = max(0, before-after)
		return err
	})
	return reclaimed, err
}

// Size implements kv.Sizer.
func (s *Store) Size() (int64, error) {
	if err := s.gate.Enter(context.Background()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	return s.size()
}

// size sums the file and its sidecars.
func (s *Store) size() (int64, error) {
	var sum int64
	for _, suffix := range []string{"", walSuffix, shmSuffix} {
		info, err := os.Stat(s.path + suffix)
		if err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return 0, err
		}
		if err == nil {
			sum += info.Size()
		}
	}
	return sum, nil
}

// Backup implements kv.Backuper. It copies one snapshot page by page; the copy
// appears at path when it is whole and durable.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := mustNotExist(path); err != nil {
		return err
	}
	tmp, err := storefile.TempFile(path)
	if err != nil {
		return err
	}
	defer removeDatabase(tmp)
	err = s.withReader(ctx, func(c *conn) error {
		return mapError(copyPages(ctx, c, tmp), tmp)
	})
	if err != nil {
		return err
	}
	return storefile.Publish(tmp, path)
}

// copyPages copies the snapshot that c is in to the database file tmp.
func copyPages(ctx context.Context, c *conn, tmp string) (err error) {
	b, err := c.db.BackupInit("main", tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err = b.Step(backupPages); err != nil {
			return err
		}
	}
	return nil
}

// Verify implements kv.Verifier. It reads every page in use.
func (s *Store) Verify(ctx context.Context) error {
	return s.withReader(ctx, func(c *conn) error {
		st, _, err := c.db.Prepare(`PRAGMA integrity_check(20)`)
		if err != nil {
			return s.mapErr(ctx, err)
		}
		var found []error
		for st.Step() {
			if line := st.ColumnText(0); line != "ok" {
				found = append(found, fmt.Errorf("%s: %w: %s", s.path, kv.ErrCorrupt, line))
			}
		}
		err = st.Err()
		return errors.Join(errors.Join(found...), s.mapErr(ctx, err), st.Close())
	})
}

// Durability implements kv.Durabler with the settings of the writing connection.
func (s *Store) Durability(ctx context.Context, mode kv.Mode) (setting string, holds bool, err error) {
	err = s.withWriter(ctx, func(c *conn) error {
		if err := c.setSync(mode); err != nil {
			return s.mapErr(ctx, err)
		}
		level, err := pragmaInt(c, `PRAGMA synchronous`)
		if err != nil {
			return s.mapErr(ctx, err)
		}
		journal, err := pragmaText(c, `PRAGMA journal_mode`)
		if err != nil {
			return s.mapErr(ctx, err)
		}
		full, err := pragmaInt(c, `PRAGMA fullfsync`)
		if err != nil {
			return s.mapErr(ctx, err)
		}
		need := int64(syncNormal)
		if mode.Durable() {
			need = syncFull
		}
		setting = fmt.Sprintf("journal_mode=%s synchronous=%d fullfsync=%d", journal, level, full)
		holds = journal == "wal" && level >= need && full == 1
		return nil
	})
	return setting, holds, err
}

// pragmaText returns the one text that a pragma yields.
func pragmaText(c *conn, sql string) (text string, err error) {
	st, _, err := c.db.Prepare(sql)
	if err != nil {
		return "", err
	}
	if st.Step() {
		text = st.ColumnText(0)
	}
	err = st.Err()
	return text, errors.Join(err, st.Close())
}

var (
	_ kv.Store     = (*Store)(nil)
	_ kv.Compacter = (*Store)(nil)
	_ kv.Sizer     = (*Store)(nil)
	_ kv.Backuper  = (*Store)(nil)
	_ kv.Verifier  = (*Store)(nil)
	_ kv.Durabler  = (*Store)(nil)
)
