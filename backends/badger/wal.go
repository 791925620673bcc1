package badger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/internal/storefile"
	db "github.com/dgraph-io/badger/v4"
)

const (
	logSuffix      = ".mem"
	valueLogSuffix = ".vlog"

	// entryOverhead bounds what one entry takes besides key and value, in bytes:
	// in the log a header, a version and a checksum, in memory a node of a skip
	// list, whose height is one or two on average.
	entryOverhead = 64

	// allocStep is the step by which disk space for the log is taken in advance.
	allocStep = 256 << 10
)

// wal follows the write-ahead log from outside. Badger appends to one file until it
// is full, begins another, and makes a table of the first in the background. It does
// not sync a file that it leaves, and its Sync speaks of the newest file only. So that
// a power cut can never take an older update and leave a newer one, the log is
// synced before an update that may begin a new file.
type wal struct {
	file      string // the newest log file
	bytes     int64  // bound of what it holds
	allocated int64  // how much disk space was taken for it
	unsynced  bool   // it holds updates that were not synced
	newName   bool   // its name was not synced
}

// logFiles lists the log files of the store at path, oldest first.
func logFiles(path string) (names []string, err error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), logSuffix) {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	// Names are numbers of at least five digits.
	slices.SortFunc(names, func(a, b string) int {
		if d := len(a) - len(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// removeEmpty removes logs without a byte from the store at path: a process died when
// it had just made or emptied them, and Badger refuses to open a store with one.
func removeEmpty(path string) error {
	list, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range list {
		if ext := filepath.Ext(e.Name()); ext != logSuffix && ext != valueLogSuffix {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Size() > 0 {
			continue
		}
		if err := os.Remove(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// prepareLogs makes the logs that a crash left durable and checks that the disk has
// room for the tables that they become, and for a new log.
func prepareLogs(path string, logs []string) error {
	need := int64(slackBytes + allocStep)
	for _, name := range logs {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		used, err := diskUse(name)
		if err != nil {
			return err
		}
		need += used
	}
	return needSpace(path, need)
}

// newestLog returns the log file of the open store at path that is written to.
func newestLog(path string) (string, error) {
	logs, err := logFiles(path)
	if err == nil && len(logs) == 0 {
		err = &fs.PathError{Op: "find log", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return "", err
	}
	return logs[len(logs)-1], nil
}

// begin looks for the log of the store at path, which holds size bytes yet.
func (w *wal) begin(path string, size int64) error {
	file, err := newestLog(path)
	if err != nil {
		return err
	}
	*w = wal{file: file, bytes: size, unsynced: true, newName: true}
	return w.allocate(0)
}

// mayEnd reports whether an update may begin a new file.
func (w *wal) mayEnd() bool { return w.bytes >= memTableBytes }

// before prepares the log for an update of size bytes.
func (w *wal) before(d *db.DB, size int64) error {
	if w.mayEnd() && w.unsynced {
		if err := d.Sync(); err != nil {
			return err
		}
		w.unsynced = false
	}
	return w.allocate(size)
}

// allocate takes the disk space for size bytes more, so that writing them through
// the map cannot fail.
func (w *wal) allocate(size int64) error {
	need := w.bytes + size + allocStep
	if need <= w.allocated {
		return nil
	}
	need = min((need+allocStep-1)/allocStep*allocStep, 2*memTableBytes)
	if err := preallocate(w.file, w.allocated, need-w.allocated); err != nil {
		return err
	}
	w.allocated = need
	return nil
}

// after notes that an update of size bytes was written.
func (w *wal) after(path string, size int64) error {
	mayHaveEnded := w.mayEnd()
	w.bytes += size
	w.unsynced = true
	if !mayHaveEnded {
		return nil
	}
	file, err := newestLog(path)
	if err != nil || file == w.file {
		return err
	}
	return w.begin(path, size)
}

// sync makes everything durable that was written.
func (w *wal) sync(d *db.DB, path string) error {
	if w.newName {
		if err := storefile.SyncDir(path); err != nil {
			return err
		}
		w.newName = false
	}
	if !w.unsynced {
		return nil
	}
	if err := d.Sync(); err != nil {
		return err
	}
	w.unsynced = false
	return nil
}

// logsUse sums the disk space of the logs of the store at path, each of which becomes a
// table that is no larger. Logs may go meanwhile.
func logsUse(path string) (sum int64, err error) {
	logs, err := logFiles(path)
	if err != nil {
		return 0, err
	}
	for _, name := range logs {
		used, err := diskUse(name)
		if ignoreGone(err) != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// unflushed bounds the size of the tables that the logs of the store at path have yet
// to become.
func (w *wal) unflushed(path string) int64 {
	sum := w.bytes
	logs, err := logFiles(path)
	if err != nil {
		return sum
	}
	for _, name := range logs {
		if name == w.file {
			continue
		}
		if used, err := diskUse(name); err == nil { // else it is a table by now
			sum += used
		}
	}
	return sum
}
