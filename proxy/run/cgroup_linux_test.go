package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fakeCgroup is a directory that looks like a cgroup with the files given, below one that
// hands controllers on. It shows what is written, not what a kernel makes of it.
func fakeCgroup(t *testing.T, files map[string]string) *cgroup {
	t.Helper()
	g := &cgroup{path: filepath.Join(t.TempDir(), "avfs-1-x")}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		t.Fatal(err)
	}
	files["../cgroup.subtree_control"] = ""
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(g.path, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func (g *cgroup) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.path, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var allLimits = Limits{MemoryBytes: 300 << 20, Processes: 7, CPUs: 1.5, FileBytes: 1 << 20}

// Where the kernel takes every limit, none is put on each process but what no cgroup has.
func TestCgroupTakesLimits(t *testing.T) {
	g := fakeCgroup(t, map[string]string{"memory.max": "", "memory.swap.max": "", "pids.max": "", "cpu.max": ""})
	k := &kin{group: g}
	k.capGroup(allLimits)
	for name, want := range map[string]string{"memory.max": "314572800", "memory.swap.max": "0", "pids.max": "7", "cpu.max": "150000 100000", "../cgroup.subtree_control": "+cpu"} {
		if got := g.file(t, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if want := []string{"memory limit by cgroup", "processes limit by cgroup", "cpu limit by cgroup"}; !slices.Equal(k.caps, want) {
		t.Errorf("applied: %q", k.caps)
	}
	if k.uncapped != (Limits{FileBytes: 1 << 20}) {
		t.Errorf("left for each process: %+v", k.uncapped)
	}
}

// Without a controller its limit is left for each process, and the others hold.
func TestCgroupWithoutControllers(t *testing.T) {
	g := fakeCgroup(t, map[string]string{"pids.max": ""})
	k := &kin{group: g}
	k.capGroup(allLimits)
	if want := []string{"processes limit by cgroup"}; !slices.Equal(k.caps, want) {
		t.Errorf("applied: %q", k.caps)
	}
	if k.uncapped != (Limits{MemoryBytes: 300 << 20, CPUs: 1.5, FileBytes: 1 << 20}) {
		t.Errorf("left for each process: %+v", k.uncapped)
	}
	if _, err := os.Stat(filepath.Join(g.path, "memory.max")); err == nil {
		t.Error("a file was made that the kernel does not have")
	}
	none := &kin{}
	none.capGroup(allLimits)
	if none.uncapped != allLimits || none.caps != nil {
		t.Errorf("without a cgroup: %q, %+v", none.caps, none.uncapped)
	}
}

// Breaches are what the kernel counted in the files that it has.
func TestCgroupTellsBreaches(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"all":  {map[string]string{"memory.events": "low 0\noom 3\noom_kill 2\n", "pids.events": "max 1\n", "cpu.stat": "usage_usec 9\nnr_throttled 4\n"}, []string{LimitMemory, LimitProcesses, LimitCPU}},
		"none": {map[string]string{"memory.events": "oom 3\noom_kill 0\n", "pids.events": "max 0\n", "cpu.stat": "usage_usec 9\n"}, nil},
		"odd":  {map[string]string{"memory.events": "oom_kill\noom_kill many\n", "cpu.stat": ""}, nil},
	} {
		k := &kin{group: fakeCgroup(t, c.files)}
		if got := k.breaches(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The end of a cgroup is one write, and takes what the command made below it along.
func TestCgroupEnds(t *testing.T) {
	g := fakeCgroup(t, map[string]string{"cgroup.kill": "", "cgroup.procs": "11\n12\n"})
	below := filepath.Join(g.path, "below")
	if err := os.MkdirAll(filepath.Join(below, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(below, "deep", "cgroup.procs"), []byte("13\nnone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.dir, err = os.Open(g.path); err != nil {
		t.Fatal(err)
	}
	if got := g.members(); len(got) != 3 || !got[11] || !got[12] || !got[13] {
		t.Errorf("members %v", got)
	}
	if err := g.kill(); err != nil || g.file(t, "cgroup.kill") != "1" {
		t.Errorf("kill: %v, %q", err, g.file(t, "cgroup.kill"))
	}
	for _, f := range []string{"cgroup.kill", "cgroup.procs", "below/deep/cgroup.procs"} { // a kernel's go with their directory
		if err := os.Remove(filepath.Join(g.path, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(g.path); err == nil {
		t.Error("it is still there")
	}
}

// What others left is removed where its maker is dead, and nothing else.
func TestCgroupSweep(t *testing.T) {
	dir := t.TempDir()
	dead, living, foreign := filepath.Join(dir, "avfs-2147483646-x"), filepath.Join(dir, "avfs-1-x"), filepath.Join(dir, "other-2147483646")
	for _, d := range []string{dead, living, foreign} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	for d, want := range map[string]bool{dead: false, living: true, foreign: true} {
		if _, err := os.Stat(d); (err == nil) != want {
			t.Errorf("%s: %v", d, err)
		}
	}
}
