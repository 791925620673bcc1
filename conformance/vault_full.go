package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/internal/storetest"
)

// testFullDisk fills the disk: what is there stays, deleting works, and then so does
// writing.
func (s *vaultSuite) testFullDisk(t *testing.T) {
	s.needsDisk(t)
	ctx := context.Background()
	path := storetest.SmallDisk(t, smallDiskMiB).Path()
	st, v := s.newVault(t, path)
	first := bytes.Repeat([]byte("keep me "), 10_000)
	if _, err := v.WriteFile(ctx, "first", bytes.NewReader(first), nil); err != nil {
		t.Fatal(err)
	}
	if err := v.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	rounds := 3
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		n := s.fillVault(t, v, round)
		t.Logf("round %d: the disk is full after %d MiB", round, n)
		if round == 1 { // where gc follows, since this makes files shared
			workOnFullDisk(t, st, v)
		}
		got, err := captureVault(ctx, v)
		if err != nil {
			t.Fatal(err)
		}
		if th := got.nodes[got.paths()["first"]]; th == nil || !bytes.Equal(th.data, first) {
			t.Fatal("the first file is not what it was")
		}
		for i := range n + 1 {
			if err := v.Remove(ctx, fmt.Sprintf("fill%d", i)); err != nil && engine.KindOf(err) != engine.NotFound {
				t.Fatalf("removing a file on a full disk: %v", err)
			}
			// Until the file goes that did not fit, it is what cannot be saved.
			if err := v.Sync(ctx); err != nil && (engine.KindOf(err) != engine.NoSpace || i > 8) {
				t.Fatalf("committing removal %d on a full disk: %v", i, err)
			}
		}
		if err := v.Sync(ctx); err != nil {
			t.Fatalf("committing the removals on a full disk: %v", err)
		}
		if round == 1 { // elsewhere removing alone must be enough; here a checkpoint made what was there history
			if _, err := v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
				t.Fatalf("pruning on a full disk: %v", err)
			}
			if _, err := st.GC(ctx); err != nil {
				t.Fatalf("gc on a full disk: %v", err)
			}
		}
		if _, err := v.WriteFile(ctx, "again", bytes.NewReader(first), nil); err != nil {
			t.Fatalf("writing after files were removed: %v", err)
		}
		if err := v.Sync(ctx); err != nil {
			t.Fatalf("committing after files were removed: %v", err)
		}
		mustCheck(t, st)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = s.open(t, path, false, nil)
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// workOnFullDisk does what must work where only content has no room: what was refused
// is not pending, and names, checkpoints, forks and records find room.
func workOnFullDisk(t *testing.T, st *engine.Store, v *engine.Vault) {
	t.Helper()
	ctx := context.Background()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s on a full disk: %v", what, err)
		}
	}
	must("a sync", v.Sync(ctx))
	mustCheck(t, st)
	_, err := v.MkdirAll(ctx, "made", 0o755, engine.Owner{})
	must("a directory", err)
	must("a rename", v.Move(ctx, "made", "moved"))
	cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "full"})
	must("a checkpoint", err)
	f, err := st.Fork(ctx, "main", "fork")
	must("a fork", err)
	must("a record", record(ctx, f))
	must("deleting a checkpoint", v.DeleteCheckpoint(ctx, cp.ID))
	must("deleting a fork", st.DeleteVault(ctx, "fork"))
}

// record does what the run of a command does around it.
func record(ctx context.Context, v *engine.Vault) error {
	before, err := v.Pin(ctx)
	if err != nil {
		return err
	}
	_, err = v.Record(ctx, engine.Event{Cause: engine.CauseExec, Command: []string{"true"}, Before: before},
		engine.AuditEntry{Kind: "exec", Vault: "main", Argv: []string{"true"}, Action: "allow", Status: "completed"})
	return err
}

