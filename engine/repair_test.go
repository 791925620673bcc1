package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// table is one of the engine's.
func table(t testing.TB, name string) kv.Table {
	t.Helper()
	for _, tb := range engine.Tables() {
		if tb.Name == name {
			return tb
		}
	}
	t.Fatalf("no table %s", name)
	return kv.Table{}
}

// rowsOf copies a table.
func rowsOf(t testing.TB, db kv.Store, tb kv.Table) (keys, values [][]byte) {
	t.Helper()
	err := db.View(context.Background(), func(tx kv.Reader) error {
		keys, values = nil, nil
		return tx.Scan(tb, nil, nil, func(k, v []byte) error {
			keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys, values
}

func putRow(t testing.TB, db kv.Store, tb kv.Table, key, value []byte) {
	t.Helper()
	err := db.Update(context.Background(), kv.Relaxed, func(tx kv.Writer) error {
		if value == nil {
			return tx.Delete(tb, key)
		}
		return tx.Put(tb, key, value)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// flipped is b with one bit changed.
func flipped(b []byte, at int) []byte {
	c := bytes.Clone(b)
	c[at] ^= 4
	return c
}

// repairStore is a store with two files, a checkpoint and a fork, and no cache, so
// that what is damaged is missed at once.
func repairStore(t *testing.T) (*memkv.Store, *engine.Store, *engine.Vault) {
	t.Helper()
	ctx := context.Background()
	db := newMem(t)
	opts := quietOptions()
	opts.CacheBytes = 1
	st, err := engine.Create(ctx, db, opts)
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		writeText(t, v, name, name)
	}
	if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "first"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Fork(ctx, "main", "fork"); err != nil {
		t.Fatal(err)
	}
	return db, st, v
}

func writeText(t testing.TB, v *engine.Vault, name, word string) {
	t.Helper()
	ctx := context.Background()
	_, err := v.WriteFile(ctx, name, strings.NewReader(strings.Repeat(word+" ", 9_000)), &engine.WriteOptions{})
	if err == nil {
		err = v.Sync(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readText(t testing.TB, v *engine.Vault, name string) (string, error) {
	t.Helper()
	b, err := fs.ReadFile(v.FS(context.Background()), name)
	return string(b), err
}

func repair(t testing.TB, st *engine.Store) engine.RepairReport {
	t.Helper()
	rep, err := st.Repair(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestWritingHeals writes content again of which the stored copy is damaged: the
// store must not take the bad copy for it, and every file that had it is whole.
func TestWritingHeals(t *testing.T) {
	db, st, v := repairStore(t)
	chunks := table(t, "chunks")
	keys, values := rowsOf(t, db, chunks)
	for i := range keys {
		for _, bad := range [][]byte{flipped(values[i], 0), flipped(values[i], len(values[i])/2), nil} {
			putRow(t, db, chunks, keys[i], bad)
			name := []string{"one", "two"}[i]
			if _, err := readText(t, v, name); engine.KindOf(err) != engine.Corrupt {
				t.Fatalf("reading what is damaged: %v", err)
			}
			writeText(t, v, "again", name)
			if got, err := readText(t, v, name); err != nil || got != strings.Repeat(name+" ", 9_000) {
				t.Fatalf("%s is not healed: %v", name, err)
			}
			if err := v.Remove(context.Background(), "again"); err != nil {
				t.Fatal(err)
			}
		}
	}
	sound(t, st, "healed")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRepairLost damages a chunk of which there is no other copy. It is named, the
// file stays an error and everything else readable, and nothing is collected.
func TestRepairLost(t *testing.T) {
	db, st, v := repairStore(t)
	chunks := table(t, "chunks")
	keys, values := rowsOf(t, db, chunks)
	putRow(t, db, chunks, keys[0], flipped(values[0], 9))
	rep := repair(t, st)
	if len(rep.Repaired) != 0 || rep.Collected != nil || len(rep.Findings) != 1 || rep.Findings[0].Paths[0] != "one" || len(rep.Findings[0].Owners) < 2 {
		t.Fatalf("%+v", rep)
	}
	if _, err := readText(t, v, "one"); engine.KindOf(err) != engine.Corrupt {
		t.Errorf("what is lost reads as %v", err)
	}
	if _, err := readText(t, v, "two"); err != nil {
		t.Error(err)
	}
	writeText(t, v, "two", "one")
	if rep := repair(t, st); len(rep.Findings) != 0 {
		t.Errorf("after the content was written again: %+v", rep)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRepairCopies finds the content of a damaged chunk in another chunk: by the
// index, and with a damaged row by reading all.
func TestRepairCopies(t *testing.T) {
	db, st, v := repairStore(t)
	chunks, digests := table(t, "chunks"), table(t, "digests")
	keys, values := rowsOf(t, db, chunks)
	rows, _ := rowsOf(t, db, digests)
	for _, row := range rows { // so that what is written again is stored twice
		putRow(t, db, digests, row, nil)
	}
	writeText(t, v, "three", "one")
	for range 2 {
		putRow(t, db, chunks, keys[0], flipped(values[0], 9))
		rep := repair(t, st)
		if len(rep.Findings) != 0 || len(rep.Repaired) == 0 {
			t.Fatalf("%+v", rep)
		}
		if got, err := readText(t, v, "one"); err != nil || !strings.HasPrefix(got, "one one") {
			t.Fatalf("%q %v", got[:min(len(got), 20)], err)
		}
		rows, _ = rowsOf(t, db, digests)
		for _, row := range rows {
			putRow(t, db, digests, row, []byte("damaged"))
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRepairRecords damages bytes all over each record, one at a time. After a repair the
// check finds nothing, or names what is lost; what is read is right or an error;
// and nothing that was readable before is not any more.
func TestRepairRecords(t *testing.T) {
	ctx := context.Background()
	whole, st, v := repairStore(t)
	pin, err := v.Pin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, v, "three", "three")
	if _, err := v.Record(ctx, engine.Event{Cause: engine.CauseExec, Before: pin}); err != nil {
		t.Fatal(err)
	}
	want, err := signature(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	mended := map[string]int{}
	for _, name := range []string{"nodes", "chunks", "digests", "checkpoints", "timeline"} {
		tb := table(t, name)
		keys, values := rowsOf(t, whole, tb)
		for i := range keys {
			stride := max(1, len(values[i])/16)
			for at := len(values[i]) - 1; at >= 0; at -= stride { // the last byte is of the checksum
				db := whole.Clone(memkv.ProcessDeath, 0)
				putRow(t, db, tb, keys[i], flipped(values[i], at))
				if repairOne(t, db, want) {
					mended[name]++
				} else if name == "digests" {
					t.Errorf("byte %d of a row of the index is not repaired", at)
				}
			}
		}
		if mended[name] == 0 && name != "chunks" {
			t.Errorf("nothing in %s could be repaired", name)
		}
	}
	t.Logf("repaired by table: %v", mended)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// repairOne repairs a store and reports whether it is whole then.
func repairOne(t *testing.T, db *memkv.Store, want string) bool {
	t.Helper()
	ctx := context.Background()
	st, err := engine.Open(ctx, db, quietOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }() // may well fail
	fork, err := st.Vault(ctx, "fork")
	if err != nil {
		t.Fatal(err)
	}
	_, readable := signature(ctx, fork)
	rep := repair(t, st)
	v, err := st.Vault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := signature(ctx, v); err == nil && got != want {
		t.Error("wrong data is read")
	} else if err != nil && len(rep.Findings) == 0 {
		t.Errorf("nothing is found, and reading fails: %v", err)
	}
	if _, err := signature(ctx, fork); err != nil && readable == nil {
		t.Errorf("what was readable is not any more: %v", err)
	}
	again := repair(t, st)
	if len(again.Repaired) > 0 || len(again.Findings) != len(rep.Findings) {
		t.Errorf("a second repair is not the first: %+v", again)
	}
	return len(rep.Findings) == 0
}

// TestRepairKilled ends a repair after each of its transactions. What it leaves is
// no worse, and the next one ends it.
func TestRepairKilled(t *testing.T) {
	ctx := context.Background()
	db, st, v := repairStore(t)
	for i := range 8 { // garbage, and rows that lead nowhere
		name := fmt.Sprintf("gone%d", i)
		writeText(t, v, name, name)
		if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: name}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(v.Remove(ctx, name), v.DeleteCheckpoint(ctx, name), v.Sync(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := signature(ctx, v)
	if err := errors.Join(err, dropHistory(v)); err != nil {
		t.Fatal(err)
	}
	live := st
	defer func() {
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	}()
	db = db.Clone(memkv.ProcessDeath, 0)
	digests := table(t, "digests")
	rows, values := rowsOf(t, db, digests)
	for i := 0; i < len(rows); i += 2 {
		putRow(t, db, digests, rows[i], flipped(values[i], 3))
	}
	if st, err = engine.Open(ctx, db, quietOptions()); err != nil {
		t.Fatal(err)
	}
	var left []*memkv.Store
	db.OnCommit(func(int) {
		for keep := range db.Tail() + 1 {
			left = append(left, db.Clone(memkv.PowerLoss, keep))
		}
		left = append(left, db.Clone(memkv.ProcessDeath, 0))
	})
	if rep := repair(t, st); len(rep.Repaired) < 4 || len(rep.Findings) > 0 || rep.Collected.Chunks < 8 {
		t.Fatalf("%+v", rep)
	}
	db.OnCommit(nil)
	t.Logf("%d moments", len(left))
	for i, l := range left {
		if !repairOne(t, l, want) {
			t.Errorf("moment %d: the next repair does not end it", i)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSalvage damages the records without which a store does not open. What can be
// proved opens again and is whole, checkpoints and all; the rest stays refused.
func TestSalvage(t *testing.T) {
	ctx := context.Background()
	whole, st, v := repairStore(t)
	want, err := signature(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	opened := map[string]int{}
	for _, name := range []string{"meta", "vaults"} {
		tb := table(t, name)
		keys, values := rowsOf(t, whole, tb)
		for i := range keys {
			if string(keys[i]) == "audit" {
				continue // a store opens without it; see TestAuditHeadMended
			}
			for at := range values[i] {
				db := whole.Clone(memkv.ProcessDeath, 0)
				putRow(t, db, tb, keys[i], flipped(values[i], at))
				if salvage(t, db, want) {
					opened[name]++
				}
			}
		}
	}
	t.Logf("opened again by table: %v", opened)
	if opened["meta"] < 20 || opened["vaults"] < 50 {
		t.Error("too few stores could be opened again")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// salvage reports whether the store could be opened in the end.
func salvage(t *testing.T, db *memkv.Store, want string) bool {
	t.Helper()
	ctx := context.Background()
	if _, err := engine.Open(ctx, db, quietOptions()); err == nil {
		t.Fatal("a damaged record was not noticed")
	}
	_, serr := engine.Salvage(ctx, db)
	st, err := engine.Open(ctx, db, quietOptions())
	if err != nil {
		if serr == nil {
			t.Errorf("it is salvaged and does not open: %v", err)
		}
		return false
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	if rep := repair(t, st); len(rep.Findings) > 0 {
		t.Errorf("salvaged, and not sound: %+v", rep.Findings)
	}
	infos, err := st.Vaults(ctx)
	if err != nil || len(infos) != 2 {
		t.Fatalf("%d vaults, %v", len(infos), err)
	}
	for _, info := range infos {
		v, err := st.Vault(ctx, info.Name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := signature(ctx, v); err != nil || got != want {
			t.Errorf("%s is not what it was (%v)", info.Name, err)
		}
		writeText(t, v, "new", "new")
		if err := v.Remove(ctx, "one"); err != nil {
			t.Error(err)
		}
		if err := v.Sync(ctx); err != nil {
			t.Error(err)
		}
	}
	sound(t, st, "used after a salvage")
	return true
}

// TestRepairSilentOutput damages the row of a command that printed nothing, which has no
// tree to prove it: it is mended, and the store can be pruned and collected.
func TestRepairSilentOutput(t *testing.T) {
	ctx := t.Context()
	db, st, v := newMain(t)
	defer closeStore(t, st)
	endExec(t, beginExec(t, v, "silent", true))
	rows := table(t, "outputs")
	keys, values := rowsOf(t, db, rows)
	if len(keys) != 1 {
		t.Fatalf("%d rows", len(keys))
	}
	putRow(t, db, rows, keys[0], flipped(values[0], len(values[0])-3)) // in the sum
	if _, err := v.Prune(ctx, nil); engine.KindOf(err) != engine.Corrupt {
		t.Fatalf("the damage is not seen: %v", err)
	}
	if rep := repair(t, st); len(rep.Repaired) != 1 || len(rep.Findings) != 0 || rep.Collected == nil {
		t.Errorf("%+v", rep)
	}
	if _, err := v.Prune(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, now := rowsOf(t, db, rows); !bytes.Equal(now[0], values[0]) {
		t.Errorf("the row is %s, was %s", now[0], values[0])
	}
}
