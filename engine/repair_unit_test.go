package engine

import (
	"context"
	"strings"
	"testing"

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
