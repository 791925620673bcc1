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
