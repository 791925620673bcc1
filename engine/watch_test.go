package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// watched is a vault with a watcher that gathers what it is told.
func watched(t *testing.T) (v *engine.Vault, w *engine.Watcher, told func() []engine.Change) {
	t.Helper()
	s, err := engine.Create(t.Context(), memkv.New(engine.Tables()...), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if v, err = s.CreateVault(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	var got []engine.Change
	w = v.Watch(func(_ context.Context, changes []engine.Change) {
		if _, err := v.Commit(t.Context(), false); err != nil { // no lock is held
			t.Error(err)
		}
		got = append(got, changes...)
	})
	return v, w, func() []engine.Change {
		list := got
		got = nil
		return list
	}
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	v, w, told := watched(t)
	ctx := t.Context()
	const root = engine.RootIno
	want := func(what string, changes ...engine.Change) {
		t.Helper()
		list := told()
		for _, c := range changes {
			if !slices.Contains(list, c) {
				t.Errorf("%s: told %v, want %v", what, list, c)
			}
		}
		if len(changes) == 0 && len(list) > 0 {
			t.Errorf("%s: told %v", what, list)
		}
	}
	h, a, err := v.Create(ctx, root, "f", 0o644, engine.Owner{}, engine.OpenWrite, true)
	must(t, err)
	want("create", engine.Change{Ino: root, Name: "f"}, engine.Change{Ino: root}, engine.Change{Ino: a.Ino})
	_, err = h.WriteAt(ctx, []byte("one"), 0)
	must(t, err)
	want("write", engine.Change{Ino: a.Ino})
	own := w.Context(ctx)
	_, err = h.WriteAt(own, []byte("two"), 0)
	must(t, err)
	want("its own write")
	must(t, h.Close())
	_, err = v.Commit(ctx, true)
	must(t, err)
	want("commit")
	cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{})
	must(t, err)
	must(t, v.Rename(own, root, "f", root, "g", 0))
	want("its own rename")
	_, err = v.Restore(ctx, cp.Root, nil)
	must(t, err)
	want("restore", engine.Change{Ino: root, Name: "f"}, engine.Change{Ino: root, Name: "g"}, engine.Change{Ino: a.Ino})
	must(t, v.Unlink(own, root, "f"))
	_, err = v.Restore(ctx, cp.Root, &engine.RestoreOptions{Paths: []string{"f"}})
	must(t, err)
	want("restore of a path", engine.Change{Ino: root, Name: "f"})
	_, err = v.Undo(ctx, nil)
	must(t, err)
	want("undo", engine.Change{Ino: root, Name: "f"})
	other := v.Watch(func(context.Context, []engine.Change) {})
	if err := v.Unlink(other.Context(ctx), root, "f"); engine.KindOf(err) != engine.NotFound {
		t.Fatal(err)
	}
	want("a failed step")
	_, err = v.Mkdir(other.Context(ctx), root, "d", 0o755, engine.Owner{})
	must(t, err)
	want("a step of another watcher", engine.Change{Ino: root, Name: "d"})
	other.Stop()
	w.Stop()
	must(t, v.Rmdir(ctx, root, "d"))
	want("after the end")
}
