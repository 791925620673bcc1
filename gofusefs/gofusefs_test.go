//go:build linux

package gofusefs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/conformance"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// patience bounds every wait of these tests.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// needsFUSE skips loudly where this machine cannot mount.
func needsFUSE(t *testing.T) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("SKIP: %v", err)
	}
}

// newVault makes a vault in memory that lives as long as t.
func newVault(t *testing.T) *engine.Vault {
	t.Helper()
	store, err := engine.Create(context.Background(), memkv.New(engine.Tables()...), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	v, err := store.CreateVault(context.Background(), "work")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mountAt mounts v until the end of t.
func mountAt(t *testing.T, v *engine.Vault, point string, opts *Options) *View {
	t.Helper()
	needsFUSE(t)
	w, err := Mount(within(t), v, point, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := w.Unmount(within(t), false)
		var busy *BusyError
		if errors.As(err, &busy) {
			t.Errorf("still in use at the end: %v", err)
			err = w.Unmount(within(t), true)
		}
		if err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return w
}

// point is a path for a mount of t, with a parent that other users may enter.
func point(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "avfs-mount-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "m")
}

func TestConformance(t *testing.T) {
	conformance.TestMount(t, func(t *testing.T, v *engine.Vault) string {
		w := mountAt(t, v, point(t), nil)
		if err := os.Chmod(w.Point(), 0o777); err != nil {
			t.Fatal(err)
		}
		return w.Point()
	}, nil)
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s: %q, %v, want %q", filepath.Base(path), got, err, want)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// wantIs fails unless err wraps want.
func wantIs(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}
