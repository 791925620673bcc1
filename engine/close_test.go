package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// meddler calls meddle once, before the first durable transaction after it is set.
type meddler struct {
	kv.Store
	meddle func()
}

func (m *meddler) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	if do := m.meddle; do != nil && mode&kv.Durable != 0 {
		m.meddle = nil
		do()
	}
	return m.Store.Update(ctx, mode, fn)
}

func (m *meddler) Unwrap() kv.Store { return m.Store }

// TestCloseWhilePublished removes a file and closes its last handle while a
// checkpoint or a fork that has it is being written. Both must keep its content.
func TestCloseWhilePublished(t *testing.T) {
	publish := map[string]func(context.Context, *engine.Store, *engine.Vault) (*engine.Snapshot, error){
		"checkpoint": func(ctx context.Context, st *engine.Store, v *engine.Vault) (*engine.Snapshot, error) {
			cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{})
			return st.Snapshot(cp.Root), err
		},
		"fork": func(ctx context.Context, st *engine.Store, _ *engine.Vault) (*engine.Snapshot, error) {
			f, err := st.Fork(ctx, "main", "fork")
			if err != nil {
				return nil, err
			}
			return f.Snapshot(ctx)
		},
	}
	for name, publish := range publish {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			db := &meddler{Store: newMem(t)}
			st, err := engine.Create(ctx, db, quietOptions())
			if err != nil {
				t.Fatal(err)
			}
			v, err := st.CreateVault(ctx, "main")
			if err == nil {
				_, err = v.WriteFile(ctx, "f", strings.NewReader(strings.Repeat("content ", 50_000)), &engine.WriteOptions{})
			}
			if err == nil {
				err = v.Sync(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			a, err := v.Lookup(ctx, engine.RootIno, "f")
			if err != nil {
				t.Fatal(err)
			}
			h, err := v.Open(ctx, a.Ino, engine.OpenRead)
			if err != nil {
				t.Fatal(err)
			}
			var meddled error
			db.meddle = func() { meddled = errors.Join(v.Unlink(ctx, engine.RootIno, "f"), h.Close()) }
			snap, err := publish(ctx, st, v)
			if err = errors.Join(err, meddled, v.Sync(ctx), v.Sync(ctx)); err != nil {
				t.Fatal(err)
			}
			if db.meddle != nil {
				t.Fatal("nothing was written durably")
			}
			if _, err := snap.Lookup(ctx, engine.RootIno, "f"); err != nil {
				t.Fatalf("the state does not have the file: %v", err)
			}
			rep, err := st.Check(ctx, &engine.CheckOptions{ReadData: true, History: true})
			if err != nil || len(rep.Findings) > 0 {
				t.Errorf("%v %+v", err, rep.Findings)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
