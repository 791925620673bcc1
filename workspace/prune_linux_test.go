package workspace_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/storetest"
	"github.com/agentvfs/avfs/workspace"
)

// TestPruneFullDisk fills a disk, removes everything, which the history keeps, and
// drops the history: then gc gives the space back, and as much can be written again.
// Each step is one of another process, as that of a command is.
func TestPruneFullDisk(t *testing.T) {
	for _, d := range backends.All() {
		t.Run(d.Name(), func(t *testing.T) {
			disk := storetest.SmallDisk(t, 64)
			if _, err := open(t, disk.Dir).CreateVault(t.Context(), "v", d.Name()); err != nil {
				t.Fatal(err)
			}
			first := fill(t, disk.Dir)
			if first < 4 {
				t.Fatalf("the disk is full after %d MiB", first)
			}
			remove := workspace.PathRequest{Vault: "v", Paths: []workspace.Path{"/d"}, Recursive: true}
			inV(t, open(t, disk.Dir), workspace.OpRemove, remove, workspace.Streams{})
			st := inV(t, open(t, disk.Dir), workspace.OpStats, workspace.InVault{Vault: "v"}, workspace.Streams{})
			if st.HistoryBytes < int64(first)<<20 || st.VaultBytes != 0 {
				t.Errorf("%d MiB are removed, and the history keeps %+v", first, st)
			}
			rep := inV(t, open(t, disk.Dir), workspace.OpGC, workspace.InVault{Vault: "v"}, workspace.Streams{})
			if rep.LiveChunks < int64(first) {
				t.Errorf("gc freed what the history keeps: %+v", rep)
			}
			none := 0
			pruned := inV(t, open(t, disk.Dir), workspace.OpPrune, workspace.PruneRequest{Vault: "v", Last: &none, Hours: &none, Days: &none}, workspace.Streams{})
			if pruned.Events < first || pruned.KeptEvents != 0 {
				t.Errorf("%+v", pruned)
			}
			st = inV(t, open(t, disk.Dir), workspace.OpStats, workspace.InVault{Vault: "v"}, workspace.Streams{})
			if st.HistoryBytes != 0 || st.GarbageBytes < int64(first)<<20 {
				t.Errorf("after pruning: %+v", st)
			}
			rep = inV(t, open(t, disk.Dir), workspace.OpGC, workspace.InVault{Vault: "v"}, workspace.Streams{})
			second := fill(t, disk.Dir)
			t.Logf("%d MiB, and %d MiB again; gc: %+v", first, second, rep)
			if rep.LiveChunks != 0 || second < first*3/4 {
				t.Errorf("%d MiB fit, and %d MiB again; gc: %+v", first, second, rep)
			}
			check := inV(t, open(t, disk.Dir), workspace.OpCheck, workspace.CheckRequest{Vault: "v", ReadData: true}, workspace.Streams{})
			if len(check.Findings) > 0 {
				t.Errorf("%+v", check)
			}
		})
	}
}

// fill writes files of 1 MiB, each by a process of its own, until the disk is full,
// and counts those that fit.
func fill(t *testing.T, home string) (n int) {
	t.Helper()
	text := make([]byte, 1<<20)
	for ; ; n++ {
		_, _ = rand.Read(text) // never fails
		req := workspace.WriteRequest{Vault: "v", Path: workspace.Path("/d/" + rand.Text()), Parents: true}
		_, err := workspace.CallVault(t.Context(), open(t, home), "v", workspace.OpWrite, func(string) workspace.WriteRequest { return req },
			workspace.Streams{In: strings.NewReader(string(text))})
		switch {
		case engine.KindOf(err) == engine.NoSpace:
			return n
		case err != nil:
			t.Fatal(err)
		}
	}
}
