package transfer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// What goes is put in order in a time that grows with its number, not with the square
// of it, and only what is in the way of something goes first.
func TestApplyOrder(t *testing.T) {
	const n = 100_000
	a := &applier{ctx: t.Context(), opts: ApplyOptions{DryRun: true}, dirs: map[string]bool{}, replaced: map[string]bool{}}
	for i := range n {
		a.add(&applyStep{rel: fmt.Sprintf("gone/%06d", i), action: applyDelete})
	}
	a.add(&applyStep{rel: "turned", action: applyWrite, want: &engine.Attr{Mode: engine.TypeRegular}})
	a.add(&applyStep{rel: "turned/d", action: applyRmdir})
	a.add(&applyStep{rel: "turned/d/f", action: applyDelete})
	a.add(&applyStep{rel: "turnedaway/f", action: applyDelete})
	start := time.Now()
	if err := a.perform(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("%d steps took %v", n, took)
	}
	for i, want := range []string{"turned/d/f", "turned/d", "turned", "turnedaway/f", "gone/099999"} {
		if got := a.rep.Changes[i].Path; got != want {
			t.Errorf("step %d is %s, not %s", i, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.ctx, a.rep.Changes = ctx, nil
	if err := a.perform(); !errors.Is(err, context.Canceled) || len(a.rep.Changes) > 0 {
		t.Errorf("an apply that is given up makes %d changes: %v", len(a.rep.Changes), err)
	}
}
