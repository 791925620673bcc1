package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// auditStore is a store with twelve entries, besides that of its vault.
func auditStore(t *testing.T) (*memkv.Store, *engine.Store) {
	t.Helper()
	db := newMem(t)
	st, err := engine.Create(t.Context(), db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() }) // it may be damaged
	if _, err := st.CreateVault(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		if _, err := st.AppendAudit(t.Context(), engine.AuditEntry{Kind: engine.AuditExec, Vault: "main", ExecID: fmt.Sprint(i), Argv: []string{"<echo>", "a & b"}}); err != nil {
			t.Fatal(err)
		}
	}
	return db, st
}

func verified(t *testing.T, st *engine.Store, known ...engine.AuditHead) engine.AuditReport {
	t.Helper()
	rep, err := st.VerifyAudit(t.Context(), known...)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// rewrite gives the row of an entry another text and, as somebody would who knows how, the
// hash and the checksum that are right behind the hash prev.
func rewrite(t *testing.T, key, row []byte, prev string, edit func(e *engine.AuditEntry)) (again []byte, hash string) {
	t.Helper()
	e, err := engine.ParseAudit(key, row)
	if err != nil {
		t.Fatal(err)
	}
	e.Prev = prev
	edit(&e)
	e, again, err = engine.EncodeAudit(e)
	if err != nil {
		t.Fatal(err)
	}
	return again, e.Hash
}

// hashIn is the hash that a row tells.
func hashIn(t *testing.T, key, row []byte) string {
	t.Helper()
	e, err := engine.ParseAudit(key, row)
	if err != nil {
		t.Fatal(err)
	}
	return e.Hash
}

// reseal gives a row that was changed the right checksum for key.
func reseal(key, row []byte) []byte {
	row = row[:len(row)-len(`,"sum":"00000000"}`)]
	sum := crc32.Checksum(slices.Concat([]byte("audit\x00"), key, row, []byte("}")), crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(bytes.Clone(row), `,"sum":"%08x"}`, sum)
}

// TestAuditTampered changes the rows of the audit in every way that matters, with and
// without the knowledge of how they are made. Each is found, and named.
func TestAuditTampered(t *testing.T) {
	audit := table(t, "audit")
	meta := table(t, "meta")
	// edit changes an entry: its text alone, with the checksum, or with the hash too.
	edit := func(t *testing.T, db kv.Store, seq uint64, hide int) {
		keys, rows := rowsOf(t, db, audit)
		i := seq - 1
		row := bytes.Replace(rows[i], []byte("a & b"), []byte("a & c"), 1)
		switch hide {
		case 1:
			row = reseal(keys[i], row)
		case 2:
			row, _ = rewrite(t, keys[i], rows[i], hashIn(t, keys[i-1], rows[i-1]), func(e *engine.AuditEntry) { e.Argv[1] = "a & c" })
		}
		putRow(t, db, audit, keys[i], row)
	}
	for name, c := range map[string]struct {
		tamper func(t *testing.T, db kv.Store)
		want   []string
	}{
		"edited":              {func(t *testing.T, db kv.Store) { edit(t, db, 5, 0) }, []string{"entry 5 is damaged"}},
		"edited with sum":     {func(t *testing.T, db kv.Store) { edit(t, db, 5, 1) }, []string{changed(5)}},
		"edited with hash":    {func(t *testing.T, db kv.Store) { edit(t, db, 5, 2) }, []string{changed(6)}},
		"newest edited":       {func(t *testing.T, db kv.Store) { edit(t, db, 13, 2) }, []string{"entry 13 is not the one that the head names"}},
		"edited behind a gap": {func(t *testing.T, db kv.Store) { edit(t, db, 6, 1); cut(t, db, 4) }, []string{"entry 4 is missing", changed(6)}},
		"written another way": {otherForm, []string{changed(5)}},
		"beginning cut":       {func(t *testing.T, db kv.Store) { cut(t, db, 1, 2) }, []string{"entries 1 to 2 are missing"}},
		"middle cut":          {func(t *testing.T, db kv.Store) { cut(t, db, 7) }, []string{"entry 7 is missing"}},
		"end cut":             {func(t *testing.T, db kv.Store) { cut(t, db, 12, 13) }, []string{"entries 12 to 13 are missing"}},
		"all cut":             {func(t *testing.T, db kv.Store) { cut(t, db, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13) }, []string{"entries 1 to 13 are missing"}},
		"head removed":        {func(t *testing.T, db kv.Store) { putRow(t, db, meta, []byte("audit"), nil) }, []string{"the head is damaged or missing: entries behind 13 may be, too"}},
		"two exchanged":       {exchange, []string{changed(3), changed(4), changed(5)}},
		"one doubled at end":  {double, []string{changed(14), "entries are behind 13, where the head is"}},
		"hash of another": {func(t *testing.T, db kv.Store) {
			keys, rows := rowsOf(t, db, audit)
			at := bytes.Index(rows[4], []byte(`"hash":"`)) + len(`"hash":"`)
			fake := slices.Concat(rows[4][:at], bytes.Repeat([]byte("A"), 43), rows[4][at+43:])
			putRow(t, db, audit, keys[4], reseal(keys[4], fake))
		}, []string{changed(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			db, st := auditStore(t)
			if rep := verified(t, st); len(rep.Findings) > 0 || rep.Entries != 13 || rep.Head.Seq != 13 {
				t.Fatalf("before: %+v", rep)
			}
			c.tamper(t, db)
			var got []string
			for _, f := range verified(t, st).Findings {
				got = append(got, f.Problem)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, not %q", got, c.want)
			}
			check, err := st.Check(t.Context(), nil)
			if err != nil || len(check.Findings) != len(c.want) || check.Findings[0].Problem != "audit: "+c.want[0] {
				t.Errorf("a check finds %+v, %v", check.Findings, err)
			}
		})
	}
}

// changed is the finding about an entry that does not fit behind the one before.
func changed(seq int) string {
	return fmt.Sprintf("entry %d does not continue what is before it, or was changed", seq)
}

// otherForm writes an entry in another way that means the same.
func otherForm(t *testing.T, db kv.Store) {
	keys, rows := rowsOf(t, db, table(t, "audit"))
	putRow(t, db, table(t, "audit"), keys[4], reseal(keys[4], bytes.Replace(rows[4], []byte(`"uid":`), []byte(`"uid": `), 1)))
}

func cut(t *testing.T, db kv.Store, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		putRow(t, db, table(t, "audit"), kv.ID(seq), nil)
	}
}

// A list that meets a damaged entry says which it is.
func TestAuditDamagedEntry(t *testing.T) {
	db, st := auditStore(t)
	keys, rows := rowsOf(t, db, table(t, "audit"))
	putRow(t, db, table(t, "audit"), keys[4], append(bytes.Clone(rows[4]), ' '))
	_, err := st.Audit(t.Context(), 0)
	var e *engine.Error
	if !errors.As(err, &e) || e.Kind != engine.Corrupt || e.Path != "audit entry 5" || e.Details["audit_entry"] != uint64(5) {
		t.Errorf("the error is %v", err)
	}
	if list, err := st.Audit(t.Context(), 8); err != nil || len(list) != 8 {
		t.Errorf("of the entries behind it %d are listed: %v", len(list), err)
	}
}

// exchange puts two entries in each other's place, with right checksums.
func exchange(t *testing.T, db kv.Store) {
	keys, rows := rowsOf(t, db, table(t, "audit"))
	putRow(t, db, table(t, "audit"), keys[2], reseal(keys[2], rows[3]))
	putRow(t, db, table(t, "audit"), keys[3], reseal(keys[3], rows[2]))
}

func double(t *testing.T, db kv.Store) {
	_, rows := rowsOf(t, db, table(t, "audit"))
	putRow(t, db, table(t, "audit"), kv.ID(14), reseal(kv.ID(14), rows[12]))
}

// TestAuditRewritten writes the whole chain again, which nothing in the store can
// tell from the first one; a head that was noted before can.
func TestAuditRewritten(t *testing.T) {
	db, st := auditStore(t)
	noted := verified(t, st).Head
	again, err := engine.ParseAuditHead(noted.String())
	if err != nil || again != noted {
		t.Fatalf("%v, %v", again, err)
	}
	if rep := verified(t, st, noted); len(rep.Findings) > 0 {
		t.Fatalf("%+v", rep)
	}
	keys, rows := rowsOf(t, db, table(t, "audit"))
	prev := ""
	for i, row := range rows {
		row, prev = rewrite(t, keys[i], row, prev, func(e *engine.AuditEntry) {
			if len(e.Argv) > 0 {
				e.Argv[1] = "nothing"
			}
		})
		putRow(t, db, table(t, "audit"), keys[i], row)
	}
	head := fmt.Sprintf(`{"seq":13,"hash":"%s","policy":""}`, prev)
	sum := crc32.Checksum(slices.Concat([]byte("meta\x00audit"), []byte(head)), crc32.MakeTable(crc32.Castagnoli))
	putRow(t, db, table(t, "meta"), []byte("audit"), fmt.Appendf(nil, `%s,"sum":"%08x"}`, head[:len(head)-1], sum))
	if rep := verified(t, st); len(rep.Findings) > 0 {
		t.Fatalf("the chain is whole: %+v", rep)
	}
	rep := verified(t, st, noted)
	if len(rep.Findings) != 1 || rep.Findings[0].Problem != "entry 13 is not the one that the head noted elsewhere names" {
		t.Errorf("%+v", rep.Findings)
	}
	later := engine.AuditHead{Seq: 20, Hash: noted.Hash}
	rep = verified(t, st, later)
	if len(rep.Findings) != 1 || rep.Findings[0].Seq != 20 {
		t.Errorf("%+v", rep.Findings)
	}
	for _, bad := range []string{"", "5", "x:" + noted.Hash, "5:ab", "0:" + noted.Hash, "5:", "-1:" + noted.Hash} {
		if _, err := engine.ParseAuditHead(bad); engine.KindOf(err) != engine.Invalid {
			t.Errorf("%q is a head: %v", bad, err)
		}
	}
}

// TestAuditHeadMended makes sure that a store with a damaged head can be used again
// after a repair, and tells that it was repaired.
func TestAuditHeadMended(t *testing.T) {
	for _, newestToo := range []bool{false, true} {
		db, st := auditStore(t)
		putRow(t, db, table(t, "meta"), []byte("audit"), []byte(`{"seq":1}`))
		if newestToo {
			putRow(t, db, table(t, "audit"), kv.ID(13), []byte(`{}`))
		}
		_, err := st.AppendAudit(t.Context(), engine.AuditEntry{Kind: engine.AuditExec})
		wantKind(t, "an entry behind a damaged head", err, engine.Corrupt)
		rep := repair(t, st)
		if len(rep.Repaired) != 1 || !strings.Contains(rep.Repaired[0].Problem, "head of the audit") {
			t.Errorf("%+v", rep)
		}
		list, err := st.QueryAudit(t.Context(), engine.AuditQuery{Kinds: []string{engine.AuditRepair}})
		if !newestToo && (err != nil || len(list.Entries) != 1 || list.Entries[0].Seq != 14) {
			t.Errorf("%+v, %v", list, err)
		}
		if n := len(rep.Findings); newestToo != (n == 1) {
			t.Errorf("after the repair: %+v", rep.Findings)
		}
		if _, err := st.AppendAudit(t.Context(), engine.AuditEntry{Kind: engine.AuditExec}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAuditKinds makes one change of each kind and looks for its entry, in order, with
// who asked and the roots that fit together.
func TestAuditKinds(t *testing.T) {
	st, err := engine.Create(t.Context(), newMem(t), quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := engine.WithActor(t.Context(), engine.Actor{UID: 7, PID: 8, User: "me", Exec: "outer"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	v, err := st.CreateVault(ctx, "main")
	must(err)
	begun, err := v.BeginEvent(ctx, engine.Event{Cause: engine.CauseWrite, Command: []string{"avfs", "write"}})
	must(err)
	_, err = v.WriteFile(ctx, "f", strings.NewReader("x"), nil)
	must(err)
	_, err = begun.EndIfChanged(ctx)
	must(err)
	cp, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "one"})
	must(err)
	begun, err = v.BeginEvent(ctx, engine.Event{Cause: engine.CauseWrite})
	must(err)
	_, err = begun.EndIfChanged(ctx) // nothing changed: no entry
	must(err)
	must(v.Remove(ctx, "f"))
	_, err = v.Restore(ctx, cp.Root, &engine.RestoreOptions{ID: cp.ID})
	must(err)
	_, err = v.Undo(ctx, nil)
	must(err)
	_, err = st.Fork(ctx, "main", "fork")
	must(err)
	limit := int64(1000)
	_, err = v.SetQuota(ctx, engine.QuotaChange{MaxFiles: &limit}, engine.AuditEntry{})
	must(err)
	must(v.SetRetention(ctx, &engine.Retention{Last: 1}))
	_, err = v.Prune(ctx, nil)
	must(err)
	must(v.DeleteCheckpoint(ctx, "one"))
	u, err := v.Begin(ctx, engine.BeginOptions{ID: "x", Audit: engine.AuditEntry{Kind: engine.AuditExec, Vault: "main", ExecID: "x", Policy: "p1"}})
	must(err)
	_, err = u.End(ctx, u.Audit())
	must(err)
	must(st.DeleteVault(ctx, "fork"))

	list, err := st.Audit(ctx, 0)
	must(err)
	want := []string{
		"vault.create main", "write main", "checkpoint.save main c1 one", "mount main", "checkpoint.restore main c1", "undo main", "vault.fork fork main",
		"quota.set main", "retention.set main", "prune main 3 events, 1 automatic checkpoints", "checkpoint.delete main c1 one",
		"policy.change", "exec main", "vault.delete fork",
	}
	var got []string
	for _, e := range list {
		got = append(got, strings.Join(strings.Fields(e.Kind+" "+e.Vault+" "+e.Subject), " "))
		if e.Kind == engine.AuditMount { // nobody asked for it
			e.UID, e.PID, e.User, e.FromExec = 7, 8, "me", "outer"
		}
		if e.UID != 7 || e.PID != 8 || e.User != "me" || e.FromExec != "outer" {
			t.Errorf("%s was asked for by %+v", e.Kind, e)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit has\n%q, not\n%q", got, want)
	}
	root := list[0].RootAfter
	for _, e := range list[1:] {
		if e.Vault != "main" {
			continue
		}
		if e.Kind != engine.AuditRestore && e.RootBefore != root { // what is removed before it has no event
			t.Errorf("%s begins at %s, the one before ends at %s", e.Kind, e.RootBefore, root)
		}
		root = e.RootAfter
	}
	if rep := verified(t, st); len(rep.Findings) > 0 {
		t.Errorf("%+v", rep.Findings)
	}
}

// TestAuditPolicy makes sure that a change of the policy is told of once, before what
// was decided by the new one, whoever comes first.
func TestAuditPolicy(t *testing.T) {
	_, st := auditStore(t)
	for _, p := range []string{"", "a", "a", "", "b", "a"} {
		if _, err := st.AppendAudit(t.Context(), engine.AuditEntry{Kind: engine.AuditExec, Policy: p}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := st.QueryAudit(t.Context(), engine.AuditQuery{Kinds: []string{engine.AuditPolicyChange}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list.Entries {
		got = append(got, e.Subject+">"+e.Policy)
	}
	if want := []string{">a", "a>b", "b>a"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if rep := verified(t, st); len(rep.Findings) > 0 || rep.Entries != 13+6+3 {
		t.Errorf("%+v", rep)
	}
}

// TestAuditParallel has many goroutines add entries, some of whose transactions fail.
// The chain has no gap, and one entry each for those that did not.
func TestAuditParallel(t *testing.T) {
	_, st := auditStore(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 25 {
				id := fmt.Sprintf("g%d-%d", g, i)
				if _, err := st.AppendAudit(cancelled, engine.AuditEntry{ExecID: id}); !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled entry: %v", err)
				}
				if _, err := st.AppendAudit(t.Context(), engine.AuditEntry{Kind: engine.AuditExec, ExecID: id}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	list, err := st.Audit(t.Context(), 0)
	if err != nil || len(list) != 213 {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	seen := map[string]bool{}
	for i, e := range list {
		if e.Seq != uint64(i+1) || e.ExecID != "" && seen[e.ExecID] {
			t.Errorf("entry %d: %+v", i+1, e)
		}
		seen[e.ExecID] = true
	}
	if rep := verified(t, st); len(rep.Findings) > 0 {
		t.Errorf("%+v", rep.Findings)
	}
}

// TestSecretsAreNotStored looks for a secret in every byte of a store that was told of
// it in every way.
func TestSecretsAreNotStored(t *testing.T) {
	const secret = "hunter2hunter2"
	db := newMem(t)
	st, err := engine.Create(t.Context(), db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, st)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	v, err := st.CreateVault(t.Context(), "main")
	must(err)
	argv := []string{"curl", "--password", secret, "https://me:" + secret + "@h"}
	entry := engine.AuditEntry{Kind: engine.AuditExec, Argv: argv, Shell: "TOKEN=" + secret + " run", ExecID: "x"}
	for _, end := range []bool{true, false} {
		u, err := v.Begin(t.Context(), engine.BeginOptions{ID: "x", Command: argv, Audit: entry})
		must(err)
		if end {
			_, err = u.End(t.Context(), entry)
			must(err)
		}
	}
	_, err = st.AppendAudit(t.Context(), entry)
	must(err)
	_, err = v.Checkpoint(t.Context(), engine.CheckpointOptions{Message: "with --token=" + secret})
	must(err)
	pin, err := v.Pin(t.Context())
	must(err)
	_, err = v.Record(t.Context(), engine.Event{Cause: engine.CauseImport, Command: argv, Before: pin})
	must(err)
	limit := int64(9)
	_, err = v.SetQuota(t.Context(), engine.QuotaChange{MaxFiles: &limit}, engine.AuditEntry{Argv: argv})
	must(err)
	marked := 0
	for _, tb := range engine.Tables() {
		keys, rows := rowsOf(t, db, tb)
		for i, row := range rows {
			if bytes.Contains(row, []byte(secret)) {
				t.Errorf("%s %x has it: %s", tb.Name, keys[i], row)
			}
			marked += bytes.Count(row, []byte("[redacted]"))
		}
	}
	if marked < 15 {
		t.Errorf("only %d marks", marked)
	}
}

// TestAuditPathIsCheap holds that asking for what changed a path looks at the events of
// the entries, and not at all that the store has for each of them.
func TestAuditPathIsCheap(t *testing.T) {
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
	for i := range 20 {
		writeText(t, v, []string{"one", "two"}[i%2], fmt.Sprint(i))
		if err := v.Settle(ctx); err != nil {
			t.Fatal(err)
		}
	}
	db.Arm(faultkv.Rule{Op: faultkv.Scan, N: 1 << 30})
	list, err := st.QueryAudit(ctx, engine.AuditQuery{Path: "one"})
	if err != nil || len(list.Entries) != 10 || list.Unknown != 0 {
		t.Errorf("%d entries, %d unknown, %v", len(list.Entries), list.Unknown, err)
	}
	if n := db.Calls(faultkv.Scan); n > 1 {
		t.Errorf("it takes %d scans", n)
	}
	db.Arm()
}

// TestAuditPruneOfOutputs holds that a pruning that drops nothing but outputs is told of.
func TestAuditPruneOfOutputs(t *testing.T) {
	ctx := t.Context()
	_, st, v := newMain(t)
	defer closeStore(t, st)
	endExec(t, beginExec(t, v, "x", true))
	if _, err := v.Prune(ctx, &engine.PruneOptions{Rule: &engine.Retention{}}); err != nil {
		t.Fatal(err)
	}
	list, err := st.QueryAudit(ctx, engine.AuditQuery{Kinds: []string{engine.AuditPrune}})
	if err != nil || len(list.Entries) != 1 || list.Entries[0].Subject != "0 events, 0 automatic checkpoints, 1 outputs" {
		t.Errorf("%+v, %v", list, err)
	}
}
