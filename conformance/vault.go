package conformance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// VaultOptions says what TestVault cannot find out by itself. nil is useful.
type VaultOptions struct {
	// InMemory says that a store dies with the process.
	InMemory bool
	// Memory replaces the bound on the memory of a process that writes and reads a
	// large file, for a database that cannot hold it.
	Memory *MemoryBound
}

// MemoryBound bounds the memory of a process.
type MemoryBound struct {
	Bytes int64
	// Mapped says that pages of mapped files do not count: the system drops them
	// when it needs their memory.
	Mapped bool
	// Reason is why the bound is not the usual one.
	Reason string
}

// usualMemory is what a process with a store on any sound database gets along with,
// whatever the size of the files.
var usualMemory = MemoryBound{Bytes: 300 << 20}

// vaultSuite runs the tests of vaults on the stores of one driver.
type vaultSuite struct {
	driver kv.Driver
	opts   VaultOptions
	self   string // the name of the test that called TestVault
}

// vaultTest is one rule.
type vaultTest struct {
	name string
	why  string // printed when the test fails
	run  func(*vaultSuite, *testing.T)
}

// TestVault checks that vaults on stores of driver behave as file systems with a
// history, whatever happens. Like TestStore it may run the test binary again.
func TestVault(t *testing.T, driver kv.Driver, opts *VaultOptions) {
	s := &vaultSuite{driver: driver, self: t.Name()}
	if opts != nil {
		s.opts = *opts
	}
	if s.runAsChild() {
		return
	}
	for _, vt := range vaultTests {
		t.Run(vt.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("why this matters: %s", vt.why)
				}
			})
			vt.run(s, t)
		})
	}
}

// vaultTests are all the rules.
var vaultTests = []vaultTest{
	{"Model", "a workspace must do what a file system does, with any history and any order of operations", (*vaultSuite).testModel},
	{"Quota", "a full vault must refuse growth and nothing else, and say exactly how full it is", (*vaultSuite).testQuota},
	{"Heal", "content that is damaged and written again must not be taken for stored", (*vaultSuite).testHeal},
	{"Flips", "a disk that changes a bit must be told of, whatever the bit was part of, and never be believed", (*vaultSuite).testFlips},
	{"RepairKilled", "a repair that is cut short must not make things worse", (*vaultSuite).testRepairKilled},
	{"GCKilled", "a collection that is cut short must lose nothing, and the next one must end its work", (*vaultSuite).testGCKilled},
	{"GCTail", "nobody must notice that garbage is collected in the background", (*vaultSuite).testGCTail},
	{"Reclaim", "what was deleted must give its space back", (*vaultSuite).testReclaim},
	{"ReclaimMerged", "what a deleted vault brought with a merge must give its space back", (*vaultSuite).testReclaimMerged},
	{"Concurrent", "an agent, a mount and a collector work on one vault at the same time", (*vaultSuite).testConcurrent},
	{"FullDisk", "a full disk must cost no old data, and deleting is the way out", (*vaultSuite).testFullDisk},
	{"DiskTaken", "what cannot be saved is told to who wrote it and waits; all else goes on", (*vaultSuite).testDiskTaken},
	{"Appends", "agents append to logs all day; each line must cost a line, not a log", (*vaultSuite).testAppends},
	{"Import", "forty copies of one source tree are one source tree", (*vaultSuite).testImport},
	{"Checkpoints", "a checkpoint after every step must cost next to nothing, or nobody saves one", (*vaultSuite).testCheckpoints},
	{"Forks", "forty agents work on forks of one tree, which must not be forty trees", (*vaultSuite).testForks},
	{"Large", "a file larger than the memory must pass through it", (*vaultSuite).testLarge},
	{"Merge", "an agent's work comes home while others work on, and loses nothing", (*vaultSuite).testMerge},
	{"MergeRefused", "a merge that cannot be made whole must not be made by half", (*vaultSuite).testMergeRefused},
	{"MergeKilled", "a merge that is cut short has happened or not", (*vaultSuite).testMergeKilled},
	{"History", "whatever was forked, merged, restored, undone, redone and collected, no state that is kept may lose a byte", (*vaultSuite).testHistory},
	{"HistoryKilled", "a kill at any moment may lose what nobody was told is safe, and nothing else", (*vaultSuite).testHistoryKilled},
	{"Kill", "after a kill the store opens by itself and holds what was synced", (*vaultSuite).testKill},
}

// vaultTables are those of the engine.
func vaultTables() []kv.Table { return engine.Tables() }

// open opens, or with create makes, the store at path.
func (s *vaultSuite) open(tb testing.TB, path string, create bool, opts *engine.Options) *engine.Store {
	tb.Helper()
	st, err := s.tryOpen(path, create, opts)
	if err != nil {
		tb.Fatalf("open %s: %v", path, err)
	}
	return st
}

func (s *vaultSuite) tryOpen(path string, create bool, opts *engine.Options) (*engine.Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	db, err := s.driver.Open(ctx, path, kv.Options{Tables: vaultTables(), Create: create})
	if err != nil {
		return nil, err
	}
	made := engine.Open
	if create {
		made = engine.Create
	}
	st, err := made(ctx, db, opts)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return st, nil
}

// newPath is where a store of the test can be.
func (s *vaultSuite) newPath(tb testing.TB) string {
	if s.opts.InMemory {
		return "memory:" + tb.Name()
	}
	return filepath.Join(tb.TempDir(), "store.avfs")
}

// mustCheck fails the test unless the store is sound in every byte.
func mustCheck(tb testing.TB, st *engine.Store) {
	tb.Helper()
	if err := checkStore(st); err != nil {
		tb.Fatal(err)
	}
}

func checkStore(st *engine.Store) error {
	rep, err := st.Check(context.Background(), &engine.CheckOptions{ReadData: true, History: true})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if len(rep.Findings) == 0 {
		return nil
	}
	var b strings.Builder
	for _, f := range rep.Findings[:min(len(rep.Findings), 10)] {
		fmt.Fprintf(&b, "\n  %s %v %v", f.Problem, f.Owners, f.Paths)
	}
	return fmt.Errorf("the store is damaged:%s", b.String())
}

// within fails the test, with the stacks of all goroutines, when fn takes longer
// than limit: then something waits for itself.
func within(t *testing.T, limit time.Duration, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		panic(t.Name() + ": no end within " + limit.String() + ": deadlock?")
	}
}
