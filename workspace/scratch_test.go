//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestScratch leaves directories as a process does that dies, and checks that only
// those disappear which nobody works in.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, scratchPrefix+"left")
	theirs := filepath.Join(dir, "theirs")
	for _, d := range []string{filepath.Join(left, "deep"), theirs} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mine, remove, err := scratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	sweep(dir)
	for path, want := range map[string]bool{left: false, theirs: true, mine: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mine); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
	if _, err := hold(mine); !errors.Is(err, errHeld) {
		t.Errorf("what is gone can be held: %v", err)
	}
}
