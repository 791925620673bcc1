package run

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLimitsOfRefusedGroup holds that no limit is told of as held by a cgroup that the
// kernel has refused, and that all are left for the process.
func TestLimitsOfRefusedGroup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "group")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pids.max"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := &kin{group: &cgroup{path: dir}}
	want := Limits{Processes: 5}
	if k.capGroup(want); len(k.caps) != 1 || k.uncapped != (Limits{}) {
		t.Fatalf("the cgroup took %q and left %+v", k.caps, k.uncapped)
	}
	if k.dropGroup("refused"); len(k.caps) != 0 || k.uncapped != want {
		t.Errorf("without the cgroup: %q, %+v left, want %+v", k.caps, k.uncapped, want)
	}
}
