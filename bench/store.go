package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

const (
	sectionCare = "Space"
	sectionOpen = "Open and close"
)

// storeWorkloads are about the store as a whole.
func storeWorkloads() []*Workload {
	files, shortFiles := []int{1000, 100_000}, []int{1000, 10_000}
	sized := func(n, _ int) Fixture { return filesFixture(n) }
	return []*Workload{
		{
			Name: "gc", Section: sectionCare, What: "collect the garbage after half of so many small files were removed, and give the space back",
			Unit: "files", Sizes: []int{10_000, 100_000}, Short: []int{10_000},
			Mode: kv.Durable, Durability: "the removal was durable before", Reps: 1, Fixture: sized, Start: startGC,
		},
		{
			Name: "size", Section: sectionCare, What: "disk space that a closed store takes",
			Unit: "files", Sizes: []int{10_000}, Short: []int{1000},
			Mode: kv.Durable, Durability: "everything is durable, the store is closed", Reps: 1, Source: true, Untimed: true, Start: startSize,
			Figures: []Figure{
				{"imported", "after the import of the Go source tree", "B"},
				{"forked", "with 40 forks of it", "B"},
				{"collected", "after every other file was removed, and gc", "B"},
			},
		},
		{
			Name: "open", Section: sectionOpen, What: "open a store, and look one file up",
			Unit: "files", Sizes: files, Short: shortFiles,
			Durability: noWrites, Reps: 20, Fixture: sized, Start: startOpen,
		},
		{
			Name: "close", Section: sectionOpen, What: "close a store in which one small file is not committed yet",
			Unit: "files", Sizes: files, Short: shortFiles,
			Mode: kv.Durable, Durability: "everything is durable when it returns", Reps: 20, Fixture: sized, Start: startClose,
		},
	}
}

func joinClose(err error, s *engine.Store) error { return errors.Join(err, s.Close()) }

func startGC(ctx context.Context, env *Env) (*Job, error) {
	s, v, err := openVault(ctx, env)
	if err != nil {
		return nil, err
	}
	for i := 0; i < env.Size; i += 2 * filesPerDir {
		if err := v.RemoveAll(ctx, dirName(i)); err != nil {
			return nil, joinClose(err, s)
		}
	}
	if _, err := v.Commit(ctx, true); err != nil {
		return nil, joinClose(err, s)
	}
	do := func(ctx context.Context, _ int) error {
		rep, err := s.GC(ctx)
		if err == nil && rep.Chunks == 0 {
			err = errors.New("nothing was collected")
		}
		return err
	}
	return &Job{DB: s.Unwrap(), Do: do, Finish: closing(s)}, nil
}

func startSize(ctx context.Context, env *Env) (*Job, error) {
	figures := map[string]float64{}
	do := func(ctx context.Context, _ int) error {
		for _, step := range []struct {
			name string
			run  func(ctx context.Context, env *Env) (*engine.Store, error)
		}{{"imported", sizeImport}, {"forked", sizeFork}, {"collected", sizeCollect}} {
			s, err := step.run(ctx, env)
			if err != nil {
				return err
			}
			if err := s.Close(); err != nil {
				return err
			}
			size, err := DiskSpace(filepath.Dir(env.Store))
			if err != nil {
				return err
			}
			figures[step.name] = float64(size)
		}
		return nil
	}
	return &Job{Do: do, Finish: func(context.Context) (map[string]float64, error) { return figures, nil }}, nil
}

func sizeImport(ctx context.Context, env *Env) (*engine.Store, error) {
	s, v, err := newVault(ctx, env)
	if err != nil {
		return nil, err
	}
	if err := importDurably(ctx, v, env.Source); err != nil {
		return nil, joinClose(err, s)
	}
	return s, nil
}

func sizeFork(ctx context.Context, env *Env) (*engine.Store, error) {
	s, _, err := openVault(ctx, env)
	if err != nil {
		return nil, err
	}
	for i := range 40 {
		if _, err := s.Fork(ctx, vaultName, fmt.Sprint("fork", i)); err != nil {
			return nil, joinClose(err, s)
		}
	}
	return s, nil
}

func sizeCollect(ctx context.Context, env *Env) (*engine.Store, error) {
	s, v, err := openVault(ctx, env)
	if err != nil {
		return nil, err
	}
	for i := range 40 {
		if err := s.DeleteVault(ctx, fmt.Sprint("fork", i)); err != nil {
			return nil, joinClose(err, s)
		}
	}
	names, err := fileNames(ctx, v)
	if err != nil {
		return nil, joinClose(err, s)
	}
	for i := 0; i < len(names); i += 2 {
		if err := v.Remove(ctx, names[i]); err != nil {
			return nil, joinClose(err, s)
		}
	}
	if _, err := v.Commit(ctx, true); err != nil {
		return nil, joinClose(err, s)
	}
	if _, err := s.GC(ctx); err != nil {
		return nil, joinClose(err, s)
	}
	return s, nil
}

// fileNames lists the paths of the regular files.
func fileNames(ctx context.Context, v *engine.Vault) (names []string, err error) {
	err = v.Walk(ctx, "/", func(path string, a engine.Attr) error {
		if a.IsRegular() {
			names = append(names, path)
		}
		return nil
	})
	return names, err
}

func startOpen(_ context.Context, env *Env) (*Job, error) {
	var s *engine.Store
	shut := func() error {
		if s == nil {
			return nil
		}
		return s.Close()
	}
	do := func(ctx context.Context, _ int) (err error) {
		var v *engine.Vault
		if s, v, err = openVault(ctx, env); err != nil {
			return err
		}
		_, err = v.Resolve(ctx, filePath(env.Size/2), false)
		return err
	}
	return &Job{
		Before: func(context.Context, int) error { return shut() },
		Do:     do,
		Finish: func(context.Context) (map[string]float64, error) { return nil, shut() },
	}, nil
}

func startClose(ctx context.Context, env *Env) (*Job, error) {
	s, v, err := openVault(ctx, env)
	if err != nil {
		return nil, err
	}
	job := &Job{DB: s.Unwrap()}
	job.Before = func(ctx context.Context, i int) (err error) {
		if i > 0 {
			if s, v, err = openVault(ctx, env); err != nil {
				return err
			}
		}
		return rewrite(ctx, v, []int{i % filesPerDir}, i+1)
	}
	job.Do = func(context.Context, int) error { return s.Close() }
	job.Finish = func(context.Context) (map[string]float64, error) { return nil, s.Close() }
	return job, nil
}

// DiskSpace adds up what the file system says that the files below path take, in
// bytes. What is sparse counts as little as it takes.
func DiskSpace(path string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		sum += allocated(info)
		return nil
	})
	return sum, err
}
