package engine_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// beginExec begins a command in a vault.
func beginExec(t *testing.T, v *engine.Vault, id string, readOnly bool) *engine.Unfinished {
	t.Helper()
	u, err := v.Begin(t.Context(), engine.BeginOptions{ID: id, ReadOnly: readOnly, Audit: engine.AuditEntry{Kind: "exec", Vault: v.Name(), ExecID: id}})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func endExec(t *testing.T, u *engine.Unfinished) {
	t.Helper()
	if _, err := u.End(t.Context(), u.Audit()); err != nil {
		t.Fatal(err)
	}
}

// printed reads what is kept of a stream.
func printed(t *testing.T, st *engine.Store, exec, stream string, from, to int64) string {
	t.Helper()
	k, err := st.Output(t.Context(), "main", exec)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var b bytes.Buffer
	if err := k.WriteTo(t.Context(), &b, stream, from, to); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func newMain(t *testing.T) (*memkv.Store, *engine.Store, *engine.Vault) {
	t.Helper()
	db := newMem(t)
	st, err := engine.Create(t.Context(), db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return db, st, v
}

// lines is text of n bytes of which no two chunks are equal.
func lines(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()[:n]
}

// TestOutput holds that what a command prints is kept exactly, whatever the sizes of
// its writes, while it runs and after a collection, also where a file of the vault has
// the same content and goes.
func TestOutput(t *testing.T) {
	ctx := t.Context()
	_, st, v := newMain(t)
	defer closeStore(t, st)
	out, errs := lines(3<<20+77), lines(500)
	if _, err := v.WriteFile(ctx, "same", strings.NewReader(out), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Commit(ctx, false); err != nil {
		t.Fatal(err)
	}
	u := beginExec(t, v, "x", false)
	for rest, n := out, 1; rest != ""; n = n*3 + 1 {
		n = min(n, len(rest))
		u.Output().Write(ctx, "stdout", []byte(rest[:n]))
		rest = rest[n:]
	}
	u.Output().Write(ctx, "stderr", []byte(errs))
	u.Output().Flush(ctx)
	if got := printed(t, st, "x", "stdout", 0, 1<<40); got != out {
		t.Errorf("while it runs %d bytes are kept of %d", len(got), len(out))
	}
	if err := v.Remove(ctx, "same"); err != nil {
		t.Fatal(err)
	}
	endExec(t, u)
	for range 2 {
		if _, err := v.Commit(ctx, true); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{Last: 1}}); err != nil {
			t.Fatal(err)
		}
		if _, err := st.GC(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range [][2]int64{{0, 1 << 40}, {5, 6}, {engine.ChunkSize - 1, engine.ChunkSize + 1}, {3 << 20, 1 << 40}, {7, 7}, {1 << 40, 1 << 41}} {
		want := out[min(r[0], int64(len(out))):min(r[1], int64(len(out)))]
		if got := printed(t, st, "", "stdout", r[0], r[1]); got != want {
			t.Errorf("bytes %d to %d are %.40q, want %.40q", r[0], r[1], got, want)
		}
	}
	if got := printed(t, st, "x", "stderr", 0, 1<<40); got != errs {
		t.Errorf("stderr is %.40q", got)
	}
	if got := printed(t, st, "x", "combined", 0, 1<<40); got != "" {
		t.Errorf("combined is %.40q", got)
	}
}

// TestOutputIsBounded holds that of each stream the beginning is kept up to the limit
// and the rest counted, in little memory and at a cost that does not grow.
func TestOutputIsBounded(t *testing.T) {
	ctx := t.Context()
	_, st, v := newMain(t)
	defer closeStore(t, st)
	u := beginExec(t, v, "x", true)
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for range 100 {
		u.Output().Write(ctx, "stdout", block)
	}
	endExec(t, u)
	k, err := st.Output(ctx, "main", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	s := k.Stream("stdout")
	if s.Bytes != 100<<20 || s.Kept != engine.MaxOutput || k.Cut == "" || !k.Ended {
		t.Errorf("%+v", k.OutputInfo)
	}
	if got := printed(t, st, "x", "stdout", engine.MaxOutput-16, 1<<40); got != "0123456789abcdef" {
		t.Errorf("the end of what is kept is %q", got)
	}
}

// TestOutputSurvivesDeath holds that what was flushed is there after the process
// died, and says that it did not end.
func TestOutputSurvivesDeath(t *testing.T) {
	ctx := t.Context()
	db, st, v := newMain(t)
	u := beginExec(t, v, "x", false)
	text := lines(200_000)
	u.Output().Write(ctx, "stdout", []byte(text))
	u.Output().Flush(ctx)
	u.Output().Write(ctx, "stdout", []byte("lost"))
	died, err := engine.Open(ctx, db.Clone(memkv.ProcessDeath, 0), quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, died)
	endExec(t, died.Unfinished()[0])
	if got := printed(t, died, "x", "stdout", 0, 1<<40); got != text {
		t.Errorf("%d bytes are kept of %d", len(got), len(text))
	}
	k, err := died.Output(ctx, "main", "x")
	if err != nil || k.Ended {
		t.Fatalf("%+v, %v", k, err)
	}
	k.Close()
	endExec(t, u)
	closeStore(t, st)
}

// TestOutputIsStoredSoon holds that what a command prints is stored although it prints
// nothing more, so that the death of the process takes little of it.
func TestOutputIsStoredSoon(t *testing.T) {
	ctx := t.Context()
	db := newMem(t)
	st, err := engine.Create(ctx, db, &engine.Options{CommitInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	u := beginExec(t, v, "x", true)
	u.Output().Write(ctx, "stdout", []byte("said"))
	u.Output().Write(ctx, "stderr", []byte(" once"))
	deadline := time.Now().Add(10 * time.Second)
	for {
		died, err := engine.Open(ctx, db.Clone(memkv.ProcessDeath, 0), quietOptions())
		if err != nil {
			t.Fatal(err)
		}
		endExec(t, died.Unfinished()[0])
		k, err := died.Output(ctx, "main", "x")
		if err == nil {
			k.Close()
			if got := printed(t, died, "x", "stdout", 1, 9) + printed(t, died, "x", "stderr", 0, 9); got != "aid once" {
				t.Errorf("kept is %q", got)
			}
		}
		closeStore(t, died)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is stored: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	endExec(t, u)
	closeStore(t, st)
}

// TestOutputThatGrowsSlowly holds that a command that prints little for long leaves few
// chunks behind, and that of any all is stored but the last seconds.
func TestOutputThatGrowsSlowly(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		bytes, chunks int   // that it prints each second, that it may leave
		late          int64 // bytes that need not be stored
	}{{100, 8, 2 * 100}, {64 << 10, 600, 2 * 64 << 10}} {
		now := time.Unix(1_700_000_000, 0)
		opts := quietOptions()
		opts.Clock = func() time.Time { return now }
		db := newMem(t)
		st, err := engine.Create(ctx, db, opts)
		if err != nil {
			t.Fatal(err)
		}
		v, err := st.CreateVault(ctx, "main")
		if err != nil {
			t.Fatal(err)
		}
		u := beginExec(t, v, "x", true)
		text := lines(600 * c.bytes)
		for i := range 600 {
			now = now.Add(time.Second)
			u.Output().Write(ctx, "stdout", []byte(text[i*c.bytes:(i+1)*c.bytes]))
		}
		if keys, _ := rowsOf(t, db, table(t, "chunks")); len(keys) > c.chunks {
			t.Errorf("%d bytes a second leave %d chunks after ten minutes", c.bytes, len(keys))
		}
		k, err := st.Output(ctx, "main", "x")
		if err != nil {
			t.Fatal(err)
		}
		k.Close()
		if stored := k.Stream("stdout").Kept; stored < int64(len(text))-c.late {
			t.Errorf("of %d bytes %d are stored", len(text), stored)
		}
		endExec(t, u)
		if got := printed(t, st, "x", "stdout", 0, 1<<40); got != text {
			t.Errorf("%d bytes are kept of %d", len(got), len(text))
		}
		closeStore(t, st)
	}
}

// TestOutputOfTheDeadIsPruned holds that the output of a command whose process died
// goes with the history like any other, with its content and by the bound in bytes too,
// and that of one that runs does not.
func TestOutputOfTheDeadIsPruned(t *testing.T) {
	ctx := t.Context()
	for name, rule := range map[string]engine.Retention{"numbers": {}, "bytes": {Last: 100, Bytes: 1 << 10}} {
		t.Run(name, func(t *testing.T) {
			db, st, v := newMain(t)
			defer closeStore(t, st)
			u := beginExec(t, v, "dead", true)
			defer endExec(t, u)
			u.Output().Write(ctx, "stdout", []byte(lines(200_000)))
			u.Output().Flush(ctx)
			died, err := engine.Open(ctx, db.Clone(memkv.ProcessDeath, 0), quietOptions())
			if err != nil {
				t.Fatal(err)
			}
			defer closeStore(t, died)
			endExec(t, died.Unfinished()[0])
			main, err := died.Vault(ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			runs := beginExec(t, main, "runs", true)
			defer endExec(t, runs)
			runs.Output().Write(ctx, "stdout", []byte("it runs"))
			runs.Output().Flush(ctx)
			rep, err := main.Prune(ctx, &engine.PruneOptions{Rule: &rule})
			if err != nil || rep.Outputs != 1 || rep.KeptOutputs != 1 {
				t.Errorf("%+v, %v", rep, err)
			}
			if k, err := died.Output(ctx, "main", "dead"); engine.KindOf(err) != engine.NotFound {
				t.Errorf("the output of the dead is kept: %+v, %v", k, err)
			}
			if got := printed(t, died, "runs", "stdout", 0, 100); got != "it runs" {
				t.Errorf("of the command that runs %q is kept", got)
			}
			if gc, err := died.GC(ctx); err != nil || gc.Chunks < 2 {
				t.Errorf("%+v, %v", gc, err)
			}
		})
	}
}

// TestOutputsArePruned holds that outputs go with the history, by the rule and by
// themselves, and those of deleted vaults with them.
func TestOutputsArePruned(t *testing.T) {
	ctx := t.Context()
	now := time.Unix(1_700_000_000, 0)
	opts := quietOptions()
	opts.Clock = func() time.Time { return now }
	opts.Retention = &engine.Retention{Last: 3}
	st, err := engine.Create(ctx, newMem(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	kept := func() (n int) {
		for i := range 100 {
			k, err := st.Output(ctx, "main", fmt.Sprint("x", i))
			if err == nil {
				k.Close()
				n++
			} else if engine.KindOf(err) != engine.NotFound {
				t.Fatal(err)
			}
		}
		return n
	}
	for i := range 100 {
		now = now.Add(time.Minute)
		u := beginExec(t, v, fmt.Sprint("x", i), true)
		u.Output().Write(ctx, "stdout", []byte(lines(50+i)))
		endExec(t, u)
	}
	if n := kept(); n < 3 || n > 60 {
		t.Errorf("%d outputs are kept without a prune", n)
	}
	rep, err := v.Prune(ctx, nil)
	if err != nil || rep.KeptOutputs != 3 || kept() != 3 {
		t.Errorf("%+v, %v", rep, err)
	}
	if _, err := v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil || kept() != 0 {
		t.Errorf("%d are kept by a rule that keeps nothing, %v", kept(), err)
	}
	gc, err := st.GC(ctx)
	if err != nil || gc.Chunks < 1 {
		t.Errorf("%+v, %v", gc, err)
	}
}

// TestOutputWithoutRoom holds that a store that takes no more does not fail the
// command, and that the record says so: what is kept is a beginning.
func TestOutputWithoutRoom(t *testing.T) {
	ctx := t.Context()
	for _, op := range []faultkv.Op{faultkv.Update, faultkv.Put, faultkv.Commit, faultkv.AfterCommit} {
		db := faultkv.Wrap(newMem(t), faultkv.Config{Scribble: true})
		st, err := engine.Create(ctx, db, quietOptions())
		if err != nil {
			t.Fatal(err)
		}
		v, err := st.CreateVault(ctx, "main")
		if err != nil {
			t.Fatal(err)
		}
		u := beginExec(t, v, "x", false)
		out := u.Output()
		out.Write(ctx, "stdout", []byte("kept"))
		out.Flush(ctx)
		db.Arm(faultkv.Rule{Op: op, N: 1, Err: kv.ErrNoSpace})
		out.Write(ctx, "stdout", []byte(", and this not"))
		out.Flush(ctx)
		db.Arm()
		out.Write(ctx, "stdout", []byte(", nor this"))
		endExec(t, u)
		if got := printed(t, st, "x", "stdout", 0, 1<<40); got != "kept" {
			t.Errorf("%v: kept is %q", op, got)
		}
		k, err := st.Output(ctx, "main", "x")
		if err != nil {
			t.Fatal(err)
		}
		k.Close()
		if s := k.Stream("stdout"); s.Bytes != 28 || s.Kept != 4 || !strings.Contains(k.Cut, string(engine.NoSpace)) || !k.Ended {
			t.Errorf("%v: %+v", op, k.OutputInfo)
		}
		closeStore(t, st)
	}
}
