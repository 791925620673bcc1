package backends_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine/kv"
)

// TestByName checks that every listed back end is found by its own name.
func TestByName(t *testing.T) {
	if len(backends.All()) == 0 && len(backends.Names()) != 0 {
		t.Fatal("Names lists back ends that All does not")
	}
	for _, d := range backends.All() {
		got, err := backends.ByName(d.Name())
		if err != nil || got != d {
			t.Errorf("ByName(%q) = %v, %v", d.Name(), got, err)
		}
	}
}

// TestByNameMissing checks that the error tells a typing mistake from a build that
// lacks the back end, because only the second has a remedy.
func TestByNameMissing(t *testing.T) {
	var unknown *backends.UnknownError
	if _, err := backends.ByName("sqlit"); !errors.As(err, &unknown) || unknown.Tag != "" {
		t.Errorf("ByName(sqlit): %v, want an UnknownError without a tag", err)
	}
	if slices.Contains(backends.Names(), "sqlite") {
		t.Skip("SQLite is in this build; run with -tags avfs_badger to see it missing")
	}
	if _, err := backends.ByName("sqlite"); !errors.As(err, &unknown) || unknown.Tag != "avfs_sqlite" {
		t.Errorf("ByName(sqlite): %v, want an UnknownError with the tag avfs_sqlite", err)
	}
}

// TestDetect checks that a store is opened by the back end that made it.
func TestDetect(t *testing.T) {
	dir := t.TempDir()
	for _, d := range backends.All() {
		path := filepath.Join(dir, d.Name())
		s, err := d.Open(context.Background(), path, kv.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := backends.Detect(path)
		if err != nil || got != d {
			t.Errorf("Detect of a %s store: %v, %v", d.Name(), got, err)
		}
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := backends.Detect(garbage); !errors.Is(err, kv.ErrNotStore) {
		t.Errorf("Detect(garbage) = %v, %v, want ErrNotStore", d, err)
	}
	if d, err := backends.Detect(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Detect(none) = %v, %v, want fs.ErrNotExist", d, err)
	}
}
