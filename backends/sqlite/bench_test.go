package sqlite_test

import (
	"crypto/sha256"
	"math/rand"
	"path/filepath"
	"testing"

	"github.com/agentvfs/avfs/backends/sqlite"
	"github.com/agentvfs/avfs/engine/kv"
)

var digests = kv.Table{Name: "digests"}

// openBench opens the store at path for a benchmark.
func openBench(b *testing.B, path string, create bool) kv.Store {
	b.Helper()
	st, err := sqlite.Driver{}.Open(b.Context(), path, kv.Options{Tables: []kv.Table{nodes, digests}, Create: create})
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
	for name, mode := range map[string]kv.Mode{"Relaxed": kv.Relaxed, "Durable": kv.Durable} {
		b.Run(name, func(b *testing.B) {
			st := openBench(b, filepath.Join(b.TempDir(), "store.avfs"), true)
			defer st.Close()
			value := make([]byte, 100)
			id := uint64(0)
			for b.Loop() {
				id++
				update(b, st, mode, func(w kv.Writer) error { return w.Put(nodes, kv.ID(id), value) })
			}
		})
	}
}

// BenchmarkPut1000 measures one durable update of 1,000 small puts.
func BenchmarkPut1000(b *testing.B) {
	value := make([]byte, 100)
	for name, put := range map[string]func(w kv.Writer, id uint64) error{
		"Sequential/Durable": func(w kv.Writer, id uint64) error { return w.Put(nodes, kv.ID(id), value) },
		"Random/Durable": func(w kv.Writer, id uint64) error {
			d := sha256.Sum256(kv.ID(id))
			return w.Put(digests, d[:], kv.ID(id))
		},
	} {
		b.Run(name, func(b *testing.B) {
			st := openBench(b, filepath.Join(b.TempDir(), "store.avfs"), true)
			defer st.Close()
			id := uint64(0)
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
		})
	}
}

// BenchmarkMillion measures reads and opening with a million keys of 100 bytes.
func BenchmarkMillion(b *testing.B) {
	const n = 1_000_000
	path := filepath.Join(b.TempDir(), "store.avfs")
	st := openBench(b, path, true)
	value := make([]byte, 100)
	for id := uint64(1); id <= n; {
		update(b, st, kv.Relaxed, func(w kv.Writer) error {
			for range 40_000 {
				if err := w.Put(nodes, kv.ID(id), value); err != nil {
					return err
				}
				id++
			}
			return nil
		})
	}
	rnd := rand.New(rand.NewSource(1))
	b.Run("ViewGet", func(b *testing.B) {
		for b.Loop() {
			err := st.View(b.Context(), func(r kv.Reader) error {
				_, _, err := r.Get(nodes, kv.ID(uint64(rnd.Intn(n)+1)))
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get", func(b *testing.B) {
		err := st.View(b.Context(), func(r kv.Reader) error {
			for b.Loop() {
				if _, _, err := r.Get(nodes, kv.ID(uint64(rnd.Intn(n)+1))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	})
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("OpenClose", func(b *testing.B) {
		for b.Loop() {
			if err := openBench(b, path, false).Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
