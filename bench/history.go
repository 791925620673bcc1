package bench

import (
	"bytes"
	"context"
	"fmt"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

const (
	sectionHistory = "History"
	eachDurable    = "each one survives power loss when it returns"
)

// historyWorkloads keep states, compare them and bring them back.
func historyWorkloads() []*Workload {
	files, shortFiles := []int{1000, 100_000}, []int{1000, 10_000}
	changes, shortChanges := []int{1, 100, 10_000}, []int{1, 100}
	sized := func(n, _ int) Fixture { return filesFixture(n) }
	fixed := func(_, base int) Fixture { return filesFixture(base) }
	return []*Workload{
		{
			Name: "fork", Section: sectionHistory, What: "fork a vault of so many files",
			Unit: "files", Sizes: files, Short: shortFiles,
			Mode: kv.Durable, Durability: eachDurable, Reps: 30, Fixture: sized, Start: startFork,
		},
		{
			Name: "checkpoint", Section: sectionHistory, What: "checkpoint a vault of so many files in which one changed",
			Unit: "files", Sizes: files, Short: shortFiles,
			Mode: kv.Durable, Durability: eachDurable, Reps: 30, Fixture: sized, Start: startCheckpoint,
		},
		{
			Name: "diff", Section: sectionHistory, What: "list the changes between two states of 100,000 files (10,000 in a short run)",
			Unit: "changes", Sizes: changes, Short: shortChanges,
			Mode: kv.Durable, Durability: noWrites, Reps: 10, Fixture: fixed, Start: startDiff,
		},
		{
			Name: "restore", Section: sectionHistory, What: "bring a checkpoint of 100,000 files (10,000 in a short run) back after so many changed",
			Unit: "changes", Sizes: changes, Short: shortChanges,
			Mode: kv.Durable, Durability: eachDurable, Reps: 10, Fixture: fixed, Start: startRestore,
		},
	}
}

func startFork(ctx context.Context, env *Env) (*Job, error) {
	s, _, err := openVault(ctx, env)
	if err != nil {
		return nil, err
	}
	do := func(ctx context.Context, i int) error {
		_, err := s.Fork(ctx, vaultName, fmt.Sprint("fork", i))
		return err
	}
	return &Job{DB: s.Unwrap(), Do: do, Finish: closing(s)}, nil
}

func startCheckpoint(ctx context.Context, env *Env) (*Job, error) {
	s, v, err := openVault(ctx, env)
	if err != nil {
		return nil, err
	}
	before := func(ctx context.Context, i int) error { return rewrite(ctx, v, []int{i % filesPerDir}, i+1) }
	do := func(ctx context.Context, i int) error {
		_, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: fmt.Sprint("cp", i)})
		return err
	}
	return &Job{DB: s.Unwrap(), Before: before, Do: do, Finish: closing(s)}, nil
}

// rewrite gives files a new content; it is not committed.
func rewrite(ctx context.Context, v *engine.Vault, files []int, version int) error {
	for _, i := range files {
		if _, err := v.WriteFile(ctx, filePath(i), bytes.NewReader(text(i, version)), nil); err != nil {
			return err
		}
	}
	return nil
}

// startChanges opens a vault, checkpoints it, and returns what changes so many
// files of it as the size says, spread over the whole.
func startChanges(ctx context.Context, env *Env) (s *engine.Store, v *engine.Vault, from engine.Root, change func(ctx context.Context, version int) (engine.Root, error), err error) {
	s, v, err = openVault(ctx, env)
	if err != nil {
		return nil, nil, from, nil, err
	}
	cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "start"})
	if err != nil {
		return nil, nil, from, nil, joinClose(err, s)
	}
	files := pick(env.Size, env.Base)
	change = func(ctx context.Context, version int) (engine.Root, error) {
		if err := rewrite(ctx, v, files, version); err != nil {
			return engine.Root{}, err
		}
		return v.Commit(ctx, true)
	}
	return s, v, cp.Root, change, nil
}

func startDiff(ctx context.Context, env *Env) (*Job, error) {
	s, _, from, change, err := startChanges(ctx, env)
	if err != nil {
		return nil, err
	}
	to, err := change(ctx, 1)
	if err != nil {
		return nil, joinClose(err, s)
	}
	do := func(ctx context.Context, _ int) error {
		_, total, err := s.Diff(ctx, from, to, nil)
		if err == nil && total != env.Size {
			err = fmt.Errorf("%d changes, not %d", total, env.Size)
		}
		return err
	}
	return &Job{DB: s.Unwrap(), Do: do, Finish: closing(s)}, nil
}

func startRestore(ctx context.Context, env *Env) (*Job, error) {
	s, v, from, change, err := startChanges(ctx, env)
	if err != nil {
		return nil, err
	}
	before := func(ctx context.Context, i int) error {
		_, err := change(ctx, i+1)
		return err
	}
	do := func(ctx context.Context, _ int) error {
		res, err := v.Restore(ctx, from, nil)
		if err == nil && res.Changed != env.Size {
			err = fmt.Errorf("%d changes, not %d", res.Changed, env.Size)
		}
		return err
	}
	return &Job{DB: s.Unwrap(), Before: before, Do: do, Finish: closing(s)}, nil
}
