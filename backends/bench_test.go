package backends_test

import (
	"crypto/sha256"
	"math/rand"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine/kv"
)

var (
	benchNodes   = kv.Table{Name: "nodes", IDs: true}
	benchDigests = kv.Table{Name: "digests"}
	benchValue   = make([]byte, 100)
)

// openBench opens the store at path for a benchmark.
func openBench(b *testing.B, d kv.Driver, path string, create bool) kv.Store {
	b.Helper()
	st, err := d.Open(b.Context(), path, kv.Options{Tables: []kv.Table{benchNodes, benchDigests}, Create: create})
	if err != nil {
		b.Fatal(err)
	}
	return st
}

// update runs fn in an update that must succeed.
func update(b *testing.B, st kv.Store, mode kv.Mode, fn func(kv.Writer) error) {
	if err := st.Update(b.Context(), mode, fn); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPut measures one small put in an update of its own.
func BenchmarkPut(b *testing.B) {
	for _, d := range backends.All() {
		for name, mode := range map[string]kv.Mode{"Relaxed": kv.Relaxed, "Durable": kv.Durable} {
			b.Run(d.Name()+"/"+name, func(b *testing.B) {
				st := openBench(b, d, filepath.Join(b.TempDir(), "store.avfs"), true)
				defer st.Close()
				id := uint64(0)
				for b.Loop() {
					id++
					update(b, st, mode, func(w kv.Writer) error { return w.Put(benchNodes, kv.ID(id), benchValue) })
				}
			})
		}
	}
}

// BenchmarkMillion measures what a store with a million keys of 100 bytes costs:
// durable updates of 1,000 puts under ids that grow and under digests, reads, opening
// with closing, and disk space for each key.
func BenchmarkMillion(b *testing.B) {
	for _, d := range backends.All() {
		b.Run(d.Name(), func(b *testing.B) { benchMillion(b, d) })
	}
}

func benchMillion(b *testing.B, d kv.Driver) {
	const n = 1_000_000
	path := filepath.Join(b.TempDir(), "store.avfs")
	st := openBench(b, d, path, true)
	for id := uint64(1); id <= n; {
		update(b, st, kv.Relaxed, func(w kv.Writer) error {
			for range 40_000 {
				if err := w.Put(benchNodes, kv.ID(id), benchValue); err != nil {
					return err
				}
				id++
			}
			return nil
		})
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("OpenClose", func(b *testing.B) {
		for b.Loop() {
			if err := openBench(b, d, path, false).Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	st = openBench(b, d, path, false)
	defer st.Close()
	size, err := st.(kv.Sizer).Size()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("ViewGet", func(b *testing.B) {
		benchGet(b, st, n)
		b.ReportMetric(float64(size)/n, "disk-B/key")
	})
	b.Run("Put1000/Sequential/Durable", func(b *testing.B) { bench1000(b, st, n, putSequential) })
	b.Run("Put1000/Random/Durable", func(b *testing.B) { bench1000(b, st, n, putRandom) })
}

// benchGet measures a view that reads one of n keys.
func benchGet(b *testing.B, st kv.Store, n int) {
	b.ReportAllocs()
	rnd := rand.New(rand.NewSource(1))
	for b.Loop() {
		err := st.View(b.Context(), func(r kv.Reader) error {
			_, _, err := r.Get(benchNodes, kv.ID(uint64(rnd.Intn(n)+1)))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// bench1000 measures durable updates of 1,000 puts after id.
func bench1000(b *testing.B, st kv.Store, id uint64, put func(w kv.Writer, id uint64) error) {
	for b.Loop() {
		update(b, st, kv.Durable, func(w kv.Writer) error {
			for range 1000 {
				id++
				if err := put(w, id); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func putSequential(w kv.Writer, id uint64) error { return w.Put(benchNodes, kv.ID(id), benchValue) }

func putRandom(w kv.Writer, id uint64) error {
	digest := sha256.Sum256(kv.ID(id))
	return w.Put(benchDigests, digest[:], kv.ID(id))
}
