package engine_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// tightDB is a database that says how much is left, which is less with every put, and
// refuses as a back end does.
type tightDB struct {
	kv.Store
	left atomic.Int64
}

func (d *tightDB) FreeSpace() (int64, error) { return d.left.Load(), nil }

func (d *tightDB) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	if left := d.left.Load(); mode&kv.Reclaim == 0 && left < kv.Reserve {
		return &kv.SpaceError{Path: "tight", Free: left, Need: kv.Reserve}
	}
	var puts int64
	err := d.Store.Update(ctx, mode, func(w kv.Writer) error { return fn(&countedPuts{w, &puts}) })
	if err == nil {
		d.left.Add(-puts)
	}
	return err
}

// countedPuts sums the sizes of the values that are put.
type countedPuts struct {
	kv.Writer
	sum *int64
}

func (w *countedPuts) Put(t kv.Table, key, value []byte) error {
	*w.sum += int64(len(value))
	return w.Writer.Put(t, key, value)
}

// newTight makes a vault on a database with 1 GiB left. set changes what is left, and
// waits until the engine looks again.
func newTight(t *testing.T) (v *engine.Vault, set func(left int64)) {
	t.Helper()
	db := &tightDB{Store: memkv.New(engine.Tables()...)}
	set = func(left int64) {
		db.left.Store(left)
		time.Sleep(120 * time.Millisecond)
	}
	db.left.Store(1 << 30)
	st, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.left.Store(1 << 30)
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if v, err = st.CreateVault(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	return v, set
}

// TestContentStopsBeforeNames checks that content is refused while there is still room
// for names and checkpoints, and that a refusal says what is left.
func TestContentStopsBeforeNames(t *testing.T) {
	v, set := newTight(t)
	ctx := t.Context()
	write := func(name string, size int) error {
		data := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(size >> 20)}).Read(data) // never fails
		_, err := v.WriteFile(ctx, name, bytes.NewReader(data), nil)
		return err
	}
	set(kv.Scarce + 4<<20)
	wantKind(t, "content that fits", write("fits", 1<<20), "")
	err := write("large", 8<<20)
	wantKind(t, "content that does not fit", err, engine.NoSpace)
	var e *engine.Error
	if !errors.As(err, &e) || e.Details["free_bytes"] == nil || e.Details["needed_bytes"] == nil {
		t.Errorf("%v does not say what is left and what is needed", err)
	}
	wantKind(t, "what was refused is pending", v.Sync(ctx), "")
	wantKind(t, "a byte of content", write("byte", 1), engine.NoSpace)
	_, err = v.MkdirAll(ctx, "dir", 0o755, engine.Owner{})
	wantKind(t, "a directory", err, "")
	_, err = v.Checkpoint(ctx, engine.CheckpointOptions{})
	wantKind(t, "a checkpoint", err, "")
	set(kv.Reserve - 1)
	_, err = v.MkdirAll(ctx, "none", 0o755, engine.Owner{})
	wantKind(t, "a directory without room", err, engine.NoSpace)
	wantKind(t, "removing a file without room", v.Remove(ctx, "fits"), "")
	wantKind(t, "committing that", v.Sync(ctx), "")
}

// TestReadingIsRecorded checks that a command that adds nothing finds room for its
// checkpoint and its record in the reserve, and one that does finds none.
func TestReadingIsRecorded(t *testing.T) {
	v, set := newTight(t)
	ctx := t.Context()
	run := func(work func()) error {
		before, err := v.Pin(ctx)
		if err == nil {
			_, err = v.Checkpoint(ctx, engine.CheckpointOptions{Auto: true})
		}
		if err != nil {
			return err
		}
		work()
		_, err = v.Record(ctx, engine.Event{Cause: engine.CauseExec, Before: before})
		return err
	}
	put(t, v, "old", "content")
	wantKind(t, "a command with room", run(func() {}), "")
	set(kv.Reserve / 2)
	wantKind(t, "a command that reads", run(func() {}), "")
	wantKind(t, "a command that removes", run(func() {
		if err := v.Remove(ctx, "old"); err != nil {
			t.Error(err)
		}
	}), "")
	set(1 << 30)
	wantKind(t, "a command that wrote while others took the disk", run(func() {
		put(t, v, "new", "content")
		set(kv.Reserve / 2)
	}), engine.NoSpace)
}

