package engine_test

import (
	"context"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// What a vault knows of an import is inherited by forks, kept by the collector, and gone
// with the import.
func TestOrigin(t *testing.T) {
	ctx := context.Background()
	st := mergeVaults(t, "w old 1", "", "")
	dst := vaultOf(t, st, "dst")
	before, err := dst.Pin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	play(t, dst, "w host/a 1")
	ev, err := dst.Record(ctx, engine.Event{Cause: engine.CauseImport, Before: before})
	if err != nil {
		t.Fatal(err)
	}
	if err := dst.NoteOrigin(ctx, ev, "/host", "/host"); err != nil {
		t.Fatal(err)
	}
	fork, err := st.Fork(ctx, "dst", "fork")
	if err != nil {
		t.Fatal(err)
	}
	play(t, fork, "w host/a 2")
	now, err := fork.Pin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := fork.NoteApplied(ctx, fork.Origins()[0], now, true); err != nil {
		t.Fatal(err)
	}
	fork.Unpin(now)
	play(t, fork, "w host/a 3")
	if err := dst.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := st.GC(ctx); err != nil {
		t.Fatal(err)
	}
	sound(t, st, "collected")
	if got := fork.Origins(); len(got) != 1 || got[0].Root != now || got[0].Source != "/host" {
		t.Errorf("the fork knows %+v", got)
	}
	if got := dst.Origins(); len(got) != 1 || got[0].Root != ev.After {
		t.Errorf("the vault knows %+v", got)
	}
	if _, err := dst.Undo(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got := dst.Origins(); len(got) != 0 {
		t.Errorf("after the undo the vault knows %+v", got)
	}
	if _, err := dst.Redo(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if got := dst.Origins(); len(got) != 1 || got[0].Root != ev.After {
		t.Errorf("after the redo the vault knows %+v", got)
	}
	if _, err := fork.Restore(ctx, ev.After, nil); err != nil {
		t.Fatal(err)
	}
	if got := fork.Origins(); len(got) != 1 || got[0].Root != now {
		t.Errorf("after a restore of what was before the apply the fork knows %+v", got)
	}
}
