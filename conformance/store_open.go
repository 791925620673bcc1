package conformance

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// openTests are the rules of opening, locking and closing.
var openTests = []storeTest{
	{"CreateAndOpen", "opening a misspelt path must not make a store, and creating must not open somebody's", (*storeSuite).testCreateAndOpen},
	{"NotAStore", "opening a foreign file must leave it alone and say what is wrong", (*storeSuite).testNotAStore},
	{"ReopenKeepsData", "a store that forgets is none", (*storeSuite).testReopen},
	{"TablesGrow", "a newer version adds tables; an older one must not lose them", (*storeSuite).testTablesGrow},
	{"TableRedeclared", "reading ids as blobs would be wrong data", (*storeSuite).testRedeclared},
	{"ReadOnly", "looking at a store, perhaps on a medium that cannot be written, changes no byte of it", (*storeSuite).testReadOnly},
	{"CloseSemantics", "a store is closed from a signal handler while transactions run", (*storeSuite).testClose},
	{"CloseWaits", "closing under a running transaction would take its data away", (*storeSuite).testCloseWaits},
	{"SecondHandle", "two caches over one store would overwrite each other's work", (*storeSuite).testSecondHandle},
	{"SecondProcess", "a command beside a mount must learn who holds the store instead of hanging", (*storeSuite).testSecondProcess},
	{"WaitForOtherProcess", "a command that starts while another ends should just wait a moment", (*storeSuite).testWaitForProcess},
	{"RaceToCreate", "two processes that create one store must not both believe they did", (*storeSuite).testRaceToCreate},
}

func (s *storeSuite) testCreateAndOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.avfs")
	if s.driver.Recognise(path) {
		t.Error("a path without a file is recognised")
	}
	_, err := s.driver.Open(t.Context(), path, kv.Options{Tables: allTables})
	wantErr(t, "Open where there is nothing", err, fs.ErrNotExist)
	st := s.open(t, path, kv.Options{Tables: allTables, Create: true})
	put(t, st, tblBlob, []byte("k"), []byte("v"))
	mustClose(t, st)
	if !s.driver.Recognise(path) {
		t.Error("a store is not recognised")
	}
	_, err = s.driver.Open(t.Context(), path, kv.Options{Tables: allTables, Create: true})
	wantErr(t, "Create where there is a store", err, fs.ErrExist)
	wantValue(t, s.reopen(t, path), tblBlob, []byte("k"), []byte("v"))
	_, err = s.driver.Open(t.Context(), filepath.Join(path+".d", "store"), kv.Options{Create: true})
	if !s.opts.InMemory {
		wantErr(t, "Create in a folder that does not exist", err, fs.ErrNotExist)
	}
}

func (s *storeSuite) testNotAStore(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{
		"empty":   {},
		"short":   []byte("x"),
		"text":    bytes.Repeat([]byte("no store at all\n"), 5000),
		"zeros":   make([]byte, 1<<20),
		"almost":  append([]byte("SQLite format 3\x00"), make([]byte, 100_000)...),
		"garbage": bytes.Repeat([]byte{0xde, 0xad, 0xbe, 0xef, 0x00, 0xff}, 20_000),
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s.wantNotStore(t, path)
		_, err := s.driver.Open(t.Context(), path, kv.Options{Tables: allTables, Create: true})
		wantErr(t, "Create over "+name, err, fs.ErrExist)
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.wantNotStore(t, folder)
	_, err := s.driver.Open(t.Context(), folder, kv.Options{Tables: allTables, Create: true})
	wantErr(t, "Create over a folder", err, fs.ErrExist)
	found, err := os.ReadDir(dir)
	if err != nil || len(found) != len(files)+1 {
		t.Errorf("the folder holds %v (%v), want nothing new", found, err)
	}
}

// wantNotStore checks that the thing at path is refused.
func (s *storeSuite) wantNotStore(t *testing.T, path string) {
	t.Helper()
	if s.driver.Recognise(path) {
		t.Errorf("%s is recognised as a store", filepath.Base(path))
	}
	for _, ro := range []bool{false, true} {
		st, err := s.driver.Open(t.Context(), path, kv.Options{Tables: allTables, ReadOnly: ro})
		wantErr(t, "Open of "+filepath.Base(path), err, kv.ErrNotStore)
		if err == nil {
			mustClose(t, st)
		}
	}
}

func (s *storeSuite) testReopen(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	for round := range 3 {
		fill(t, st, tblIDs, 500)
		for _, mode := range []kv.Mode{kv.Relaxed, kv.Durable, kv.Reclaim, kv.Durable | kv.Reclaim} {
			key := []byte{byte(round), byte(mode)}
			err := st.Update(t.Context(), mode, func(w kv.Writer) error { return w.Put(tblBlob, key, key) })
			if err != nil {
				t.Fatal(err)
			}
		}
		mustClose(t, st)
		st = s.reopen(t, path)
		wantValue(t, st, tblIDs, kv.ID(500), []byte("value 500"))
		for r := range round + 1 {
			for mode := range byte(4) {
				wantValue(t, st, tblBlob, []byte{byte(r), mode}, []byte{byte(r), mode})
			}
		}
	}
}

func (s *storeSuite) testTablesGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.avfs")
	st := s.open(t, path, kv.Options{Tables: []kv.Table{tblIDs}, Create: true})
	put(t, st, tblIDs, kv.ID(1), []byte("old"))
	mustClose(t, st)
	st = s.reopen(t, path)
	wantValue(t, st, tblIDs, kv.ID(1), []byte("old"))
	put(t, st, tblText, kv.ID(1), []byte("new"))
	mustClose(t, st)
	st = s.open(t, path, kv.Options{Tables: []kv.Table{tblIDs}})
	put(t, st, tblIDs, kv.ID(2), nil)
	mustClose(t, st)
	wantValue(t, s.reopen(t, path), tblText, kv.ID(1), []byte("new"))
}

