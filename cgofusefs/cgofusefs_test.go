//go:build cgo && linux

package cgofusefs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/internal/view/viewtest"
)

var binding = &viewtest.Binding{Mount: Mount, Available: Available, UnknownOption: []string{"-o", "no_such_option=1"}}

func TestMain(m *testing.M) { viewtest.Main(m, binding) }

func TestConformance(t *testing.T) { viewtest.Conformance(t, binding, differences()) }

func TestLife(t *testing.T) { viewtest.Life(t, binding) }

// TestPollFile checks that the file which the view polls is no part of the vault.
func TestPollFile(t *testing.T) {
	w := viewtest.MountAt(t, binding, viewtest.NewVault(t), nil)
	name := filepath.Join(w.Point(), pollName)
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "mine" {
		t.Errorf("a file of that name holds %q, %v", got, err)
	}
}
