package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/workspace"
)

// TestPeek looks at what is there, at what is not, and at links, which are followed as
// in a mount: one that leads out of the vault is told apart from one into its root.
func TestPeek(t *testing.T) {
	w, _, _ := served(t, 0)
	src := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(src, "d", "e"), 0o755), os.WriteFile(filepath.Join(src, "d", "f"), []byte("content"), 0o644))
	for name, target := range map[string]string{"in": "d", "abs": "/d", "up": "../d", "d/back": "../d/f", "loop": "loop"} {
		err = errors.Join(err, os.Symlink(target, filepath.Join(src, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	inV(t, w, workspace.OpImport, workspace.ImportRequest{Vault: "v", Source: workspace.Path(src), Dest: "/"}, workspace.Streams{})
	got := inV(t, w, workspace.OpPeek, workspace.PeekRequest{Vault: "v", Bytes: 4, Names: 2,
		Paths: []workspace.Path{"/d/f", "/d", "/none/x", "/d/f/x", "/in/f", "/abs", "/abs/f", "/up", "/d/back", "/loop", "/"}}, workspace.Streams{})
	want := []string{"file /d/f cont+", "dir /d back:file e:dir+", "", "", "file /d/f cont+", "symlink", "symlink", "symlink", "file /d/f cont+", "", "dir / abs:symlink d:dir+"}
	for i, p := range got {
		text := strings.TrimSpace(p.Type + " " + string(p.Real) + " " + string(p.Data))
		for _, e := range p.Entries {
			text += " " + string(e.Name) + ":" + e.Type
		}
		if p.More {
			text += "+"
		}
		if text != want[i] {
			t.Errorf("%d: got %q, want %q", i, text, want[i])
		}
	}
}
