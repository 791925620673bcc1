package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

func testContext(tb testing.TB) context.Context { return context.WithoutCancel(tb.Context()) }

func TestImportMergesIntoADirectory(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"a": "new", "sub/b": "new b", "sub/deep/c": "c"})
	old := t.TempDir()
	write(t, old, map[string]string{"a": "old", "kept": "kept", "sub/kept": "kept", "sub/b": "older, longer b"})
	mustImport(t, v, old, "/dst", nil)
	rep := mustImport(t, v, src, "dst", nil)
	if rep.Files != 3 || rep.Dirs != 3 || rep.Bytes != int64(len("newnew bc")) {
		t.Errorf("report %+v", rep)
	}
	same(t, contents(t, v, "/"), map[string]string{
		"dst/a": "new", "dst/kept": "kept", "dst/sub/b": "new b", "dst/sub/kept": "kept", "dst/sub/deep/c": "c",
	})
}

func TestImportIntoTheTopDirectory(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"a": "1"})
	mustImport(t, v, src, "/", nil)
	same(t, contents(t, v, "/"), map[string]string{"a": "1"})
}

func TestImportReplacesFilesNotDirectories(t *testing.T) {
	v, old, src := newVault(t), t.TempDir(), t.TempDir()
	write(t, old, map[string]string{"file-over-dir/x": "x", "dir-over-file": "f", "link-target": "t", "good": "old"})
	if err := os.Symlink("link-target", filepath.Join(old, "file-over-link")); err != nil {
		t.Fatal(err)
	}
	mustImport(t, v, old, "/d", nil)
	write(t, src, map[string]string{"file-over-dir": "f", "dir-over-file/y": "y", "file-over-link": "n", "good": "new"})
	rep, err := transfer.Import(t.Context(), v, src, "/d", nil)
	var p *transfer.PartialError
	if !errors.As(err, &p) || p.Failed != 2 {
		t.Fatalf("error %v", err)
	}
	wantSkip(t, rep, "file-over-dir", engine.IsDirectory, false)
	wantSkip(t, rep, "dir-over-file", engine.NotDirectory, false)
	same(t, contents(t, v, "/d"), map[string]string{
		"d/file-over-dir/x": "x", "d/dir-over-file": "f", "d/file-over-link": "n", "d/link-target": "t", "d/good": "new",
	})
}

func TestImportReplacesLargeFiles(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"big": strings.Repeat("0123456789abcdef", 400_000), "d/x": ""})
	mustImport(t, v, src, "/d", nil)
	write(t, src, map[string]string{"big": strings.Repeat("fedcba9876543210", 300_000)})
	mustImport(t, v, src, "/d", nil)
	same(t, contents(t, v, "/"), map[string]string{"d/big": strings.Repeat("fedcba9876543210", 300_000), "d/d/x": ""})
	if got := v.Info().Bytes; got != 4_800_000 {
		t.Errorf("the vault holds %d bytes", got)
	}
}

func TestImportOneFile(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"a": "1"})
	file := filepath.Join(src, "a")
	mustImport(t, v, file, "/new/name", nil)
	mustImport(t, v, file, "/new", nil)
	write(t, src, map[string]string{"a": "2"})
	rep := mustImport(t, v, file, "/new/name", nil)
	if rep.Files != 1 || rep.Bytes != 1 || rep.Dirs != 0 {
		t.Errorf("report %+v", rep)
	}
	same(t, contents(t, v, "/"), map[string]string{"new/name": "2", "new/a": "1"})
	_, err := transfer.Import(t.Context(), v, file, "/new/name/below", nil)
	if engine.KindOf(err) != engine.NotDirectory {
		t.Errorf("below a file: %v", err)
	}
}

func TestImportWhatIsNotThere(t *testing.T) {
	v := newVault(t)
	_, err := transfer.Import(t.Context(), v, filepath.Join(t.TempDir(), "none"), "/d", nil)
	var p *transfer.PartialError
	if engine.KindOf(err) != engine.NotFound || !errors.Is(err, fs.ErrNotExist) || errors.As(err, &p) {
		t.Fatalf("error %v", err)
	}
	same(t, contents(t, v, "/"), nil)
}

