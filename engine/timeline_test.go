package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// TestFindEvent finds events by number and by id, the newest of an id, and none of
// another vault.
func TestFindEvent(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, nil)
	exec := func(id string) engine.Event {
		t.Helper()
		u, err := h.v.Begin(ctx, engine.BeginOptions{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		put(t, h.v, "f", id+fmt.Sprint(len(id)))
		ev, err := u.End(ctx, engine.AuditEntry{})
		if err != nil {
			t.Fatal(err)
		}
		return ev
	}
	first, second, again := exec("e1"), exec("7"), exec("e1")
	for _, c := range []struct {
		name string
		want engine.Event
	}{{fmt.Sprint(first.Seq), first}, {fmt.Sprint(second.Seq), second}, {"e1", again}} {
		got, err := h.v.FindEvent(ctx, c.name)
		if err != nil || got.Seq != c.want.Seq || got.After != c.want.After {
			t.Errorf("%s is %+v, %v", c.name, got, err)
		}
	}
	fork, err := h.st.Fork(ctx, "main", "fork")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "0", "99", "e", fmt.Sprint(first.Seq) + "x"} {
		_, err := h.v.FindEvent(ctx, name)
		wantKind(t, fmt.Sprintf("%q", name), err, engine.EventNotFound)
	}
	_, err = fork.FindEvent(ctx, "e1")
	wantKind(t, "in a fork", err, engine.EventNotFound)
}
