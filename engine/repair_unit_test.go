package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// TestRepairUsage makes the counts of a vault wrong, which only a mistake of ours can,
// and has them counted anew.
func TestRepairUsage(t *testing.T) {
	ctx := context.Background()
	st, err := Create(ctx, memkv.New(Tables()...), &Options{CommitInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(ctx, "main")
	if err == nil {
		_, err = v.WriteFile(ctx, "f", strings.NewReader("12345"), &WriteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	v.count, v.bytes = 7, 99
	v.touch()
	v.mu.Unlock()
	if err := v.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	rep, err := st.Repair(ctx)
	if err != nil || len(rep.Repaired) != 1 || len(rep.Findings) != 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	if got := v.Usage(); got != (Usage{Bytes: 5, Files: 1}) {
		t.Errorf("usage is %+v", got)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRepairCached gives a chunk other content under the right checksum, which only a
// mistake of memory can, and has it read before the repair. What the cache has of it
// proves nothing; a good copy in another record does, and is read from then on.
func TestRepairCached(t *testing.T) {
	ctx := t.Context()
	st, err := Create(ctx, memkv.New(Tables()...), &Options{CommitInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.CreateVault(ctx, "main")
	if err == nil {
		_, err = v.WriteFile(ctx, "f", strings.NewReader("12345"), nil)
	}
	if err == nil {
		err = v.Sync(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Resolve(ctx, "f", true)
	if err != nil {
		t.Fatal(err)
	}
	ref, _, err := v.view().chunk(ctx, a.Ino, 0)
	if err != nil {
		t.Fatal(err)
	}
	put := func(id uint64, data string) {
		t.Helper()
		err := st.kv.Update(ctx, kv.Relaxed, func(tx kv.Writer) error {
			return tx.Put(tableChunks, kv.ID(id), st.chunks.encode(ref.digest, []byte(data)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(ref.id, "12346")
	st.chunks.cache.lru.Purge()
	if got, err := st.chunks.get(ctx, ref); err != nil || string(got) != "12346" {
		t.Fatalf("the wrong content is %q, %v", got, err)
	}
	if rep, err := st.Repair(ctx); err != nil || len(rep.Repaired) != 0 || len(rep.Findings) != 1 {
		t.Fatalf("without a good copy: %+v %v", rep, err)
	}
	put(ref.id+1, "12345")
	if rep, err := st.Repair(ctx); err != nil || len(rep.Repaired) != 1 || len(rep.Findings) != 0 {
		t.Fatalf("with a good copy: %+v %v", rep, err)
	}
	if got, err := st.chunks.get(ctx, ref); err != nil || string(got) != "12345" {
		t.Errorf("after the repair it reads %q, %v", got, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFreshIno checks that no damaged digit makes a vault hand out an inode number
// twice.
func TestFreshIno(t *testing.T) {
	const vault = 3
	base := inoBase(vault)
	for stored, want := range map[uint64]uint64{
		0: base + inoJump, base + 1: base + inoJump, base - 1: base + inoJump, base + 9_999_999: base + inoJump,
		base + inoJump: base + 2*inoJump, base + 2*inoJump + 5: base + 3*inoJump, base + 1<<40: base + inoJump,
	} {
		if got, err := freshIno(vaultRecord{ID: vault, NextIno: stored}); err != nil || got != want {
			t.Errorf("after %#x comes %#x, %v, want %#x", stored, got, err, want)
		}
	}
	if _, err := freshIno(vaultRecord{ID: vault, NextIno: base + 3*inoJump}); err == nil {
		t.Error("there are no numbers left, and that is no error")
	}
}
