package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// unsized hides how much a reader gives, and fails at its end if err is set.
type unsized struct {
	r   io.Reader
	err error
}

func (u *unsized) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if errors.Is(err, io.EOF) && u.err != nil {
		err = u.err
	}
	return n, err
}

// TestWriteFileIsWhole holds that a write which fails leaves what was there: refused by
// the quota, or broken off, of known size or not, over a file, to its end or to a new one.
func TestWriteFileIsWhole(t *testing.T) {
	ctx := context.Background()
	torn := errors.New("torn")
	incompressible := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i*i>>3) ^ byte(i>>8)
		}
		return b
	}
	for name, c := range map[string]struct {
		size  int
		known bool
		err   error
		kind  engine.Kind
	}{
		"total":           {size: 150_000, kind: engine.QuotaExceeded},
		"total, known":    {size: 150_000, known: true, kind: engine.QuotaExceeded},
		"one file":        {size: 90_000, kind: engine.QuotaExceeded},
		"one file, known": {size: 90_000, known: true, kind: engine.QuotaExceeded},
		"torn":            {size: 10_000, err: torn, kind: engine.KindOf(torn)},
	} {
		t.Run(name, func(t *testing.T) {
			_, v, _ := newVault(t, quietOptions())
			put(t, v, "f", "important")
			limits := []int64{100_000, 80_000}
			if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &limits[0], MaxFileBytes: &limits[1]}, engine.AuditEntry{}); err != nil {
				t.Fatal(err)
			}
			used := v.Info()
			for _, opts := range []engine.WriteOptions{{}, {Append: true}} {
				for _, p := range []string{"f", "new"} {
					if c.known {
						opts.Size = int64(c.size)
					}
					_, err := v.WriteFile(ctx, p, &unsized{bytes.NewReader(incompressible(c.size)), c.err}, &opts)
					wantKind(t, p, err, c.kind)
				}
			}
			if got := get(t, v, "f"); got != "important" {
				t.Errorf("f has %d bytes now", len(got))
			}
			if _, err := v.Resolve(ctx, "new", true); engine.KindOf(err) != engine.NotFound {
				t.Errorf("a file that was refused is there: %v", err)
			}
			if now := v.Info(); now.Files != used.Files || now.Bytes != used.Bytes {
				t.Errorf("%d files of %d bytes, and before %d of %d", now.Files, now.Bytes, used.Files, used.Bytes)
			}
		})
	}
}

// TestWriteFileOverItself replaces a file that nearly fills the quota: the old content
// counts no more.
func TestWriteFileOverItself(t *testing.T) {
	ctx := context.Background()
	_, v, _ := newVault(t, quietOptions())
	limit := int64(100_000)
	if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &limit}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	for _, letter := range []string{"a", "b"} {
		want := strings.Repeat(letter, 90_000)
		if n, err := v.WriteFile(ctx, "f", strings.NewReader(want), &engine.WriteOptions{Size: 90_000}); err != nil || n != 90_000 {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if got := get(t, v, "f"); got != want {
			t.Errorf("%d bytes of another kind", len(got))
		}
	}
}

