package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/bench"
)

// TestMain lets the test program serve a file system in memory, as benchreport does.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == memoryCommand {
		main()
	}
	os.Exit(m.Run())
}

// TestMounts runs the mount workloads but for the builds on the disk, in memory, and
// on what else is installed, and sees that each has its sample and nothing stays
// mounted. Each workload checks its own result.
func TestMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting without a setuid program needs root")
	}
	for _, path := range []string{"/dev/fuse", "/usr/bin/sqlite3"} {
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
	}
	only := "^mount-"
	if testing.Short() {
		only = "^mount-(untar|sqlite|read-cold)$"
	}
	dir := t.TempDir()
	r := &runner{
		opts: &options{rounds: 1, short: true, only: regexp.MustCompile(only), skip: regexp.MustCompile("go-build"), avfs: filepath.Join(dir, "none")},
		dir:  dir,
		res:  &Results{Host: Host{FileSystem: "disk", Settings: map[string][]string{"sqlite": {"r", "d"}}}, Backends: []string{"sqlite"}, Rounds: 1, Short: true},
	}
	if err := r.mounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.res.Failures {
		t.Error(f)
	}
	for _, g := range bench.MountGroups() {
		for _, w := range g.Workloads {
			for _, target := range []string{"disk", floor} {
				c := cellOf(r.res.Samples, w.Name, target, w.Short, millis)
				if want := r.opts.wants(w.Name); c.missing() == want {
					t.Errorf("%s on %s was measured: %v, want %v", w.Name, target, !c.missing(), want)
				}
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("something is still mounted, or not known: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "mounts"))
	if err != nil || len(left) > 0 {
		t.Errorf("folders were left behind: %v, %v", left, err)
	}
}

// mounted is a run on three file systems, one of which was not there, where the
// vault took twice the floor's time and half of its rate.
func mounted() *Results {
	res := fake()
	res.Targets = []Target{
		{Name: "ext4", What: "the disk", Keeps: "some"}, {Name: floor, What: "memory", Keeps: "nothing"},
		{Name: "avfs/sqlite", What: "a vault", Keeps: "more"}, {Name: "bindfs", What: "a peer", Keeps: "some", Missing: "not installed"},
	}
	for i := range 3 {
		for name, ms := range map[string]int{"ext4": 50, floor: 100, "avfs/sqlite": 200} {
			ns := int64(ms+i) * int64(time.Millisecond)
			for workload, size := range map[string]int{"mount-untar": 1000, "mount-write": 64} {
				res.Samples = append(res.Samples, bench.Sample{Workload: workload, Backend: name, Size: size, Round: i, NS: ns, Reps: 1})
			}
		}
	}
	return res
}

// TestMountReport checks figures, ratios to both bases in time also where the figure
// is a rate, durability, what was missing, and the plot.
func TestMountReport(t *testing.T) {
	dir := t.TempDir()
	if err := write(mounted(), dir); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| mount-untar | 1,000 files | nothing is synced | 51 (50-52) | 101 (100-102) | 201 (200-202) |",
		"| mount-untar | 1,000 files | 1 / 0.50 | 1.98 / 1 | 3.94 / 1.99 |",
		"| mount-write | 64 MB | the file is synced at the end | 1255 (1231-1280) | 634 (627-640) | 318 (317-320) |",
		"| mount-write | 64 MB | 1 / 0.50 | 1.98 / 1 | 3.94 / 1.99 |",
		"| Mounted trees, to memfs | 1 | 0.50 (1, 0) | 1 | 1.99 (0, 1) |",
		"| bindfs | **not measured**: not installed | some |",
		"| Durable commits | 2 | 0.76 (1, 0) |",
	} {
		if !strings.Contains(string(report), want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, "plots", "mounted-large-files.svg"))
	if err != nil || !strings.Contains(string(svg), ">3.94<") {
		t.Errorf("the plot does not show that the vault took 3.94 times the disk's time: %v", err)
	}
}

// TestMountWorkloads checks that no row could lack its durability or its size.
func TestMountWorkloads(t *testing.T) {
	for _, g := range bench.MountGroups() {
		for _, w := range g.Workloads {
			if w.Durability == "" || w.What == "" || w.Unit == "" || w.Section == "" || w.Size < 1 || w.Short < 1 || w.Reps < 1 || !strings.HasPrefix(w.Name, "mount-") {
				t.Errorf("workload %s is not complete", w.Name)
			}
		}
	}
}
