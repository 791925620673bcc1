package patch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"github.com/agentvfs/avfs/patch"
	"github.com/agentvfs/avfs/transfer"
)

// newVault is a vault in memory.
func newVault(tb testing.TB) *engine.Vault {
	tb.Helper()
	st, err := engine.Create(context.Background(), memkv.New(engine.Tables()...), &engine.Options{CommitInterval: -1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := st.Close(); err != nil {
			tb.Error(err)
		}
	})
	v, err := st.CreateVault(context.Background(), "v")
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func put(tb testing.TB, v *engine.Vault, p, content string) {
	tb.Helper()
	_, err := v.MkdirAll(tb.Context(), path.Dir("/"+p), 0o755, engine.Owner{})
	must(tb, err)
	_, err = v.WriteFile(tb.Context(), p, strings.NewReader(content), &engine.WriteOptions{Owner: &engine.Owner{}})
	must(tb, err)
}

func link(tb testing.TB, v *engine.Vault, p, target string) {
	tb.Helper()
	dir, err := v.MkdirAll(tb.Context(), path.Dir("/"+p), 0o755, engine.Owner{})
	must(tb, err)
	_, err = v.Symlink(tb.Context(), dir.Ino, path.Base(p), target, engine.Owner{})
	must(tb, err)
}

func chmod(tb testing.TB, v *engine.Vault, p string, mode uint32) {
	tb.Helper()
	a, err := v.Resolve(tb.Context(), p, false)
	must(tb, err)
	_, err = v.SetAttr(tb.Context(), a.Ino, engine.SetAttr{Mode: &mode})
	must(tb, err)
}

func pin(tb testing.TB, v *engine.Vault) engine.Root {
	tb.Helper()
	root, err := v.Pin(tb.Context())
	must(tb, err)
	return root
}

// write writes the patch between two states.
func write(tb testing.TB, v *engine.Vault, a, b engine.Root, opts *patch.Options) (string, patch.Report) {
	tb.Helper()
	st := v.Store()
	changes, _, err := st.Diff(tb.Context(), a, b, nil)
	must(tb, err)
	var out bytes.Buffer
	rep, err := patch.Write(tb.Context(), &out, st.Snapshot(a), st.Snapshot(b), changes, opts)
	must(tb, err)
	return out.String(), rep
}

// export writes a state to a new directory as git would have it: without empty
// directories.
func export(tb testing.TB, v *engine.Vault, root engine.Root) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "tree")
	_, err := transfer.Export(tb.Context(), v.Store().Snapshot(root), "/", dir, nil)
	must(tb, err)
	removeEmpty(tb, dir, true)
	return dir
}

func removeEmpty(tb testing.TB, dir string, top bool) {
	tb.Helper()
	list, err := os.ReadDir(dir)
	must(tb, err)
	for _, e := range list {
		if e.IsDir() {
			removeEmpty(tb, filepath.Join(dir, e.Name()), false)
		}
	}
	if list, err = os.ReadDir(dir); err == nil && len(list) == 0 && !top {
		must(tb, os.Remove(dir))
	}
}

