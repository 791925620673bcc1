package transfer_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends/sqlite"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/transfer"
)

// goTree is the source of the Go distribution, the tree that the figures are about.
func goTree(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes seconds")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Skip("no go command: ", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src")
	if _, err := os.Stat(dir); err != nil {
		tb.Skip("the Go distribution's source is not here: ", err)
	}
	return dir
}

// openStore opens the store at path, which it makes if there is none.
func openStore(tb testing.TB, path string) *engine.Store {
	tb.Helper()
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	db, err := sqlite.Driver{}.Open(tb.Context(), path, kv.Options{Tables: engine.Tables(), Create: isNew})
	if err != nil {
		tb.Fatal(err)
	}
	open := engine.Open
	if isNew {
		open = engine.Create
	}
	s, err := open(tb.Context(), db, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// importDurably imports src and makes it durable.
func importDurably(tb testing.TB, v *engine.Vault, src, dst string) transfer.Report {
	tb.Helper()
	rep, err := transfer.Import(tb.Context(), v, src, dst, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := v.Commit(tb.Context(), true); err != nil {
		tb.Fatal(err)
	}
	return rep
}

func syncDisk(tb testing.TB) {
	tb.Helper()
	if out, err := exec.Command("sync").CombinedOutput(); err != nil {
		tb.Skipf("no sync command: %v %s", err, out)
	}
}

// BenchmarkImportGoTree imports the Go source tree into a new SQLite store with a
// durable commit at the end, and in turns copies it with cp -a followed by sync. It
// reports the medians and their ratio.
func BenchmarkImportGoTree(b *testing.B) {
	src := goTree(b)
	var imports, again, copies []time.Duration
	var bytes int64
	for b.Loop() {
		dir := b.TempDir()
		syncDisk(b)
		begin := time.Now()
		if out, err := exec.Command("cp", "-a", src, filepath.Join(dir, "copy")).CombinedOutput(); err != nil {
			b.Skipf("no cp -a: %v %s", err, out)
		}
		syncDisk(b)
		copies = append(copies, time.Since(begin))
		s := openStore(b, filepath.Join(dir, "store.avfs"))
		v, err := s.CreateVault(b.Context(), "main")
		if err != nil {
			b.Fatal(err)
		}
		begin = time.Now()
		bytes = importDurably(b, v, src, "/go").Bytes
		imports = append(imports, time.Since(begin))
		begin = time.Now()
		importDurably(b, v, src, "/again")
		again = append(again, time.Since(begin))
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	took, peer := median(imports), median(copies)
	b.SetBytes(bytes)
	b.ReportMetric(took.Seconds(), "import-s")
	b.ReportMetric(median(again).Seconds(), "again-s")
	b.ReportMetric(peer.Seconds(), "cp-s")
	b.ReportMetric(took.Seconds()/peer.Seconds(), "ratio")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
