package workspace_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// pages is a mounter whose mounts have something to hand over: with every flush one
// more file, as if a program had written to it in memory only.
type pages struct {
	count atomic.Int64
	stuck atomic.Bool // a flush does not end by itself
}

type pagesMount struct {
	nothing
	p *pages
	v *engine.Vault
}

func (p *pages) Mount(_ context.Context, v *engine.Vault, _ string, _ workspace.MountHow) (workspace.Mounted, error) {
	return &pagesMount{nothing{make(chan struct{})}, p, v}, nil
}

func (p *pages) Recover(string) error { return nil }

// Flush implements workspace.Mounted.
func (m *pagesMount) Flush(ctx context.Context) error {
	if m.p.stuck.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	m.p.count.Add(1)
	_, err := m.v.Mkdir(ctx, engine.RootIno, string(rune('a'+m.p.count.Load())), 0o700, engine.Owner{})
	return err
}

// flushing makes a workspace with such a mounter, and a vault in which a command runs.
func flushing(t *testing.T, wait time.Duration) (*workspace.Workspace, *pages, *workspace.Exec) {
	t.Helper()
	p := &pages{}
	w, err := workspace.Open(workspace.Config{Home: t.TempDir(), Drivers: backends.All(), Mounter: p, LockWait: wait})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateVault(t.Context(), "v", ""); err != nil {
		t.Fatal(err)
	}
	return w, p, begin(t, w, workspace.ExecRequest{ID: "1", Vault: "v", Checkpoint: true})
}

func save(ctx context.Context, w *workspace.Workspace, name string) (engine.Checkpoint, error) {
	return workspace.CallVault(ctx, w, "v", workspace.OpCheckpointSave, func(v string) workspace.CheckpointRequest {
		return workspace.CheckpointRequest{Vault: v, Name: name}
	}, workspace.Streams{})
}

// TestFlushed checks that whatever keeps the present state has the mounts hand over
// first what programs have in memory.
func TestFlushed(t *testing.T) {
	w, p, x := flushing(t, 0)
	files := int64(1) // the beginning of the exec
	step := func(what string, fn func() error) {
		t.Helper()
		if err := fn(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if files++; p.count.Load() != files {
			t.Errorf("%s: %d flushes, want %d", what, p.count.Load(), files)
		}
	}
	if p.count.Load() != files {
		t.Errorf("begin: %d flushes", p.count.Load())
	}
	step("checkpoint", func() error {
		cp, err := save(t.Context(), w, "c")
		if cp.Files != files+1 {
			t.Errorf("the checkpoint has %d files, want %d", cp.Files, files+1)
		}
		return err
	})
	step("fork", func() error {
		doc, err := w.Fork(t.Context(), workspace.ForkRequest{Vault: "v", Name: "fork"})
		if doc.Files != files+1 {
			t.Errorf("the fork has %d files, want %d", doc.Files, files+1)
		}
		return err
	})
	step("diff", func() error {
		d, err := workspace.CallVault(t.Context(), w, "v", workspace.OpDiff, func(v string) workspace.DiffRequest {
			return workspace.DiffRequest{Vault: v, From: "c"}
		}, workspace.Streams{})
		if d.Total != 2 {
			t.Errorf("%d changes since the checkpoint, want 2", d.Total)
		}
		return err
	})
	step("backup", func() error {
		_, err := workspace.CallVault(t.Context(), w, "v", workspace.OpBackup, func(v string) workspace.BackupRequest {
			return workspace.BackupRequest{Vault: v, Dest: filepath.Join(t.TempDir(), "b.avfs")}
		}, workspace.Streams{})
		return err
	})
	step("end", func() error {
		ended, err := x.End(workspace.ExecOutcome{Status: "completed"})
		if ended.Total != int(files) {
			t.Errorf("%d changes of the command, want %d", ended.Total, files)
		}
		return err
	})
}

// TestFlushStuck checks that a mount that does not hand anything over holds nobody up
// for ever, and that a command that has run is recorded all the same.
func TestFlushStuck(t *testing.T) {
	w, p, x := flushing(t, 100*time.Millisecond)
	p.stuck.Store(true)
	if _, err := save(t.Context(), w, "c"); engine.KindOf(err) != engine.Busy {
		t.Errorf("checkpoint: %v", err)
	}
	if _, err := w.Fork(t.Context(), workspace.ForkRequest{Vault: "v", Name: "fork"}); engine.KindOf(err) != engine.Busy {
		t.Errorf("fork: %v", err)
	}
	ended, err := x.End(workspace.ExecOutcome{Status: "completed"})
	if engine.KindOf(err) != engine.Busy || ended.Event == 0 {
		t.Errorf("end: %+v, %v", ended, err)
	}
}