// testDiskTaken has others take the disk while content is pending. It stays pending
// and is reported wherever it would have to be saved; nothing else fails; and it is
// saved when there is room again, or when something is removed.
func (s *vaultSuite) testDiskTaken(t *testing.T) {
	s.needsDisk(t)
	ctx := context.Background()
	disk := storetest.SmallDisk(t, smallDiskMiB)
	st := s.open(t, disk.Path(), true, &engine.Options{CommitInterval: -1})
	t.Cleanup(func() { _ = st.Close() }) // in a failed run
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, size int64) []byte {
		t.Helper()
		data := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(len(name)), name[0]}).Read(data) // never fails
		if _, err := v.WriteFile(ctx, name, bytes.NewReader(data), nil); err != nil {
			t.Fatal(err)
		}
		return data
	}
	write("victim", 5<<20)
	if err := v.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	for i, wayOut := range []string{"remove", "free"} {
		name := fmt.Sprint(i, ".pending")
		data := write(name, 1<<20)
		freeUp := disk.TakeAllBut(kv.Reserve * 3 / 4)
		wantRefused(t, st, v, name, data)
		if wayOut == "free" {
			freeUp()
		} else if err := v.Remove(ctx, "victim"); err != nil {
			t.Fatalf("removing a file: %v", err)
		}
		if err := v.Sync(ctx); err != nil {
			t.Fatalf("sync after %s: %v", wayOut, err)
		}
		if wayOut == "remove" {
			freeUp()
		}
		wantContent(t, v, name, data)
		mustCheck(t, st)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantRefused checks what works and what does not while the pending content of a file
// cannot be saved.
func wantRefused(t *testing.T, st *engine.Store, v *engine.Vault, name string, data []byte) {
	t.Helper()
	ctx := context.Background()
	refused := func(what string, err error) {
		t.Helper()
		if engine.KindOf(err) != engine.NoSpace {
			t.Fatalf("%s without room: %v, want NoSpace", what, err)
		}
	}
	err := v.Sync(ctx)
	refused("sync", err)
	var e *engine.Error
	if !errors.As(err, &e) || e.Details["store"] == nil || e.Details["free_bytes"] == nil {
		t.Errorf("the error %v does not say which store is full and what is left", err)
	}
	_, err = v.Checkpoint(ctx, engine.CheckpointOptions{})
	refused("checkpoint", err)
	refused("a record", record(ctx, v))
	h := openPath(t, v, name, engine.OpenWrite)
	refused("close", h.Flush(ctx))
	_, err = h.WriteAt(ctx, []byte("more"), 0)
	refused("write", err)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, v, name, data)
	mustCheck(t, st)
}

// openPath opens a file that must open.
func openPath(t *testing.T, v *engine.Vault, name string, mode engine.OpenMode) *engine.File {
	t.Helper()
	a, err := v.Resolve(context.Background(), name, true)
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Open(context.Background(), a.Ino, mode)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// wantContent fails the test unless the file has the content data.
func wantContent(t *testing.T, v *engine.Vault, name string, data []byte) {
	t.Helper()
	h := openPath(t, v, name, engine.OpenRead)
	got := make([]byte, len(data)+1)
	n, err := h.ReadAt(context.Background(), got, 0)
	if err != nil || !bytes.Equal(got[:n], data) {
		t.Fatalf("%s has %d bytes, %v, which are not the %d that were written", name, n, err, len(data))
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// fillVault writes files of 1 MiB until there is no room, and returns how many.
func (s *vaultSuite) fillVault(t *testing.T, v *engine.Vault, round int) int {
	t.Helper()
	ctx := context.Background()
	src := rand.NewChaCha8([32]byte{byte(round), 9})
	buf := make([]byte, 1<<20)
	for n := range 1000 {
		_, _ = src.Read(buf) // never fails
		_, err := v.WriteFile(ctx, fmt.Sprintf("fill%d", n), bytes.NewReader(buf), nil)
		if err == nil {
			err = v.Sync(ctx)
		}
		if engine.KindOf(err) == engine.NoSpace {
			return n
		}
		if err != nil {
			t.Fatalf("a full disk is reported as %v", err)
		}
	}
	t.Fatal("the disk never fills up")
	return 0
}
