package storefile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storefile"
)

// TestLock checks that a lock keeps a second one out, in this process too, names its
// holder, and does not count on a file that is not at the path any more.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	first, err := storefile.LockPath(expired, path, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = storefile.LockPath(expired, path, true)
	var locked *kv.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() && runtime.GOOS == "linux" {
		t.Errorf("second lock: %v, want a LockedError for %d", err, os.Getpid())
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := storefile.LockPath(expired, path, false)
	if err != nil {
		t.Fatalf("lock of the file that took the place: %v", err)
	}
	if err := errors.Join(first.Release(), second.Release()); err != nil {
		t.Error(err)
	}
}

// TestPublish checks that a file appears under a free name only, whole.
func TestPublish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, want := range []error{nil, fs.ErrExist} {
		tmp, err := storefile.TempFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(tmp, []byte("whole"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := storefile.Publish(tmp, path); !errors.Is(err, want) {
			t.Errorf("Publish: %v, want %v", err, want)
		}
		if err := os.Remove(tmp); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "whole" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if err := storefile.MustNotExist(path+".no", path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("MustNotExist: %v, want fs.ErrExist", err)
	}
}

// TestSpace checks that only a full disk is taken for one, and that a folder has room.
func TestSpace(t *testing.T) {
	if storefile.IsNoSpace(nil) || storefile.IsNoSpace(fs.ErrExist) {
		t.Error("any error is taken for a full disk")
	}
	free, err := storefile.FreeSpace(t.TempDir())
	if err != nil || free <= 0 {
		t.Errorf("FreeSpace: %d, %v", free, err)
	}
}
