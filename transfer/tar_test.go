package transfer_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// tarOf makes an archive; the content of a file is its link name.
func tarOf(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
			h.Size = int64(len(content))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func file(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: content}
}

func link(typ byte, name, target string) tar.Header {
	return tar.Header{Typeflag: typ, Name: name, Linkname: target}
}

// paths lists a vault.
func paths(t *testing.T, v *engine.Vault) []string {
	t.Helper()
	var list []string
	err := v.Walk(t.Context(), "/", func(p string, _ engine.Attr) error {
		list = append(list, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list[1:]
}

// TestImportTarNeverLeavesItsDirectory feeds it what would write elsewhere.
func TestImportTarNeverLeavesItsDirectory(t *testing.T) {
	v := newVault(t)
	if _, err := v.MkdirAll(t.Context(), "/outside", 0o755, engine.Owner{}); err != nil {
		t.Fatal(err)
	}
	archive := tarOf(t,
		file("../outside/up", "x"), file("a/../../outside/up2", "x"), file("/absolute", "fine"),
		link(tar.TypeSymlink, "way", "/outside"), file("way/through", "x"),
		link(tar.TypeSymlink, "up", ".."), file("up/outside/through", "x"),
		link(tar.TypeLink, "hard", "../outside"), link(tar.TypeLink, "hard2", "/outside/none"),
		file("fine/deep/f", "fine"), link(tar.TypeLink, "fine/again", "fine/deep/f"),
		file("fine", "a file for a directory"), tar.Header{Typeflag: tar.TypeDir, Name: "absolute/"},
	)
	rep, err := transfer.ImportTar(t.Context(), v, archive, "/in", nil)
	var partial *transfer.PartialError
	if !errors.As(err, &partial) || partial.Failed != 8 {
		t.Errorf("%v, report %+v", err, rep)
	}
	want := []string{"in", "in/absolute", "in/fine", "in/fine/again", "in/fine/deep", "in/fine/deep/f", "in/up", "in/way", "outside"}
	if got := paths(t, v); !slices.Equal(got, want) {
		t.Errorf("the vault has %q, want %q", got, want)
	}
	if rep.Files != 3 || rep.Symlinks != 2 || rep.HardLinks != 1 {
		t.Errorf("report %+v", rep)
	}
}

// TestImportTarOfABrokenArchive keeps what came before the damage.
func TestImportTarOfABrokenArchive(t *testing.T) {
	for name, cut := range map[string]func([]byte) []byte{
		"cut in a file":   func(b []byte) []byte { return b[:512+512+512+700] },
		"cut in a header": func(b []byte) []byte { return b[:1024+100] },
		"no archive":      func([]byte) []byte { return []byte(strings.Repeat("no archive ", 100)) },
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			b := tarOf(t, file("first", "1"), file("second", strings.Repeat("2", 5000))).Bytes()
			rep, err := transfer.ImportTar(t.Context(), v, bytes.NewReader(cut(b)), "/", nil)
			if engine.KindOf(err) != engine.Invalid {
				t.Errorf("%v", err)
			}
			if got := paths(t, v); len(got) != int(rep.Files) || slices.Contains(got, "second") {
				t.Errorf("the vault has %q, the report %+v", got, rep)
			}
		})
	}
}

// TestTarRoundTrip takes a tree out of a vault and into another.
func TestTarRoundTrip(t *testing.T) {
	v, back, ctx := newVault(t), newVault(t), t.Context()
	long := strings.Repeat("long", 60)
	big := strings.Repeat("x", 3<<20)
	hole := strings.Repeat("\x00", 2*engine.ChunkSize) + "end"
	write := func(name, content string) engine.Attr {
		if _, err := v.MkdirAll(ctx, "/top/d", 0o755, engine.Owner{UID: 5, GID: 6}); err != nil {
			t.Fatal(err)
		}
		if _, err := v.WriteFile(ctx, "/top/"+name, strings.NewReader(content), nil); err != nil {
			t.Fatal(err)
		}
		a, err := v.Resolve(ctx, "/top/"+name, false)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := write("d/caf\xe9", "bytes")
	write(long, "")
	write("big", big)
	write("hole", hole)
	mode, at := uint32(0o4751), time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC).UnixNano()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(v.SetXattr(ctx, a.Ino, "user.tag", nil, 0))
	check(v.SetXattr(ctx, a.Ino, "user.bytes", []byte{0, 255, '='}, 0))
	check(v.LinkAt(ctx, a.Ino, "/top/z", false))
	check(v.SymlinkAt(ctx, "../"+long+"\xff", "/top/sym", engine.Owner{}, false))
	_, err := v.SetAttr(ctx, a.Ino, engine.SetAttr{Mode: &mode, Mtime: &at, Atime: &at})
	check(err)
	d, err := v.Resolve(ctx, "/top/d", false)
	check(err)
	_, err = v.SetAttr(ctx, d.Ino, engine.SetAttr{Mtime: &at})
	check(err)

	var archive bytes.Buffer
	out, err := transfer.ExportTar(ctx, v, "/top", &archive, nil)
	check(err)
	in, err := transfer.ImportTar(ctx, back, &archive, "/", nil)
	check(err)
	if out.Files != in.Files || out.Dirs != in.Dirs || out.Bytes != in.Bytes || in.HardLinks != 1 || in.Symlinks != 1 || len(in.Skipped) > 0 {
		t.Errorf("out %+v\nin %+v", out, in)
	}
	want, err := v.Snapshot(ctx)
	check(err)
	defer v.Unpin(want.Root())
	compared := 0
	check(v.Walk(ctx, "/top", func(p string, a engine.Attr) error {
		compared++
		b, err := back.Resolve(ctx, strings.TrimPrefix(p, "top"), false)
		check(err)
		if a.Mode != b.Mode || a.Size != b.Size || a.Mtime != b.Mtime || a.Atime != b.Atime || a.Nlink != b.Nlink {
			t.Errorf("%q: %+v became %+v", p, a, b)
		}
		names, err := back.ListXattr(ctx, b.Ino)
		check(err)
		if strings.HasSuffix(p, "/z") && !slices.Equal(names, []string{"user.bytes", "user.tag"}) {
			t.Errorf("%q has %q", p, names)
		}
		if a.IsRegular() && contentOf(t, v, a) != contentOf(t, back, b) {
			t.Errorf("%q has other content", p)
		}
		if strings.HasSuffix(p, "/hole") && b.Content != 3 {
			t.Errorf("%q has no hole: %+v", p, b)
		}
		return nil
	}))
	if compared != 8 {
		t.Errorf("%d paths compared", compared)
	}
}

func contentOf(t *testing.T, v *engine.Vault, a engine.Attr) string {
	t.Helper()
	h, err := v.Open(t.Context(), a.Ino, engine.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	b := make([]byte, a.Size)
	if _, err := h.ReadAt(t.Context(), b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
