package sqlite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/backends/sqlite"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
	"github.com/ncruces/go-sqlite3"
)

var (
	nodes = kv.Table{Name: "nodes", IDs: true}
	audit = kv.Table{Name: "audit", IDs: true, Text: true}
)

// kit makes the stores of these tests.
var kit = storetest.Kit{Driver: sqlite.Driver{}, Rows: nodes, More: []kv.Table{audit}}

// size returns the size of a file, 0 when it does not exist.
func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// tool runs a program that people have, or skips the test.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIP, NOT CHECKED WITH OUTSIDE TOOLS: %v", err)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestTools checks that the common tools know a store and read the audit log as
// text, also while the store is open.
func TestTools(t *testing.T) {
	st, path := kit.Create(t)
	const entry = `{"event": "exec", "what": "gr\u00fc\u00df"}`
	err := st.Update(t.Context(), kv.Durable, func(w kv.Writer) error { return w.Put(audit, kv.ID(1), []byte(entry)) })
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"open", "closed"} {
		if got := tool(t, "sqlite3", path, "select value from audit"); got != entry {
			t.Errorf("%s: sqlite3 prints %q, want %q", state, got, entry)
		}
		if got := tool(t, "sqlite3", path, "select typeof(value), json_extract(value, '$.event') from audit"); got != "text|exec" {
			t.Errorf("%s: sqlite3 prints %q", state, got)
		}
		if got := tool(t, "sqlite3", path, "pragma integrity_check"); got != "ok" {
			t.Errorf("%s: sqlite3 prints %q", state, got)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := tool(t, "file", path); !strings.Contains(got, "SQLite 3") || !strings.Contains(got, "1635149427") && !strings.Contains(got, "0x61766673") {
		t.Errorf("file prints %q, want SQLite 3 with the application id", got)
	}
}

// TestNoSidecars checks that at close one whole file is left, because people copy
// a store with cp.
func TestNoSidecars(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 100, 5000)
	if size(t, path+"-wal") == 0 {
		t.Error("there is no log while the store is open: the test has lost its point")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("after close the folder holds %v, %v", left, err)
	}
	moved := filepath.Join(t.TempDir(), "moved.avfs")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	kit.WantRows(t, kit.Open(t, moved, kv.Options{ReadOnly: true}), 100)
}

// TestForeignDatabase checks that a SQLite database of another program is refused
// and left alone, whatever journal it uses.
func TestForeignDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "foreign.db")
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Exec(`CREATE TABLE nodes (id INTEGER PRIMARY KEY, value BLOB)`), db.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := sqlite.Driver{}
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
	st, path := kit.Create(t)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(binary.BigEndian.AppendUint32(nil, 99), 60)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if !(sqlite.Driver{}).Recognise(path) {
		t.Error("a store of a newer version is not recognised")
	}
	_, err = sqlite.Driver{}.Open(t.Context(), path, kv.Options{})
	var newer *sqlite.VersionError
	if !errors.As(err, &newer) || newer.Have != 99 || !errors.Is(err, kv.ErrVersion) {
		t.Errorf("Open: %v, want a VersionError for 99", err)
	}
}

// TestOrphanLog checks that a store is not created beside the log of a lost one,
// which SQLite would replay into it.
func TestOrphanLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.avfs")
	if err := os.WriteFile(path+"-wal", []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (sqlite.Driver{}).Open(t.Context(), path, kv.Options{Create: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create: %v, want fs.ErrExist", err)
	}
}

// TestSymlink checks that a link leads to the same lock and the same log as the
// file itself.
func TestSymlink(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 10, 100)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("SKIP: no symbolic links here: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (sqlite.Driver{}).Open(ctx, link, kv.Options{}); !errors.Is(err, kv.ErrLocked) {
		t.Errorf("Open through a link: %v, want ErrLocked", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	kit.WantRows(t, kit.Open(t, link, kv.Options{}), 10)
}

// TestReadOnlyAfterCrash checks that reading what a crash left, a file and its log,
// shows all of it and changes neither.
func TestReadOnlyAfterCrash(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 50, 3000)
	crashed := filepath.Join(t.TempDir(), "crashed.avfs")
	before := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		before[suffix] = content
		if err := os.WriteFile(crashed+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ro := kit.Open(t, crashed, kv.Options{ReadOnly: true})
	kit.WantRows(t, ro, 50)
	if err := ro.Close(); err != nil {
		t.Fatal(err)
	}
	for suffix, want := range before {
		if after, err := os.ReadFile(crashed + suffix); err != nil || !bytes.Equal(after, want) {
			t.Errorf("store%s was changed by reading (%v)", suffix, err)
		}
	}
	kit.WantRows(t, kit.Open(t, crashed, kv.Options{}), 50)
}

// TestDamage overwrites one page after the other and checks that a damaged
// structure is ErrCorrupt, never a panic or another error. SQLite has no checksums
// over values; those are the engine's.
func TestDamage(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 300, 2000)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 8192
	found := 0
	for at := 0; at+page <= len(sound); at += 3 * page {
		bad := bytes.Clone(sound)
		copy(bad[max(at, 100):at+page], bytes.Repeat([]byte{0xa5}, page)) // 100: the header
		damaged := filepath.Join(t.TempDir(), "damaged.avfs")
		if err := os.WriteFile(damaged, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(t, damaged); err != nil {
			found++
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("page %d: %v, want ErrCorrupt", at/page, err)
			}
		}
	}
	if found == 0 {
		t.Error("no damage was found")
	}
}

// readAll opens the store at path and reads and verifies all of it.
func readAll(t *testing.T, path string) error {
	st, err := sqlite.Driver{}.Open(t.Context(), path, kv.Options{Tables: []kv.Table{nodes, audit}})
	if err != nil {
		return err
	}
	defer st.Close()
	scanErr := st.View(t.Context(), func(r kv.Reader) error {
		return r.Scan(nodes, nil, nil, func(_, _ []byte) error { return nil })
	})
	return errors.Join(scanErr, st.(kv.Verifier).Verify(t.Context()))
}

// TestOddPath checks that no character of a path means something to SQLite.
func TestOddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b+c%20d?mode=ro#e&f=\u00fc'\"g.avfs")
	st := kit.Open(t, path, kv.Options{Create: true})
	kit.MustPut(t, st, 1, 3, 10)
	if size(t, path+"-wal") == 0 {
		t.Error("the log is not beside the store")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	kit.WantRows(t, kit.Open(t, path, kv.Options{ReadOnly: true}), 3)
}

// TestPrivate checks that nobody else can read a store, nor the log, which holds the
// same data.
func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: files have no permission bits here")
	}
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 3, 10)
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("store%s has mode %v, want 0600", suffix, info.Mode())
		}
	}
}
