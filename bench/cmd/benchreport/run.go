package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/engine/kv"
)

// runner collects samples in rounds.
type runner struct {
	opts *options
	dir  string // scratch
	res  *Results
}

func (r *runner) all(ctx context.Context) error {
	for _, d := range backends.All() {
		r.res.Backends = append(r.res.Backends, d.Name())
	}
	for round := range r.opts.rounds {
		if err := r.round(ctx, round); err != nil {
			return err
		}
	}
	if err := r.programs(ctx); err != nil {
		return err
	}
	return r.mounts(ctx)
}

func (r *runner) log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// round runs each workload at each size on each back end once.
func (r *runner) round(ctx context.Context, round int) error {
	for _, w := range bench.All() {
		if !r.opts.wants(w.Name) {
			continue
		}
		if w.Untimed && round > 0 {
			continue // what it reports does not vary
		}
		r.log("round %d of %d: %s", round+1, r.opts.rounds, w.Name)
		for _, size := range r.opts.sizes(w) {
			for _, d := range turn(backends.All(), round) {
				s, err := r.sample(ctx, w, d, size)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				s.Round = round
				r.keep(s, w.Name+" on "+d.Name(), err)
			}
			if w.Name != "import" {
				continue
			}
			s, err := r.copySample(ctx, size)
			s.Round = round
			r.keep(s, "cp -a", err)
		}
	}
	return ctx.Err()
}

// turn returns list in the order in which round goes through it.
func turn[T any](list []T, round int) []T {
	k := round % max(len(list), 1)
	return append(append([]T{}, list[k:]...), list[:k]...)
}

func (r *runner) keep(s bench.Sample, what string, err error) {
	if err != nil {
		r.log("FAILED: %s: %v", what, err)
		r.res.Failures = append(r.res.Failures, what+": "+err.Error())
		return
	}
	r.res.Samples = append(r.res.Samples, s)
}

// sample takes one sample on a fresh copy of the fixture.
func (r *runner) sample(ctx context.Context, w *bench.Workload, d kv.Driver, size int) (s bench.Sample, err error) {
	run := filepath.Join(r.dir, "run")
	if err := os.Mkdir(run, 0o755); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(run)) }()
	req := request{Workload: w.Name, Backend: d.Name(), Store: filepath.Join(run, bench.StoreName), Size: size, Base: bench.Base(r.opts.short)}
	if w.Fixture != nil {
		fixture, err := r.fixture(ctx, w.Fixture(size, req.Base), d)
		if err != nil {
			return s, err
		}
		if err := bench.CopyTree(fixture, run, -1); err != nil {
			return s, err
		}
	}
	if w.Source {
		if req.Source, err = r.source(ctx, size); err != nil {
			return s, err
		}
	}
	return sample(ctx, req)
}

// fixture returns the folder with the store f, which it builds at the first use.
func (r *runner) fixture(ctx context.Context, f bench.Fixture, d kv.Driver) (string, error) {
	dir := filepath.Join(r.dir, "fixtures", d.Name(), f.Name)
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	err = f.Build(ctx, d, filepath.Join(dir, bench.StoreName))
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// source returns a folder with the first n files of the Go source tree.
func (r *runner) source(ctx context.Context, n int) (string, error) {
	dir := filepath.Join(r.dir, fmt.Sprintf("source-%d", n))
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	src, err := bench.GoSource(ctx)
	if err != nil {
		return "", err
	}
	return dir, bench.CopyTree(src, dir, n)
}

// copyPeer is what an import is compared with besides the back ends.
const copyPeer = "cp -a, sync"

// copySample measures cp -a of what import reads, with a sync of its file system.
func (r *runner) copySample(ctx context.Context, size int) (s bench.Sample, err error) {
	src, err := r.source(ctx, size)
	if err != nil {
		return s, err
	}
	dst := filepath.Join(r.dir, "copy")
	defer func() { err = errors.Join(err, os.RemoveAll(dst)) }()
	if err := command(ctx, "sync", "-f", src); err != nil {
		return s, err
	}
	begin := time.Now()
	if err := command(ctx, "cp", "-a", src, dst); err != nil {
		return s, err
	}
	if err := command(ctx, "sync", "-f", dst); err != nil {
		return s, err
	}
	return bench.Sample{Workload: "import", Backend: copyPeer, Size: size, NS: int64(time.Since(begin)), Reps: 1}, nil
}

func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}
