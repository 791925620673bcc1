package conformance

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// roleVaultRepair is a child that repairs its store again and again.
const roleVaultRepair = "vault-repair"

// repairOptions keep nothing in memory, so that what is damaged is missed at once.
func repairOptions() *engine.Options {
	return &engine.Options{CommitInterval: -1, CacheBytes: 1}
}

// repairFiles is how many files a store for repairs has.
const repairFiles = 40

func repairName(i int) string { return fmt.Sprintf("file%d", i) }

// repairText is the content of a file.
func repairText(i int) string { return strings.Repeat(fmt.Sprintf("line of %d\n", i), 3_000) }

// fillForRepair makes a vault with files, a checkpoint, and garbage.
func fillForRepair(ctx context.Context, st *engine.Store) (*engine.Vault, error) {
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		return nil, err
	}
	for i := range repairFiles {
		if err := writeForRepair(ctx, v, repairName(i), i); err != nil {
			return nil, err
		}
	}
	if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "kept"}); err != nil {
		return nil, err
	}
	for i := range 3 {
		if err := v.Remove(ctx, repairName(i)); err != nil {
			return nil, err
		}
	}
	return v, v.Sync(ctx)
}

func writeForRepair(ctx context.Context, v *engine.Vault, name string, i int) error {
	_, err := v.WriteFile(ctx, name, strings.NewReader(repairText(i)), &engine.WriteOptions{})
	return err
}

// readForRepair compares the files of the vault and of its checkpoint with what
// was written.
func readForRepair(ctx context.Context, st *engine.Store, v *engine.Vault) error {
	cp, err := v.FindCheckpoint(ctx, "kept")
	if err != nil {
		return err
	}
	kept, err := captureRoot(ctx, st, cp.Root)
	if err != nil {
		return err
	}
	live, err := captureVault(ctx, v)
	if err != nil {
		return err
	}
	for i := range repairFiles {
		for _, w := range []*world{kept, live} {
			ino, ok := w.paths()[repairName(i)]
			if want := w == kept || i >= 3; ok != want {
				return fmt.Errorf("%s is there: %v", repairName(i), ok)
			}
			if ok && string(w.nodes[ino].data) != repairText(i) {
				return fmt.Errorf("%s has other content", repairName(i))
			}
		}
	}
	return nil
}

// storedTable is a table of the engine by name.
func storedTable(name string) kv.Table {
	for _, t := range vaultTables() {
		if t.Name == name {
			return t
		}
	}
	return kv.Table{}
}

// spoil changes a bit in every stride-th row of a table, beginning with the last,
// and returns how many there were.
func spoil(ctx context.Context, db kv.Store, t kv.Table, stride int, at func(value []byte) int) (n int, err error) {
	type row struct{ k, v []byte }
	err = db.Update(ctx, kv.Durable, func(tx kv.Writer) error {
		var rows []row
		if err := tx.Scan(t, nil, nil, func(k, v []byte) error {
			rows = append(rows, row{bytes.Clone(k), bytes.Clone(v)})
			return nil
		}); err != nil {
			return err
		}
		n = 0
		for i := len(rows) - 1; i >= 0; i -= stride {
			rows[i].v[at(rows[i].v)] ^= 0x20
			if err := tx.Put(t, rows[i].k, rows[i].v); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// testHeal flips a bit in stored content. The file is an error, is named, and is
// never wrong data; writing the content again, anywhere, heals it everywhere.
func (s *vaultSuite) testHeal(t *testing.T) {
	ctx := context.Background()
	st := s.open(t, s.newPath(t), true, repairOptions())
	t.Cleanup(func() { _ = st.Close() }) // in a failed test
	v, err := fillForRepair(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	n, err := spoil(ctx, st.Unwrap(), storedTable("chunks"), 1, func(v []byte) int { return len(v) / 2 })
	if err != nil || n < repairFiles {
		t.Fatalf("%d chunks, %v", n, err)
	}
	rep, err := st.Repair(ctx)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, f := range rep.Findings {
		for _, p := range f.Paths {
			named[p] = true
		}
	}
	if len(rep.Repaired) > 0 || rep.Collected != nil || len(named) != repairFiles {
		t.Errorf("of %d lost files %d are named, %d things are repaired: %+v", repairFiles, len(named), len(rep.Repaired), rep.Repaired)
	}
	if err := readForRepair(ctx, st, v); engine.KindOf(err) != engine.Corrupt {
		t.Errorf("reading what is damaged: %v", err)
	}
	for i := range repairFiles {
		if err := writeForRepair(ctx, v, "again", i); err != nil {
			t.Fatal(err)
		}
		if err := v.Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Remove(ctx, "again"); err != nil {
		t.Fatal(err)
	}
	if err := readForRepair(ctx, st, v); err != nil {
		t.Error(err)
	}
	mustCheck(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// repairForEver is the child: it says when a repair begins.
func (s *vaultSuite) repairForEver(ctx context.Context, path string) error {
	st, err := s.tryOpen(path, false, repairOptions())
	if err != nil {
		return err
	}
	for {
		fmt.Println("repairing")
		if _, err := st.Repair(ctx); err != nil {
			return err
		}
	}
}

// testRepairKilled kills repairs of a store with wrong index rows, nodes
// with wrong checksums, and garbage. None makes anything worse, and the last
// one, which is left alone, ends the work.
func (s *vaultSuite) testRepairKilled(t *testing.T) {
	if s.opts.InMemory {
		t.Skipf("SKIP: a %s store dies with its process", s.driver.Name())
	}
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	ctx := context.Background()
	path := s.newPath(t)
	rng := rand.New(rand.NewPCG(23, 2))
	st := s.open(t, path, true, repairOptions())
	if _, err := fillForRepair(ctx, st); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		st := s.open(t, path, false, repairOptions())
		for _, name := range []string{"digests", "nodes"} {
			// What the checksum at the end is over is proved by a digest, too.
			last := func(v []byte) int { return len(v) - 1 }
			if _, err := spoil(ctx, st.Unwrap(), storedTable(name), 1+rng.IntN(3), last); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		c := (&storeSuite{driver: s.driver, self: s.self}).startChild(t, roleVaultRepair, path)
		if got := c.line(); got != "repairing" {
			t.Fatalf("round %d: the child says %q", round, got)
		}
		time.Sleep(time.Duration(rng.IntN(12)) * time.Millisecond)
		c.kill()
		s.afterRepair(t, path, round)
	}
}

// afterRepair ends the work of a killed repair, and finds everything.
func (s *vaultSuite) afterRepair(t *testing.T, path string, round int) {
	t.Helper()
	ctx := context.Background()
	st := s.open(t, path, false, repairOptions())
	rep, err := st.Repair(ctx)
	if err != nil || len(rep.Findings) > 0 {
		t.Fatalf("round %d: %v %+v", round, err, rep.Findings)
	}
	mustCheck(t, st)
	v, err := st.Vault(ctx, "main")
	if err == nil {
		err = readForRepair(ctx, st, v)
	}
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
