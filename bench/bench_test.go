package bench_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/bench"
	"github.com/agentvfs/avfs/engine"
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

// place makes environments of one workload, on one back end, at one size.
type place struct {
	env     bench.Env // without a store
	fixture string    // folder with the store to begin with; empty: none
}

func newPlace(tb testing.TB, w *bench.Workload, d kv.Driver, size, base int) *place {
	tb.Helper()
	p := &place{env: bench.Env{Driver: d, Size: size, Base: base}}
	if w.Source {
		p.env.Source = goSource(tb, size)
	}
	if w.Fixture != nil {
		p.fixture = tb.TempDir()
		if err := w.Fixture(size, base).Build(tb.Context(), d, filepath.Join(p.fixture, bench.StoreName)); err != nil {
			tb.Fatal(err)
		}
	}
	return p
}

// fresh returns an environment with its own copy of the store.
func (p *place) fresh(tb testing.TB) *bench.Env {
	tb.Helper()
	env, dir := p.env, tb.TempDir()
	if p.fixture != "" {
		if err := bench.CopyTree(p.fixture, dir, -1); err != nil {
			tb.Fatal(err)
		}
	}
	env.Store = filepath.Join(dir, bench.StoreName)
	return &env
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

// benchmark runs one workload. Only a workload of one operation gets a new store
// for each.
func benchmark(b *testing.B, w *bench.Workload, d kv.Driver, size int) {
	p := newPlace(b, w, d, size, bench.Base(testing.Short()))
	b.ResetTimer()
	b.StopTimer()
	if w.Reps > 1 {
		operations(b, w, p, b.N)
		return
	}
	for range b.N {
		operations(b, w, p, 1)
	}
}

// operations measures n operations of one job.
func operations(b *testing.B, w *bench.Workload, p *place, n int) {
	ctx := b.Context()
	job, err := w.Start(ctx, p.fresh(b))
	if err != nil {
		b.Fatal(err)
	}
	if job.DB != nil {
		if _, err := bench.Durability(ctx, job.DB, w.Mode); err != nil {
			b.Fatal(err)
		}
	}
	for i := range n {
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
		return
	}
	figures, err := job.Finish(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range w.Figures {
		b.ReportMetric(figures[f.Name], f.Name+"-"+f.Unit)
	}
}

// testSize is smaller than any size that is measured.
func testSize(w *bench.Workload) int {
	if w.Unit == "MiB" {
		return 2
	}
	return min(100, w.Short[0])
}

// TestWorkloads runs every workload once at a small size on every back end:
// each checks its own result, so a figure cannot come from work that was not done.
func TestWorkloads(t *testing.T) {
	for _, d := range backends.All() {
		for _, w := range bench.All() {
			t.Run(d.Name()+"/"+w.Name, func(t *testing.T) {
				env := newPlace(t, w, d, testSize(w), 1000).fresh(t)
				s, err := bench.Measure(t.Context(), w, env)
				if err != nil {
					t.Fatal(err)
				}
				check(t, env)
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

// check looks for damage in the store that a workload left.
func check(t *testing.T, env *bench.Env) {
	t.Helper()
	db, err := env.Driver.Open(t.Context(), env.Store, kv.Options{Tables: engine.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := kv.As[kv.Verifier](db); ok {
		if err := v.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}
	names, err := engine.VaultNames(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 { // the workload used the database without the engine
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	s, err := engine.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := s.Check(t.Context(), &engine.CheckOptions{ReadData: true, History: true})
	if err != nil || len(rep.Findings) > 0 {
		t.Errorf("check: %v, %v", rep.Findings, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
