package conformance

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// The content that the goroutines of the stress test write describes itself, so that
// a reader can tell a mixture from a state that existed: each block repeats one
// byte, and a write replaces a whole block.
const stressBlock = 4096

func (s *vaultSuite) testConcurrent(t *testing.T) {
	length := 4 * time.Second
	if testing.Short() {
		length = time.Second
	}
	path := s.newPath(t)
	st := s.open(t, path, true, &engine.Options{CommitInterval: 5 * time.Millisecond, DirtyBytes: 512 << 10, CacheBytes: 512 << 10})
	t.Cleanup(func() { _ = st.Close() }) // in a failed run
	ctx := context.Background()
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	run := &stress{st: st, v: v}
	within(t, length+60*time.Second, func() { run.all(ctx, t, length) })
	if t.Failed() {
		return
	}
	mustCheck(t, st)
	before, err := captureVault(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = s.open(t, path, false, nil)
	if v, err = st.Vault(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	after, err := captureVault(ctx, v)
	if err == nil {
		err = compareWorlds(after, before, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// stress is many goroutines on one vault.
type stress struct {
	st    *engine.Store
	v     *engine.Vault
	done  atomic.Bool
	count [16]atomic.Int64
}

// harmless reports whether err is what competition may bring.
func harmless(err error) bool {
	switch engine.KindOf(err) {
	case "", engine.NotFound, engine.Exists, engine.IsDirectory, engine.NotDirectory, engine.NotEmpty,
		engine.Invalid, engine.Stale, engine.Busy, engine.Drift, engine.NothingToUndo, engine.CheckpointNotFound,
		engine.Unsupported, engine.Closed, engine.VaultNotFound, engine.VaultExists, engine.Permission:
		return true
	}
	return false
}

func (x *stress) all(ctx context.Context, t *testing.T, length time.Duration) {
	roles := []func(context.Context, *rand.Rand) error{
		x.write, x.write, x.rename, x.rename, x.read, x.read, x.list, x.sync, x.sync, x.apart,
		x.checkpoint, x.fork, x.collect, x.restore, x.exec, x.check,
	}
	var wg sync.WaitGroup
	for i, role := range roles {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for !x.done.Load() {
				if err := role(ctx, rng); !harmless(err) {
					t.Errorf("role %d: %v", i, err)
					x.done.Store(true)
				}
				x.count[i].Add(1)
			}
		})
	}
	time.Sleep(length)
	x.done.Store(true)
	wg.Wait()
	for i := range roles {
		if x.count[i].Load() == 0 {
			t.Errorf("role %d never came to an end of a round", i)
		}
	}
	t.Logf("rounds by role: %v", roundsOf(&x.count, len(roles)))
}

func roundsOf(count *[16]atomic.Int64, n int) []int64 {
	var list []int64
	for i := range n {
		list = append(list, count[i].Load())
	}
	return list
}

func someName(rng *rand.Rand) string { return string(rune('a' + rng.IntN(6))) }

func (x *stress) write(ctx context.Context, rng *rand.Rand) error {
	mode := engine.OpenRead | engine.OpenWrite
	h, _, err := x.v.Create(ctx, engine.RootIno, someName(rng), 0o644, engine.Owner{}, mode, false)
	if err != nil {
		return err
	}
	for range 10 {
		block := bytes.Repeat([]byte{byte(1 + rng.IntN(255))}, stressBlock)
		if _, err = h.WriteAt(ctx, block, int64(rng.IntN(80))*stressBlock); err != nil {
			break
		}
	}
	if err == nil && rng.IntN(4) == 0 {
		err = h.Truncate(ctx, int64(rng.IntN(80))*stressBlock)
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

// read checks that every block is of one piece.
func (x *stress) read(ctx context.Context, rng *rand.Rand) error {
	a, err := x.v.Lookup(ctx, engine.RootIno, someName(rng))
	if err != nil || !a.IsRegular() {
		return err
	}
	h, err := x.v.Open(ctx, a.Ino, engine.OpenRead)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	block := make([]byte, stressBlock)
	for range 20 {
		n, err := h.ReadAt(ctx, block, int64(rng.IntN(80))*stressBlock)
		if err != nil {
			return err
		}
		for i := range n {
			if block[i] != block[0] {
				return fmt.Errorf("a block of inode %d is torn at byte %d", a.Ino, i)
			}
		}
	}
	return nil
}

func (x *stress) rename(ctx context.Context, rng *rand.Rand) error {
	dir, err := x.v.MkdirAll(ctx, "d/"+someName(rng), 0o755, engine.Owner{})
	if err != nil {
		return err
	}
	dirs := []engine.Ino{engine.RootIno, dir.Ino}
	flags := engine.RenameFlags(rng.IntN(3))
	err = x.v.Rename(ctx, dirs[rng.IntN(2)], someName(rng), dirs[rng.IntN(2)], someName(rng), flags)
	if harmless(err) && rng.IntN(5) == 0 {
		err = x.v.RemoveAll(ctx, "d/"+someName(rng))
	}
	return err
}

func (x *stress) list(ctx context.Context, _ *rand.Rand) error {
	return x.v.Walk(ctx, "", func(string, engine.Attr) error { return nil })
}

func (x *stress) sync(ctx context.Context, rng *rand.Rand) error {
	time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
	return x.v.Sync(ctx)
}

// apart works on a file without a name.
func (x *stress) apart(ctx context.Context, rng *rand.Rand) error {
	const name = "temporary"
	h, _, err := x.v.Create(ctx, engine.RootIno, name, 0o600, engine.Owner{}, engine.OpenRead|engine.OpenWrite, false)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	want := make([]byte, 300<<10)
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	if _, err := h.WriteAt(ctx, want[:100<<10], 0); err != nil {
		return err
	}
	if err := x.v.Unlink(ctx, engine.RootIno, name); err != nil {
		return err
	}
	if _, err := h.WriteAt(ctx, want[100<<10:], 100<<10); err != nil {
		return err
	}
	got := make([]byte, len(want))
	for range 3 {
		time.Sleep(time.Millisecond)
		n, err := h.ReadAt(ctx, got, 0)
		if err != nil {
			return err
		}
		if n != len(want) || !bytes.Equal(got, want) {
			return fmt.Errorf("an unlinked file lost its content")
		}
	}
	return nil
}

func (x *stress) checkpoint(ctx context.Context, _ *rand.Rand) error {
	cp, err := x.v.Checkpoint(ctx, engine.CheckpointOptions{})
	if err != nil {
		return err
	}
	if _, err := captureRoot(ctx, x.st, cp.Root); err != nil {
		return err
	}
	list, err := x.v.Checkpoints(ctx)
	if err == nil && len(list) > 5 {
		err = x.v.DeleteCheckpoint(ctx, list[0].ID)
	}
	return err
}

func (x *stress) fork(ctx context.Context, rng *rand.Rand) error {
	name := fmt.Sprintf("fork%d", rng.IntN(3))
	f, err := x.st.Fork(ctx, "main", name)
	if err != nil {
		return err
	}
	if _, err := f.WriteFile(ctx, "own", bytes.NewReader(make([]byte, 200<<10)), nil); err != nil {
		return err
	}
	if err := f.RemoveAll(ctx, "d"); err != nil {
		return err
	}
	if _, err := captureVault(ctx, f); err != nil {
		return err
	}
	return x.st.DeleteVault(ctx, name)
}

func (x *stress) collect(ctx context.Context, rng *rand.Rand) error {
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	_, err := x.st.GC(ctx)
	return err
}

func (x *stress) check(ctx context.Context, rng *rand.Rand) error {
	time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
	return checkStore(x.st)
}

func (x *stress) restore(ctx context.Context, rng *rand.Rand) error {
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	list, err := x.v.Checkpoints(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	opts := &engine.RestoreOptions{}
	if rng.IntN(2) == 0 {
		opts.Paths = []string{someName(rng), "d/" + someName(rng)}
	}
	_, err = x.v.Restore(ctx, list[rng.IntN(len(list))].Root, opts)
	return err
}

func (x *stress) exec(ctx context.Context, rng *rand.Rand) error {
	pin, err := x.v.Pin(ctx)
	if err != nil {
		return err
	}
	if err := x.write(ctx, rng); !harmless(err) {
		x.v.Unpin(pin)
		return err
	}
	ev, err := x.v.Record(ctx, engine.Event{Cause: engine.CauseExec, Before: pin})
	if err != nil {
		x.v.Unpin(pin)
		return err
	}
	if _, _, err := x.st.Diff(ctx, ev.Before, ev.After, nil); err != nil {
		return err
	}
	_, err = x.v.Undo(ctx, nil)
	return err
}
