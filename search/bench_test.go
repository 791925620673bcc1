package search_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/backends/sqlite"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/search"
	"github.com/agentvfs/avfs/transfer"
)

// BenchmarkGoTree measures, on SQLite, the first index of Go's own source tree, a search
// that finds nothing new, and one after ten files have changed.
func BenchmarkGoTree(b *testing.B) {
	ctx := b.Context()
	open := func(name string, tables []kv.Table) kv.Store {
		db, err := sqlite.Driver{}.Open(ctx, filepath.Join(b.TempDir(), name), kv.Options{Tables: tables, Create: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = db.Close() }) // the last one closes the store
		return db
	}
	store, err := engine.Create(ctx, open("store", engine.Tables()), nil)
	if err != nil {
		b.Fatal(err)
	}
	v, err := store.CreateVault(ctx, "main")
	if err != nil {
		b.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	if _, err := transfer.Import(ctx, v, src, "/", nil); err != nil {
		b.Fatal(err)
	}
	q, err := search.Parse("mutex unlock")
	if err != nil {
		b.Fatal(err)
	}
	find := func(x *search.Index) search.Report {
		snap, err := v.Snapshot(ctx)
		if err != nil {
			b.Fatal(err)
		}
		rep, err := x.Update(ctx, snap, nil)
		if err != nil {
			b.Fatal(err)
		}
		if hits, _, err := x.Search(ctx, snap, q, search.Options{Lines: 3}); err != nil || len(hits) == 0 {
			b.Fatal(hits, err)
		}
		return rep
	}
	var x *search.Index
	b.Run("First", func(b *testing.B) {
		for b.Loop() {
			db := open("index", search.Tables())
			if x, err = search.Open(ctx, db, kv.Relaxed); err != nil {
				b.Fatal(err)
			}
			rep := find(x)
			size, err := db.(kv.Sizer).Size()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(rep.Bytes)/1e6, "MB-text")
			b.ReportMetric(float64(size)/float64(rep.Bytes), "index/text")
		}
	})
	x, err = search.Open(ctx, open("again", search.Tables()), kv.Relaxed)
	if err != nil {
		b.Fatal(err)
	}
	find(x)
	b.Run("Again", func(b *testing.B) {
		for b.Loop() {
			find(x)
		}
	})
	text, err := os.ReadFile(filepath.Join(src, "sync/mutex.go"))
	if err != nil {
		b.Fatal(err)
	}
	round := byte(0)
	b.Run("After10", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			round++
			for i := range byte(10) {
				name := "/changed-" + string('a'+rune(i))
				if _, err := v.WriteFile(ctx, name, newText(text, round, i), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
			find(x)
		}
	})
}

// newText is text with something before it that no other has.
func newText(text []byte, a, b byte) io.Reader {
	return io.MultiReader(strings.NewReader(fmt.Sprintf("// change %d of %d\n", a, b)), bytes.NewReader(text))
}