func TestImportExclude(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"a.o": "", "a.c": "", "out/x": "", "d/out": "", "d/b.o": ""})
	var mu sync.Mutex
	seen := map[string]bool{}
	rep := mustImport(t, v, src, "/", &transfer.ImportOptions{Exclude: func(rel string, isDir bool) bool {
		mu.Lock()
		defer mu.Unlock()
		seen[rel] = isDir
		return strings.HasSuffix(rel, ".o") || isDir && rel == "out"
	}})
	same(t, contents(t, v, "/"), map[string]string{"a.c": "", "d/out": ""})
	if isDir, ok := seen["d/b.o"]; !ok || isDir || seen["out/x"] || !seen["d"] {
		t.Errorf("asked about %v", seen)
	}
	if rep.SkippedTotal != 0 {
		t.Errorf("excluded entries were reported: %+v", rep)
	}
}

func TestImportProgress(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"a": "12345", "d/b": "678", "d/c": strings.Repeat("x", 3<<20)})
	if err := os.Link(filepath.Join(src, "a"), filepath.Join(src, "d", "a2")); err != nil {
		t.Fatal(err)
	}
	var calls []transfer.Progress // one goroutine at a time: the race detector watches
	begin := time.Now()
	mustImport(t, v, src, "/", &transfer.ImportOptions{Progress: func(p transfer.Progress) { calls = append(calls, p) }})
	last := calls[len(calls)-1]
	if last.Files != 4 || last.Bytes != 8+3<<20 || last.Path == "" {
		t.Errorf("last call: %+v", last)
	}
	if last.TotalFiles != 0 && (last.TotalFiles != 4 || last.TotalBytes != 8+3<<20) {
		t.Errorf("totals: %+v", last)
	}
	if most := int(time.Since(begin)/(100*time.Millisecond)) + 2; len(calls) > most {
		t.Errorf("%d calls, at most %d allowed", len(calls), most)
	}
}

func TestImportCancelled(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	files := map[string]string{}
	for i := range 300 {
		files[filepath.Join(string(rune('a'+i%20)), strings.Repeat("n", i%200+1))] = strings.Repeat("0123456789", 40_000)
	}
	files["big"] = strings.Repeat("0123456789", 4_000_000)
	write(t, src, files)
	ctx, cancel := context.WithCancel(t.Context())
	var asked int
	rep, err := transfer.Import(ctx, v, src, "/d", &transfer.ImportOptions{Exclude: func(string, bool) bool {
		if asked++; asked == 60 {
			cancel()
		}
		return false
	}})
	if engine.KindOf(err) != engine.Interrupted || !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	got := contents(t, v, "/d")
	if len(got) >= len(files) || int64(len(got)) < rep.Files {
		t.Errorf("%d of %d files are there, %d reported", len(got), len(files), rep.Files)
	}
	for name, data := range got {
		if want := files[strings.TrimPrefix(name, "d/")]; data != want {
			t.Errorf("%s is not whole: %d of %d bytes", name, len(data), len(want))
		}
	}
}

func TestImportIntoAClosedVaultEnds(t *testing.T) {
	v, src := newVault(t), t.TempDir()
	write(t, src, map[string]string{"a": "", "b": "", "c": ""})
	gone, err := v.Store().CreateVault(t.Context(), "gone")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Store().DeleteVault(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	_, err = transfer.Import(t.Context(), gone, src, "/", nil)
	var p *transfer.PartialError
	if engine.KindOf(err) != engine.Closed || errors.As(err, &p) {
		t.Fatalf("error %v", err)
	}
}

func TestReportJSON(t *testing.T) {
	b, err := json.Marshal(transfer.Report{Files: 1, HardLinks: 2, Skipped: []transfer.Skip{{Path: "p", Kind: engine.Permission, Message: "m"}}})
	const want = `{"files":1,"dirs":0,"symlinks":0,"others":0,"hard_links":2,"bytes":0,` +
		`"skipped":[{"path":"p","error":"Permission","message":"m"}],"skipped_total":0}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}
