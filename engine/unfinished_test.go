package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// TestUnfinished holds that a command whose process died is found when the store is
// opened again, that its root stays, and that ending it records what it did.
func TestUnfinished(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		t.Run(map[bool]string{false: "read-write", true: "read-only"}[readOnly], func(t *testing.T) {
			ctx := t.Context()
			db := newMem(t)
			died, before := beginAndDie(t, db, readOnly)
			st, err := engine.Open(ctx, died, quietOptions())
			if err != nil {
				t.Fatal(err)
			}
			defer closeStore(t, st)
			left := st.Unfinished()
			if len(left) != 1 || left[0].ID() != "x" || left[0].Owner() != 7 || left[0].Before() != before {
				t.Fatalf("left: %+v", left)
			}
			if _, err := st.GC(ctx); err != nil {
				t.Fatal(err)
			}
			entry := left[0].Audit()
			entry.Status = "owner_lost"
			if _, err := left[0].End(ctx, entry); err != nil {
				t.Fatal(err)
			}
			checkRecorded(t, st, before, readOnly)
		})
	}
}

// beginAndDie begins a command that deletes one file and makes another, and gives
// the database as the death of the process leaves it.
func beginAndDie(t *testing.T, db *memkv.Store, readOnly bool) (died *memkv.Store, before engine.Root) {
	t.Helper()
	ctx := t.Context()
	st, err := engine.Create(ctx, db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	v, err := st.CreateVault(ctx, "main")
	if err == nil {
		_, err = v.WriteFile(ctx, "old", strings.NewReader("old content"), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	opts := engine.BeginOptions{ID: "x", Command: []string{"sh"}, ReadOnly: readOnly, Owner: 7, Audit: engine.AuditEntry{Kind: "exec", Vault: "main", ExecID: "x"}}
	done, err := v.Begin(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := done.End(ctx, done.Audit()); err != nil {
		t.Fatal(err)
	}
	opts.Checkpoint = &engine.CheckpointOptions{Auto: true}
	u, err := v.Begin(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.FindCheckpoint(ctx, u.Checkpoint()); err != nil {
		t.Error(err)
	}
	if err := v.DeleteCheckpoint(ctx, u.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	if err := v.Remove(ctx, "old"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.WriteFile(ctx, "new", strings.NewReader("new"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Commit(ctx, false); err != nil {
		t.Fatal(err)
	}
	return db.Clone(memkv.ProcessDeath, 0), u.Before()
}

func checkRecorded(t *testing.T, st *engine.Store, before engine.Root, readOnly bool) {
	t.Helper()
	ctx := t.Context()
	v, err := st.Vault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	list, err := st.QueryAudit(ctx, engine.AuditQuery{Kinds: []string{engine.AuditExec}})
	if err != nil {
		t.Fatal(err)
	}
	audit := list.Entries
	if n := len(audit); n != 2 || audit[1].Status != "owner_lost" || audit[1].RootBefore != before.String() {
		t.Errorf("audit: %+v", audit)
	}
	events, err := v.Timeline(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(events); n == 0 || events[n-1].Cause != engine.CauseMount {
		t.Fatalf("what was there before has no event of its own: %+v", events)
	}
	if readOnly {
		if len(events) != 1 {
			t.Errorf("a command that could change nothing has %d events", len(events)-1)
		}
		return
	}
	if len(events) != 3 || events[0].ID != "x" || events[0].Before != before || events[0].After == before {
		t.Errorf("events: %+v", events)
	}
	if _, err := v.Undo(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Lookup(ctx, engine.RootIno, "old"); err != nil {
		t.Errorf("after an undo: %v", err)
	}
}

func closeStore(t *testing.T, st *engine.Store) {
	t.Helper()
	rep, err := st.Check(context.Background(), &engine.CheckOptions{ReadData: true, History: true})
	if err != nil || len(rep.Findings) > 0 {
		t.Errorf("check: %+v, %v", rep.Findings, err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

// TestShared holds that the event of a command that ran beside others has no changes,
// takes none away from those who made them, and leaves the command that runs at its end
// what that has changed.
func TestShared(t *testing.T) {
	ctx := t.Context()
	st, err := engine.Create(ctx, newMem(t), quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	begin := func(id string, shared bool) *engine.Unfinished {
		u, err := v.Begin(ctx, engine.BeginOptions{ID: id, Shared: shared, Audit: engine.AuditEntry{Kind: "exec", Vault: "main", ExecID: id}})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	write := func(name string) {
		if _, err := v.WriteFile(ctx, name, strings.NewReader(name), nil); err != nil {
			t.Fatal(err)
		}
	}
	end := func(u *engine.Unfinished) {
		if _, err := u.End(ctx, u.Audit()); err != nil {
			t.Fatal(err)
		}
	}
	service, late := begin("service", true), begin("late", true)
	write("by-service")
	command := begin("command", false)
	write("by-command")
	end(service)
	write("later")
	end(command)
	write("last")
	end(late)
	events, err := v.Timeline(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ev := range events {
		changes, _, err := st.Diff(ctx, ev.Before, ev.After, nil)
		if err != nil {
			t.Fatal(err)
		}
		what := ev.Cause + " " + ev.ID + ":"
		for _, c := range changes {
			what += " " + c.Path
		}
		got = append(got, what)
	}
	want := []string{"exec late:", "mount : last", "exec command: by-command later", "exec service:", "mount : by-service"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEndFails holds that a command whose end cannot be recorded is over all the same:
// changes after it have events, of their own cause, and the next owner ends the record.
func TestEndFails(t *testing.T) {
	for name, end := range map[string]func(context.Context, *engine.Unfinished) error{
		"End": func(ctx context.Context, u *engine.Unfinished) error {
			_, err := u.End(ctx, u.Audit())
			return err
		},
		"NotRun": func(ctx context.Context, u *engine.Unfinished) error { return u.NotRun(ctx, u.Audit()) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			mem := newMem(t)
			db := faultkv.Wrap(&kept{Store: mem}, faultkv.Config{})
			st, err := engine.Create(ctx, db, quietOptions())
			if err != nil {
				t.Fatal(err)
			}
			v, err := st.CreateVault(ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			u, err := v.Begin(ctx, engine.BeginOptions{ID: "x", Command: []string{"sh"}})
			if err != nil {
				t.Fatal(err)
			}
			put(t, v, "by-command", "1")
			full := errors.New("full")
			db.Arm(faultkv.Rule{Op: faultkv.Commit, Err: full, Sticky: true})
			if err := end(ctx, u); !errors.Is(err, full) {
				t.Fatalf("the end: %v", err)
			}
			db.Arm()
			begun, err := v.BeginEvent(ctx, engine.Event{Cause: engine.CauseImport})
			if err != nil {
				t.Fatal(err)
			}
			put(t, v, "imported", "1")
			ev, err := begun.End(ctx)
			if err != nil || ev.Seq == 0 || ev.After.IsZero() || ev.Before == ev.After {
				t.Errorf("an import afterwards: %+v, %v", ev, err)
			}
			if err := v.NoteOrigin(ctx, engine.Event{Cause: engine.CauseImport}, "/host", "/"); engine.KindOf(err) != engine.Invalid {
				t.Errorf("an origin without an event: %v", err)
			}
			if len(v.Origins()) != 0 {
				t.Errorf("origins: %+v", v.Origins())
			}
			if _, err := v.Undo(ctx, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := v.Lookup(ctx, engine.RootIno, "by-command"); err != nil {
				t.Errorf("the undo of the import: %v", err)
			}
			closeStore(t, st)
			if st, err = engine.Open(ctx, mem, quietOptions()); err != nil {
				t.Fatal(err)
			}
			defer closeStore(t, st)
			left := st.Unfinished()
			if len(left) != 1 {
				t.Fatalf("left: %+v", left)
			}
			if _, err := left[0].End(ctx, left[0].Audit()); err != nil {
				t.Error(err)
			}
		})
	}
}