func (s *storeSuite) testRedeclared(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	put(t, st, tblIDs, kv.ID(1), []byte("v"))
	mustClose(t, st)
	for _, tb := range []kv.Table{{Name: tblIDs.Name}, {Name: tblIDs.Name, IDs: true, Text: true}, {Name: tblBlob.Name, IDs: true}} {
		st, err := s.driver.Open(t.Context(), path, kv.Options{Tables: []kv.Table{tb}})
		wantErr(t, "Open with another declaration", err, kv.ErrNoTable)
		if err == nil {
			mustClose(t, st)
		}
	}
	st, err := s.driver.Open(t.Context(), path, kv.Options{Tables: []kv.Table{tblIDs, tblIDs}})
	wantErr(t, "Open with a table twice", err, kv.ErrLimit)
	if err == nil {
		mustClose(t, st)
	}
	wantValue(t, s.reopen(t, path), tblIDs, kv.ID(1), []byte("v"))
}

func (s *storeSuite) testReadOnly(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	fill(t, st, tblIDs, 100)
	mustClose(t, st)
	before := s.files(t, filepath.Dir(path))
	st = s.open(t, path, kv.Options{Tables: allTables, ReadOnly: true})
	wantValue(t, st, tblIDs, kv.ID(100), []byte("value 100"))
	err := st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error { return w.Put(tblIDs, kv.ID(1), nil) })
	wantErr(t, "Update", err, kv.ErrReadOnly)
	if err := verify(st); err != nil {
		t.Error(err)
	}
	mustClose(t, st)
	if after := s.files(t, filepath.Dir(path)); after != before {
		t.Errorf("the folder changed from %s to %s", before, after)
	}
	more := append([]kv.Table{{Name: "newer"}}, allTables...)
	st = s.open(t, path, kv.Options{Tables: more, ReadOnly: true})
	wantNone(t, st, more[0], []byte("k"))
	view(t, st, func(r kv.Reader) error { _, err := keysOf(r, more[0], nil, nil); return err })
}

func (s *storeSuite) testClose(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	put(t, st, tblBlob, []byte("k"), nil)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { mustClose(t, st) })
	}
	wg.Wait()
	mustClose(t, st)
	ran := errors.New("the function ran on a closed store")
	wantErr(t, "View", st.View(t.Context(), func(kv.Reader) error { return ran }), kv.ErrClosed)
	wantErr(t, "Update", st.Update(t.Context(), kv.Durable, func(kv.Writer) error { return ran }), kv.ErrClosed)
	if a, ok := kv.As[kv.Compacter](st); ok {
		_, err := a.Compact(t.Context())
		wantErr(t, "Compact", err, kv.ErrClosed)
	}
	if a, ok := kv.As[kv.Sizer](st); ok {
		_, err := a.Size()
		wantErr(t, "Size", err, kv.ErrClosed)
	}
	if a, ok := kv.As[kv.Backuper](st); ok {
		wantErr(t, "Backup", a.Backup(t.Context(), path+".copy"), kv.ErrClosed)
	}
	wantErr(t, "Verify", orClosed(verify(st), st), kv.ErrClosed)
	st = s.reopen(t, path)
	wantValue(t, st, tblBlob, []byte("k"), nil)
}

