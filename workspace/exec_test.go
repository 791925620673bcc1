package workspace_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// nowhere is a mounter that makes nothing visible, for what does not need a mount.
type nowhere struct{}

func (nowhere) Mount(context.Context, *engine.Vault, string, workspace.MountHow) (workspace.Mounted, error) {
	return &nothing{make(chan struct{})}, nil
}

func (nowhere) Recover(string) error { return nil }

func (nowhere) FreeKilled(int) (bool, error) { return false, nil }

type nothing struct{ done chan struct{} }

func (n *nothing) Unmount(context.Context, bool) error { close(n.done); return nil }

func (n *nothing) Flush(ctx context.Context) error { return ctx.Err() }

func (n *nothing) Driver() string { return "nothing" }

func (n *nothing) Done() <-chan struct{} { return n.done }

// execOwner serves a vault v to the workspace it returns.
func execOwner(t *testing.T) *workspace.Workspace {
	t.Helper()
	home := t.TempDir()
	owner, err := workspace.Open(workspace.Config{Home: home, Drivers: backends.All(), Mounter: nowhere{}})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := owner.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, owner, doc.Store, -1)
	return open(t, home)
}

func begin(t *testing.T, w *workspace.Workspace, req workspace.ExecRequest) *workspace.Exec {
	t.Helper()
	x, err := w.BeginExec(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func end(t *testing.T, x *workspace.Exec) workspace.ExecEnded {
	t.Helper()
	ended, err := x.End(workspace.ExecOutcome{Status: "completed"})
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// execs lists the ids of the execs in the timeline, newest first.
func execs(t *testing.T, w *workspace.Workspace) []string {
	t.Helper()
	ids := []string{}
	for _, ev := range inV(t, w, workspace.OpLog, workspace.LogRequest{Vault: "v"}, workspace.Streams{}) {
		if ev.Cause == engine.CauseExec {
			ids = append(ids, ev.ID)
		}
	}
	return ids
}

// TestExecReport holds that an exec tells what changed meanwhile and keeps the
// state before where it was asked to.
func TestExecReport(t *testing.T) {
	w := execOwner(t)
	x := begin(t, w, workspace.ExecRequest{ID: "one", Checkpoint: true})
	inV(t, w, workspace.OpMkdir, workspace.PathRequest{Vault: "v", Paths: []workspace.Path{"/d"}}, workspace.Streams{})
	ended := end(t, x)
	if ended.Total != 1 || ended.Changes[0].Path != "d" || ended.RootAfter == x.RootBefore || x.Checkpoint == "" {
		t.Errorf("%+v after %+v", ended, x.ExecBegun)
	}
	if ids := execs(t, w); len(ids) != 1 || ids[0] != "one" {
		t.Errorf("the timeline has %v", ids)
	}
}

// TestTurns holds that one command at a time runs in a vault, that one waits only
// if it wants to, and that nobody waits for himself.
func TestTurns(t *testing.T) {
	w := execOwner(t)
	x := begin(t, w, workspace.ExecRequest{ID: "outer"})
	if _, err := w.BeginExec(t.Context(), workspace.ExecRequest{ID: "b"}); engine.KindOf(err) != workspace.VaultBusy {
		t.Errorf("without waiting: %v, want VaultBusy", err)
	}
	t.Setenv("AVFS_EXEC_ID", "outer")
	if _, err := w.BeginExec(t.Context(), workspace.ExecRequest{ID: "inner", Wait: true}); engine.KindOf(err) != workspace.VaultBusy {
		t.Errorf("from within: %v, want VaultBusy", err)
	}
	t.Setenv("AVFS_EXEC_ID", "")
	next := make(chan error, 1)
	go func() { // ends after x
		y, err := w.BeginExec(context.WithoutCancel(t.Context()), workspace.ExecRequest{ID: "next", Wait: true})
		if err == nil {
			_, err = y.End(workspace.ExecOutcome{Status: "completed"})
		}
		next <- err
	}()
	select {
	case err := <-next:
		t.Errorf("the next one did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	end(t, x)
	if err := <-next; err != nil {
		t.Error(err)
	}
	if ids := execs(t, w); len(ids) != 2 || ids[0] != "next" || ids[1] != "outer" {
		t.Errorf("the timeline has %v", ids)
	}
}

// TestWaitingCallerLeaves holds that a caller that gives up while it waits for its
// turn comes back at once and leaves no trace.
func TestWaitingCallerLeaves(t *testing.T) {
	w := execOwner(t)
	x := begin(t, w, workspace.ExecRequest{ID: "first"})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err := w.BeginExec(ctx, workspace.ExecRequest{ID: "gone", Wait: true}); engine.KindOf(err) != engine.Interrupted {
		t.Errorf("%v, want Interrupted", err)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	end(t, x)
	end(t, begin(t, w, workspace.ExecRequest{ID: "last", Wait: true}))
	if ids := execs(t, w); len(ids) != 2 || ids[0] != "last" {
		t.Errorf("the timeline has %v", ids)
	}
}

// TestCallerDies holds that a command whose caller dies is recorded, and does not
// keep the vault.
func TestCallerDies(t *testing.T) {
	w := execOwner(t)
	ctx, cancel := context.WithCancel(t.Context())
	never, hold := io.Pipe()
	defer hold.Close()
	_, err := workspace.CallVault(ctx, w, "v", workspace.OpExec,
		func(v string) workspace.ExecRequest { return workspace.ExecRequest{ID: "dead", Vault: v} },
		workspace.Streams{In: never, Out: onWrite(cancel)})
	if engine.KindOf(err) != engine.Interrupted {
		t.Errorf("%v, want Interrupted", err)
	}
	end(t, begin(t, w, workspace.ExecRequest{ID: "after", Wait: true}))
	if ids := execs(t, w); len(ids) != 2 || ids[1] != "dead" {
		t.Errorf("the timeline has %v", ids)
	}
}

// onWrite calls itself when something is written.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) { f(); return len(p), nil }

// TestDeleteBusyVault holds that a vault is not deleted under a command.
func TestDeleteBusyVault(t *testing.T) {
	w := execOwner(t)
	x := begin(t, w, workspace.ExecRequest{ID: "x"})
	if _, err := w.DeleteVault(t.Context(), "v"); engine.KindOf(err) != workspace.VaultBusy {
		t.Errorf("%v, want VaultBusy", err)
	}
	end(t, x)
}

// TestMountMoved holds that a command does not run elsewhere than its caller expects,
// that nothing is left of it then, and that the error names the place.
func TestMountMoved(t *testing.T) {
	w := execOwner(t)
	expected := w.MountFor(t.Context(), "v", workspace.MountHow{})
	place := filepath.Join(t.TempDir(), "m")
	info, err := w.Mount(t.Context(), workspace.MountRequest{Vault: "v", Mountpoint: place})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.BeginExec(t.Context(), workspace.ExecRequest{ID: "x", Mountpoint: expected})
	var moved *engine.Error
	if !errors.As(err, &moved) || moved.Kind != workspace.MountMoved || moved.Details["mountpoint"] != info.Mountpoint {
		t.Errorf("%v, want MountMoved to %s", err, info.Mountpoint)
	}
	if got := w.MountFor(t.Context(), "v", workspace.MountHow{}); got != info.Mountpoint {
		t.Errorf("commands run in %s, want %s", got, info.Mountpoint)
	}
	x := begin(t, w, workspace.ExecRequest{ID: "y", Mountpoint: info.Mountpoint})
	if _, err := w.Unmount(t.Context(), place, false); engine.KindOf(err) != engine.Busy {
		t.Errorf("unmounting under the command: %v, want Busy", err)
	}
	end(t, x)
	if ids := execs(t, w); len(ids) != 1 || ids[0] != "y" {
		t.Errorf("the timeline has %v", ids)
	}
}
