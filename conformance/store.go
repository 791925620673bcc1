// Package conformance says what a back end, a vault and a mount must hold, as tests
// that anyone can run against an implementation of their own.
package conformance

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// StoreOptions says what TestStore cannot find out by itself. nil is useful.
type StoreOptions struct {
	// InMemory says that a store is no file and dies with the process, so that
	// tests with other processes, files and disks have no meaning.
	InMemory bool
}

// The tables of every store in this suite: one of each kind.
var (
	tblIDs   = kv.Table{Name: "nodes", IDs: true}
	tblBlob  = kv.Table{Name: "digests"}
	tblOther = kv.Table{Name: "other_2"}
	tblText  = kv.Table{Name: "audit", IDs: true, Text: true}
	tblNames = kv.Table{Name: "names", Text: true}

	allTables = []kv.Table{tblIDs, tblBlob, tblOther, tblText, tblNames}
)

// openPatience is how long an Open in this suite may wait for a lock that is about
// to become free.
const openPatience = 20 * time.Second

// storeSuite runs the tests of one driver.
type storeSuite struct {
	driver kv.Driver
	opts   StoreOptions
	self   string // the name of the test that called TestStore
}

// storeTest is one rule of the contract.
type storeTest struct {
	name string
	why  string // printed when the test fails
	run  func(*storeSuite, *testing.T)
}

// TestStore checks that stores of driver keep the contract of package kv. It must
// be called from a test function that a run of the test binary can name, because
// some tests run the binary again to have a process that they can kill.
func TestStore(t *testing.T, driver kv.Driver, opts *StoreOptions) {
	s := &storeSuite{driver: driver, self: t.Name()}
	if opts != nil {
		s.opts = *opts
	}
	if s.runAsChild() {
		return
	}
	for _, group := range [][]storeTest{txTests, scanTests, limitTests, openTests, abilityTests, crashTests, diskTests} {
		for _, tc := range group {
			t.Run(tc.name, func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("why it matters: %s", tc.why)
					}
				})
				tc.run(s, t)
			})
		}
	}
}

// needsFile skips a test that has no meaning for a store in memory.
func (s *storeSuite) needsFile(t *testing.T) {
	t.Helper()
	if s.opts.InMemory {
		t.Skipf("SKIP: a %s store is no file and dies with its process", s.driver.Name())
	}
}

// create makes a new store in a new folder. At the end of the test it is verified
// and closed.
func (s *storeSuite) create(t *testing.T) kv.Store {
	t.Helper()
	st, _ := s.createAt(t, t.TempDir())
	return st
}

// createAt is create in the folder dir; it also returns the path.
func (s *storeSuite) createAt(t *testing.T, dir string) (kv.Store, string) {
	t.Helper()
	path := filepath.Join(dir, "store.avfs")
	return s.open(t, path, kv.Options{Tables: allTables, Create: true}), path
}

// reopen opens the store at path with all tables.
func (s *storeSuite) reopen(t *testing.T, path string) kv.Store {
	t.Helper()
	return s.open(t, path, kv.Options{Tables: allTables})
}

// open opens a store that must open, and checks it at the end of the test.
func (s *storeSuite) open(t *testing.T, path string, opts kv.Options) kv.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	st, err := s.driver.Open(ctx, path, opts)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() {
		if err := verify(st); err != nil && !errors.Is(err, kv.ErrClosed) {
			t.Errorf("the store is damaged at the end of the test: %v", err)
		}
		mustClose(t, st)
	})
	return st
}

// verify checks the structure of st if its back end can.
func verify(st kv.Store) error {
	if v, ok := kv.As[kv.Verifier](st); ok {
		return v.Verify(context.Background())
	}
	return nil
}

// mustClose closes st; doing so again is allowed.
func mustClose(t *testing.T, st kv.Store) {
	t.Helper()
	if err := st.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// view runs fn in a View that must succeed.
func view(t *testing.T, st kv.Store, fn func(kv.Reader) error) {
	t.Helper()
	if err := st.View(t.Context(), fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// update runs fn in a relaxed Update that must succeed.
func update(t *testing.T, st kv.Store, fn func(kv.Writer) error) {
	t.Helper()
	if err := st.Update(t.Context(), kv.Relaxed, fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// put sets one key in an Update that must succeed.
func put(t *testing.T, st kv.Store, tb kv.Table, key, value []byte) {
	t.Helper()
	update(t, st, func(w kv.Writer) error { return w.Put(tb, key, value) })
}

// get reads one key; the result is the caller's.
func get(t *testing.T, st kv.Store, tb kv.Table, key []byte) (value []byte, ok bool) {
	t.Helper()
	view(t, st, func(r kv.Reader) error {
		v, found, err := r.Get(tb, key)
		value, ok = append([]byte(nil), v...), found
		return err
	})
	return value, ok
}

// wantValue fails unless key has value.
func wantValue(t *testing.T, st kv.Store, tb kv.Table, key, value []byte) {
	t.Helper()
	got, ok := get(t, st, tb, key)
	if !ok || string(got) != string(value) {
		t.Errorf("table %s, key %.40q: got %.40q, %v, want %.40q", tb.Name, key, got, ok, value)
	}
}

// wantNone fails when key exists.
func wantNone(t *testing.T, st kv.Store, tb kv.Table, key []byte) {
	t.Helper()
	if got, ok := get(t, st, tb, key); ok {
		t.Errorf("table %s, key %.40q: got %.40q, want none", tb.Name, key, got)
	}
}

// wantErr fails unless err wraps want.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// keysOf lists the keys that a Scan passes.
func keysOf(r kv.Reader, tb kv.Table, prefix, from []byte) (keys []string, err error) {
	err = r.Scan(tb, prefix, from, func(k, _ []byte) error {
		keys = append(keys, string(k))
		return nil
	})
	return keys, err
}
