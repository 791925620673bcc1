package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/agentvfs/avfs/engine"
)

// TestFS holds the io/fs views of a vault and of a snapshot to the rules of package
// fs, with links and odd names.
func TestFS(t *testing.T) {
	ctx := context.Background()
	s, err := createScript(ctx, newMem(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("0123456789"), 30_000)
	files := map[string]string{
		"a": "", "dir/b": "hello", "dir/sub/c d": string(big), "dir/.hidden": "x", "dir/\u00e9\u4e2d": "y", "name with \"quotes\"": "z", "-dash": "d",
	}
	expected := []string{"to-file", "dir/up", "empty"}
	for name, data := range files {
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			if _, err := s.v.MkdirAll(ctx, name[:i], 0o755, engine.Owner{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.v.WriteFile(ctx, name, strings.NewReader(data), nil); err != nil {
			t.Fatal(err)
		}
		expected = append(expected, name)
	}
	dir, err := s.v.Resolve(ctx, "dir", true)
	if err != nil {
		t.Fatal(err)
	}
	_, e1 := s.v.Symlink(ctx, engine.RootIno, "to-file", "dir/b", engine.Owner{})
	_, e2 := s.v.Symlink(ctx, dir.Ino, "up", "../a", engine.Owner{})
	_, e3 := s.v.Mkdir(ctx, engine.RootIno, "empty", 0o755, engine.Owner{})
	if err := errors.Join(e1, e2, e3); err != nil {
		t.Fatal(err)
	}
	snap, err := s.v.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, view := range map[string]fs.FS{"vault": s.v.FS(ctx), "snapshot": snap.FS(ctx)} {
		t.Run(name, func(t *testing.T) {
			if err := fstest.TestFS(view, expected...); err != nil {
				t.Error(err)
			}
			data, err := fs.ReadFile(view, "to-file")
			if err != nil || string(data) != "hello" {
				t.Errorf("through a link: %q, %v", data, err)
			}
			if _, err := fs.Stat(view, "nothing"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a missing file is %v", err)
			}
			if target, err := fs.ReadLink(view, "dir/up"); err != nil || target != "../a" {
				t.Errorf("link to %q, %v", target, err)
			}
			if _, err := view.Open("/abs"); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("an absolute path is %v", err)
			}
		})
	}
	s.v.Unpin(snap.Root())
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
}
