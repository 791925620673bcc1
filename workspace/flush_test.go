package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path"
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

func (p *pages) FreeKilled(int) (bool, error) { return false, nil }

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

// TestFlushedBefore checks the same of what needs a vault in which no command runs, and
// that what programs had in memory before a change is none of that change's.
func TestFlushedBefore(t *testing.T) {
	home, p := t.TempDir(), &pages{}
	owner, err := workspace.Open(workspace.Config{Home: home, Drivers: backends.All(), Mounter: p})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := owner.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, owner, doc.Store, -1)
	w := open(t, home)
	if _, err := w.Fork(t.Context(), workspace.ForkRequest{Vault: "v", Name: "fork"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v", "fork"} {
		if _, err := w.Mount(t.Context(), workspace.MountRequest{Vault: name, Mountpoint: filepath.Join(t.TempDir(), "m")}); err != nil {
			t.Fatal(err)
		}
	}
	cp, err := save(t.Context(), w, "c") // has the first file, /b
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		text := ""
		for _, e := range inV(t, w, workspace.OpList, workspace.PathRequest{Vault: "v", Paths: []workspace.Path{"/"}}, workspace.Streams{}) {
			text += " " + path.Base(string(e.Path))
		}
		return text[min(1, len(text)):]
	}
	want := func(what string, flushes int64, files string) {
		t.Helper()
		if p.count.Load() != flushes {
			t.Errorf("%s: %d flushes, want %d", what, p.count.Load(), flushes)
		}
		if got := names(); got != files {
			t.Errorf("%s: the vault has %q, want %q", what, got, files)
		}
	}
	want("checkpoint", 1, "b")
	mkdir(t, w, "/edit")
	want("edit", 2, "b c edit")
	event := inV(t, w, workspace.OpLog, workspace.LogRequest{Vault: "v", Limit: 1}, workspace.Streams{})[0]
	inV(t, w, workspace.OpUndo, workspace.UndoRequest{Vault: "v", Event: fmt.Sprint(event.Seq)}, workspace.Streams{})
	want("undo", 3, "b c d") // the edit alone is taken back
	src, dest := t.TempDir(), filepath.Join(t.TempDir(), "x")
	inV(t, w, workspace.OpImport, workspace.ImportRequest{Vault: "v", Source: workspace.Path(src), Dest: "/import"}, workspace.Streams{})
	want("import", 4, "b c d e import")
	inV(t, w, workspace.OpExport, workspace.ExportRequest{Vault: "v", Source: "/", Dest: workspace.Path(dest)}, workspace.Streams{})
	want("export", 5, "b c d e f import")
	if _, err := os.Stat(filepath.Join(dest, "f")); err != nil {
		t.Errorf("the export: %v", err)
	}
	restored := inV(t, w, workspace.OpCheckpointRestore, workspace.CheckpointRequest{Vault: "v", ID: cp.ID}, workspace.Streams{})
	want("restore", 6, "b")
	inV(t, w, workspace.OpUndo, workspace.UndoRequest{Vault: "v", Event: fmt.Sprint(restored.Event)}, workspace.Streams{})
	want("undo of the restore", 7, "b c d e f g h import")
	d := inV(t, w, workspace.OpDiff, workspace.DiffRequest{Vault: "fork", From: "base"}, workspace.Streams{})
	if d.Total != 1 || p.count.Load() != 8 {
		t.Errorf("the fork has %d changes after %d flushes, want 1 after 8", d.Total, p.count.Load())
	}
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
