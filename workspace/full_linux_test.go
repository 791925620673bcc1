package workspace_test

import (
	"strings"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/storetest"
	"github.com/agentvfs/avfs/workspace"
)

// TestFullDisk holds that a process which opens a store on a disk without a free byte
// reads and checks it, refuses to write for want of space, and writes as soon as there
// is room again.
func TestFullDisk(t *testing.T) {
	for _, d := range backends.All() {
		t.Run(d.Name(), func(t *testing.T) {
			disk := storetest.SmallDisk(t, 48)
			maker := open(t, disk.Dir)
			doc, err := maker.CreateVault(t.Context(), "v", d.Name())
			if err != nil {
				t.Fatal(err)
			}
			write := func(w *workspace.Workspace, path, text string) error {
				_, err := workspace.CallVault(t.Context(), w, "v", workspace.OpWrite, func(v string) workspace.WriteRequest {
					return workspace.WriteRequest{Vault: v, Path: workspace.Path(path)}
				}, workspace.Streams{In: strings.NewReader(text)})
				return err
			}
			if err := write(maker, "/keep", "what there was"); err != nil {
				t.Fatal(err)
			}
			freeUp := disk.TakeAllBut(0)
			serve(t, open(t, disk.Dir), doc.Store, -1)
			w := open(t, disk.Dir)
			var out strings.Builder
			inV(t, w, workspace.OpRead, workspace.PathRequest{Vault: "v", Paths: []workspace.Path{"/keep"}}, workspace.Streams{Out: &out})
			if out.String() != "what there was" {
				t.Errorf("read %q", out.String())
			}
			if rep := inV(t, w, workspace.OpCheck, workspace.CheckRequest{Vault: "v"}, workspace.Streams{}); len(rep.Findings) > 0 {
				t.Errorf("the check finds %v", rep.Findings)
			}
			if err := write(w, "/new", "x"); engine.KindOf(err) != engine.NoSpace {
				t.Errorf("write without room: %v, want NoSpace", err)
			}
			// A removal says truly whether it has happened.
			keep := []workspace.Path{"/keep"}
			_, rerr := workspace.CallVault(t.Context(), w, "v", workspace.OpRemove, func(v string) workspace.PathRequest {
				return workspace.PathRequest{Vault: v, Paths: keep}
			}, workspace.Streams{})
			_, serr := workspace.CallVault(t.Context(), w, "v", workspace.OpStat, func(v string) workspace.PathRequest {
				return workspace.PathRequest{Vault: v, Paths: keep}
			}, workspace.Streams{})
			gone := engine.KindOf(serr) == engine.NotFound
			if said := rerr == nil || strings.Contains(rerr.Error(), "it is done"); said != gone || rerr != nil && engine.KindOf(rerr) != engine.NoSpace {
				t.Errorf("the file is gone: %v; the removal said %v", gone, rerr)
			}
			freeUp()
			if err := write(w, "/new", "now"); err != nil {
				t.Errorf("write with room again: %v", err)
			}
		})
	}
}
