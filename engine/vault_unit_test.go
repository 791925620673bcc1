package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

func newVault(t *testing.T, opts *engine.Options) (*engine.Store, *engine.Vault, *memkv.Store) {
	t.Helper()
	ctx := context.Background()
	db := newMem(t)
	st, err := engine.Create(ctx, db, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	return st, v, db
}

func put(t *testing.T, v *engine.Vault, p, data string) {
	t.Helper()
	if _, err := v.WriteFile(context.Background(), p, strings.NewReader(data), nil); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, v *engine.Vault, p string) string {
	t.Helper()
	a, err := v.Resolve(context.Background(), p, true)
	if err != nil {
		t.Fatal(err)
	}
	data, err := content(context.Background(), v, a)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wantKind(t *testing.T, what string, err error, kind engine.Kind) {
	t.Helper()
	if engine.KindOf(err) != kind {
		t.Errorf("%s: %v is %q, not %q", what, err, engine.KindOf(err), kind)
	}
}

// TestRestoredOrphan restores a file that is unlinked and still open: its handle is
// stale, and the file is what it was.
func TestRestoredOrphan(t *testing.T) {
	for _, paths := range [][]string{nil, {"f"}} {
		ctx := context.Background()
		st, v, _ := newVault(t, quietOptions())
		put(t, v, "f", "before")
		cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := v.Resolve(ctx, "f", true)
		if err != nil {
			t.Fatal(err)
		}
		h, err := v.Open(ctx, a.Ino, engine.OpenRead|engine.OpenWrite)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Remove(ctx, "f"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.WriteAt(ctx, bytes.Repeat([]byte("z"), 300_000), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Restore(ctx, cp.Root, &engine.RestoreOptions{Paths: paths}); err != nil {
			t.Fatal(err)
		}
		if got := get(t, v, "f"); got != "before" {
			t.Errorf("paths %v: restored as %.20q", paths, got)
		}
		_, err = h.ReadAt(ctx, make([]byte, 1), 0)
		wantKind(t, "read through the old handle", err, engine.Stale)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if in := v.Info(); in.Bytes != int64(len("before")) || in.Files != 1 {
			t.Errorf("usage is %+v", in)
		}
		sound(t, st, "afterwards")
	}
}

// TestSpilled pushes an unlinked open file out of memory several times; its chunks
// go with its last handle.
func TestSpilled(t *testing.T) {
	ctx := context.Background()
	opts := quietOptions()
	opts.DirtyBytes = 256 << 10
	st, v, _ := newVault(t, opts)
	h, _, err := v.Create(ctx, engine.RootIno, "t", 0o600, engine.Owner{}, engine.OpenRead|engine.OpenWrite, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Unlink(ctx, engine.RootIno, "t"); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if _, err := h.WriteAt(ctx, bytes.Repeat([]byte{byte(i), byte(i * 7), 3}, 50_000), int64(i%8)*engine.ChunkSize); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 3)
	if _, err := h.ReadAt(ctx, got, 3*engine.ChunkSize+3); err != nil || got[0] != 35 {
		t.Errorf("read %v, %v", got, err)
	}
	if _, err := st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ReadAt(ctx, got, 7*engine.ChunkSize+3); err != nil || got[0] != 39 {
		t.Errorf("after gc: read %v, %v", got, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		put(t, v, "x", time.Now().String())
		if _, err := v.Commit(ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := st.GC(ctx)
	if err != nil || rep.Chunks > 3 {
		t.Errorf("%d chunks of a file that is gone were left for gc, %v", rep.Chunks, err)
	}
	if in := v.Info(); in.Files != 1 {
		t.Errorf("usage is %+v", in)
	}
	sound(t, st, "afterwards")
}

// TestPressure makes a vault with little unsaved content get the room that another
// one holds.
func TestPressure(t *testing.T) {
	ctx := context.Background()
	opts := quietOptions()
	opts.DirtyBytes = 1 << 20
	st, v, db := newVault(t, opts)
	other, err := st.CreateVault(ctx, "other")
	if err != nil {
		t.Fatal(err)
	}
	put(t, other, "big", strings.Repeat("0123456789", 110_000))
	commits := 0
	db.OnCommit(func(int) { commits++ })
	defer db.OnCommit(nil)
	for i := range 100 {
		put(t, v, "small", fmt.Sprint(i))
	}
	if commits > 10 {
		t.Errorf("%d commits for 100 small writes", commits)
	}
}

// TestClosed makes sure that nothing is accepted once it cannot be kept.
func TestClosed(t *testing.T) {
	ctx := context.Background()
	db := newMem(t)
	st, err := engine.Create(ctx, db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	h, _, err := v.Create(ctx, engine.RootIno, "f", 0o644, engine.Owner{}, engine.OpenRead|engine.OpenWrite, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteAt(ctx, []byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "delete with an open file", st.DeleteVault(ctx, "main"), engine.Busy)
	if err := errors.Join(st.Close(), st.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = h.WriteAt(ctx, []byte("x"), 0)
	wantKind(t, "write", err, engine.Closed)
	_, err = h.ReadAt(ctx, make([]byte, 1), 0)
	wantKind(t, "read", err, engine.Closed)
	wantKind(t, "sync", h.Sync(ctx), engine.Closed)
	_, err = st.CreateVault(ctx, "late")
	wantKind(t, "create vault", err, engine.Closed)
	_, err = v.Checkpoint(ctx, engine.CheckpointOptions{})
	wantKind(t, "checkpoint", err, engine.Closed)
	if err := h.Close(); err != nil {
		t.Errorf("close of a handle: %v", err)
	}
	wantKind(t, "second close", h.Close(), engine.BadHandle)
	back, err := engine.Open(ctx, db.Clone(memkv.PowerLoss, 0), quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	if v, err = back.Vault(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	if got := get(t, v, "f"); got != "kept" {
		t.Errorf("after power loss: %q", got)
	}
	if err := back.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFirstSync makes the first Sync after an open reach the disk, although nothing
// changed: the process before may have left the state to the operating system.
func TestFirstSync(t *testing.T) {
	ctx := context.Background()
	st, v, db := newVault(t, quietOptions())
	put(t, v, "f", "relaxed")
	if _, err := v.Commit(ctx, false); err != nil {
		t.Fatal(err)
	}
	if db.Tail() == 0 {
		t.Fatal("a relaxed commit is durable")
	}
	died := db.Clone(memkv.ProcessDeath, 0)
	again, err := engine.Open(ctx, died, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	v2, err := again.Vault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	durable := 0
	died.OnCommit(func(int) { durable++ })
	if err := v2.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if durable != 1 {
		t.Errorf("the first sync made %d transactions", durable)
	}
	if err := v2.Sync(ctx); err != nil || durable != 1 {
		t.Errorf("the second sync made another, %v", err)
	}
	died.OnCommit(nil)
	sound(t, st, "the first store")
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPunchedEmpty empties a stored chunk by a hole that leaves the size alone: its
// old content must not come back.
func TestPunchedEmpty(t *testing.T) {
	ctx := context.Background()
	st, v, _ := newVault(t, quietOptions())
	put(t, v, "f", strings.Repeat("x", 50))
	a, err := v.Resolve(ctx, "f", true)
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Open(ctx, a.Ino, engine.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return h.Truncate(ctx, 200) },
		func() error { return v.Sync(ctx) },
		func() error { return h.Allocate(ctx, 0, 100, engine.AllocPunchHole|engine.AllocKeepSize) },
		func() error { return v.Sync(ctx) },
		h.Close,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, v, "f"); got != strings.Repeat("\x00", 200) {
		t.Errorf("read %q", got)
	}
	if in := v.Info(); in.Bytes != 0 {
		t.Errorf("usage is %+v", in)
	}
	sound(t, st, "afterwards")
}

// TestHeldChunks keeps the stored content of an unlinked open file while commits
// delete what the tree gave up.
func TestHeldChunks(t *testing.T) {
	ctx := context.Background()
	opts := quietOptions()
	opts.CacheBytes = 1
	st, v, _ := newVault(t, opts)
	want := strings.Repeat("held ", 60_000)
	put(t, v, "f", want)
	if _, err := v.Commit(ctx, false); err != nil {
		t.Fatal(err)
	}
	a, err := v.Resolve(ctx, "f", true)
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Open(ctx, a.Ino, engine.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Remove(ctx, "f"); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		put(t, v, "other", fmt.Sprint(i))
		if _, err := v.Commit(ctx, false); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if n, err := h.ReadAt(ctx, got, 0); err != nil || string(got[:n]) != want {
			t.Fatalf("after commit %d: %d bytes, %v", i, n, err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		put(t, v, "other", fmt.Sprint("again", i))
		if _, err := v.Commit(ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	if rep, err := st.GC(ctx); err != nil || rep.Chunks > 1 {
		t.Errorf("%d chunks were left for gc, %v", rep.Chunks, err)
	}
	sound(t, st, "afterwards")
}

// TestGCAfterRemoval collects what was removed a moment ago, before any commit.
func TestGCAfterRemoval(t *testing.T) {
	ctx := context.Background()
	st, v, _ := newVault(t, quietOptions())
	put(t, v, "kept", strings.Repeat("kept", 10_000))
	put(t, v, "big", strings.Repeat("big", 100_000))
	if _, err := v.Commit(ctx, false); err != nil {
		t.Fatal(err)
	}
	if err := v.Unlink(ctx, engine.RootIno, "big"); err != nil {
		t.Fatal(err)
	}
	if rep, err := st.GC(ctx); err != nil || rep.LiveChunks != 1 {
		t.Errorf("%d chunks are alive, want 1, %v", rep.LiveChunks, err)
	}
	sound(t, st, "afterwards")
}

// TestDeleteBesideOthers deletes vaults while their mounts end and their quotas
// change: under the race detector nothing of it races, and nothing brings the record of
// a deleted vault back.
func TestDeleteBesideOthers(t *testing.T) {
	ctx := context.Background()
	st, _, db := newVault(t, quietOptions())
	for i := range 50 {
		name := fmt.Sprintf("v%d", i)
		v, err := st.CreateVault(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 20 {
				v.SetMountSession(&engine.MountSession{ID: "m"})
			}
		})
		wg.Go(func() {
			for n := range int64(20) {
				if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxFiles: &n}, engine.AuditEntry{}); err != nil {
					wantKind(t, "a quota for a vault that is gone", err, engine.Closed)
					return
				}
			}
		})
		if err := st.DeleteVault(ctx, name); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
	again, err := engine.Open(ctx, db.Clone(0, 0), quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	if infos, err := again.Vaults(ctx); err != nil || len(infos) != 1 {
		t.Errorf("%d vaults are left: %v", len(infos), err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
