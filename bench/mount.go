package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// MountGroup is what programs do, one after the other, in a directory of a file
// system that is new in every round.
type MountGroup struct {
	Name      string
	Workloads []*MountWorkload
	// inputs make what the workloads read from the host's disk, below dir.
	inputs []inputStep
}

type inputStep = func(in *Inputs, ctx context.Context, dir, repo string) error

// MountWorkload is one thing that programs do on a file system. It keeps no state.
// A sample is the median of the wall times of Do, whole processes included.
type MountWorkload struct {
	Name       string // stable; begins with "mount-"
	Section    string // the part of the report that shows it
	What       string // what is done, for people
	Unit       string // what sizes count; "MB" makes the figure a rate
	Size       int
	Short      int    // the size of a short run
	Durability string // what is durable at the end, for people
	// Reps is how often Do can run, as it finds each time what it found first.
	Reps int
	// Cold says that neither the kernel nor the file system has anything of
	// what was written before in memory.
	Cold bool
	// Prepare runs once before Do and is not measured; it may be nil.
	Prepare func(ctx context.Context, p *Place) error
	Do      func(ctx context.Context, p *Place) error
}

// Rate reports whether the figure is a rate, of which more is better.
func (w *MountWorkload) Rate() bool { return w.Unit == "MB" }

// SizeOf returns the size of a whole or a short run.
func (w *MountWorkload) SizeOf(short bool) int {
	if short {
		return w.Short
	}
	return w.Size
}

// Place is where a mount workload runs.
type Place struct {
	Dir string // a directory of the file system, empty before the first workload of a group
	In  *Inputs
}

// MountGroups returns every group in the order of the report.
func MountGroups() []MountGroup {
	return []MountGroup{treeGroup(), databaseGroup(), buildGroup(), largeGroup()}
}

// path is a file or directory of the place.
func (p *Place) path(name string) string { return filepath.Join(p.Dir, name) }

// run runs a program in the place and returns what it printed.
func (p *Place) run(ctx context.Context, name string, args ...string) (string, error) {
	return p.In.run(ctx, p.Dir, nil, name, args...)
}

// run runs a program in dir, with variables added to the environment.
func (in *Inputs) run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(),
		"LC_ALL=C", "HOME="+in.home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@localhost", "GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@localhost")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %q: %w: %s", name, args, err, stderr.String())
	}
	return stdout.String(), nil
}

// expect is run for a program that must print so many lines.
func (p *Place) expect(ctx context.Context, lines int, name string, args ...string) error {
	out, err := p.run(ctx, name, args...)
	if err == nil && strings.Count(out, "\n") != lines {
		err = fmt.Errorf("%s %q printed %d lines, not %d", name, args, strings.Count(out, "\n"), lines)
	}
	return err
}
