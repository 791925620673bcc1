package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// replacing edits one text into another.
func replacing(from, to string) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) { return bytes.ReplaceAll(old, []byte(from), []byte(to)), nil }
}

// withContent makes a file with some content at the top of v.
func withContent(t *testing.T, v *engine.Vault, name string, content []byte) *engine.File {
	t.Helper()
	h := openAt(t, v, name)
	_, err := h.WriteAt(t.Context(), content, 0)
	must(t, err)
	return h
}

func wantAll(t *testing.T, h *engine.File, want []byte) {
	t.Helper()
	a, err := h.Stat(t.Context())
	must(t, err)
	if a.Size != int64(len(want)) {
		t.Errorf("the file has %d bytes, want %d", a.Size, len(want))
	}
	wantContent(t, h, 0, want)
}

// TestEditFile changes files of several chunks at their edges, saved and unsaved, to
// longer, shorter and empty ones.
func TestEditFile(t *testing.T) {
	const chunk = engine.ChunkSize
	long := noise(7, 3*chunk+100)
	for i, step := range []struct{ old, next []byte }{
		{[]byte("one two"), []byte("one three")},
		{[]byte("one two"), nil},
		{nil, []byte("something")},
		{long, long[:2*chunk]},
		{long, long[:chunk+1]},
		{long, long[:3*chunk+50]},
		{long[:2*chunk], long},
		{long[:chunk], append(bytes.Clone(long[:chunk]), 'x')},
		{long, append(bytes.Clone(long), long...)},
		{long, bytes.Replace(long, long[chunk+5:chunk+10], []byte("12345"), 1)},
		{long, append([]byte("front"), long...)},
		{long, bytes.Clone(long)},
	} {
		for _, saved := range []bool{false, true} {
			t.Run(fmt.Sprint(i, saved), func(t *testing.T) {
				_, v, _ := newVault(t, nil)
				h := withContent(t, v, "f", step.old)
				if saved {
					must(t, v.Sync(t.Context()))
				}
				must(t, v.EditFile(t.Context(), "f", func(old []byte) ([]byte, error) {
					if !bytes.Equal(old, step.old) {
						t.Error("the edit is given something else than what was written")
					}
					return step.next, nil
				}))
				wantAll(t, h, step.next)
				must(t, v.Sync(t.Context()))
				wantAll(t, h, step.next)
				if got, want := v.Usage().Bytes, int64(len(step.next)); got != want {
					t.Errorf("the vault counts %d bytes, want %d", got, want)
				}
			})
		}
	}
}

// TestEditFileRefused leaves a file as it is whatever refuses the edit.
func TestEditFileRefused(t *testing.T) {
	_, v, _ := newVault(t, nil)
	content := noise(8, 2*engine.ChunkSize)
	h := withContent(t, v, "f", content)
	must(t, v.Sync(t.Context()))
	mine := errors.New("mine")
	if err := v.EditFile(t.Context(), "f", func([]byte) ([]byte, error) { return nil, mine }); !errors.Is(err, mine) {
		t.Errorf("%v, want the error of the function", err)
	}
	for kind, edit := range map[engine.Kind]func() error{
		engine.NotFound:    func() error { return v.EditFile(t.Context(), "g", replacing("a", "b")) },
		engine.IsDirectory: func() error { return v.EditFile(t.Context(), "/", replacing("a", "b")) },
		engine.Invalid: func() error {
			big := openAt(t, v, "big")
			must(t, big.Truncate(t.Context(), engine.MaxEdit+1))
			return v.EditFile(t.Context(), "big", replacing("a", "b"))
		},
		engine.QuotaExceeded: func() error {
			limit := int64(3 * engine.ChunkSize)
			_, err := v.SetQuota(t.Context(), engine.QuotaChange{MaxBytes: &limit}, engine.AuditEntry{})
			must(t, err)
			return v.EditFile(t.Context(), "f", func(old []byte) ([]byte, error) { return append([]byte("x"), append(old, old...)...), nil })
		},
	} {
		if err := edit(); engine.KindOf(err) != kind {
			t.Errorf("%v, want %s", err, kind)
		}
	}
	wantAll(t, h, content)
}

// TestEditFileKeepsTheInode edits through a symbolic link: the file keeps its inode,
// mode, second name and handles.
func TestEditFileKeepsTheInode(t *testing.T) {
	_, v, _ := newVault(t, nil)
	h := withContent(t, v, "f", []byte("a text"))
	_, err := v.Link(t.Context(), h.Ino(), engine.RootIno, "second")
	must(t, err)
	_, err = v.Symlink(t.Context(), engine.RootIno, "link", "/f", engine.Owner{})
	must(t, err)
	must(t, v.EditFile(t.Context(), "link", replacing("text", "longer text")))
	wantAll(t, h, []byte("a longer text"))
	for _, name := range []string{"f", "second"} {
		a, err := v.Resolve(t.Context(), name, true)
		if err != nil || a.Ino != h.Ino() || a.Mode&0o777 != 0o600 {
			t.Errorf("%s is inode %d with mode %o (%v), want %d", name, a.Ino, a.Mode, err, h.Ino())
		}
	}
}

// TestEditFileLosesNothing has many add to one file at the same time.
func TestEditFileLosesNothing(t *testing.T) {
	const writers, each = 8, 25
	_, v, _ := newVault(t, nil)
	h := withContent(t, v, "f", []byte("end\n"))
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				line := fmt.Sprintf("%d %d\n", w, i)
				if err := v.EditFile(context.WithoutCancel(t.Context()), "f", replacing("end\n", line+"end\n")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	a, err := h.Stat(t.Context())
	must(t, err)
	text := make([]byte, a.Size)
	_, err = h.ReadAt(t.Context(), text, 0)
	must(t, err)
	if got := strings.Count(string(text), "\n"); got != writers*each+1 {
		t.Errorf("%d lines are left of %d", got, writers*each+1)
	}
}
