package transfer_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// hostContents lists the files below dir with their content.
func hostContents(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			got[rel] = "-> " + target
			return err
		}
		b, err := os.ReadFile(p)
		got[rel] = string(b)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func TestExportOfASnapshotAndASubtree(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"a": "1", "d/b": "2"})
	mustImport(t, v, src, "/top", nil)
	snap, err := v.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Unpin(snap.Root())
	if err := v.RemoveAll(t.Context(), "/top"); err != nil {
		t.Fatal(err)
	}
	rep := mustExport(t, snap, "/top", filepath.Join(out, "new", "dir"), nil)
	if rep.Files != 2 || rep.Dirs != 2 || rep.Bytes != 2 {
		t.Errorf("report %+v", rep)
	}
	mustExport(t, snap, "top/d", filepath.Join(out, "sub"), nil)
	same(t, hostContents(t, out), map[string]string{"new/dir/a": "1", "new/dir/d/b": "2", "sub/b": "2"})
}

func TestExportNeedsAnEmptyDirectory(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"a": "new", "d/b": "new"})
	write(t, out, map[string]string{"a": "old, longer", "kept": "", "d/kept": ""})
	mustImport(t, v, src, "/", nil)
	_, err := transfer.Export(t.Context(), v, "/", out, nil)
	if engine.KindOf(err) != engine.NotEmpty {
		t.Fatalf("error %v", err)
	}
	same(t, hostContents(t, out), map[string]string{"a": "old, longer", "kept": "", "d/kept": ""})
	mustExport(t, v, "/", out, &transfer.ExportOptions{Overwrite: true})
	same(t, hostContents(t, out), map[string]string{"a": "new", "d/b": "new", "kept": "", "d/kept": ""})
}

func TestExportNeverWritesThroughALink(t *testing.T) {
	v, src, out, outside := newVault(t), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"file": "new", "dir/x": "new", "link": "new"})
	mustImport(t, v, src, "/", nil)
	write(t, outside, map[string]string{"victim": "old", "keep/x": "old"})
	for name, target := range map[string]string{"file": "victim", "dir": "keep", "link": "none"} {
		if err := os.Symlink(filepath.Join(outside, target), filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := transfer.Export(t.Context(), v, "/", out, &transfer.ExportOptions{Overwrite: true})
	wantPartial(t, err, 1, engine.NotDirectory)
	wantSkip(t, rep, "dir", engine.NotDirectory, false)
	same(t, hostContents(t, outside), map[string]string{"victim": "old", "keep/x": "old"})
	same(t, hostContents(t, out), map[string]string{"file": "new", "link": "new", "dir": "-> " + filepath.Join(outside, "keep")})
}

func TestExportConflicts(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"file-over-dir": "f", "dir-over-file/y": "y", "good": "g"})
	write(t, out, map[string]string{"file-over-dir/x": "x", "dir-over-file": "f"})
	mustImport(t, v, src, "/", nil)
	rep, err := transfer.Export(t.Context(), v, "/", out, &transfer.ExportOptions{Overwrite: true})
	var p *transfer.PartialError
	if !errors.As(err, &p) || p.Failed != 2 {
		t.Fatalf("error %v", err)
	}
	wantSkip(t, rep, "file-over-dir", engine.IsDirectory, false)
	wantSkip(t, rep, "dir-over-file", engine.NotDirectory, false)
	same(t, hostContents(t, out), map[string]string{"file-over-dir/x": "x", "dir-over-file": "f", "good": "g"})
}

func TestExportOneFile(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"a": "1"})
	mustImport(t, v, src, "/", nil)
	mustExport(t, v, "/a", out, nil)
	mustExport(t, v, "a", filepath.Join(out, "new", "b"), nil)
	same(t, hostContents(t, out), map[string]string{"a": "1", "new/b": "1"})
	_, err := transfer.Export(t.Context(), v, "/a", filepath.Join(out, "a"), nil)
	if engine.KindOf(err) != engine.Exists {
		t.Fatalf("error %v", err)
	}
	write(t, out, map[string]string{"a": "old"})
	mustExport(t, v, "/a", out, &transfer.ExportOptions{Overwrite: true})
	same(t, hostContents(t, out), map[string]string{"a": "1", "new/b": "1"})
	_, err = transfer.Export(t.Context(), v, "/none", filepath.Join(out, "none"), nil)
	if engine.KindOf(err) != engine.NotFound {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Lstat(filepath.Join(out, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a failed export left something: %v", err)
	}
}

func TestExportCancelled(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), t.TempDir()
	files := map[string]string{}
	for i := range 400 {
		files[filepath.Join(string(rune('a'+i%20)), strings.Repeat("n", i%200+1))] = strings.Repeat("0123456789", 40_000)
	}
	write(t, src, files)
	mustImport(t, v, src, "/", nil)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if made, err := os.ReadDir(out); err != nil || len(made) > 1 {
				cancel() // at the second of twenty directories
				return
			}
		}
	}()
	rep, err := transfer.Export(ctx, v, "/", out, &transfer.ExportOptions{Workers: 1})
	<-stopped
	if engine.KindOf(err) != engine.Interrupted || !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	got := hostContents(t, out)
	if int64(len(got)) < rep.Files || len(got) > len(files) {
		t.Errorf("%d of %d files are there, %d reported", len(got), len(files), rep.Files)
	}
	for name, data := range got {
		if want := files[name]; data != want {
			t.Errorf("%s is not whole: %d of %d bytes", name, len(data), len(want))
		}
	}
}

func TestExportProgress(t *testing.T) {
	v, src, out := newVault(t), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"a": "12345", "d/b": "678"})
	if err := os.Link(filepath.Join(src, "a"), filepath.Join(src, "d", "a2")); err != nil {
		t.Fatal(err)
	}
	mustImport(t, v, src, "/", nil)
	var last transfer.Progress
	mustExport(t, v, "/", out, &transfer.ExportOptions{Progress: func(p transfer.Progress) { last = p }})
	if last.Files != 3 || last.Bytes != 8 || last.Path == "" {
		t.Errorf("last call: %+v", last)
	}
	if last.TotalFiles != 0 && (last.TotalFiles != 3 || last.TotalBytes != 8) {
		t.Errorf("totals: %+v", last)
	}
}
