package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/bench"
)

// fake is a run of two back ends with one workload, where bbolt was clearly faster
// at one put and no difference showed at ten.
func fake() *Results {
	res := &Results{
		Host:     Host{CPUs: 2, LoadBefore: 1.5, Settings: map[string][]string{"sqlite": {"r", "d"}, "bbolt": {"r", "d"}}},
		Backends: []string{"sqlite", "bbolt"}, Rounds: 3, Runs: 1, Short: true,
	}
	for i := range 3 {
		for backend, ms := range map[string][2]int{"sqlite": {10, 20}, "bbolt": {5, 21}} {
			for at, size := range []int{1, 10} {
				ns := int64(ms[at]+i) * int64(time.Millisecond)
				res.Samples = append(res.Samples, bench.Sample{Workload: "commit", Backend: backend, Size: size, Round: i, NS: ns, Reps: 9})
			}
		}
	}
	return res
}

// TestReport checks the figures of a table, the mark of ranges that overlap, that
// durability stands in every row, and that a shared machine is named as one.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	if err := write(fake(), dir); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| commit | 1 put | each update survives power loss | 11 (10-12) | 6 (5-7) | 0.55 |",
		"| commit | 10 puts | each update survives power loss | 21 (20-22) | 22 (21-23) | ~1.05 |",
		"| Durable commits | 2 | 0.76 (1, 0) |",
		"shared with other work",
		"plots/durable-commits.svg",
	} {
		if !strings.Contains(string(report), want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, "plots", "durable-commits.svg"))
	if err != nil || !bytes.Contains(svg, []byte("commit  10 puts")) {
		t.Errorf("the plot does not show ten puts: %v", err)
	}
	txt, err := os.ReadFile(filepath.Join(dir, "results.txt"))
	if err != nil || !bytes.Contains(txt, []byte("BenchmarkBackends/workload=commit/backend=bbolt/size=10 9 22000000 ns/op\n")) {
		t.Errorf("results.txt is not what benchstat reads: %v\n%s", err, txt)
	}
}

// TestAgain checks that a report written from results.jsonl is the same.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	if err := write(fake(), dir); err != nil {
		t.Fatal(err)
	}
	res, err := load(filepath.Join(dir, resultsName))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := markdown(res, sectionsOf(res)), markdown(fake(), sectionsOf(fake())); !bytes.Equal(got, want) {
		t.Errorf("from results.jsonl:\n%s\nmeasured:\n%s", got, want)
	}
}

// TestDurabilityEverywhere checks that no row of a whole run could lack it.
func TestDurabilityEverywhere(t *testing.T) {
	for _, w := range bench.All() {
		if w.Durability == "" || w.What == "" || w.Unit == "" || w.Reps < 1 {
			t.Errorf("workload %s lacks its durability, what it does, its unit or its operations", w.Name)
		}
	}
}

// TestTurn checks that every back end comes first in one of as many rounds.
func TestTurn(t *testing.T) {
	for round, want := range []string{"abc", "bca", "cab", "abc"} {
		if got := strings.Join(turn([]string{"a", "b", "c"}, round), ""); got != want {
			t.Errorf("round %d goes %s, want %s", round, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.012", 1.256: "1.26", 2: "2", 12.34: "12.3", 1234.5: "1234"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}
