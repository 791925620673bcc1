package bbolt_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/agentvfs/avfs/backends/bbolt"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
	bolt "go.etcd.io/bbolt"
)

var (
	nodes   = kv.Table{Name: "nodes", IDs: true}
	digests = kv.Table{Name: "digests"}
)

// kit makes the stores of these tests.
var kit = storetest.Kit{Driver: bbolt.Driver{}, Rows: nodes, More: []kv.Table{digests}}

// sizeOf returns what the store says its size is.
func sizeOf(t *testing.T, st kv.Store) int64 {
	t.Helper()
	n, err := st.(kv.Sizer).Size()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLongReader checks the price of a reader that stays open: the file grows with
// every update meanwhile, and no more once the reader has ended.
func TestLongReader(t *testing.T) {
	st, _ := kit.Create(t)
	const size = 1 << 20
	kit.MustPut(t, st, 1, 4, size)
	before := sizeOf(t, st)
	err := st.View(t.Context(), func(r kv.Reader) error {
		for range 10 {
			kit.MustPut(t, st, 1, 4, size)
		}
		v, _, err := r.Get(nodes, kv.ID(1))
		if len(v) != size {
			t.Errorf("the reader sees %d bytes", len(v))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pinned := sizeOf(t, st)
	if pinned < before+30*size {
		t.Errorf("the file went from %d to %d bytes under a reader: the test has lost its point", before, pinned)
	}
	for range 10 {
		kit.MustPut(t, st, 1, 4, size)
	}
	if after := sizeOf(t, st); after > pinned+4*size {
		t.Errorf("the file went on from %d to %d bytes without a reader", pinned, after)
	}
	freed, err := st.(kv.Compacter).Compact(t.Context())
	if err != nil || sizeOf(t, st) > 6*size {
		t.Errorf("Compact freed %d bytes of %d and left %d, %v", freed, pinned, sizeOf(t, st), err)
	}
}

// TestSequentialIDsFillPages checks that growing ids leave no page half empty.
func TestSequentialIDsFillPages(t *testing.T) {
	st, _ := kit.Create(t)
	const rows, size = 80_000, 100
	for id := uint64(1); id <= rows; id += 4000 {
		kit.MustPut(t, st, id, id+3999, size)
	}
	if got, data := sizeOf(t, st), int64(rows*(size+8)); got > data*3/2 {
		t.Errorf("%d bytes of data take %d", data, got)
	}
}

// TestCompactKeepsTheLock checks that the file which Compact puts in place is locked
// like the one before, and found by whoever opens the path.
func TestCompactKeepsTheLock(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 100, 5000)
	if _, err := st.(kv.Compacter).Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := bbolt.Driver{}.Open(expired, path, kv.Options{})
	var locked *kv.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() && runtime.GOOS == "linux" {
		t.Errorf("Open beside a compacted store: %v, want a LockedError for %d", err, os.Getpid())
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("after close the folder holds %v, %v", left, err)
	}
	kit.WantRows(t, kit.Open(t, path, kv.Options{}), 100)
}

// foreign makes a bbolt database with one bucket.
func foreign(t *testing.T, bucket string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "foreign.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte(bucket))
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestForeignDatabase checks that a bbolt database of another program is refused and
// left alone.
func TestForeignDatabase(t *testing.T) {
	path := foreign(t, "nodes")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := bbolt.Driver{}
	if d.Recognise(path) {
		t.Error("a foreign database is recognised")
	}
	if _, err := d.Open(t.Context(), path, kv.Options{}); !errors.Is(err, kv.ErrNotStore) {
		t.Errorf("Open: %v, want ErrNotStore", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the foreign database was changed (%v)", err)
	}
}

// TestNewerVersion checks that a store of a newer format is refused by name instead
// of being misread.
func TestNewerVersion(t *testing.T) {
	path := foreign(t, "\x00avfs format 99")
	if !(bbolt.Driver{}).Recognise(path) {
		t.Error("a store of a newer version is not recognised")
	}
	if _, err := (bbolt.Driver{}).Open(t.Context(), path, kv.Options{}); !errors.Is(err, kv.ErrVersion) {
		t.Errorf("Open: %v, want ErrVersion", err)
	}
}

// TestRecogniseWhileWriting checks that a store is always recognised, although the
// page that says so moves with every commit.
func TestRecogniseWhileWriting(t *testing.T) {
	st, path := kit.Create(t)
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		for id := uint64(1); ; id++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			err := st.Update(context.Background(), kv.Relaxed, func(w kv.Writer) error {
				return w.Put(nodes, kv.ID(id%50+1), make([]byte, 2000))
			})
			if err != nil {
				done <- err
				return
			}
		}
	}()
	for range 2000 {
		if !(bbolt.Driver{}).Recognise(path) {
			t.Error("a store is not recognised while it is written")
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDamage overwrites one page after the other and checks that a damaged structure
// is ErrCorrupt, never the end of the process or another error. bbolt has no
// checksums over values; those are the engine's.
func TestDamage(t *testing.T) {
	st, path := kit.Create(t)
	for id := uint64(1); id <= 300; id += 10 {
		kit.MustPut(t, st, id, id+9, 900)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	found := 0
	for _, junk := range []byte{0xa5, 0x01, 0xff} {
		for at := 0; at+page <= len(sound)-1<<20; at += page { // the last MiB is a hole
			bad := bytes.Clone(sound)
			copy(bad[at+8:at+page], bytes.Repeat([]byte{junk}, page)) // 8: the page's own number
			damaged := filepath.Join(t.TempDir(), "damaged.avfs")
			if err := os.WriteFile(damaged, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := readAll(t, damaged); err != nil {
				found++
				if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, kv.ErrNotStore) {
					t.Errorf("page %d full of %#x: %v, want ErrCorrupt", at/page, junk, err)
				}
			}
		}
	}
	if found < 12 {
		t.Errorf("damage was found only %d times", found)
	}
}

// TestCutShort checks that a store without its end is refused, instead of ending the
// process by a bus error when that end is read.
func TestCutShort(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 100, 50_000)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{3 << 20, 100_000, 16_384, 8192, 4096} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		_, err := bbolt.Driver{}.Open(t.Context(), path, kv.Options{})
		if !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("Open of %d bytes: %v, want ErrCorrupt", size, err)
		}
	}
}

// readAll opens the store at path and reads, verifies and changes it.
func readAll(t *testing.T, path string) error {
	st, err := bbolt.Driver{}.Open(t.Context(), path, kv.Options{Tables: []kv.Table{nodes, digests}})
	if err != nil {
		return err
	}
	scanErr := st.View(t.Context(), func(r kv.Reader) error {
		return r.Scan(nodes, nil, nil, func(_, _ []byte) error { return nil })
	})
	verifyErr := st.(kv.Verifier).Verify(t.Context())
	putErr := kit.Put(t, st, kv.Relaxed, 100, 105, 10)
	return errors.Join(scanErr, verifyErr, putErr, st.Close())
}

// TestSymlink checks that a link leads to the same lock as the file itself, and that
// Compact replaces the file, not the link.
func TestSymlink(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 10, 100)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("SKIP: no symbolic links here: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (bbolt.Driver{}).Open(ctx, link, kv.Options{}); !errors.Is(err, kv.ErrLocked) {
		t.Errorf("Open through a link: %v, want ErrLocked", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = kit.Open(t, link, kv.Options{})
	if _, err := st.(kv.Compacter).Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	kit.WantRows(t, kit.Open(t, path, kv.Options{}), 10)
}

// TestPrivate checks that nobody else can read a store, also after Compact.
func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: files have no permission bits here")
	}
	st, path := kit.Create(t)
	for _, when := range []string{"new", "compacted"} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("a %s store has mode %v, want 0600 (%v)", when, info.Mode(), err)
		}
		if _, err := st.(kv.Compacter).Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
