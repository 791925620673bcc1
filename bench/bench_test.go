package bench_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/engine/kv"
)

// goSource is where the files to import come from.
func goSource(tb testing.TB, n int) string {
	tb.Helper()
	root, err := bench.GoSource(tb.Context())
	if err != nil {
		tb.Skip("no source tree to import: ", err)
	}
	dst := filepath.Join(tb.TempDir(), "source")
	if err := bench.CopyTree(root, dst, n); err != nil {
		tb.Fatal(err)
	}
	return dst
}

// newEnv makes a place for w, with a store that holds its fixture.
func newEnv(tb testing.TB, w *bench.Workload, d kv.Driver, size int, short bool) *bench.Env {
	tb.Helper()
	env := &bench.Env{Driver: d, Store: filepath.Join(tb.TempDir(), bench.StoreName), Size: size, Short: short}
	if w.Source {
		env.Source = goSource(tb, size)
	}
	if w.Fixture != nil {
		if err := w.Fixture(size, env.Short).Build(tb.Context(), d, env.Store); err != nil {
			tb.Fatal(err)
		}
	}
	return env
}

// BenchmarkBackends runs every workload on every back end. Its durability is that
// of the workload; the settings in force are read back before the first operation.
// Compare with: benchstat -col /backend
//
// The back ends run one after the other here. For figures to publish use "make
// bench", which takes turns.
func BenchmarkBackends(b *testing.B) {
	for _, w := range bench.All() {
		sizes := w.Sizes
		if testing.Short() {
			sizes = w.Short
		}
		for _, d := range backends.All() {
			for _, size := range sizes {
				b.Run(fmt.Sprintf("workload=%s/backend=%s/size=%d", w.Name, d.Name(), size), func(b *testing.B) {
					benchmark(b, w, d, size)
				})
			}
		}
	}
}

// benchmark runs one workload, from a new store for each sample of operations.
func benchmark(b *testing.B, w *bench.Workload, d kv.Driver, size int) {
	ctx := b.Context()
	b.StopTimer()
	for done := 0; done < b.N; {
		job, err := w.Start(ctx, newEnv(b, w, d, size, testing.Short()))
		if err != nil {
			b.Fatal(err)
		}
		if job.DB != nil {
			if _, err := bench.Durability(ctx, job.DB, w.Mode); err != nil {
				b.Fatal(err)
			}
		}
		for i := 0; i < w.Reps && done < b.N; i, done = i+1, done+1 {
			if job.Before != nil {
				if err := job.Before(ctx, i); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
			err := job.Do(ctx, i)
			b.StopTimer()
			if err != nil {
				b.Fatal(err)
			}
		}
		if job.Finish == nil {
			continue
		}
		figures, err := job.Finish(ctx)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range w.Figures {
			b.ReportMetric(figures[f.Name], f.Name+"-"+f.Unit)
		}
	}
}

// TestWorkloads runs every workload once at its smallest size on every back end:
// each checks its own result, so a figure cannot come from work that was not done.
func TestWorkloads(t *testing.T) {
	for _, d := range backends.All() {
		for _, w := range bench.All() {
			t.Run(d.Name()+"/"+w.Name, func(t *testing.T) {
				s, err := bench.Measure(t.Context(), w, newEnv(t, w, d, w.Short[0], true))
				if err != nil {
					t.Fatal(err)
				}
				if s.Reps == 0 || s.NS <= 0 {
					t.Errorf("sample %+v has no measured operation", s)
				}
				for _, f := range w.Figures {
					if s.Figures[f.Name] <= 0 {
						t.Errorf("no figure %s", f.Name)
					}
				}
			})
		}
	}
}
