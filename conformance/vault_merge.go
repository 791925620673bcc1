package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// mergeFiles is how many files the vaults of these tests have in common.
const mergeFiles = 8

func mergeFile(i int) string { return fmt.Sprintf("d%d/f%d", i%2, i) }

// mergePair makes the vaults main and task, a fork that has edited, added, moved and
// removed files. edit says what is new in task.
func mergePair(ctx context.Context, st *engine.Store, edit string) error {
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		return err
	}
	for i := range mergeFiles {
		if err := mergeWrite(ctx, v, mergeFile(i), fmt.Sprintf("1\n2\n3\nfile %d\n", i)); err != nil {
			return err
		}
	}
	task, err := st.Fork(ctx, "main", "task")
	if err != nil {
		return err
	}
	return mergeEdit(ctx, task, edit)
}

func mergeEdit(ctx context.Context, task *engine.Vault, edit string) error {
	return errors.Join(
		mergeWrite(ctx, task, mergeFile(0), edit+"\n2\n3\nfile 0\n"),
		mergeWrite(ctx, task, "new/"+edit, strings.Repeat(edit, 100_000)),
		task.Move(ctx, mergeFile(1), "moved-"+edit),
		task.Remove(ctx, mergeFile(2)),
	)
}

func mergeWrite(ctx context.Context, v *engine.Vault, p, text string) error {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		if _, err := v.MkdirAll(ctx, p[:i], 0o755, engine.Owner{}); err != nil {
			return err
		}
	}
	_, err := v.WriteFile(ctx, p, strings.NewReader(text), nil)
	return err
}

// testMerge merges a fork while others write to the vault and garbage is collected.
func (s *vaultSuite) testMerge(t *testing.T) {
	ctx := context.Background()
	st := s.open(t, s.newPath(t), true, nil)
	if err := mergePair(ctx, st, "a"); err != nil {
		t.Fatal(err)
	}
	v, err := st.Vault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := mergeWrite(ctx, v, mergeFile(0), "1\n2\n3\nmain\n"); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 2)
	go func() { // ends with stop
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := mergeWrite(ctx, v, fmt.Sprintf("other/%d", i%20), fmt.Sprint(i)); err != nil {
				done <- err
				return
			}
		}
	}()
	go func() {
		_, err := st.GC(ctx)
		done <- err
	}()
	res, err := st.Merge(ctx, "task", "main", nil)
	close(stop)
	if err := errors.Join(err, <-done, <-done); err != nil {
		t.Fatal(err)
	}
	if res.MergedTexts != 1 || res.Event == 0 || res.UndoCheckpoint == "" {
		t.Errorf("result %+v", res)
	}
	wantMerged(t, v, "a", "a\n2\n3\nmain\n")
	if err := st.DeleteVault(ctx, "task"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	wantMerged(t, v, "a", "a\n2\n3\nmain\n")
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantMerged compares what mergeEdit changed.
func wantMerged(t *testing.T, v *engine.Vault, edit, first string) {
	t.Helper()
	ctx := context.Background()
	w, err := captureVault(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	paths := w.paths()
	for p, want := range map[string]string{
		mergeFile(0): first, "moved-" + edit: "1\n2\n3\nfile 1\n", "new/" + edit: strings.Repeat(edit, 100_000),
		mergeFile(3): "1\n2\n3\nfile 3\n",
	} {
		ino, ok := paths[p]
		if !ok || string(w.nodes[ino].data) != want {
			t.Errorf("%s is there: %v, and is not what it should be", p, ok)
		}
	}
	for _, p := range []string{mergeFile(1), mergeFile(2)} {
		if _, ok := paths[p]; ok {
			t.Errorf("%s is still there", p)
		}
	}
}

// testMergeRefused checks that a merge that has no room, or that conflicts, changes
// nothing.
func (s *vaultSuite) testMergeRefused(t *testing.T) {
	ctx := context.Background()
	st := s.open(t, s.newPath(t), true, nil)
	if err := mergePair(ctx, st, "a"); err != nil {
		t.Fatal(err)
	}
	v, err := st.Vault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	before, err := captureVault(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	limit := int64(50_000)
	if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &limit}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Merge(ctx, "task", "main", nil); engine.KindOf(err) != engine.QuotaExceeded {
		t.Errorf("over the quota: %v", err)
	}
	wantWorld(t, v, before)
	limit = 0
	if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &limit}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	if err := mergeWrite(ctx, v, mergeFile(0), "x\n2\n3\nfile 0\n"); err != nil {
		t.Fatal(err)
	}
	if before, err = captureVault(ctx, v); err != nil {
		t.Fatal(err)
	}
	res, err := st.Merge(ctx, "task", "main", nil)
	if engine.KindOf(err) != engine.Conflict || len(res.Conflicts) != 1 || res.Conflicts[0].Kind != engine.ConflictContent {
		t.Errorf("conflicts %+v, %v", res.Conflicts, err)
	}
	wantWorld(t, v, before)
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantWorld(t *testing.T, v *engine.Vault, want *world) {
	t.Helper()
	got, err := captureVault(context.Background(), v)
	if err == nil {
		err = compareWorlds(got, want, true)
	}
	if err != nil {
		t.Error(err)
	}
}

// The child of testMergeKilled: it says that it has opened the store, and merges.
const roleVaultMerge = "vault-merge"

func (s *vaultSuite) mergeOnce(ctx context.Context, path string) error {
	st, err := s.tryOpen(path, false, nil)
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err := st.Merge(ctx, "task", "main", nil); err != nil {
		return err
	}
	return st.Close()
}

// testMergeKilled kills processes that merge: the store holds the old state or the new.
func (s *vaultSuite) testMergeKilled(t *testing.T) {
	if s.opts.InMemory {
		t.Skip("the store dies with the process")
	}
	ctx := context.Background()
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	rng := rand.New(rand.NewPCG(1, 2))
	merged := []bool{}
	for range rounds {
		path := s.newPath(t)
		st := s.open(t, path, true, nil)
		err := mergePair(ctx, st, "a")
		if err := errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
		c := (&storeSuite{driver: s.driver, self: s.self}).startChild(t, roleVaultMerge, path)
		if c.line() == "" {
			t.Fatal("the child ended before it did anything")
		}
		time.Sleep(time.Duration(rng.IntN(12_000)) * time.Microsecond)
		c.kill()
		st = s.open(t, path, false, nil)
		mustCheck(t, st)
		v, err := st.Vault(ctx, "main")
		if err != nil {
			t.Fatal(err)
		}
		events, err := v.Timeline(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		done := slices.ContainsFunc(events, func(ev engine.Event) bool { return ev.Cause == engine.CauseMerge })
		merged = append(merged, done)
		res, err := st.Merge(ctx, "task", "main", nil)
		if err != nil || (res.Event == 0) != done {
			t.Fatalf("merged before the kill: %v; then %+v, %v", done, res.Changes, err)
		}
		wantMerged(t, v, "a", "a\n2\n3\nfile 0\n")
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("merged before the kill: %v", merged)
}
