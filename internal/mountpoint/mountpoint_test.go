package mountpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("full/inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("full", at("link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path     string
		nonEmpty bool
		point    string
		created  bool
		err      error
	}{
		{"new", false, "new", true, nil},
		{"new", false, "new", false, nil},
		{"full", false, "", false, ErrNotEmpty},
		{"full", true, "full", false, nil},
		{"link", true, "full", false, nil},
		{"link/inside", false, "full/inside", false, nil},
		{"file", true, "", false, ErrNotDirectory},
		{"no/parent", false, "", false, fs.ErrNotExist},
	} {
		point, created, err := Prepare(at(c.path), c.nonEmpty)
		if !errors.Is(err, c.err) || err == nil && point != at(c.point) || created != c.created {
			t.Errorf("Prepare(%s) = %s, %v, %v, want %s, %v, %v", c.path, point, created, err, c.point, c.created, c.err)
		}
	}
	if _, _, err := Prepare("", true); err == nil {
		t.Error("an empty path is taken")
	}
}

func TestBusyError(t *testing.T) {
	for want, e := range map[string]*BusyError{
		"/m is in use by sh (7), vim (9), the mount on /m/x": {
			Point: "/m", PIDs: []int{7, 9}, Names: []string{"sh", "vim"}, Mounts: []string{"/m/x"},
		},
		"/m is in use by a process that this user may not see": {Point: "/m"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
