package run_test

import (
	"context"
	"os/exec"
	"slices"
	"testing"

	"github.com/agentvfs/avfs/proxy/run"
)

// TestMemoryOfEachProcess holds that a limit of each process is named where a command
// failed with most of it in memory, and only there.
func TestMemoryOfEachProcess(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED, NOT PROVEN: breaches of a memory limit: no python3")
	}
	for _, c := range []struct {
		name, script string
		hit          bool
	}{
		{"all of it", "b = []\nwhile True: b.append(bytearray(4 << 20))", true},
		{"much and well", "b = [bytearray(4 << 20) for _ in range(100)]", false},
		{"little and not well", "raise SystemExit(1)", false},
		{"too much at once", "bytearray(2 << 30)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := run.Run(context.Background(), run.Spec{
				Argv: []string{python, "-c", c.script}, Env: env(), NoCgroup: true, Limits: run.Limits{MemoryBytes: 512 << 20},
			})
			if err != nil {
				t.Fatal(err)
			}
			if hit := slices.Contains(res.LimitsHit, run.LimitMemory); hit != c.hit {
				t.Errorf("limits hit: %v; exit code %d, %d MiB in memory", res.LimitsHit, res.ExitCode, res.MaxRSS>>20)
			}
		})
	}
}
