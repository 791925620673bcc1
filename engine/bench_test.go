package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// The benchmarks use memkv, so that they measure the engine alone; nothing is
// durable in memory.

func benchVault(b *testing.B, opts *engine.Options) *engine.Vault {
	b.Helper()
	ctx := context.Background()
	st, err := engine.Create(ctx, memkv.New(engine.Tables()...), opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	})
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// fill makes n small files, 100 in a directory, without their content.
func fill(tb testing.TB, v *engine.Vault, n int) {
	tb.Helper()
	ctx := context.Background()
	var dir engine.Ino
	for i := range n {
		if i%100 == 0 {
			a, err := v.Mkdir(ctx, engine.RootIno, fmt.Sprintf("dir%06d", i/100), 0o755, engine.Owner{})
			if err != nil {
				tb.Fatal(err)
			}
			dir = a.Ino
		}
		if _, err := v.Mknod(ctx, dir, fmt.Sprintf("file%02d.go", i%100), 0o644, 0, engine.Owner{}); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := v.Commit(ctx, true); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkCreate makes small files: create, write, close; commits are included.
func BenchmarkCreate(b *testing.B) {
	v := benchVault(b, nil)
	ctx := context.Background()
	data := []byte("package main\n\nfunc main() {}\n")
	b.ReportAllocs()
	var dir engine.Ino
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			a, err := v.Mkdir(ctx, engine.RootIno, fmt.Sprintf("dir%06d", i/1000), 0o755, engine.Owner{})
			if err != nil {
				b.Fatal(err)
			}
			dir = a.Ino
		}
		h, _, err := v.Create(ctx, dir, fmt.Sprintf("file%03d.go", i%1000), 0o644, engine.Owner{}, engine.OpenWrite, true)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.WriteAt(ctx, data, 0); err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStat looks names up and stats them, among 100,000 files.
func BenchmarkStat(b *testing.B) {
	v := benchVault(b, nil)
	fill(b, v, 100_000)
	ctx := context.Background()
	dir, err := v.Resolve(ctx, "dir000500", true)
	if err != nil {
		b.Fatal(err)
	}
	for _, op := range []struct {
		name string
		run  func(i int) error
	}{
		{"Lookup", func(i int) error {
			_, err := v.Lookup(ctx, dir.Ino, fmt.Sprintf("file%02d.go", i%100))
			return err
		}},
		{"Stat", func(i int) error {
			_, err := v.Stat(ctx, dir.Ino+1+engine.Ino(i%100))
			return err
		}},
	} {
		b.Run(op.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := op.run(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchFile(b *testing.B, v *engine.Vault) *engine.File {
	b.Helper()
	h, _, err := v.Create(context.Background(), engine.RootIno, "big", 0o644, engine.Owner{}, engine.OpenRead|engine.OpenWrite, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	})
	return h
}

// BenchmarkOverwrite writes 4 KiB at random places of a 64 MiB file.
func BenchmarkOverwrite(b *testing.B) {
	v := benchVault(b, nil)
	h := benchFile(b, v)
	ctx := context.Background()
	data := make([]byte, 4096)
	rng := rand.New(rand.NewPCG(1, 1))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		data[0]++
		if _, err := h.WriteAt(ctx, data, rng.Int64N(64<<20-4096)&^4095); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWrite writes a file from end to end in 128 KiB pieces, commits included.
func BenchmarkWrite(b *testing.B) {
	for _, kind := range []string{"text", "random"} {
		b.Run(kind, func(b *testing.B) {
			v := benchVault(b, nil)
			h := benchFile(b, v)
			ctx := context.Background()
			rng := rand.New(rand.NewPCG(1, 1))
			data := make([]byte, 16<<20)
			for i := range data {
				data[i] = byte(rng.Uint32())
				if kind == "text" {
					data[i] = "abcdefghij\n klmno"[data[i]%17]
				}
			}
			b.SetBytes(engine.ChunkSize)
			for i := 0; b.Loop(); i++ {
				at := i * 127 * 1024 % (len(data) - engine.ChunkSize)
				binary.LittleEndian.PutUint64(data[at:], uint64(i)) // no two writes are equal
				if _, err := h.WriteAt(ctx, data[at:at+engine.ChunkSize], int64(i%4096)*engine.ChunkSize); err != nil {
					b.Fatal(err)
				}
			}
			if err := v.Sync(ctx); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkRead reads a cached file from end to end in 128 KiB pieces.
func BenchmarkRead(b *testing.B) {
	v := benchVault(b, nil)
	h := benchFile(b, v)
	ctx := context.Background()
	const size = 16 << 20
	if _, err := h.WriteAt(ctx, make([]byte, size), 0); err != nil {
		b.Fatal(err)
	}
	if err := v.Sync(ctx); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, engine.ChunkSize)
	b.SetBytes(engine.ChunkSize)
	for i := 0; b.Loop(); i++ {
		if _, err := h.ReadAt(ctx, buf, int64(i*engine.ChunkSize%size)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFork forks and checkpoints vaults of several sizes.
func BenchmarkFork(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		if testing.Short() && n > 100_000 {
			continue
		}
		v := benchVault(b, nil)
		fill(b, v, n)
		ctx := context.Background()
		i := 0
		b.Run(fmt.Sprintf("fork/files=%d", n), func(b *testing.B) {
			for b.Loop() {
				i++
				if _, err := v.Store().Fork(ctx, "main", fmt.Sprintf("fork%d", i)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("checkpoint/files=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
