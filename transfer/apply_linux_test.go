package transfer_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// hostTree lists what is below dir: "dir", "-> target", or the content, with the
// permission bits.
func hostTree(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := "dir"
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			what, err = os.Readlink(p)
			what = "-> " + what
		case info.Mode().IsRegular():
			var b []byte
			b, err = os.ReadFile(p)
			what = string(b)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			what += fmt.Sprintf(" %o", info.Mode().Perm())
		}
		rel, _ := filepath.Rel(dir, p) // p is below dir
		all[rel] = what
		return err
	})
	must(tb, err)
	return all
}

// applied is a host directory, the vault that it was imported into, and the two states.
type applied struct {
	v    *engine.Vault
	host string
	base engine.Root
}

func importedHost(tb testing.TB, files map[string]string) *applied {
	tb.Helper()
	a := &applied{v: newVault(tb), host: tb.TempDir()}
	write(tb, a.host, files)
	mustImport(tb, a.v, a.host, "/p", nil)
	var err error
	if a.base, err = a.v.Pin(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return a
}

func (a *applied) apply(ctx context.Context, tb testing.TB, opts *transfer.ApplyOptions) (transfer.ApplyReport, error) {
	tb.Helper()
	now, err := a.v.Pin(tb.Context())
	must(tb, err)
	defer a.v.Unpin(now)
	changes, _, err := a.v.Store().Diff(tb.Context(), a.base, now, nil)
	must(tb, err)
	return transfer.Apply(ctx, a.v.Store().Snapshot(a.base), a.v.Store().Snapshot(now), changes, "/p", a.host, opts)
}

// randomEdits changes the vault below /p.
func (a *applied) randomEdits(tb testing.TB, rng *rand.Rand, n int) {
	tb.Helper()
	ctx := tb.Context()
	for i := range n {
		p := fmt.Sprintf("/p/d%d/f%d", rng.IntN(3), rng.IntN(4))
		up := filepath.Dir(p)
		at, err := a.v.Resolve(ctx, p, false)
		switch k := rng.IntN(8); {
		case k < 3 || err != nil:
			if d, derr := a.v.Resolve(ctx, up, false); derr == nil && !d.IsDir() {
				must(tb, a.v.Remove(ctx, up))
			}
			_, err := a.v.MkdirAll(ctx, up, 0o755, engine.Owner{})
			must(tb, err)
			must(tb, a.v.RemoveAll(ctx, p))
			_, err = a.v.WriteFile(ctx, p, strings.NewReader(fmt.Sprint("new ", i)), nil)
			must(tb, err)
		case k == 3:
			must(tb, a.v.RemoveAll(ctx, p))
		case k == 4: // a file becomes a directory, or the other way round
			must(tb, a.v.RemoveAll(ctx, p))
			_, err := a.v.MkdirAll(ctx, p+"/sub", 0o750, engine.Owner{})
			must(tb, err)
		case k == 5:
			must(tb, a.v.RemoveAll(ctx, p))
			d, err := a.v.Resolve(ctx, up, false)
			must(tb, err)
			_, err = a.v.Symlink(ctx, d.Ino, filepath.Base(p), fmt.Sprint("../", i), engine.Owner{})
			must(tb, err)
		case k == 6 && !at.IsSymlink():
			mode := uint32(0o700 + rng.IntN(8))
			_, err := a.v.SetAttr(ctx, at.Ino, engine.SetAttr{Mode: &mode})
			must(tb, err)
		default:
			to := fmt.Sprintf("/p/moved%d", i)
			must(tb, a.v.Move(ctx, up, to))
		}
	}
}

// After an apply the host has what the vault has, whatever changed; a second one does
// nothing, and one that was cut short is finished by the next.
func TestApplyRandom(t *testing.T) {
	for seed := range 60 {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		files := map[string]string{}
		for i := range 12 {
			files[fmt.Sprintf("d%d/f%d", i%3, i%4)] = fmt.Sprint("old ", i)
		}
		a := importedHost(t, files)
		a.randomEdits(t, rng, 1+rng.IntN(8))
		before := hostTree(t, a.host)
		if _, err := a.apply(t.Context(), t, &transfer.ApplyOptions{DryRun: true}); err != nil {
			t.Fatalf("seed %d: dry run: %v", seed, err)
		}
		same(t, hostTree(t, a.host), before)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.apply(ctx, t, nil); engine.KindOf(err) != engine.Interrupted {
			t.Fatalf("seed %d: cancelled: %v", seed, err)
		}
		same(t, hostTree(t, a.host), before)
		rep, err := a.apply(t.Context(), t, nil)
		if err != nil {
			t.Fatalf("seed %d: %v %+v", seed, err, rep)
		}
		out := filepath.Join(t.TempDir(), "out")
		mustExport(t, a.v, "/p", out, nil)
		same(t, hostTree(t, a.host), hostTree(t, out))
		if again, err := a.apply(t.Context(), t, nil); err != nil || len(again.Changes) > 0 {
			t.Errorf("seed %d: once more: %+v, %v", seed, again.Changes, err)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, rep.Changes)
		}
	}
}

// Any change of the host at a path that changed in the vault is drift, and nothing is
// done; changes elsewhere stay.
func TestApplyDrift(t *testing.T) {
	for name, on := range map[string]func(host string) error{
		"edited":      func(host string) error { return os.WriteFile(filepath.Join(host, "d/a"), []byte("mine"), 0o644) },
		"same size":   func(host string) error { return os.WriteFile(filepath.Join(host, "d/a"), []byte("b"), 0o644) },
		"gone":        func(host string) error { return os.Remove(filepath.Join(host, "d/a")) },
		"another":     func(host string) error { return os.WriteFile(filepath.Join(host, "new"), []byte("mine"), 0o644) },
		"deleted too": func(host string) error { return os.WriteFile(filepath.Join(host, "x"), []byte("mine"), 0o644) },
		"link":        func(host string) error { return linkInstead(filepath.Join(host, "d"), "e") },
	} {
		a := importedHost(t, map[string]string{"d/a": "a", "e/a": "a", "x": "x", "mine": "old"})
		ctx := t.Context()
		for p, text := range map[string]string{"/p/d/a": "vault", "/p/new": "vault"} {
			_, err := a.v.WriteFile(ctx, p, strings.NewReader(text), nil)
			must(t, err)
		}
		must(t, a.v.Remove(ctx, "/p/x"), on(a.host), os.WriteFile(filepath.Join(a.host, "mine"), []byte("new"), 0o644))
		before := hostTree(t, a.host)
		rep, err := a.apply(ctx, t, nil)
		if engine.KindOf(err) != engine.Drift || len(rep.Changes) > 0 {
			t.Errorf("%s: %v, %+v", name, err, rep.Changes)
		}
		same(t, hostTree(t, a.host), before)
		rep, err = a.apply(ctx, t, &transfer.ApplyOptions{Force: true})
		if name == "link" {
			if engine.KindOf(err) != engine.Drift {
				t.Errorf("by force through a link: %v", err)
			}
			same(t, hostTree(t, a.host), before)
			continue
		}
		if err != nil {
			t.Errorf("%s: by force: %v %+v", name, err, rep)
		}
		same(t, hostTree(t, a.host), map[string]string{
			"d": "dir 755", "d/a": "vault 644", "e": "dir 755", "e/a": "a 644", "new": "vault 644", "mine": "new 644",
		})
	}
}

// linkInstead puts a symbolic link in the place of a directory.
func linkInstead(dir, target string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Symlink(target, dir)
}
