package transfer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"github.com/agentvfs/avfs/transfer"
)

// newVault makes a vault in memory, whose store is checked and closed at the end.
func newVault(tb testing.TB) *engine.Vault {
	tb.Helper()
	db, err := memkv.NewDriver().Open(tb.Context(), "store", kv.Options{Tables: engine.Tables(), Create: true})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := engine.Create(tb.Context(), db, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return vaultIn(tb, s)
}

func vaultIn(tb testing.TB, s *engine.Store) *engine.Vault {
	tb.Helper()
	tb.Cleanup(func() { checkAndClose(tb, s) })
	v, err := s.CreateVault(tb.Context(), "main")
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func checkAndClose(tb testing.TB, s *engine.Store) {
	tb.Helper()
	rep, err := s.Check(testContext(tb), &engine.CheckOptions{ReadData: true, History: true})
	if err != nil || len(rep.Findings) > 0 {
		tb.Errorf("check: %v, findings %+v", err, rep.Findings)
	}
	if err := s.Close(); err != nil {
		tb.Error(err)
	}
}

func mustImport(tb testing.TB, v *engine.Vault, src, dst string, opts *transfer.ImportOptions) transfer.Report {
	tb.Helper()
	rep, err := transfer.Import(tb.Context(), v, src, dst, opts)
	if err != nil {
		tb.Fatalf("import: %v, report %+v", err, rep)
	}
	return rep
}

func mustExport(tb testing.TB, r transfer.Reader, src, dst string, opts *transfer.ExportOptions) transfer.Report {
	tb.Helper()
	rep, err := transfer.Export(tb.Context(), r, src, dst, opts)
	if err != nil {
		tb.Fatalf("export: %v, report %+v", err, rep)
	}
	return rep
}

// wantPartial checks that err is a *PartialError of n failures, the first of kind.
func wantPartial(tb testing.TB, err error, n int64, kind engine.Kind) {
	tb.Helper()
	var p *transfer.PartialError
	if !errors.As(err, &p) {
		tb.Fatalf("error %v (%T), want a *PartialError", err, err)
	}
	if p.Failed != n || engine.KindOf(err) != kind {
		tb.Fatalf("%d failures of kind %s (%v), want %d of %s", p.Failed, engine.KindOf(err), err, n, kind)
	}
}

func wantSkip(tb testing.TB, rep transfer.Report, path string, kind engine.Kind, note bool) {
	tb.Helper()
	for _, s := range rep.Skipped {
		if s.Path == path && s.Kind == kind && s.Note == note && s.Message != "" {
			return
		}
	}
	tb.Fatalf("no skip of %q as %s (note %v) in %+v", path, kind, note, rep.Skipped)
}

// write makes files with content, and the directories above them.
func write(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	for name, data := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

// contents lists the files below p in the vault with their content.
func contents(tb testing.TB, v *engine.Vault, p string) map[string]string {
	tb.Helper()
	got := map[string]string{}
	err := v.Walk(tb.Context(), p, func(name string, a engine.Attr) error {
		switch {
		case a.IsRegular():
			got[name] = read(tb, v, a)
		case a.IsSymlink():
			target, err := v.Readlink(tb.Context(), a.Ino)
			got[name] = "-> " + target
			return err
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func read(tb testing.TB, v *engine.Vault, a engine.Attr) string {
	tb.Helper()
	h, err := v.Open(tb.Context(), a.Ino, engine.OpenRead)
	if err != nil {
		tb.Fatal(err)
	}
	b := make([]byte, a.Size)
	if _, err := h.ReadAt(tb.Context(), b, 0); err != nil {
		tb.Fatal(err)
	}
	if err := h.Close(); err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func same(tb testing.TB, got, want map[string]string) {
	tb.Helper()
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			tb.Errorf("%q is %.80q (there: %v), want %.80q", k, g, ok, w)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			tb.Errorf("%q is there and should not be: %.80q", k, got[k])
		}
	}
}
