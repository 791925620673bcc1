package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
)

// TestCopyFromPast copies a tree out of a kept state, with every commit failing in turn and
// over each limit: all of it is there at the end or nothing, as one event, and it has
// nothing in common with what is there now.
func TestCopyFromPast(t *testing.T) {
	ctx := t.Context()
	db := faultkv.Wrap(newMem(t), faultkv.Config{Scribble: true})
	st, err := engine.Create(ctx, db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"t/sub", "into"} {
		if _, err := v.MkdirAll(ctx, dir, 0o750, engine.Owner{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		put(t, v, fmt.Sprintf("t/sub/%03d", i), strings.Repeat(fmt.Sprint(i, " "), 2_000))
	}
	put(t, v, "t/two", "names")
	two, err := v.Resolve(ctx, "t/two", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.LinkAt(ctx, two.Ino, "t/names", false); err != nil {
		t.Fatal(err)
	}
	old := int64(1_000_000_000)
	if _, err := v.SetAttr(ctx, two.Ino, engine.SetAttr{Mtime: &old}); err != nil {
		t.Fatal(err)
	}
	cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, v, "t/sub/000", "new")
	copyIt := func() (engine.RestoreResult, error) {
		return v.CopyFrom(ctx, cp.Root, "/t", "/into/copy", []string{"checkout"})
	}
	nothing := func(what string, err error, kind engine.Kind) {
		t.Helper()
		wantKind(t, what, err, kind)
		if _, err := v.Resolve(ctx, "into/copy", false); engine.KindOf(err) != engine.NotFound {
			t.Errorf("%s left something: %v", what, err)
		}
	}
	for _, q := range []engine.Quota{{MaxBytes: v.Info().Bytes + 1000}, {MaxFiles: v.Info().Files + 100}, {MaxFileBytes: 6_000}} {
		if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &q.MaxBytes, MaxFiles: &q.MaxFiles, MaxFileBytes: &q.MaxFileBytes}, engine.AuditEntry{}); err != nil {
			t.Fatal(err)
		}
		_, err := copyIt()
		nothing(fmt.Sprintf("with %+v", q), err, engine.QuotaExceeded)
	}
	none := int64(0)
	if _, err := v.SetQuota(ctx, engine.QuotaChange{MaxBytes: &none, MaxFiles: &none, MaxFileBytes: &none}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	var res engine.RestoreResult
	broken := errors.New("broken")
	faults := 0
	for n := 1; ; n++ {
		db.Arm(faultkv.Rule{Op: faultkv.Update, N: n, Err: broken})
		res, err = copyIt()
		db.Arm()
		if err == nil {
			break
		}
		if faults++; !errors.Is(err, broken) {
			t.Fatal(err)
		}
		nothing("a commit that failed", err, engine.KindOf(broken))
	}
	if faults == 0 || res.Changed != 204 || res.Event == 0 || res.UndoCheckpoint == "" {
		t.Errorf("%d faults, then %+v", faults, res)
	}
	a, err := v.Resolve(ctx, "into/copy/two", false)
	if err != nil || a.Nlink != 2 || a.Ino == two.Ino || a.Mtime != old {
		t.Errorf("the copy of a file with two names is %+v, %v", a, err)
	}
	if got := get(t, v, "into/copy/sub/000"); !strings.HasPrefix(got, "0 0 ") {
		t.Errorf("the copy has %.10q", got)
	}
	_, err = copyIt()
	wantKind(t, "a second time", err, engine.Exists)
	und, err := v.Undo(ctx, nil)
	if err != nil || und.Changed != 204 {
		t.Errorf("the undo: %+v, %v", und.Changed, err)
	}
	if _, err := v.Resolve(ctx, "into/copy", false); engine.KindOf(err) != engine.NotFound {
		t.Errorf("the undo left something: %v", err)
	}
	sound(t, st, "after the undo")
}
