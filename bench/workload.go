// Package bench measures the back ends against each other through the engine, as
// an embedder uses them.
//
// A Workload is one thing to measure at several sizes. The Go benchmarks of this
// package and the command cmd/benchreport run the same workloads; the command runs
// each sample in a process of its own, in rounds over the back ends, and writes
// RESULTS.md.
//
// A MountWorkload is what programs do in a directory, whatever file system that is
// on. The command alone runs them, on the disk, on a file system in memory (package
// memfs), on vaults with each driver and back end, and on other file systems of this
// kind where they are installed.
//
// # Durability
//
// The databases' defaults differ, so a figure without its durability says nothing.
// Measure asks the open store which settings are in force (kv.Durabler) and fails
// where they do not keep what the workload promises.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Workload is one thing to measure. It keeps no state.
type Workload struct {
	Name       string // stable, part of the benchmarks' names
	Section    string // the part of the report that shows it
	What       string // what one operation does, for people
	Unit       string // what sizes count, such as "files"
	Sizes      []int
	Short      []int   // the sizes of a short run
	Mode       kv.Mode // what the store must promise while it runs
	Durability string  // what is durable when an operation returns, for people
	// Reps is how many operations a sample has, fewer where they take long. 1
	// means that every operation needs a new Job, more that a Job can do any number.
	Reps int

	// Fixture says what the store holds at the start; nil is no store at all.
	Fixture func(size, base int) Fixture
	// Source says that the workload reads files of the host from Env.Source.
	Source bool
	// Figures lists what Job.Finish reports besides the time, and Untimed
	// that the time itself says nothing.
	Figures []Figure
	Untimed bool

	// Start prepares the operations.
	Start func(ctx context.Context, env *Env) (*Job, error)
}

// Figure is something else than time that a workload finds out.
type Figure struct {
	Name string // key in the map that Job.Finish returns
	What string // for people
	Unit string // "B" for bytes
}

// Env is where a workload runs.
type Env struct {
	Driver kv.Driver
	Store  string // path of the store: its own copy of the fixture, or not there yet
	Source string // folder on the host with Size files, where Workload.Source is set
	Size   int
	Base   int // how many files or keys the fixture has, where that is not Size
}

// Base returns Env.Base for a whole or a short run.
func Base(short bool) int {
	if short {
		return 10_000
	}
	return 100_000
}

// Job is a workload that is ready to run.
type Job struct {
	// DB is the database whose durability counts; nil where nothing is open
	// between operations.
	DB kv.Store
	// Before prepares operation i and is not measured; it may be nil.
	Before func(ctx context.Context, i int) error
	// Do is operation i.
	Do func(ctx context.Context, i int) error
	// Finish closes everything and reports figures; both may be nil.
	Finish func(ctx context.Context) (map[string]float64, error)
}

// Sample is what one run of a workload gave.
type Sample struct {
	Workload string             `json:"workload"`
	Backend  string             `json:"backend"`
	Size     int                `json:"size"`
	Round    int                `json:"round"`
	NS       int64              `json:"ns"` // the median of the operations
	Reps     int                `json:"reps"`
	PeakB    int64              `json:"peak_bytes,omitempty"` // resident memory while the operations ran
	Setting  string             `json:"setting,omitempty"`    // durability, read back from the database
	Figures  map[string]float64 `json:"figures,omitempty"`
}

// sampleBudget bounds the time of a sample: past it no further operation begins.
const sampleBudget = time.Second

// Measure runs w once. The peak of the memory is that of the whole process, so it
// means something only where the process does nothing else.
func Measure(ctx context.Context, w *Workload, env *Env) (s Sample, err error) {
	s = Sample{Workload: w.Name, Backend: env.Driver.Name(), Size: env.Size}
	job, err := w.Start(ctx, env)
	if err != nil {
		return s, fmt.Errorf("start %s: %w", w.Name, err)
	}
	defer func() {
		if job.Finish == nil {
			return
		}
		figures, ferr := job.Finish(ctx)
		s.Figures = figures
		err = errors.Join(err, ferr)
	}()
	if job.DB != nil {
		if s.Setting, err = Durability(ctx, job.DB, w.Mode); err != nil {
			return s, err
		}
	}
	if err := resetPeak(); err != nil {
		return s, err
	}
	took, err := repeat(ctx, w, job)
	if err != nil {
		return s, fmt.Errorf("%s: %w", w.Name, err)
	}
	if s.PeakB, err = peakMemory(); err != nil {
		return s, err
	}
	s.NS, s.Reps = int64(Median(took)), len(took)
	return s, nil
}

func repeat(ctx context.Context, w *Workload, job *Job) ([]time.Duration, error) {
	var took []time.Duration
	for begin := time.Now(); len(took) < w.Reps; {
		i := len(took)
		if job.Before != nil {
			if err := job.Before(ctx, i); err != nil {
				return nil, err
			}
		}
		start := time.Now()
		if err := job.Do(ctx, i); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		if time.Since(begin) > sampleBudget {
			break
		}
	}
	return took, nil
}

// Durability tells the settings that are in force for mode, and fails where they
// do not keep its promise.
func Durability(ctx context.Context, db kv.Store, mode kv.Mode) (string, error) {
	d, ok := kv.As[kv.Durabler](db)
	if !ok {
		return "", errors.New("the back end does not tell its durability, so its figures cannot be compared")
	}
	setting, holds, err := d.Durability(ctx, mode)
	if err != nil {
		return "", fmt.Errorf("read the durability back: %w", err)
	}
	if !holds {
		return "", fmt.Errorf("the settings do not keep the promise of the mode: %s", setting)
	}
	return setting, nil
}

// Median returns the middle of values, or the mean of the two middle ones; they must
// not be empty.
func Median[T float64 | time.Duration](values []T) T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// All returns every workload in the order of the report.
func All() []*Workload {
	return slices.Concat(commitWorkloads(), fileWorkloads(), readWorkloads(), historyWorkloads(), storeWorkloads())
}

// ByName finds a workload.
func ByName(name string) (*Workload, error) {
	for _, w := range All() {
		if w.Name == name {
			return w, nil
		}
	}
	return nil, fmt.Errorf("there is no workload %q", name)
}
