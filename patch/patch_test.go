package patch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/patch"
)

// TestGitApplies lets git take patches of everything that it knows, forwards and
// backwards.
func TestGitApplies(t *testing.T) {
	long := strings.Repeat("a long line of some text\n", 3000)
	var many, edited strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "line %d\n", i)
		fmt.Fprintf(&edited, "line %d\n", i+i%3)
	}
	for name, c := range map[string]struct{ before, after func(v *engine.Vault) }{
		"many edits":           {func(v *engine.Vault) { put(t, v, "f", many.String()) }, func(v *engine.Vault) { put(t, v, "f", edited.String()) }},
		"nothing to something": {func(*engine.Vault) {}, func(v *engine.Vault) { put(t, v, "d/e/f", "1\n2\n"); put(t, v, "empty", "") }},
		"something to nothing": {func(v *engine.Vault) { put(t, v, "d/f", "1\n"); put(t, v, "empty", "") }, func(v *engine.Vault) {
			must(t, v.RemoveAll(t.Context(), "d"))
			must(t, v.Remove(t.Context(), "empty"))
		}},
		"last line break": {func(v *engine.Vault) { put(t, v, "a", "1\n2"); put(t, v, "b", "1\n2\n"); put(t, v, "c", "x") },
			func(v *engine.Vault) { put(t, v, "a", "1\n2\n"); put(t, v, "b", "1\n2"); put(t, v, "c", "y") }},
		"mode and content": {func(v *engine.Vault) { put(t, v, "a", "1\n"); put(t, v, "b", "1\n") }, func(v *engine.Vault) {
			chmod(t, v, "a", 0o755)
			chmod(t, v, "b", 0o755)
			put(t, v, "b", "2\n")
		}},
		"file to link and back": {func(v *engine.Vault) { put(t, v, "a", "1\n"); link(t, v, "b", "x/y") }, func(v *engine.Vault) {
			must(t, v.Remove(t.Context(), "a"))
			must(t, v.Remove(t.Context(), "b"))
			link(t, v, "a", "line\nbreak")
			put(t, v, "b", "2")
		}},
		"file to directory and back": {func(v *engine.Vault) { put(t, v, "a", "1\n"); put(t, v, "b/c/d", "2\n") }, func(v *engine.Vault) {
			must(t, v.Remove(t.Context(), "a"))
			must(t, v.RemoveAll(t.Context(), "b"))
			put(t, v, "a/x/y", "1\n")
			put(t, v, "b", "2\n")
		}},
		"directory to link to another": {func(v *engine.Vault) { put(t, v, "a/f", "1\n"); put(t, v, "b/f", "2\n"); link(t, v, "l", "b") }, func(v *engine.Vault) {
			must(t, v.RemoveAll(t.Context(), "a"))
			must(t, v.Remove(t.Context(), "l"))
			link(t, v, "a", "b")
			put(t, v, "l/f", "3\n")
		}},
		"renamed directory": {func(v *engine.Vault) {
			put(t, v, "d/same", "1\n")
			put(t, v, "d/sub/changed", long)
			put(t, v, "d/gone", "3\n")
			put(t, v, "d/out", "4\n")
			put(t, v, "d/deep/down", "5\n")
		}, func(v *engine.Vault) {
			must(t, v.Move(t.Context(), "d", "e"))
			put(t, v, "e/sub/changed", long+"more\n")
			must(t, v.Remove(t.Context(), "e/gone"))
			must(t, v.Move(t.Context(), "e/out", "out"))
			must(t, v.Move(t.Context(), "e/deep", "deeper"))
			put(t, v, "e/new", "6\n")
		}},
		"binary": {func(v *engine.Vault) { put(t, v, "b", "\x00\x01"+long); put(t, v, "t", "text\n") }, func(v *engine.Vault) {
			put(t, v, "b", "\x00\x02"+long)
			put(t, v, "t", "now\x00binary")
			put(t, v, "n", strings.Repeat("\x00", 53))
		}},
		"larger than text": {func(v *engine.Vault) { put(t, v, "large", strings.Repeat("0123456789abcde\n", patch.MaxText/16+1)) },
			func(v *engine.Vault) { put(t, v, "large", strings.Repeat("0123456789abcdE\n", patch.MaxText/16+1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			c.before(v)
			a := pin(t, v)
			c.after(v)
			checkApplies(t, v, a, pin(t, v))
		})
	}
}

// TestTextForPeople pins what people get to see.
func TestTextForPeople(t *testing.T) {
	v := newVault(t)
	put(t, v, "f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	put(t, v, "bin", "\x00")
	put(t, v, "old name", "same\n")
	put(t, v, "run.sh", "#!/bin/sh\n")
	a := pin(t, v)
	put(t, v, "f", "1\n2\n3\n4\nfive\n6\n7\n8\n9")
	put(t, v, "bin", "\x00\x00")
	chmod(t, v, "run.sh", 0o755)
	must(t, v.Move(t.Context(), "old name", "d\u00e9"))
	b := pin(t, v)
	got, rep := write(t, v, a, b, &patch.Options{Context: 1})
	want := `diff --git a/bin b/bin
index f76dd238ade08917e6712764a16a22005a50573d..09f370e38f498a462e1ca0faa724559b6630c04f 100644
Binary files a/bin and b/bin differ
diff --git a/old name "b/d\303\251"
similarity index 100%
rename from old name
rename to "d\303\251"
diff --git a/f b/f
index 0719398930f7f0ef7a4c8ba6e8ebbcf2d6a1c97d..fa6ac69ad2a14cd5d1cb2e1bb4f7d7d6b9a4e0ca 100644
--- a/f
+++ b/f
@@ -4,3 +4,3 @@
 4
-5
+five
 6
@@ -8,2 +8,2 @@
 8
-9
+9
\ No newline at end of file
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
`
	if cut(got) != cut(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(rep.LeftOut) > 0 || fmt.Sprint(rep.Files) != "[{bin  0 0 true false} {d\u00e9  0 0 false false} {f  2 2 false false} {run.sh  0 0 false false}]" {
		t.Errorf("report %+v", rep)
	}
	if none, _ := write(t, v, a, b, &patch.Options{Context: -1}); !strings.Contains(none, "@@ -5 +5 @@\n-5\n+five\n@@ -9 +9 @@") {
		t.Errorf("without context\n%s", none)
	}
}

// cut leaves out the ids of blobs, which git checks, and the order of files.
func cut(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "index ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestLeftOut names everything that git cannot say.
func TestLeftOut(t *testing.T) {
	ctx, v := t.Context(), newVault(t)
	put(t, v, "mode", "1\n")
	put(t, v, "owner", "1\n")
	put(t, v, "attr", "1\n")
	put(t, v, "last/file", "1\n")
	put(t, v, ".git/config", "1\n")
	_, err := v.MkdirAll(ctx, "gone/sub", 0o755, engine.Owner{})
	must(t, err)
	_, err = v.MkdirAll(ctx, "dirmode", 0o755, engine.Owner{})
	must(t, err)
	a := pin(t, v)
	chmod(t, v, "mode", 0o600)
	chmod(t, v, "dirmode", 0o700)
	at := func(p string) engine.Ino {
		a, err := v.Resolve(ctx, p, false)
		must(t, err)
		return a.Ino
	}
	uid := uint32(7)
	_, err = v.SetAttr(ctx, at("owner"), engine.SetAttr{UID: &uid})
	must(t, err)
	must(t, v.SetXattr(ctx, at("attr"), "user.x", []byte("1"), 0))
	must(t, v.Remove(ctx, "last/file"))
	put(t, v, ".git/config", "2\n")
	put(t, v, "d/.GIT /x", "2\n")
	must(t, v.RemoveAll(ctx, "gone"))
	_, err = v.MkdirAll(ctx, "new/empty", 0o755, engine.Owner{})
	must(t, err)
	_, err = v.Mknod(ctx, engine.RootIno, "pipe", engine.TypeFIFO|0o644, 0, engine.Owner{})
	must(t, err)
	put(t, v, "suid", "1\n")
	chmod(t, v, "suid", 0o4755)
	put(t, v, "one", "1\n")
	_, err = v.Link(ctx, at("one"), engine.RootIno, "two")
	must(t, err)
	text, rep := write(t, v, a, pin(t, v), &patch.Options{Binary: true})
	var got []string
	for _, l := range rep.LeftOut {
		got = append(got, path.Clean(l.Path)+": "+l.What)
	}
	want := []string{
		".git/config: changed file of a name that git refuses",
		"attr: extended attributes",
		"d: new directory without files", "d/.GIT : new directory without files", "d/.GIT /x: new file of a name that git refuses",
		"dirmode: mode 0700, before 0755",
		"gone: deleted directory without files", "gone/sub: deleted directory without files",
		"last: directory that loses its last file",
		"mode: mode 0600, before 0644",
		"new: new directory without files", "new/empty: new directory without files",
		"one: hard link", "owner: owner 7:0, before 0:0", "pipe: new FIFO", "suid: mode 4755", "two: hard link",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("left out\n%s\nwant\n%s", g, w)
	}
	for _, no := range []string{"pipe", ".git/", "owner", "attr", "a/mode"} {
		if strings.Contains(text, no) {
			t.Errorf("the patch speaks of %s:\n%s", no, text)
		}
	}
}

// TestLinesLarge bounds the time for files that differ in many places, and checks
// that few edits stay few.
func TestLinesLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var before, after bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&before, "line %d\n", i)
		switch r.IntN(20) {
		case 0:
			fmt.Fprintf(&after, "changed %d\n", i)
		case 1: // deleted
		default:
			fmt.Fprintf(&after, "line %d\n", i)
		}
	}
	v := newVault(t)
	put(t, v, "many", before.String())
	put(t, v, "all", strings.Repeat("x\n", 100_000))
	put(t, v, "coarse", strings.Repeat("x\n", 600_000))
	a := pin(t, v)
	put(t, v, "many", after.String())
	put(t, v, "all", strings.Repeat("y\nx\n", 100_000))
	put(t, v, "coarse", strings.Repeat("y\nx\n", 600_000)+"x\n")
	b := pin(t, v)
	started := time.Now()
	_, rep := write(t, v, a, b, nil)
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	t.Logf("%v: %+v", time.Since(started), rep.Files)
	stats := map[string]patch.FileStat{}
	for _, f := range rep.Files {
		stats[f.Path] = f
	}
	// About 10,000 changed and 10,000 deleted.
	if m := stats["many"]; m.Coarse || m.Added > 11_000 || m.Deleted > 22_000 {
		t.Errorf("many: %+v", m)
	}
	if !stats["coarse"].Coarse || stats["all"].Coarse {
		t.Errorf("%+v", stats)
	}
}
