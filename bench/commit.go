package bench

import (
	"context"

	"github.com/agentvfs/avfs/engine/kv"
)

// commitWorkloads measure the seam alone: one update of a key-value store.
func commitWorkloads() []*Workload {
	ids, digests := kvTables()
	return []*Workload{
		commitWorkload("commit", "one update that puts rows of 100 bytes under ascending ids, into 100,000 (10,000 in a short run)", ids,
			func(id uint64) (key, val []byte) { return kv.ID(id), value(id) }),
		commitWorkload("commit-random", "one update that puts rows of 8 bytes under random 32-byte keys, into 100,000 (10,000 in a short run)", digests,
			func(id uint64) (key, val []byte) { return digest(id), kv.ID(id) }),
	}
}

func commitWorkload(name, what string, t kv.Table, row func(id uint64) (key, val []byte)) *Workload {
	sizes := []int{1, 10, 100, 1000}
	return &Workload{
		Name: name, Section: "Durable commits", What: what, Unit: "puts", Sizes: sizes, Short: sizes,
		Mode: kv.Durable, Durability: "each update survives power loss", Reps: 50,
		Fixture: func(_, base int) Fixture { return kvFixture(base) },
		Start: func(ctx context.Context, env *Env) (*Job, error) {
			db, err := openKV(ctx, env.Driver, env.Store, false)
			if err != nil {
				return nil, err
			}
			next := uint64(env.Base)
			do := func(ctx context.Context, _ int) error {
				first := next + 1
				next += uint64(env.Size)
				return db.Update(ctx, kv.Durable, func(w kv.Writer) error {
					for id := first; id < first+uint64(env.Size); id++ {
						key, val := row(id)
						if err := w.Put(t, key, val); err != nil {
							return err
						}
					}
					return nil
				})
			}
			return &Job{DB: db, Do: do, Finish: closing(db)}, nil
		},
	}
}
