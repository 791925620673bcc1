package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/transfer"
)

const (
	sectionWrite = "Files in"
	sectionRead  = "Files out"

	atTheEnd = "a durable commit at the end is part of the time"
	noWrites = "nothing is written"
)

// fileWorkloads put files into a vault.
func fileWorkloads() []*Workload {
	return []*Workload{
		{
			Name: "import", Section: sectionWrite, What: "import the first files, by path, of the Go source tree into a new store",
			Unit: "files", Sizes: []int{1000, 10_000}, Short: []int{1000},
			Mode: kv.Durable, Durability: atTheEnd, Reps: 1, Source: true, Start: startImport,
		},
		{
			Name: "create", Section: sectionWrite, What: "create small files (200 to 2,000 bytes) one by one: create, write, close",
			Unit: "files", Sizes: []int{1000, 10_000}, Short: []int{1000},
			Mode: kv.Durable, Durability: atTheEnd, Reps: 3, Start: startCreate,
		},
		{
			Name: "write", Section: sectionWrite, What: "write one file from end to end, 1 MiB at a time",
			Unit: "MiB", Sizes: []int{256}, Short: []int{32},
			Mode: kv.Durable, Durability: atTheEnd, Reps: 1, Start: startWrite,
		},
	}
}

func startImport(ctx context.Context, env *Env) (*Job, error) {
	s, v, err := newVault(ctx, env)
	if err != nil {
		return nil, err
	}
	do := func(ctx context.Context, _ int) error { return importDurably(ctx, v, env.Source) }
	return &Job{DB: s.Unwrap(), Do: do, Finish: closing(s)}, nil
}

func importDurably(ctx context.Context, v *engine.Vault, src string) error {
	if _, err := transfer.Import(ctx, v, src, "/", nil); err != nil {
		return err
	}
	_, err := v.Commit(ctx, true)
	return err
}

func startCreate(ctx context.Context, env *Env) (*Job, error) {
	s, v, err := newVault(ctx, env)
	if err != nil {
		return nil, err
	}
	contents := make([][]byte, env.Size)
	before := func(_ context.Context, rep int) error {
		for i := range contents {
			contents[i] = text(i, rep)
		}
		return nil
	}
	do := func(ctx context.Context, rep int) error {
		top, err := v.Mkdir(ctx, engine.RootIno, fmt.Sprint("rep", rep), 0o755, engine.Owner{})
		if err != nil {
			return err
		}
		return createAll(ctx, v, top.Ino, contents)
	}
	return &Job{DB: s.Unwrap(), Before: before, Do: do, Finish: closing(s)}, nil
}

func createAll(ctx context.Context, v *engine.Vault, top engine.Ino, contents [][]byte) error {
	var dir engine.Ino
	for i, data := range contents {
		if i%filesPerDir == 0 {
			a, err := v.Mkdir(ctx, top, dirName(i), 0o755, engine.Owner{})
			if err != nil {
				return err
			}
			dir = a.Ino
		}
		h, _, err := v.Create(ctx, dir, fileName(i), 0o644, engine.Owner{}, engine.OpenWrite, true)
		if err != nil {
			return err
		}
		_, err = h.WriteAt(ctx, data, 0)
		if err := errors.Join(err, h.Close()); err != nil {
			return err
		}
	}
	_, err := v.Commit(ctx, true)
	return err
}

func startWrite(ctx context.Context, env *Env) (*Job, error) {
	s, v, err := newVault(ctx, env)
	if err != nil {
		return nil, err
	}
	do := func(ctx context.Context, rep int) error { return writeBig(ctx, v, fmt.Sprint("big", rep), env.Size) }
	return &Job{DB: s.Unwrap(), Do: do, Finish: closing(s)}, nil
}

// bigFixture has a vault with one file, "big", of so many MiB.
func bigFixture(mib int) Fixture {
	return Fixture{Name: fmt.Sprintf("big-%d", mib), build: func(ctx context.Context, d kv.Driver, path string) error {
		s, v, err := newVault(ctx, &Env{Driver: d, Store: path})
		if err != nil {
			return err
		}
		return errors.Join(writeBig(ctx, v, "big", mib), s.Close())
	}}
}

