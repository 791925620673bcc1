package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/workspace"
)

// causes lists what the timeline of v has, oldest first.
func causes(t *testing.T, w *workspace.Workspace) []string {
	t.Helper()
	list := []string{}
	for _, ev := range inV(t, w, workspace.OpLog, workspace.LogRequest{Vault: "v"}, workspace.Streams{}) {
		list = append(list, ev.Cause)
	}
	slices.Reverse(list)
	return list
}

// wantCauses fails unless the timeline of v has exactly want, oldest first.
func wantCauses(t *testing.T, w *workspace.Workspace, want ...string) {
	t.Helper()
	if got := causes(t, w); !slices.Equal(got, want) {
		t.Errorf("the timeline has %v, want %v", got, want)
	}
}

// wantUndone undoes the newest event, and fails unless path is there before and not
// after.
func wantUndone(t *testing.T, w *workspace.Workspace, path workspace.Path) {
	t.Helper()
	stat := func() error {
		_, err := workspace.CallVault(t.Context(), w, "v", workspace.OpStat, func(v string) workspace.PathRequest {
			return workspace.PathRequest{Vault: v, Paths: []workspace.Path{path}}
		}, workspace.Streams{})
		return err
	}
	if err := stat(); err != nil {
		t.Errorf("before the undo: %v", err)
	}
	inV(t, w, workspace.OpUndo, workspace.UndoRequest{Vault: "v"}, workspace.Streams{})
	if err := stat(); engine.KindOf(err) != engine.NotFound {
		t.Errorf("%s after the undo: %v, want NotFound", path, err)
	}
}

// slowWrite begins to write a file and returns once the owner reads what to write. The
// returned function ends the write.
func slowWrite(t *testing.T, w *workspace.Workspace, path workspace.Path) (end func()) {
	t.Helper()
	const more = 8 << 20 // than any buffer on the way holds
	r, in := io.Pipe()
	done := make(chan error, 1)
	go func() { // ends with the input
		_, err := workspace.CallVault(context.WithoutCancel(t.Context()), w, "v", workspace.OpWrite, func(v string) workspace.WriteRequest {
			return workspace.WriteRequest{Vault: v, Path: path}
		}, workspace.Streams{In: r})
		_ = r.CloseWithError(errors.New("the write has ended")) // never fails
		done <- err
	}()
	if _, err := in.Write(make([]byte, more)); err != nil {
		t.Fatalf("%v: %v", err, <-done)
	}
	return func() {
		t.Helper()
		if err := errors.Join(in.Close(), <-done); err != nil {
			t.Error(err)
		}
	}
}

func mkdir(t *testing.T, w *workspace.Workspace, path workspace.Path) {
	t.Helper()
	inV(t, w, workspace.OpMkdir, workspace.PathRequest{Vault: "v", Paths: []workspace.Path{path}}, workspace.Streams{})
}

// TestEditInCommand holds that an edit while one command runs belongs to that command's
// event, and has none of its own.
func TestEditInCommand(t *testing.T) {
	w := execOwner(t)
	x := begin(t, w, workspace.ExecRequest{ID: "x"})
	mkdir(t, w, "/d")
	if ended := end(t, x); ended.Total != 1 {
		t.Errorf("the command's event has %d changes, want 1", ended.Total)
	}
	wantCauses(t, w, engine.CauseExec)
	wantUndone(t, w, "/d")
}

// TestEditOutlastsCommand holds that a write whose input ends after the command in which it
// was asked for has an event of its own, and that one which ends in the next command
// belongs to that: no change is in two events.
func TestEditOutlastsCommand(t *testing.T) {
	w := execOwner(t)
	x := begin(t, w, workspace.ExecRequest{ID: "x"})
	endWrite := slowWrite(t, w, "/late")
	end(t, x)
	endWrite()
	wantContiguous(t, w)
	wantCauses(t, w, engine.CauseExec, engine.CauseWrite)
	wantUndone(t, w, "/late")

	x = begin(t, w, workspace.ExecRequest{ID: "y"})
	endWrite = slowWrite(t, w, "/later")
	end(t, x)
	x = begin(t, w, workspace.ExecRequest{ID: "z"})
	endWrite()
	end(t, x)
	wantContiguous(t, w)
}

// wantContiguous fails unless every event of v leads from where the one before ended.
func wantContiguous(t *testing.T, w *workspace.Workspace) {
	t.Helper()
	list := inV(t, w, workspace.OpLog, workspace.LogRequest{Vault: "v"}, workspace.Streams{})
	for i, ev := range list[:len(list)-1] {
		if ev.Before != list[i+1].After {
			t.Errorf("%s %d leads from %v, %s %d to %v", ev.Cause, ev.Seq, ev.Before, list[i+1].Cause, list[i+1].Seq, list[i+1].After)
		}
	}
}

// TestEditBeforeCommand holds that a write is made when its input has ended, and so belongs
// to a command that runs then, however long ago it was asked for.
func TestEditBeforeCommand(t *testing.T) {
	w := execOwner(t)
	endWrite := slowWrite(t, w, "/early")
	x := begin(t, w, workspace.ExecRequest{ID: "x"})
	endWrite()
	end(t, x)
	wantCauses(t, w, engine.CauseExec)
	wantUndone(t, w, "/early")
}

// TestEditNearCommands makes directories without a pause while commands begin and end:
// each of them is in some event.
func TestEditNearCommands(t *testing.T) {
	w, err := workspace.Open(workspace.Config{Home: t.TempDir(), Drivers: backends.All(), Mounter: nowhere{}})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := w.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { // ends by itself
		defer close(over)
		for i := range 40 {
			x, err := w.BeginExec(context.WithoutCancel(t.Context()), workspace.ExecRequest{ID: fmt.Sprint(i), Vault: "v"})
			if err == nil {
				_, err = x.End(workspace.ExecOutcome{Status: "completed"})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	made := 0
	for running := true; running; made++ {
		select {
		case <-over:
			running = false
		default:
		}
		mkdir(t, w, workspace.Path(fmt.Sprint("/", made)))
	}
	told := map[string]bool{}
	list := inV(t, w, workspace.OpLog, workspace.LogRequest{Vault: "v"}, workspace.Streams{})
	store := openStore(t, doc.Store)
	for _, ev := range list {
		changes, _, err := store.Diff(t.Context(), ev.Before, ev.After, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			told[c.Path] = true
		}
	}
	for i := range made {
		if !told[fmt.Sprint(i)] {
			t.Errorf("directory %d of %d is in no event", i, made)
		}
	}
}

// openStore opens a store that nobody has open, without a workspace.
func openStore(t *testing.T, path string) *engine.Store {
	t.Helper()
	for _, d := range backends.All() {
		if !d.Recognise(path) {
			continue
		}
		db, err := d.Open(t.Context(), path, kv.Options{Tables: engine.Tables()})
		if err != nil {
			t.Fatal(err)
		}
		store, err := engine.Open(t.Context(), db, nil)
		if err != nil {
			t.Fatal(errors.Join(err, db.Close()))
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		return store
	}
	t.Fatalf("%s is no store", path)
	return nil
}
