package badger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/backends/badger"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
	db "github.com/dgraph-io/badger/v4"
)

var (
	nodes   = kv.Table{Name: "nodes", IDs: true}
	digests = kv.Table{Name: "digests"}
)

// kit makes the stores of these tests.
var kit = storetest.Kit{Driver: badger.Driver{}, Rows: nodes, More: []kv.Table{digests}}

// copyStore copies the files of a store as they are now, as a crash would leave them.
func copyStore(t *testing.T, path string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "crashed.avfs")
	if err := os.CopyFS(to, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestLargestUpdate checks that Badger takes the largest update that package kv
// allows, in bytes and in operations at once, with the longest keys for it, and that
// one more is refused whole.
func TestLargestUpdate(t *testing.T) {
	st, path := kit.Create(t)
	const size = kv.MaxTxBytes/kv.MaxTxOps - 8
	if err := kit.Put(t, st, kv.Durable, 1, kv.MaxTxOps, size); err != nil {
		t.Fatal(err)
	}
	if err := kit.Put(t, st, kv.Relaxed, 1, kv.MaxTxOps+1, 0); !errors.Is(err, kv.ErrTxTooLarge) {
		t.Errorf("one operation more: %v, want ErrTxTooLarge", err)
	}
	if err := kit.Put(t, st, kv.Durable, 1, 8, kv.MaxTxBytes/8-8); err != nil {
		t.Errorf("the largest values: %v", err)
	}
	if err := kit.Put(t, st, kv.Relaxed, 1, 8, kv.MaxTxBytes/8-7); !errors.Is(err, kv.ErrTxTooLarge) {
		t.Errorf("eight bytes more: %v, want ErrTxTooLarge", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	kit.WantRows(t, kit.Open(t, path, kv.Options{}), kv.MaxTxOps)
}

// TestNothingInTheValueLog checks that no value goes where a power cut can damage it,
// neither the largest one nor one that is shorter by a byte.
func TestNothingInTheValueLog(t *testing.T) {
	st, path := kit.Create(t)
	sizes := []int{kv.MaxValue, kv.MaxValue - 1, kv.MaxValue - 2}
	check := func(st kv.Store) {
		t.Helper()
		err := st.View(t.Context(), func(r kv.Reader) error {
			for i, size := range sizes {
				v, ok, err := r.Get(nodes, kv.ID(uint64(i+1)))
				if err != nil || !ok || !bytes.Equal(v, storetest.Value(uint64(i+1), size)) {
					t.Errorf("a value of %d bytes reads as %d bytes, %v, %v", size, len(v), ok, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		kit.WantRows(t, st, len(sizes))
	}
	for i, size := range sizes {
		kit.MustPut(t, st, uint64(i+1), uint64(i+1), size)
	}
	check(st)
	backup := filepath.Join(t.TempDir(), "backup.avfs")
	if err := st.(kv.Backuper).Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, backup} {
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		logs, err := filepath.Glob(filepath.Join(p, "*.vlog"))
		if err != nil || len(logs) == 0 {
			t.Fatalf("value logs of a closed store: %v, %v", logs, err)
		}
		for _, name := range logs {
			if info, err := os.Stat(name); err != nil || info.Size() > 64 {
				t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
			}
		}
		check(kit.Open(t, p, kv.Options{}))
	}
}

// TestLogEnds checks that updates go on over the end of a log, and that all of them
// are there when the store is opened again.
func TestLogEnds(t *testing.T) {
	st, path := kit.Create(t)
	const rows = 100 // MiB: one log and a half
	for id := uint64(1); id <= rows; id++ {
		mode := kv.Relaxed
		if id%30 == 0 {
			mode = kv.Durable
		}
		if err := kit.Put(t, st, mode, id, id, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(path, "00002.mem")); err != nil {
		t.Errorf("there is no second log: the test has lost its point: %v", err)
	}
	if err := st.(kv.Verifier).Verify(t.Context()); err != nil {
		t.Error(err)
	}
	kit.WantRows(t, st, rows)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	kit.WantRows(t, kit.Open(t, path, kv.Options{}), rows)
}

// TestReadOnlyAfterCrash checks that a store that was not closed can be read, and
// then refuses updates like any that is opened to be read.
func TestReadOnlyAfterCrash(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 50, 3000)
	ro := kit.Open(t, copyStore(t, path), kv.Options{ReadOnly: true})
	kit.WantRows(t, ro, 50)
	if err := kit.Put(t, ro, kv.Relaxed, 1, 1, 0); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("Update: %v, want ErrReadOnly", err)
	}
}

// TestEmptyLogs checks that logs without a byte, as a process leaves that dies in
// making or removing one, keep no store from opening.
func TestEmptyLogs(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 10, 100)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00007.mem", "000009.vlog"} {
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kit.WantRows(t, kit.Open(t, path, kv.Options{}), 10)
}

// TestForeignDatabase checks that a Badger database of another program is refused and
// left alone.
func TestForeignDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "foreign")
	d, err := db.Open(db.DefaultOptions(path).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	before := names(t, path)
	if (badger.Driver{}).Recognise(path) {
		t.Error("a foreign database is recognised")
	}
	if _, err := (badger.Driver{}).Open(t.Context(), path, kv.Options{}); !errors.Is(err, kv.ErrNotStore) {
		t.Errorf("Open: %v, want ErrNotStore", err)
	}
	if after := names(t, path); after != before {
		t.Errorf("the files were %s, are %s", before, after)
	}
}

// names lists the files in a folder.
func names(t *testing.T, path string) (list string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(path), ".", func(name string, _ fs.DirEntry, err error) error {
		list += name + " "
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestNewerVersion checks that a store of a newer format is refused by name instead
// of being misread.
func TestNewerVersion(t *testing.T) {
	st, path := kit.Create(t)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(path, "MANIFEST"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{99}, 5)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if !(badger.Driver{}).Recognise(path) {
		t.Error("a store of a newer version is not recognised")
	}
	if _, err := (badger.Driver{}).Open(t.Context(), path, kv.Options{}); !errors.Is(err, kv.ErrVersion) {
		t.Errorf("Open: %v, want ErrVersion", err)
	}
}

// TestManyTables checks that every table has a place of its own, and that none gets
// the one where Badger refuses keys that look like its own.
func TestManyTables(t *testing.T) {
	var tables []kv.Table
	for i := range 252 {
		tables = append(tables, kv.Table{Name: fmt.Sprint("t", i)})
	}
	path := filepath.Join(t.TempDir(), "store.avfs")
	st, err := badger.Driver{}.Open(t.Context(), path, kv.Options{Tables: tables, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("badger!key")
	err = st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
		for _, tb := range tables {
			if err := w.Put(tb, key, []byte(tb.Name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = st.View(t.Context(), func(r kv.Reader) error {
		for _, tb := range tables {
			if v, _, err := r.Get(tb, key); err != nil || string(v) != tb.Name {
				t.Errorf("table %s holds %q, %v", tb.Name, v, err)
			}
		}
		return nil
	})
	if err := errors.Join(err, st.Close()); err != nil {
		t.Error(err)
	}
	more := append(tables, kv.Table{Name: "more"}, kv.Table{Name: "yet_more"})
	st, err = badger.Driver{}.Open(t.Context(), path, kv.Options{Tables: more})
	if !errors.Is(err, kv.ErrLimit) {
		t.Errorf("two tables too many: %v, want ErrLimit", err)
	}
	if err == nil {
		_ = st.Close()
	}
}

// TestBadgersOwnTools checks that Badger itself keeps out of a store that is open.
func TestBadgersOwnTools(t *testing.T) {
	_, path := kit.Create(t)
	o := db.DefaultOptions(path).WithLogger(nil).WithExternalMagic(0xAF01)
	if d, err := db.Open(o); err == nil {
		t.Error("Badger opens a store that is open")
		_ = d.Close()
	}
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	var locked *kv.LockedError
	if _, err := (badger.Driver{}).Open(expired, path, kv.Options{}); !errors.As(err, &locked) || locked.Path != path {
		t.Errorf("a second Open: %v, want a LockedError for %s", err, path)
	}
}
