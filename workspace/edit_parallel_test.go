package workspace_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// TestEditsSideBySide has writers change a vault at the same time, while somebody saves
// checkpoints: each edit is one event, with what it did and nothing else, and each can be
// taken back alone.
func TestEditsSideBySide(t *testing.T) {
	for _, d := range backends.All() {
		t.Run(d.Name(), func(t *testing.T) {
			w := open(t, t.TempDir())
			if _, err := w.CreateVault(t.Context(), "v", d.Name()); err != nil {
				t.Fatal(err)
			}
			const writers, edits = 6, 5
			var wg sync.WaitGroup
			for n := range writers {
				wg.Go(func() {
					if err := editAlone(context.WithoutCancel(t.Context()), w, fmt.Sprint("w", n), edits); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Go(func() {
				for range 2 * edits {
					if _, err := workspace.CallVault(context.WithoutCancel(t.Context()), w, "v", workspace.OpCheckpointSave, func(v string) workspace.CheckpointRequest {
						return workspace.CheckpointRequest{Vault: v}
					}, workspace.Streams{}); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Wait()
			events := inV(t, w, workspace.OpLog, workspace.LogRequest{Vault: "v"}, workspace.Streams{})
			if len(events) != writers*(edits+1) {
				t.Fatalf("%d edits are %d events", writers*(edits+1), len(events))
			}
			for _, ev := range events {
				if ev.Cause != engine.CauseWrite {
					t.Errorf("event %d is of a %s", ev.Seq, ev.Cause)
				}
				if ev.Command[0] == "write" {
					undoneAlone(t, w, ev)
				}
			}
		})
	}
}

// editAlone makes a directory and files in it, one edit each.
func editAlone(ctx context.Context, w *workspace.Workspace, dir string, files int) error {
	_, err := workspace.CallVault(ctx, w, "v", workspace.OpMkdir, func(v string) workspace.PathRequest {
		return workspace.PathRequest{Vault: v, Paths: []workspace.Path{workspace.Path(dir)}}
	}, workspace.Streams{})
	for i := 0; i < files && err == nil; i++ {
		_, err = workspace.CallVault(ctx, w, "v", workspace.OpWrite, func(v string) workspace.WriteRequest {
			return workspace.WriteRequest{Vault: v, Path: workspace.Path(fmt.Sprintf("%s/%d", dir, i))}
		}, workspace.Streams{In: strings.NewReader(dir)})
	}
	return err
}

// undoneAlone fails unless taking an event back removes the file that it wrote, and
// nothing else.
func undoneAlone(t *testing.T, w *workspace.Workspace, ev engine.LogEntry) {
	t.Helper()
	res := inV(t, w, workspace.OpUndo, workspace.UndoRequest{Vault: "v", Event: fmt.Sprint(ev.Seq)}, workspace.Streams{})
	if len(res.Changes) != 1 || res.Changes[0].Kind != engine.Deleted || "/"+res.Changes[0].Path != ev.Command[1] {
		t.Errorf("the undo of %v did %+v", ev.Command, res.Changes)
	}
}