// TestBegunCommandsEnd checks that a command which was let begin on a full disk can be
// ended there, also one that had no event to record.
func TestBegunCommandsEnd(t *testing.T) {
	v, set := newTight(t)
	ctx := t.Context()
	put(t, v, "old", "content")
	wantKind(t, "a commit with room", v.Sync(ctx), "")
	set(kv.Reserve / 2)
	for _, readOnly := range []bool{false, true} {
		u, err := v.Begin(ctx, engine.BeginOptions{ID: "reads", ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		_, err = u.End(ctx, engine.AuditEntry{Kind: "exec"})
		wantKind(t, "the end of a command that read", err, "")
	}
	u, err := v.Begin(ctx, engine.BeginOptions{ID: "never"})
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, "the end of a command that did not run", u.NotRun(ctx, engine.AuditEntry{Kind: "exec"}), "")
}

// replacedDB opens another database in its place.
type replacedDB struct {
	kv.Store
	cur *tightDB
}

func (d *replacedDB) Unwrap() kv.Store { return d.cur }

// TestSpaceOfAReplacedStore checks that the room for content is that of the database
// that is open, not of the one that was when the engine began.
func TestSpaceOfAReplacedStore(t *testing.T) {
	full, roomy := &tightDB{Store: memkv.New(engine.Tables()...)}, &tightDB{}
	full.left.Store(1 << 30)
	roomy.left.Store(1 << 30)
	db := &replacedDB{full, full}
	st, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	full.left.Store(0)
	time.Sleep(120 * time.Millisecond)
	_, err = v.WriteFile(t.Context(), "f", bytes.NewReader(make([]byte, 10)), nil)
	wantKind(t, "content without room", err, engine.NoSpace)
	full.left.Store(1 << 30) // its commits go there still
	db.cur = roomy
	roomy.left.Store(kv.Scarce + 1<<20)
	time.Sleep(120 * time.Millisecond)
	_, err = v.WriteFile(t.Context(), "f", bytes.NewReader(make([]byte, 10)), nil)
	wantKind(t, "content after another was opened", err, "")
	roomy.left.Store(0)
	time.Sleep(120 * time.Millisecond)
	_, err = v.WriteFile(t.Context(), "g", bytes.NewReader(make([]byte, 10)), nil)
	wantKind(t, "content when that is full", err, engine.NoSpace)
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

// TestUntroubled checks that a vault is in trouble after a commit that failed, and where
// less than 1 GiB is left.
func TestUntroubled(t *testing.T) {
	v, set := newTight(t)
	for _, c := range []struct {
		left int64
		want bool
	}{{1 << 30, false}, {1<<30 + 1<<28, true}} {
		if set(c.left); v.Untroubled() != c.want {
			t.Errorf("with %d bytes left it is %v", c.left, !c.want)
		}
	}
	db := faultkv.Wrap(newMem(t), faultkv.Config{})
	st, err := engine.Create(t.Context(), db, quietOptions())
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	failing, err := st.CreateVault(t.Context(), "main")
	must(t, err)
	put(t, failing, "file", "content")
	db.Arm(faultkv.Rule{Op: faultkv.Update, Err: errors.New("a disk on fire")})
	if _, err := failing.Commit(t.Context(), false); err == nil || failing.Untroubled() {
		t.Errorf("a commit ended with %v and no trouble", err)
	}
	db.Arm()
	if _, err := failing.Commit(t.Context(), false); err != nil || !failing.Untroubled() {
		t.Errorf("a commit ended with %v and trouble", err)
	}
}
