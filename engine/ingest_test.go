package engine_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// ingestVault makes a vault in memory whose store is checked at the end.
func ingestVault(t *testing.T) *engine.Vault {
	t.Helper()
	db, err := memkv.NewDriver().Open(t.Context(), "s", kv.Options{Tables: engine.Tables(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		rep, err := s.Check(context.WithoutCancel(t.Context()), &engine.CheckOptions{ReadData: true, History: true})
		if err != nil || len(rep.Findings) > 0 {
			t.Errorf("check: %v, findings %+v", err, rep.Findings)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	v, err := s.CreateVault(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ingest(t *testing.T, v *engine.Vault, dir engine.Ino, e engine.Entry) engine.Attr {
	t.Helper()
	a, err := v.Ingest(t.Context(), dir, &e)
	if err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	return a
}

// regularFile describes a file of one chunk.
func regularFile(name, data string, replace bool) engine.Entry {
	e := engine.Entry{Name: name, Mode: engine.TypeRegular | 0o644, Size: int64(len(data)), Replace: replace}
	if data != "" {
		e.Content = []engine.Chunk{{Data: []byte(data)}}
	}
	return e
}

func slurp(t *testing.T, v *engine.Vault, ino engine.Ino) string {
	t.Helper()
	h, err := v.Open(t.Context(), ino, engine.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	a, err := h.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, a.Size)
	if _, err := h.ReadAt(t.Context(), b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestIngestTakesAttributesAsGiven(t *testing.T) {
	v := ingestVault(t)
	dir := ingest(t, v, engine.RootIno, engine.Entry{Name: "d", Mode: engine.TypeDir | 0o2777, Owner: engine.Owner{UID: 1, GID: 2}})
	want := engine.Attr{Mode: engine.TypeRegular | 0o6755, UID: 7, GID: 8, Nlink: 1, Size: 3, Blocks: 8, Content: 3, Atime: -5, Mtime: 1<<62 + 3}
	a := ingest(t, v, dir.Ino, engine.Entry{
		Name: "f", Mode: want.Mode, Owner: engine.Owner{UID: 7, GID: 8}, Atime: want.Atime, Mtime: want.Mtime, Rdev: 9,
		Size: 3, Content: []engine.Chunk{{Data: []byte("abc")}},
		Xattrs: []engine.Xattr{{Name: "user.a", Value: []byte("v")}, {Name: "user.b"}},
	})
	for _, commit := range []bool{false, true} {
		if commit {
			if _, err := v.Commit(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		got, err := v.Lookup(t.Context(), dir.Ino, "f")
		if err != nil || got != a {
			t.Fatalf("lookup gives %+v, %v; Ingest gave %+v", got, err, a)
		}
		got.Ino, got.Ctime, got.Btime = 0, 0, 0
		if got != want {
			t.Errorf("attributes %+v, want %+v", got, want)
		}
		names, err := v.ListXattr(t.Context(), a.Ino)
		if err != nil || !slices.Equal(names, []string{"user.a", "user.b"}) {
			t.Errorf("attributes %q, %v", names, err)
		}
		if s := slurp(t, v, a.Ino); s != "abc" {
			t.Errorf("content %q", s)
		}
	}
	if n := v.Info(); n.Files != 2 || n.Bytes != 3 {
		t.Errorf("the vault counts %+v", n)
	}
}

func TestIngestOfEveryType(t *testing.T) {
	v := ingestVault(t)
	for name, e := range map[string]engine.Entry{
		"link": {Mode: engine.TypeSymlink | 0o777, Target: "\xff/.."}, "fifo": {Mode: engine.TypeFIFO | 0o600},
		"socket": {Mode: engine.TypeSocket | 0o600}, "dev": {Mode: engine.TypeChar | 0o600, Rdev: 0x103}, "dir": {Mode: engine.TypeDir | 0o700},
	} {
		e.Name = name
		a := ingest(t, v, engine.RootIno, e)
		if a.Mode != e.Mode || a.Rdev != e.Rdev {
			t.Errorf("%s: %+v", name, a)
		}
	}
	a, err := v.Lookup(t.Context(), engine.RootIno, "link")
	if err != nil {
		t.Fatal(err)
	}
	if target, err := v.Readlink(t.Context(), a.Ino); err != nil || target != "\xff/.." || a.Size != 4 {
		t.Errorf("target %q, size %d, %v", target, a.Size, err)
	}
	top, err := v.Stat(t.Context(), engine.RootIno)
	if err != nil || top.Nlink != 3 {
		t.Errorf("top directory has %d links, %v", top.Nlink, err)
	}
}

func TestIngestKeepsHoles(t *testing.T) {
	v := ingestVault(t)
	size := int64(20*engine.ChunkSize + 5)
	a := ingest(t, v, engine.RootIno, engine.Entry{
		Name: "f", Mode: engine.TypeRegular | 0o600, Size: size,
		Content: []engine.Chunk{{Index: 2, Data: []byte("two")}, {Index: 20, Data: []byte("end")}},
	})
	if a.Size != size || a.Blocks != 8 {
		t.Errorf("attributes %+v", a)
	}
	want := make([]byte, size)
	copy(want[2*engine.ChunkSize:], "two")
	copy(want[20*engine.ChunkSize:], "end")
	snap, err := v.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Unpin(snap.Root())
	if slurp(t, v, a.Ino) != string(want) {
		t.Error("content differs")
	}
	past, err := snap.Open(t.Context(), a.Ino)
	if err != nil {
		t.Fatal(err)
	}
	live, err := v.Open(t.Context(), a.Ino, engine.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	const chunk = engine.ChunkSize
	for _, s := range []struct {
		off  int64
		hole bool
		want int64 // -1: NoData
	}{
		{0, true, 0}, {0, false, 2 * chunk}, {2*chunk + 7, false, 2*chunk + 7}, {2*chunk + 7, true, 3 * chunk},
		{3 * chunk, false, 20 * chunk}, {20 * chunk, true, size}, {size - 1, false, size - 1}, {size, false, -1}, {size, true, -1}, {-1, true, -1},
	} {
		for what, seek := range map[string]func(context.Context, int64, bool) (int64, error){"live": live.Seek, "past": past.Seek} {
			got, err := seek(t.Context(), s.off, s.hole)
			if err != nil {
				got = -1
			}
			if got != s.want || err != nil && engine.KindOf(err) != engine.NoData {
				t.Errorf("%s seek from %d, hole %v: %d, %v; want %d", what, s.off, s.hole, got, err, s.want)
			}
		}
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	if err := past.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := past.Seek(t.Context(), 0, true); engine.KindOf(err) != engine.BadHandle {
		t.Errorf("seek after close: %v", err)
	}
}

func TestIngestReplaces(t *testing.T) {
	v := ingestVault(t)
	old := ingest(t, v, engine.RootIno, regularFile("f", "old", false))
	ingest(t, v, engine.RootIno, engine.Entry{Name: "f2", Link: old.Ino})
	h, err := v.Open(t.Context(), old.Ino, engine.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Ingest(t.Context(), engine.RootIno, &engine.Entry{Name: "f", Mode: engine.TypeFIFO}); engine.KindOf(err) != engine.Exists {
		t.Errorf("without Replace: %v", err)
	}
	now := ingest(t, v, engine.RootIno, regularFile("f", "new", true))
	ingest(t, v, engine.RootIno, regularFile("f2", "", true))
	buf := make([]byte, 3)
	if _, err := h.ReadAt(t.Context(), buf, 0); err != nil || string(buf) != "old" {
		t.Errorf("the open file reads %q, %v", buf, err)
	}
	if s := slurp(t, v, now.Ino); s != "new" || now.Ino == old.Ino {
		t.Errorf("the new one is %d, was %d, and reads %q", now.Ino, old.Ino, s)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if n := v.Info(); n.Files != 2 || n.Bytes != 3 {
		t.Errorf("the vault counts %+v", n)
	}
}

func TestIngestLinks(t *testing.T) {
	v := ingestVault(t)
	a := ingest(t, v, engine.RootIno, regularFile("a", "a", false))
	other := ingest(t, v, engine.RootIno, regularFile("other", "other", false))
	dir := ingest(t, v, engine.RootIno, engine.Entry{Name: "d", Mode: engine.TypeDir | 0o755})
	for _, name := range []string{"b", "other", "b", "a"} {
		ingest(t, v, engine.RootIno, engine.Entry{Name: name, Link: a.Ino, Replace: true})
	}
	got, err := v.Lookup(t.Context(), engine.RootIno, "other")
	if err != nil || got.Ino != a.Ino || got.Nlink != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := v.Stat(t.Context(), other.Ino); engine.KindOf(err) != engine.NotFound {
		t.Errorf("what was replaced is there: %v", err)
	}
	for _, c := range []struct {
		e    engine.Entry
		kind engine.Kind
	}{
		{engine.Entry{Name: "x", Link: dir.Ino}, engine.Permission}, {engine.Entry{Name: "x", Link: 99}, engine.NotFound},
		{engine.Entry{Name: "d", Link: a.Ino, Replace: true}, engine.IsDirectory}, {engine.Entry{Name: "x/y", Link: a.Ino}, engine.Invalid},
	} {
		if _, err := v.Ingest(t.Context(), engine.RootIno, &c.e); engine.KindOf(err) != c.kind {
			t.Errorf("%+v: %v, want %s", c.e, err, c.kind)
		}
	}
}

func TestIngestRejects(t *testing.T) {
	v := ingestVault(t)
	file := ingest(t, v, engine.RootIno, regularFile("file", "", false))
	ingest(t, v, engine.RootIno, engine.Entry{Name: "dir", Mode: engine.TypeDir | 0o755})
	root, err := v.Commit(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	full := make([]byte, engine.ChunkSize)
	reg := engine.TypeRegular | 0o600
	for what, c := range map[string]struct {
		dir  engine.Ino
		e    engine.Entry
		kind engine.Kind
	}{
		"no name":            {1, engine.Entry{Mode: reg}, engine.Invalid},
		"long name":          {1, engine.Entry{Name: strings.Repeat("n", 256), Mode: reg}, engine.NameTooLong},
		"no type":            {1, engine.Entry{Name: "x", Mode: 0o600}, engine.Invalid},
		"negative size":      {1, engine.Entry{Name: "x", Mode: reg, Size: -1}, engine.Invalid},
		"large size":         {1, engine.Entry{Name: "x", Mode: reg, Size: engine.MaxFileSize + 1}, engine.FileTooLarge},
		"content past end":   {1, engine.Entry{Name: "x", Mode: reg, Size: 2, Content: []engine.Chunk{{Data: []byte("abc")}}}, engine.Invalid},
		"chunk past end":     {1, engine.Entry{Name: "x", Mode: reg, Size: 2, Content: []engine.Chunk{{Index: 1, Data: []byte("a")}}}, engine.Invalid},
		"index overflows":    {1, engine.Entry{Name: "x", Mode: reg, Size: 2, Content: []engine.Chunk{{Index: 1 << 62, Data: []byte("a")}}}, engine.Invalid},
		"negative index":     {1, engine.Entry{Name: "x", Mode: reg, Size: 2, Content: []engine.Chunk{{Index: -1, Data: []byte("a")}}}, engine.Invalid},
		"empty chunk":        {1, engine.Entry{Name: "x", Mode: reg, Size: 2, Content: []engine.Chunk{{}}}, engine.Invalid},
		"long chunk":         {1, engine.Entry{Name: "x", Mode: reg, Size: 1 << 20, Content: []engine.Chunk{{Data: append(full, 0)}}}, engine.Invalid},
		"same chunk twice":   {1, engine.Entry{Name: "x", Mode: reg, Size: 1 << 20, Content: []engine.Chunk{{Data: full}, {Data: full}}}, engine.Invalid},
		"content of a FIFO":  {1, engine.Entry{Name: "x", Mode: engine.TypeFIFO, Content: []engine.Chunk{{Data: full}}}, engine.Invalid},
		"empty target":       {1, engine.Entry{Name: "x", Mode: engine.TypeSymlink}, engine.NotFound},
		"long target":        {1, engine.Entry{Name: "x", Mode: engine.TypeSymlink, Target: strings.Repeat("t", 4096)}, engine.NameTooLong},
		"unnamed attribute":  {1, engine.Entry{Name: "x", Mode: reg, Xattrs: []engine.Xattr{{}}}, engine.Invalid},
		"long attribute":     {1, engine.Entry{Name: "x", Mode: reg, Xattrs: []engine.Xattr{{Name: "n", Value: make([]byte, 64<<10+1)}}}, engine.AttributeTooLarge},
		"into a file":        {file.Ino, engine.Entry{Name: "x", Mode: reg}, engine.NotDirectory},
		"into nothing":       {77, engine.Entry{Name: "x", Mode: reg}, engine.NotFound},
		"directory on file":  {1, engine.Entry{Name: "file", Mode: engine.TypeDir, Replace: true}, engine.Exists},
		"directory on one":   {1, engine.Entry{Name: "dir", Mode: engine.TypeDir, Replace: true}, engine.Exists},
		"file on directory":  {1, engine.Entry{Name: "dir", Mode: reg, Replace: true}, engine.IsDirectory},
		"name with a slash":  {1, engine.Entry{Name: "a/b", Mode: reg}, engine.Invalid},
		"parent as the name": {1, engine.Entry{Name: "..", Mode: reg}, engine.Invalid},
	} {
		if _, err := v.Ingest(t.Context(), c.dir, &c.e); engine.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %s", what, err, c.kind)
		}
	}
	after, err := v.Commit(t.Context(), false)
	if err != nil || !after.Same(root) {
		t.Errorf("a rejected entry left something: %v", err)
	}
}

// Content that is handed over may be written to afterwards, also while a commit
// persists it.
func TestIngestedContentCanChange(t *testing.T) {
	v := ingestVault(t)
	data := bytes.Repeat([]byte("x"), 2*engine.ChunkSize)
	a := ingest(t, v, engine.RootIno, engine.Entry{
		Name: "f", Mode: engine.TypeRegular | 0o600, Size: int64(len(data)),
		Content: []engine.Chunk{{Index: 0, Data: data[:engine.ChunkSize:engine.ChunkSize]}, {Index: 1, Data: data[engine.ChunkSize:]}},
	})
	h, err := v.Open(t.Context(), a.Ino, engine.OpenRead|engine.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("x", 2*engine.ChunkSize)
	for i, at := range []int64{0, engine.ChunkSize - 1, 2 * engine.ChunkSize} {
		if _, err := h.WriteAt(t.Context(), []byte("yy"), at); err != nil {
			t.Fatal(err)
		}
		want = (want + "  ")[:at] + "yy" + want[min(at+2, int64(len(want))):]
		if i == 1 {
			if _, err := v.Commit(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if slurp(t, v, a.Ino) != want {
		t.Error("content differs")
	}
}