// orClosed is err, or kv.ErrClosed for a store that cannot verify.
func orClosed(err error, st kv.Store) error {
	if _, ok := kv.As[kv.Verifier](st); !ok {
		return kv.ErrClosed
	}
	return err
}

func (s *storeSuite) testCloseWaits(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	put(t, st, tblBlob, []byte("k"), []byte("v"))
	running, release, closed := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := st.View(context.Background(), func(r kv.Reader) error {
			running <- struct{}{}
			<-release
			_, ok, err := r.Get(tblBlob, []byte("k"))
			if !ok {
				t.Error("a running view lost its data")
			}
			return err
		})
		if err != nil {
			t.Errorf("running View: %v", err)
		}
	})
	wg.Go(func() {
		err := st.Update(context.Background(), kv.Relaxed, func(w kv.Writer) error {
			running <- struct{}{}
			<-release
			return w.Put(tblBlob, []byte("late"), nil)
		})
		if err != nil {
			t.Errorf("running Update: %v", err)
		}
	})
	<-running
	<-running
	go func() {
		mustClose(t, st)
		close(closed)
	}()
	ran := func(kv.Reader) error { return nil }
	for st.View(t.Context(), ran) == nil { // until Close has begun
		time.Sleep(time.Millisecond)
	}
	select {
	case <-closed:
		t.Error("Close did not wait for running transactions")
	case <-time.After(50 * time.Millisecond):
	}
	wantErr(t, "View while closing", st.View(t.Context(), ran), kv.ErrClosed)
	close(release)
	wg.Wait()
	<-closed
	wantValue(t, s.reopen(t, path), tblBlob, []byte("late"), nil)
}

func (s *storeSuite) testSecondHandle(t *testing.T) {
	st, path := s.createAt(t, t.TempDir())
	s.wantLocked(t, path, os.Getpid())
	put(t, st, tblBlob, []byte("k"), []byte("v")) // the first handle is unharmed
	wantValue(t, st, tblBlob, []byte("k"), []byte("v"))
	mustClose(t, st)
	s.reopen(t, path)
}

// wantLocked checks that the store at path is refused for being held by pid.
func (s *storeSuite) wantLocked(t *testing.T, path string, pid int) {
	t.Helper()
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
		ctx := expired
		if wait > 0 {
			ctx, cancel = context.WithTimeout(t.Context(), wait)
			defer cancel()
		}
		start := time.Now()
		st, err := s.driver.Open(ctx, path, kv.Options{Tables: allTables})
		took := time.Since(start)
		if err == nil {
			mustClose(t, st)
			t.Fatal("a second opener got the store")
		}
		wantErr(t, "second Open", err, kv.ErrLocked)
		var locked *kv.LockedError
		if !errors.As(err, &locked) {
			t.Fatalf("second Open: %#v, want a *kv.LockedError", err)
		}
		if locked.PID != pid && (locked.PID != 0 || runtime.GOOS == "linux") {
			t.Errorf("the holder is said to be %d, but it is %d", locked.PID, pid)
		}
		if took < wait-10*time.Millisecond || took > wait+5*time.Second {
			t.Errorf("second Open took %v, want %v", took, wait)
		}
	}
}

func (s *storeSuite) testRaceToCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.avfs")
	const racers = 6
	stores := make([]kv.Store, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			st, err := s.driver.Open(context.Background(), path, kv.Options{Tables: allTables, Create: true})
			if err == nil {
				stores[i] = st
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("racing Create: %v, want fs.ErrExist", err)
			}
		})
	}
	wg.Wait()
	won := 0
	for _, st := range stores {
		if st != nil {
			won++
			put(t, st, tblBlob, []byte("k"), []byte("v"))
			mustClose(t, st)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d created the store", won, racers)
	}
	wantValue(t, s.reopen(t, path), tblBlob, []byte("k"), []byte("v"))
}