// writeBig writes a new file of text in which no two chunks are equal.
func writeBig(ctx context.Context, v *engine.Vault, name string, mib int) error {
	h, _, err := v.Create(ctx, engine.RootIno, name, 0o644, engine.Owner{}, engine.OpenWrite, true)
	if err != nil {
		return err
	}
	var piece []byte
	for i := 0; len(piece) < 1<<20; i++ {
		piece = append(piece, text(i, 0)...)
	}
	piece = piece[:1<<20]
	for i := range mib {
		for at := 0; at < len(piece); at += engine.ChunkSize {
			binary.BigEndian.PutUint64(piece[at:], uint64(i*len(piece)+at))
		}
		if _, err := h.WriteAt(ctx, piece, int64(i)*int64(len(piece))); err != nil {
			return errors.Join(err, h.Close())
		}
	}
	return errors.Join(h.Sync(ctx), h.Close())
}

// readWorkloads take files out of a vault.
func readWorkloads() []*Workload {
	small, big := []int{1000, 10_000}, []int{64}
	files := func(n, _ int) Fixture { return filesFixture(n) }
	file := func(n, _ int) Fixture { return bigFixture(n) }
	read := func(name, what, unit string, sizes []int, fixture func(size, base int) Fixture, start starter) *Workload {
		return &Workload{
			Name: name, Section: sectionRead, What: what, Unit: unit, Sizes: sizes, Short: sizes[:1],
			Durability: noWrites, Reps: 1, Fixture: fixture, Start: start,
		}
	}
	hot := read("read-hot", "read small files that the same process read before", "files", small, files, startReadHot)
	hot.Reps = 3
	return []*Workload{
		hot,
		read("read-warm", "read small files in a new process, the store in the system's cache", "files", small, files, startRead(readSmall, false)),
		read("read-cold", "read small files in a new process, the store "+Evicted, "files", small, files, startRead(readSmall, true)),
		read("read-file-warm", "read one file from end to end in a new process, the store in the system's cache", "MiB", big, file, startRead(readBig, false)),
		read("read-file-cold", "read one file from end to end in a new process, the store "+Evicted, "MiB", big, file, startRead(readBig, true)),
	}
}

type (
	starter = func(context.Context, *Env) (*Job, error)
	reader  = func(ctx context.Context, v *engine.Vault, size int, buf []byte) error
)

func startRead(read reader, cold bool) starter {
	return func(ctx context.Context, env *Env) (*Job, error) {
		if cold {
			if err := Evict(env.Store); err != nil {
				return nil, err
			}
		}
		s, v, err := openVault(ctx, env)
		if err != nil {
			return nil, err
		}
		buf := make([]byte, 1<<20)
		do := func(ctx context.Context, _ int) error { return read(ctx, v, env.Size, buf) }
		return &Job{Do: do, DB: s.Unwrap(), Finish: closing(s)}, nil
	}
}

func startReadHot(ctx context.Context, env *Env) (*Job, error) {
	job, err := startRead(readSmall, false)(ctx, env)
	if err != nil {
		return nil, err
	}
	if err := job.Do(ctx, 0); err != nil {
		_, cerr := job.Finish(ctx)
		return nil, errors.Join(err, cerr)
	}
	return job, nil
}

func readSmall(ctx context.Context, v *engine.Vault, size int, buf []byte) error {
	for i := range size {
		a, err := v.Resolve(ctx, filePath(i), false)
		if err != nil {
			return err
		}
		if err := readAll(ctx, v, a, buf); err != nil {
			return fmt.Errorf("%s: %w", filePath(i), err)
		}
	}
	return nil
}

func readBig(ctx context.Context, v *engine.Vault, _ int, buf []byte) error {
	a, err := v.Resolve(ctx, "big", false)
	if err != nil {
		return err
	}
	return readAll(ctx, v, a, buf)
}

func readAll(ctx context.Context, v *engine.Vault, a engine.Attr, buf []byte) error {
	h, err := v.Open(ctx, a.Ino, engine.OpenRead)
	if err != nil {
		return err
	}
	for off := int64(0); off < a.Size; {
		n, err := h.ReadAt(ctx, buf, off)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return errors.Join(err, h.Close())
		}
		off += int64(n)
	}
	return h.Close()
}
