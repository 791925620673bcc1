package memkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

var copyTables = []kv.Table{{Name: "ids", IDs: true}, {Name: "bytes"}, {Name: "text", Text: true}, {Name: "empty"}}

func filled(t *testing.T) *memkv.Store {
	t.Helper()
	s := memkv.New(copyTables...)
	for batch := range 12 {
		err := s.Update(context.Background(), kv.Relaxed, func(tx kv.Writer) error {
			for i := range 2000 {
				n := batch*2000 + i
				if err := tx.Put(copyTables[0], kv.ID(uint64(n+1)), bytes.Repeat([]byte{byte(n)}, n%300)); err != nil {
					return err
				}
			}
			return tx.Put(copyTables[2], fmt.Appendf(nil, "k%d", batch), []byte("text"))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A store moves to another back end row by row; what arrives must be what left.
func TestCopyIsExact(t *testing.T) {
	ctx := context.Background()
	src, dst := filled(t), memkv.New(copyTables...)
	var seen int64
	digest, err := kv.Copy(ctx, dst, src, copyTables, func(rows, _ int64) {
		if rows <= seen {
			t.Errorf("progress went from %d to %d rows", seen, rows)
		}
		seen = rows
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != 24_012 {
		t.Errorf("%d rows, want 24012", seen)
	}
	for name, s := range map[string]kv.Store{"source": src, "copy": dst} {
		if got, err := kv.Digest(ctx, s, copyTables); err != nil || got != digest {
			t.Errorf("digest of the %s is %x, %v; want %x", name, got, err, digest)
		}
	}
	err = dst.Update(ctx, kv.Relaxed, func(tx kv.Writer) error { return tx.Put(copyTables[0], kv.ID(7), []byte("other")) })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := kv.Digest(ctx, dst, copyTables); err != nil || got == digest {
		t.Errorf("a changed row does not change the digest (%v)", err)
	}
}

// A copy that fails half-way must say so.
func TestCopyReportsFailures(t *testing.T) {
	ctx := context.Background()
	broken := errors.New("broken")
	for _, op := range []faultkv.Op{faultkv.Put, faultkv.Commit} {
		dst := faultkv.Wrap(memkv.New(copyTables...), faultkv.Config{Rules: []faultkv.Rule{{Op: op, N: 2, Err: broken}}})
		if _, err := kv.Copy(ctx, dst, filled(t), copyTables, nil); !errors.Is(err, broken) {
			t.Errorf("%v: got %v", op, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := kv.Copy(ended, memkv.New(copyTables...), filled(t), copyTables, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
