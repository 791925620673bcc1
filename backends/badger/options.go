package badger

import (
	"fmt"
	"sync/atomic"
	"time"

	db "github.com/dgraph-io/badger/v4"
	dboptions "github.com/dgraph-io/badger/v4/options"
)

const (
	// memTableBytes is where a log ends and becomes a table. Badger takes at most
	// 15 % of it in one transaction, which must be no less than kv.MaxTxBytes
	// with overhead for kv.MaxTxOps; see TestLargestUpdate.
	memTableBytes = 64 << 20

	// inlineBelow is the size of a value, in bytes, from which Badger would move
	// it to the value log; Badger allows no more.
	inlineBelow = 1 << 20

	valueLogBytes  = 1 << 20  // smallest that Badger allows; the file stays empty
	indexCacheSize = 16 << 20 // of the tables' indexes, which are of any size otherwise

	// tableBytes is the size of a table at every depth. Badger builds up to a dozen
	// at a time, each in a buffer of twice its size.
	tableBytes = 8 << 20
	// blockBytes is what a table is read and checked by. With less than a whole chunk
	// a block is copied as it grows, and building a table of them takes three times
	// its size in memory.
	blockBytes = 132 << 10
	// baseLevelBytes is about one log: merging a log into less would leave one of
	// the tables of the next depth for each.
	baseLevelBytes = memTableBytes

	// mergeTables is how many new tables are merged into the tree, stallTables how
	// many there may be before updates wait for that. Of four that have waited for
	// long Badger makes one, of any size, in memory.
	mergeTables = 1
	stallTables = 3
	// calmStallTables is stallTables where Badger merges nothing by itself; see
	// maxNewTables.
	calmStallTables = 15
)

// options returns the settings of a store. log may be nil. With calm Badger merges no
// tables by itself.
func options(dir string, log *logger, calm bool) db.Options {
	o := db.DefaultOptions(dir).
		WithExternalMagic(appMagic | formatVersion).
		WithSyncWrites(false). // see wal.go
		WithValueThreshold(inlineBelow).
		WithValueLogFileSize(valueLogBytes).
		WithMemTableSize(memTableBytes).
		WithNumMemtables(1).
		WithBaseTableSize(tableBytes).
		WithBlockSize(blockBytes).
		WithBaseLevelSize(baseLevelBytes).
		WithNumLevelZeroTables(mergeTables).
		WithNumLevelZeroTablesStall(stallTables).
		WithNumCompactors(2).            // the least that works
		WithCompression(dboptions.None). // chunks and nodes come compressed
		WithBlockCacheSize(0).           // blocks are read from the map
		WithIndexCacheSize(indexCacheSize).
		WithDetectConflicts(false). // updates run one after the other
		WithNumVersionsToKeep(1).
		WithMetricsEnabled(false). // they are global to the process
		WithLogger(nil)
	o.TableSizeMultiplier = 1
	if log != nil {
		o = o.WithLogger(log)
	}
	if calm {
		o = o.WithNumCompactors(0).WithNumLevelZeroTablesStall(calmStallTables)
	}
	return o
}

// failureFor is how long a failure in the background stops updates. Badger tries
// again once a second and says so each time.
const failureFor = 3 * time.Second

// failure is what Badger said last about its work in the background, and when.
type failure struct {
	at  time.Time
	msg string
}

// logger keeps Badger's last error: a log that cannot become a table is reported
// nowhere else, and updates would wait for it for ever.
type logger struct{ last atomic.Pointer[failure] }

// Errorf implements db.Logger.
func (l *logger) Errorf(format string, args ...any) {
	l.last.Store(&failure{time.Now(), fmt.Sprintf(format, args...)})
}

// Warningf implements db.Logger; a merge that failed is tried again.
func (l *logger) Warningf(string, ...any) {}

// Infof implements db.Logger.
func (l *logger) Infof(string, ...any) {}

// Debugf implements db.Logger.
func (l *logger) Debugf(string, ...any) {}

// err returns the failure that is still going on.
func (l *logger) err() error {
	if f := l.last.Load(); f != nil && time.Since(f.at) < failureFor {
		return fmt.Errorf("badger: %s", f.msg)
	}
	return nil
}