// listing describes the files and links below a directory as git sees them.
func listing(tb testing.TB, dir string) string {
	tb.Helper()
	var lines []string
	must(tb, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			lines = append(lines, fmt.Sprintf("%q -> %q", rel, target))
			return err
		}
		b, err := os.ReadFile(p)
		if len(b) > 200 {
			b = fmt.Appendf(nil, "%x", sha256.Sum256(b))
		}
		lines = append(lines, fmt.Sprintf("%q %v %q", rel, info.Mode()&0o100 != 0, b))
		return err
	}))
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// git runs git outside of every repository.
func git(tb testing.TB, dir, stdin string, args ...string) (string, error) {
	tb.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// checkApplies takes the patch from a to b and back with git.
func checkApplies(tb testing.TB, v *engine.Vault, a, b engine.Root) {
	tb.Helper()
	text, _ := write(tb, v, a, b, &patch.Options{Binary: true})
	dir, want := export(tb, v, a), export(tb, v, b)
	first := listing(tb, dir)
	if text == "" {
		if first != listing(tb, want) {
			tb.Fatalf("no patch between\n%s\nand\n%s", first, listing(tb, want))
		}
		return
	}
	for _, step := range []struct {
		args []string
		want string
	}{{[]string{"apply"}, listing(tb, want)}, {[]string{"apply", "-R"}, first}} {
		out, err := git(tb, dir, text, step.args...)
		if got := listing(tb, dir); err != nil || got != step.want {
			tb.Fatalf("git %v: %v %s\ngot\n%s\nwant\n%s\npatch\n%s", step.args, err, out, got, step.want, clip(text))
		}
	}
}

func clip(s string) string { return s[:min(len(s), 4_000)] }

// mutator changes a vault at random.
type mutator struct {
	tb testing.TB
	v  *engine.Vault
	r  *rand.Rand
}

var names = []string{
	"a", "b", "c", "d", "e", "file.txt", "b c", " lead", "trail ", "tab\tx", "new\nline", "quo\"te", "back\\slash", "\u00fc", "\xff\xfe", "-dash",
	"a => b", "{x}", "dev", "\x01", "\x7f", "...", "@",
}

// path is a path of up to four names.
func (m *mutator) path() string {
	parts := make([]string, 1+m.r.IntN(3))
	for i := range parts {
		parts[i] = names[m.r.IntN(len(names))]
		if m.r.IntN(2) == 0 {
			parts[i] = names[m.r.IntN(5)]
		}
	}
	return strings.Join(parts, "/")
}

// existing picks a path that is there; empty if there is none.
func (m *mutator) existing() string {
	var list []string
	must(m.tb, m.v.Walk(m.tb.Context(), "", func(p string, _ engine.Attr) error {
		if p != "" {
			list = append(list, p)
		}
		return nil
	}))
	if len(list) == 0 {
		return ""
	}
	return list[m.r.IntN(len(list))]
}

func (m *mutator) content() string {
	switch m.r.IntN(8) {
	case 0:
		return ""
	case 1:
		return "no line break"
	case 2:
		b := make([]byte, 1+m.r.IntN(5000))
		for i := range b {
			b[i] = byte(m.r.Uint32())
		}
		return string(b) + "\x00"
	case 3:
		return "\x00\x00"
	case 4:
		return "dos\r\nlines\r\n\r\nand \xe9 latin\r"
	}
	var b strings.Builder
	for range m.r.IntN(60) {
		fmt.Fprintf(&b, "line %d\n", m.r.IntN(20))
	}
	if m.r.IntN(3) == 0 {
		b.WriteString("-- \n+++ x\n@@ -1 +1 @@\n\\ No newline at end of file")
	}
	return b.String()
}

// edited is content with some lines changed.
func (m *mutator) edited(content string) string {
	lines := strings.SplitAfter(content, "\n")
	for range 1 + m.r.IntN(4) {
		i := m.r.IntN(len(lines))
		switch m.r.IntN(3) {
		case 0:
			lines[i] = fmt.Sprintf("edit %d\n", m.r.IntN(9))
		case 1:
			lines[i] = ""
		default:
			lines[i] += "more\n"
		}
	}
	return strings.Join(lines, "")
}

// step makes one change. What cannot be done is left. No link leads to itself: where a
// directory was, git does not take that.
func (m *mutator) step() {
	ctx, v := m.tb.Context(), m.v
	at, to := m.existing(), m.path()
	a, err := v.Resolve(ctx, at, false)
	if err != nil {
		m.tb.Fatalf("resolve %q: %v", at, err)
	}
	switch k := m.r.IntN(12); {
	case k < 3 || at == "":
		if _, err := v.MkdirAll(ctx, path.Dir("/"+to), 0o755, engine.Owner{}); err == nil {
			_, err = v.WriteFile(ctx, to, strings.NewReader(m.content()), nil)
			allowed(m.tb, err)
		}
	case k < 6 && a.IsRegular():
		old, err := fs.ReadFile(v.FS(ctx), at)
		if err != nil {
			return // a name that package io/fs does not take
		}
		_, err = v.WriteFile(ctx, at, strings.NewReader(m.edited(string(old))), nil)
		must(m.tb, err)
	case k == 6:
		allowed(m.tb, v.RemoveAll(ctx, at))
	case k < 9:
		allowed(m.tb, v.Move(ctx, at, to))
	case k == 9 && a.IsRegular():
		mode := a.Mode ^ 0o111
		_, err := v.SetAttr(ctx, a.Ino, engine.SetAttr{Mode: &mode})
		must(m.tb, err)
	case k == 10:
		if dir, err := v.MkdirAll(ctx, path.Dir("/"+to), 0o755, engine.Owner{}); err == nil {
			_, err = v.Symlink(ctx, dir.Ino, path.Base(to), "none/"+m.path(), engine.Owner{})
			allowed(m.tb, err)
		}
	case k == 11 && !a.IsDir():
		if dir, err := v.MkdirAll(ctx, path.Dir("/"+to), 0o755, engine.Owner{}); err == nil {
			_, err = v.Link(ctx, a.Ino, dir.Ino, path.Base(to))
			allowed(m.tb, err)
		}
	}
}

// allowed fails for an error that a random operation should not meet.
func allowed(tb testing.TB, err error) {
	tb.Helper()
	switch k := engine.KindOf(err); k {
	case "", engine.NotFound, engine.Exists, engine.IsDirectory, engine.NotDirectory, engine.NotEmpty, engine.Invalid, engine.Loop, engine.Unsupported:
	default:
		tb.Fatal(err)
	}
}

// TestGitAppliesRandom makes random pairs of states and lets git take each patch
// forwards and backwards.
func TestGitAppliesRandom(t *testing.T) {
	seeds, until := 250, time.Now().Add(30*time.Second)
	if testing.Short() {
		seeds, until = 50, time.Now().Add(10*time.Second)
	}
	for seed := range seeds {
		if time.Now().After(until) {
			t.Logf("stopped after %d seeds", seed)
			break
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &mutator{tb: t, v: newVault(t), r: rand.New(rand.NewPCG(uint64(seed), 7))}
			for range 4 + m.r.IntN(25) {
				m.step()
			}
			a := pin(t, m.v)
			for range 1 + m.r.IntN(15) {
				m.step()
			}
			checkApplies(t, m.v, a, pin(t, m.v))
		})
	}
}
