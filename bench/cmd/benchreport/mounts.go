package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentvfs/avfs/bench"
)

// mounts runs the mount workloads in rounds over the file systems that are there.
func (r *runner) mounts(ctx context.Context) error {
	groups := slices.DeleteFunc(bench.MountGroups(), func(g bench.MountGroup) bool { return !r.wantsGroup(g) })
	if len(groups) == 0 {
		return nil
	}
	all := r.targets(ctx, r.res.Host.FileSystem)
	present := slices.DeleteFunc(slices.Clone(all), func(t *mountTarget) bool { return t.Missing != "" })
	for _, t := range all {
		r.res.Targets = append(r.res.Targets, t.Target)
		if t.Missing != "" {
			r.log("%s: %s", t.Name, t.Missing)
		}
	}
	in, err := bench.NewInputs(ctx, filepath.Join(r.dir, "inputs"), ".", r.opts.short, groups)
	if err != nil {
		return err
	}
	for round := range r.opts.rounds {
		for _, g := range groups {
			if err := r.group(ctx, g, turn(present, round), in, round); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *runner) wantsGroup(g bench.MountGroup) bool {
	return slices.ContainsFunc(g.Workloads, func(w *bench.MountWorkload) bool { return r.opts.wants(w.Name) })
}

// group runs the workloads of g on new places, each workload on all of them before
// the next one begins.
func (r *runner) group(ctx context.Context, g bench.MountGroup, targets []*mountTarget, in *bench.Inputs, round int) (err error) {
	var places []*place
	defer func() {
		for _, p := range places {
			err = errors.Join(err, p.close(ctx))
		}
	}()
	for _, t := range targets {
		p, err := t.open(ctx, filepath.Join(r.dir, "mounts"), r.profileOf(g, t, round))
		if err != nil {
			r.keep(bench.Sample{}, g.Name+" on "+t.Name, err)
			continue
		}
		places = append(places, p)
	}
	left := len(slices.DeleteFunc(slices.Clone(g.Workloads), func(w *bench.MountWorkload) bool { return !r.opts.wants(w.Name) }))
	for _, w := range g.Workloads {
		if left == 0 {
			break
		}
		if err := r.workload(ctx, w, places, in, round); err != nil {
			return err
		}
		if r.opts.wants(w.Name) {
			left--
		}
	}
	return nil
}

// workload runs w on all places. Samples that nobody asked for are taken for what
// they leave to the next workload, and forgotten.
func (r *runner) workload(ctx context.Context, w *bench.MountWorkload, places []*place, in *bench.Inputs, round int) error {
	r.log("round %d of %d: %s", round+1, r.opts.rounds, w.Name)
	for _, p := range places {
		if p.failed {
			continue
		}
		s, err := r.mountSample(ctx, w, p, in)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.Round, p.failed = round, err != nil
		if err != nil || r.opts.wants(w.Name) {
			r.keep(s, w.Name+" on "+p.target.Name, err)
		}
	}
	return nil
}

// profileOf is the file for the CPU profile of one server.
func (r *runner) profileOf(g bench.MountGroup, t *mountTarget, round int) string {
	if r.opts.profiles == "" || round > 0 {
		return ""
	}
	return filepath.Join(r.opts.profiles, strings.ReplaceAll(t.Name, "/", "-")+"-"+g.Name+".pprof")
}

// workloadTime bounds one workload, so that a mount that hangs fails.
const workloadTime = 10 * time.Minute

// mountSample runs one workload on one file system.
func (r *runner) mountSample(ctx context.Context, w *bench.MountWorkload, p *place, in *bench.Inputs) (s bench.Sample, err error) {
	ctx, stop := context.WithTimeout(ctx, workloadTime)
	defer stop()
	at := &bench.Place{Dir: p.point, In: in}
	if w.Prepare != nil {
		if err := w.Prepare(ctx, at); err != nil {
			return s, err
		}
	}
	if err := p.settle(ctx); err != nil {
		return s, err
	}
	if w.Cold {
		if err := p.cool(ctx); err != nil {
			return s, err
		}
	}
	var took []time.Duration
	for range w.Reps {
		begin := time.Now()
		if err := w.Do(ctx, at); err != nil {
			return s, err
		}
		took = append(took, time.Since(begin))
	}
	return bench.Sample{
		Workload: w.Name, Backend: p.target.Name, Size: w.SizeOf(r.opts.short), NS: int64(bench.Median(took)), Reps: len(took),
	}, nil
}

// ensureProfiles makes the folder for profiles.
func (o *options) ensureProfiles() (err error) {
	if o.profiles == "" {
		return nil
	}
	if o.profiles, err = filepath.Abs(o.profiles); err != nil {
		return err
	}
	return os.MkdirAll(o.profiles, 0o755)
}