// TestWriteFileKeepsTheFile replaces the content of a file with two names while it is
// open: it stays the same file.
func TestWriteFileKeepsTheFile(t *testing.T) {
	ctx := context.Background()
	_, v, _ := newVault(t, quietOptions())
	put(t, v, "f", "old and longer")
	a, err := v.Resolve(ctx, "f", true)
	if err == nil {
		_, err = v.Link(ctx, a.Ino, engine.RootIno, "g")
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Open(ctx, a.Ino, engine.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, 3} {
		if _, err := v.WriteFile(ctx, "f", strings.NewReader("new"), &engine.WriteOptions{Size: size}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 20)
		if n, err := h.ReadAt(ctx, buf, 0); err != nil && !errors.Is(err, io.EOF) || string(buf[:n]) != "new" {
			t.Errorf("the open file has %q: %v", buf[:n], err)
		}
		if got := get(t, v, "g"); got != "new" {
			t.Errorf("its other name has %q", got)
		}
		put(t, v, "g", "old and longer")
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// TestWriteFileLarge replaces a file by content of several megabytes, of known size or
// not, with room in the quota for both or for one.
func TestWriteFileLarge(t *testing.T) {
	ctx := context.Background()
	_, v, _ := newVault(t, quietOptions())
	for i, c := range []struct{ size, limit int64 }{{0, 0}, {1, 0}, {1, 4 << 20}, {0, 8 << 20}} {
		want := strings.Repeat(string(rune('a'+i)), 3<<20+i)
		if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &c.limit}, engine.AuditEntry{}); err != nil {
			t.Fatal(err)
		}
		if n, err := v.WriteFile(ctx, "f", strings.NewReader(want), &engine.WriteOptions{Size: c.size * int64(len(want))}); err != nil || n != int64(len(want)) {
			t.Fatalf("%d: %d bytes: %v", i, n, err)
		}
		if got := get(t, v, "f"); got != want {
			t.Errorf("%d: %d bytes, or others", i, len(got))
		}
		if used := v.Info().Bytes; used != int64(len(want)) {
			t.Errorf("%d: %d bytes count", i, used)
		}
	}
	limit := int64(4 << 20)
	if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &limit}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	old := get(t, v, "f")
	_, err := v.WriteFile(ctx, "f", strings.NewReader(strings.Repeat("z", 3<<20)), nil)
	wantKind(t, "both at once, of unknown size", err, engine.QuotaExceeded)
	if get(t, v, "f") != old {
		t.Error("the old content is gone")
	}
}

// TestWriteFileGrows replaces a small file by a large one that fits the quota once, and
// not twice.
func TestWriteFileGrows(t *testing.T) {
	ctx := context.Background()
	_, v, _ := newVault(t, quietOptions())
	limit := int64(4 << 20)
	if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &limit}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("x", 3<<20)
	for _, size := range []int64{0, 3 << 20} {
		if _, err := v.WriteFile(ctx, "f", strings.NewReader("small"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := v.WriteFile(ctx, "f", strings.NewReader(want), &engine.WriteOptions{Size: size}); err != nil {
			t.Errorf("of size %d: %v", size, err)
		}
		if got := get(t, v, "f"); got != want {
			t.Errorf("of size %d: %d bytes are there", size, len(got))
		}
		if used := v.Info().Bytes; used != int64(len(want)) {
			t.Errorf("of size %d: %d bytes count", size, used)
		}
	}
}

// TestWriteFileAppendBeside holds that an addition which breaks off takes nothing away that
// others have added meanwhile, and changes nothing where it wrote nothing.
func TestWriteFileAppendBeside(t *testing.T) {
	ctx := context.Background()
	_, v, _ := newVault(t, quietOptions())
	put(t, v, "f", "old ")
	before, err := v.Commit(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	torn := errors.New("torn")
	beside := &unsized{readerFunc(func([]byte) (int, error) {
		_, err := v.WriteFile(ctx, "f", strings.NewReader("theirs"), &engine.WriteOptions{Append: true})
		return 0, errors.Join(err, torn)
	}), nil}
	if _, err := v.WriteFile(ctx, "f", &unsized{strings.NewReader("part"), torn}, &engine.WriteOptions{Append: true}); !errors.Is(err, torn) {
		t.Error(err)
	}
	if after, err := v.Commit(ctx, false); err != nil || after != before {
		t.Errorf("an addition that wrote nothing has changed the vault: %v", err)
	}
	large := io.MultiReader(strings.NewReader(strings.Repeat("o", 2<<20)), beside)
	if _, err := v.WriteFile(ctx, "f", large, &engine.WriteOptions{Append: true}); !errors.Is(err, torn) {
		t.Error(err)
	}
	if got := get(t, v, "f"); !strings.HasPrefix(got, "old ") || !strings.HasSuffix(got, "theirs") {
		t.Errorf("%d bytes, and what another has added is gone", len(got))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
