package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
)

// acted is a vault to whose history steps are added, each as an event of its own.
type acted struct {
	t  *testing.T
	st *engine.Store
	v  *engine.Vault
}

func newActed(t *testing.T) *acted {
	t.Helper()
	st, v, _ := newVault(t, quietOptions())
	return &acted{t, st, v}
}

// exec writes files, name and text in turn, as the exec id.
func (a *acted) exec(id string, files ...string) engine.Event {
	a.t.Helper()
	ctx := context.Background()
	u, err := a.v.Begin(ctx, engine.BeginOptions{ID: id, Command: []string{id}})
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(files...)
	ev, err := u.End(ctx, engine.AuditEntry{})
	if err != nil {
		a.t.Fatal(err)
	}
	return ev
}

func (a *acted) write(files ...string) {
	a.t.Helper()
	for i := 0; i < len(files); i += 2 {
		put(a.t, a.v, files[i], files[i+1])
	}
}

// want fails unless the top directory has exactly these files, as name=text.
func (a *acted) want(what string, files ...string) {
	a.t.Helper()
	ctx := context.Background()
	got := []string{}
	err := a.v.ReadDir(ctx, engine.RootIno, "", func(e engine.DirEntry) error {
		if e.Type == engine.TypeRegular {
			got = append(got, e.Name)
		}
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	for i, name := range got {
		got[i] = name + "=" + get(a.t, a.v, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, files) {
		a.t.Errorf("%s: %q, not %q", what, got, files)
	}
}

func (a *acted) undo(opts engine.UndoOptions) engine.UndoResult {
	a.t.Helper()
	res, err := a.v.Undo(context.Background(), &opts)
	if err != nil {
		a.t.Fatal(err)
	}
	return res
}

func (a *acted) redo() engine.UndoResult {
	a.t.Helper()
	res, err := a.v.Redo(context.Background(), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return res
}

// contiguous fails unless every event leads from where the one before ended.
func (a *acted) contiguous() {
	a.t.Helper()
	events, err := a.v.Timeline(context.Background(), 0)
	if err != nil {
		a.t.Fatal(err)
	}
	for i := range len(events) - 1 { // but for times of directories
		changes, _, err := a.st.Diff(context.Background(), events[i+1].After, events[i].Before, nil)
		if err != nil || len(changes) > 0 {
			a.t.Errorf("between events %d and %d changed %+v, %v", events[i+1].Seq, events[i].Seq, changes, err)
		}
	}
	sound(a.t, a.st, "after all")
}

// TestUndoWalks holds that undo and redo walk a history as in an editor, and that a
// change after an undo ends what can be redone.
func TestUndoWalks(t *testing.T) {
	ctx := context.Background()
	a := newActed(t)
	a.exec("one", "f", "1")
	a.exec("two", "f", "2")
	a.exec("three", "f", "3")
	for range 2 { // and the same way once more
		for _, want := range []string{"f=2", "f=1"} {
			a.undo(engine.UndoOptions{})
			a.want("undo", want)
		}
		if res := a.undo(engine.UndoOptions{}); res.Undone.ID != "one" {
			t.Errorf("the last undo is of %+v", res.Undone)
		}
		a.want("undo of all")
		_, err := a.v.Undo(ctx, nil)
		wantKind(t, "one undo too many", err, engine.NothingToUndo)
		for _, want := range []string{"f=1", "f=2", "f=3"} {
			a.redo()
			a.want("redo", want)
		}
		_, err = a.v.Redo(ctx, nil)
		wantKind(t, "one redo too many", err, engine.NothingToRedo)
	}
	a.undo(engine.UndoOptions{})
	a.undo(engine.UndoOptions{})
	a.redo()
	a.want("there and back", "f=2")
	a.exec("noise") // changes nothing, and ends nothing
	a.redo()
	a.want("past an exec that changed nothing", "f=3")
	a.undo(engine.UndoOptions{})
	a.exec("four", "f", "4")
	_, err := a.v.Redo(ctx, nil)
	wantKind(t, "redo after a change", err, engine.NothingToRedo)
	a.undo(engine.UndoOptions{})
	a.want("undo of the change", "f=2")
	a.undo(engine.UndoOptions{})
	a.want("and past what was taken back", "f=1")
	a.contiguous()
}

// TestUndoTo takes back everything from an event on, as one, with what was changed
// without an event; also where that contains undos.
func TestUndoTo(t *testing.T) {
	a := newActed(t)
	a.exec("one", "f", "1")
	two := a.exec("two", "f", "2", "g", "2")
	a.write("hand", "h")
	a.exec("three", "f", "3")
	a.write("hand", "h2")
	res := a.undo(engine.UndoOptions{To: "two", Preview: true})
	if res.Changed != 3 || !res.Preview || res.Event != 0 || len(res.Drift) != 0 || res.Events != 4 {
		t.Errorf("preview: %+v", res)
	}
	a.want("a preview changes nothing", "f=3", "g=2", "hand=h2")
	if told := a.undo(engine.UndoOptions{To: "two"}); told.Undone.Seq != two.Seq || told.Changed != 3 || told.Events != 4 {
		t.Errorf("%+v", told)
	}
	a.want("undo --to", "f=1")
	undone := a.redo()
	a.want("redo of it", "f=3", "g=2", "hand=h2")
	a.undo(engine.UndoOptions{})
	a.want("the newest of what was redone", "f=3", "g=2", "hand=h")
	a.undo(engine.UndoOptions{To: fmt.Sprint(undone.Undone.Seq)}) // the first undo, and all since
	a.want("undo of the undo", "f=3", "g=2", "hand=h2")
	_, err := a.v.Undo(context.Background(), &engine.UndoOptions{To: "nobody"})
	wantKind(t, "an event that is not there", err, engine.EventNotFound)
	a.contiguous()
}

// TestUndoPaths limits undos to paths: what is left of an event stands, and can be
// taken back later, file by file and as a whole.
func TestUndoPaths(t *testing.T) {
	ctx := context.Background()
	a := newActed(t)
	a.exec("one", "a", "1", "b", "1", "c", "1")
	a.exec("two", "a", "2", "b", "2", "c", "2")
	a.exec("three", "c", "3")
	if res := a.undo(engine.UndoOptions{Paths: []string{"a"}}); res.Undone.ID != "two" || res.Changed != 1 {
		t.Errorf("%+v", res)
	}
	a.want("undo a", "a=1", "b=2", "c=3")
	a.undo(engine.UndoOptions{Paths: []string{"b"}})
	a.want("undo b", "a=1", "b=1", "c=3")
	a.redo()
	a.want("redo b", "a=1", "b=2", "c=3")
	a.undo(engine.UndoOptions{})
	a.want("undo three", "a=1", "b=2", "c=2")
	if res := a.undo(engine.UndoOptions{}); res.Undone.ID != "two" || res.Changed != 2 {
		t.Errorf("what is left of two: %+v", res)
	}
	a.want("the rest of two", "a=1", "b=1", "c=1")
	a.undo(engine.UndoOptions{Paths: []string{"a"}})
	a.want("undo a again", "b=1", "c=1")
	_, err := a.v.Undo(ctx, &engine.UndoOptions{Paths: []string{"a"}})
	wantKind(t, "nothing is left at a", err, engine.NothingToUndo)
	a.contiguous()
}

// TestUndoPathsMoved holds that a move is taken back at both of its paths, also of
// one file in a directory that was moved.
func TestUndoPathsMoved(t *testing.T) {
	ctx := context.Background()
	a := newActed(t)
	if _, err := a.v.MkdirAll(ctx, "d", 0o755, engine.Owner{}); err != nil {
		t.Fatal(err)
	}
	a.exec("one", "d/x", "x", "d/y", "y", "f", "f")
	u, err := a.v.Begin(ctx, engine.BeginOptions{ID: "move"})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(a.v.Rename(ctx, engine.RootIno, "d", engine.RootIno, "e", 0), a.v.Rename(ctx, engine.RootIno, "f", engine.RootIno, "g", 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.End(ctx, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	a.undo(engine.UndoOptions{Paths: []string{"g"}})
	a.want("undo g", "f=f")
	a.undo(engine.UndoOptions{Paths: []string{"e/x"}})
	for p, want := range map[string]string{"d/x": "x", "e/y": "y"} {
		if got := get(t, a.v, p); got != want {
			t.Errorf("%s is %q", p, got)
		}
	}
	if _, err := a.v.Resolve(ctx, "e/x", false); engine.KindOf(err) != engine.NotFound {
		t.Errorf("e/x: %v", err)
	}
	a.undo(engine.UndoOptions{})
	for p, want := range map[string]string{"d/x": "x", "d/y": "y"} {
		if got := get(t, a.v, p); got != want {
			t.Errorf("%s is %q", p, got)
		}
	}
	if _, err := a.v.Resolve(ctx, "e", false); engine.KindOf(err) != engine.NotFound {
		t.Errorf("e: %v", err)
	}
	a.contiguous()
}

// TestUndoDrift refuses to take back an event alone whose files have changed since,
// names them, as bytes, and does it when told to.
func TestUndoDrift(t *testing.T) {
	ctx := context.Background()
	a := newActed(t)
	one := a.exec("one", "f\xff", "1", "g", "1")
	a.exec("two", "f\xff", "2")
	a.write("beside", "x")
	opts := engine.UndoOptions{Event: fmt.Sprint(one.Seq)}
	_, err := a.v.Undo(ctx, &opts)
	wantKind(t, "undo of an event under another", err, engine.Drift)
	if e, _ := errors.AsType[*engine.Error](err); e == nil || !slices.Equal(e.Details["paths"].([]engine.Path), []engine.Path{"f\xff"}) {
		t.Errorf("%v names %+v", err, e)
	}
	a.want("nothing has happened", "beside=x", "f\xff=2", "g=1")
	opts.Preview = true
	if res := a.undo(opts); !slices.Equal(res.Drift, []engine.Path{"f\xff"}) || res.Changed != 2 {
		t.Errorf("preview: %+v", res)
	}
	opts.Preview, opts.Force = false, true
	a.undo(opts)
	a.want("forced", "beside=x")
	a.redo()
	a.want("redone", "beside=x", "f\xff=2", "g=1")
	a.contiguous()
}

// TestGapEvents holds that what changes without an event gets one as soon as another
// thing begins, with the mount that may have caused it, and that nothing else does.
func TestGapEvents(t *testing.T) {
	ctx := context.Background()
	a := newActed(t)
	a.v.SetMountSession(&engine.MountSession{ID: "m1", Mountpoint: "/mnt"})
	causes := func(want string) {
		t.Helper()
		events, err := a.v.Timeline(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, ev := range events {
			got = strings.TrimSpace(ev.Cause + " " + got)
		}
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	a.write("f", "1")
	if _, err := a.v.Checkpoint(ctx, engine.CheckpointOptions{}); err != nil {
		t.Fatal(err)
	}
	causes("mount")
	put(t, a.v, "gone", "x") // leaves the time of the directory only
	if err := errors.Join(a.v.Remove(ctx, "gone"), a.v.Settle(ctx)); err != nil {
		t.Fatal(err)
	}
	causes("mount")
	a.write("f", "2")
	a.exec("x", "f", "3")
	causes("mount mount exec")
	a.write("f", "4")
	if _, err := a.st.Fork(ctx, "main", "fork"); err != nil {
		t.Fatal(err)
	}
	causes("mount mount exec") // a fork is no event of its parent
	a.undo(engine.UndoOptions{})
	a.want("the newest change, by hand", "f=3")
	causes("mount mount exec mount undo")
	events, err := a.v.Timeline(ctx, 2)
	if err != nil || events[1].ID != "m1" || events[1].Mountpoint != "/mnt" {
		t.Errorf("%+v, %v", events, err)
	}
	fork, err := a.st.Vault(ctx, "fork")
	if err != nil {
		t.Fatal(err)
	}
	if err := fork.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if list, err := fork.Timeline(ctx, 0); err != nil || len(list) != 0 {
		t.Errorf("a new fork has the history %+v, %v", list, err)
	}
	a.contiguous()
}

// A file that another with the same content replaces ends no redo, and no undo stops at it.
func TestUndoSameContent(t *testing.T) {
	ctx := context.Background()
	a := newActed(t)
	a.exec("x1", "f", "1")
	a.exec("x2", "f", "2")
	if _, err := a.v.Undo(ctx, nil); err != nil {
		t.Fatal(err)
	}
	u, err := a.v.Begin(ctx, engine.BeginOptions{ID: "status"})
	if err != nil {
		t.Fatal(err)
	}
	a.write("f.lock", "1")
	if err := a.v.Rename(ctx, engine.RootIno, "f.lock", engine.RootIno, "f", 0); err != nil {
		t.Fatal(err)
	}
	if ev, err := u.End(ctx, engine.AuditEntry{}); err != nil || ev.Before.Same(ev.After) {
		t.Fatalf("%+v, %v", ev, err)
	}
	if res, err := a.v.Redo(ctx, nil); err != nil || res.Undone.Cause != engine.CauseUndo {
		t.Fatalf("redo: %+v, %v", res, err)
	}
	a.want("done again", "f=2")
	for _, want := range []string{"x2", "x1"} {
		if res, err := a.v.Undo(ctx, nil); err != nil || res.Undone.ID != want {
			t.Errorf("undo takes back %+v, %v, not %s", res.Undone, err, want)
		}
	}
	a.want("at the beginning")
}

// An event has the names that a state has after which it is named.
func TestFindEventNames(t *testing.T) {
	ctx := context.Background()
	a := newActed(t)
	ev := a.exec("x1", "f", "1")
	n := fmt.Sprint(ev.Seq)
	for _, name := range []string{n, "#" + n, "event:" + n, "event:#" + n, "x1", "exec:x1"} {
		if got, err := a.v.FindEvent(ctx, name); err != nil || got.Seq != ev.Seq {
			t.Errorf("%s is %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "#", "event:", "exec:", "exec:" + n, "#x1"} {
		if got, err := a.v.FindEvent(ctx, name); engine.KindOf(err) != engine.EventNotFound {
			t.Errorf("%s is %+v, %v", name, got, err)
		}
	}
}
