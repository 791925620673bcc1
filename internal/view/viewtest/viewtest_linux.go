// Package viewtest holds the tests that every mount binding must pass beyond
// package conformance: how a view begins and ends, and what is left behind.
package viewtest

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
	"github.com/agentvfs/avfs/internal/view"
)

// Binding is what is tested.
type Binding struct {
	Mount     func(ctx context.Context, v *engine.Vault, point string, opts *view.Options) (*view.View, error)
	Available func() error
	// UnknownOption is an option, as ExtraOptions takes it, that nobody knows.
	UnknownOption []string
}

type suite struct{ b *Binding }

// Life runs the tests. The binding's TestMain calls Main.
func Life(t *testing.T, b *Binding) {
	s := &suite{b}
	for _, tc := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"Life", s.life},
		{"WorkingDirectory", s.workingDirectory},
		{"ExistingPoint", s.existingPoint},
		{"MountTwice", s.mountTwice},
		{"TwoMountsOfOneVault", s.twoMountsOfOneVault},
		{"Busy", s.busy},
		{"BusyMountBelow", s.busyMountBelow},
		{"Force", s.force},
		{"OutsideUnmount", s.outsideUnmount},
		{"FailedSaveAtUnmount", s.failedSaveAtUnmount},
		{"ReadOnly", s.readOnly},
		{"Deadlines", s.deadlines},
		{"Refused", s.refused},
		{"Source", s.source},
		{"NoDescriptorsLeft", s.noDescriptorsLeft},
		{"Recover", s.recover},
		{"SignalsAreTheCallers", s.signalsAreTheCallers},
		{"ConnectionStaysHere", s.connectionStaysHere},
		{"BusyByMapping", s.busyByMapping},
		{"FlushMapped", s.flushMapped},
		{"FlushLost", s.flushLost},
		{"FlushAbandoned", s.flushAbandoned},
	} {
		t.Run(tc.name, tc.run)
	}
}

// Conformance runs the suite of package conformance.
func Conformance(t *testing.T, b *Binding, opts *conformance.MountOptions) {
	s := &suite{b}
	conformance.TestMount(t, func(t *testing.T, v *engine.Vault) string {
		w := s.mountAt(t, v, point(t), nil)
		if err := os.Chmod(w.Point(), 0o777); err != nil {
			t.Fatal(err)
		}
		return w.Point()
	}, opts)
}

// patience bounds every wait of these tests.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// needsFUSE skips loudly where this machine cannot mount.
func (s *suite) needsFUSE(t *testing.T) {
	t.Helper()
	if err := s.b.Available(); err != nil {
		t.Skipf("SKIP: %v", err)
	}
}

// NewVault makes a vault in memory that lives as long as t.
func NewVault(t *testing.T) *engine.Vault {
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

// MountAt mounts v at a place of its own until the end of t.
func MountAt(t *testing.T, b *Binding, v *engine.Vault, opts *view.Options) *view.View {
	t.Helper()
	return (&suite{b}).mountAt(t, v, point(t), opts)
}

// mountAt mounts v until the end of t.
func (s *suite) mountAt(t *testing.T, v *engine.Vault, point string, opts *view.Options) *view.View {
	t.Helper()
	s.needsFUSE(t)
	w, err := s.b.Mount(within(t), v, point, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := w.Unmount(within(t), false)
		var busy *view.BusyError
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
