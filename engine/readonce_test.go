package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// TestReadOnce checks that what is pending, stored, a hole, and past the end is read as
// by a handle, from a vault and from a snapshot, at every offset.
func TestReadOnce(t *testing.T) {
	st, v, db := newVault(t, nil)
	ctx := t.Context()
	sparse := engine.ChunkSize + 5000
	write := func(p, text string) engine.Ino {
		t.Helper()
		if _, err := v.WriteFile(ctx, p, strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
		a, err := v.Resolve(ctx, p, false)
		if err != nil {
			t.Fatal(err)
		}
		return a.Ino
	}
	inos := []engine.Ino{write("/small", "hello"), write("/empty", ""), write("/large", strings.Repeat("0123456789abcdef", 3*engine.ChunkSize/16)+"end")}
	holed := write("/holed", "begin")
	h, err := v.Open(ctx, holed, engine.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteAt(ctx, []byte("behind the hole"), int64(sparse)); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	inos = append(inos, holed)
	root, err := v.Commit(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	write("/pending", "not saved")
	a, err := v.Resolve(ctx, "/pending", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []interface {
		ReadOnce(context.Context, []engine.Once)
	}{v, st.Snapshot(root)} {
		some := inos
		if r == any(v) {
			some = append(some[:len(some):len(some)], a.Ino)
		}
		for _, off := range []int64{0, 3, int64(engine.ChunkSize), int64(sparse) - 1, 1 << 40} {
			checkOnce(t, v, r.ReadOnce, some, off)
		}
		list := []engine.Once{{Ino: 999, Buf: make([]byte, 9)}, {Ino: inos[0], Off: -1, Buf: make([]byte, 9)}, {Ino: inos[0], Buf: make([]byte, 9)}}
		r.ReadOnce(ctx, list)
		if engine.KindOf(list[0].Err) != engine.NotFound || engine.KindOf(list[1].Err) != engine.Invalid || list[2].Err != nil || list[2].N != 5 {
			t.Errorf("what cannot be read: %+v", list)
		}
	}
	// Damage is an error, of the damaged file alone.
	again := db.Clone(memkv.ProcessDeath, 0) // whose store has nothing in memory
	err = again.Update(ctx, kv.Relaxed, func(tx kv.Writer) error {
		return tx.Put(kv.Table{Name: "chunks", IDs: true}, kv.ID(1), []byte("\x02damaged"))
	})
	if err != nil {
		t.Fatal(err)
	}
	cold, err := engine.Open(ctx, again, nil)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	list := make([]engine.Once, len(inos))
	for i, ino := range inos {
		list[i] = engine.Once{Ino: ino, Buf: make([]byte, 4*engine.ChunkSize)}
	}
	cold.Snapshot(root).ReadOnce(ctx, list)
	if err := cold.Close(); err != nil {
		t.Error(err)
	}
	for _, r := range list {
		if engine.KindOf(r.Err) == engine.Corrupt {
			damaged++
		} else if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if damaged != 1 {
		t.Errorf("%d files are damaged, want 1", damaged)
	}
}

// checkOnce compares with handles of the vault.
func checkOnce(t *testing.T, v *engine.Vault, read func(context.Context, []engine.Once), inos []engine.Ino, off int64) {
	t.Helper()
	list := make([]engine.Once, len(inos))
	for i, ino := range inos {
		list[i] = engine.Once{Ino: ino, Off: off, Buf: bytes.Repeat([]byte{'?'}, 2*engine.ChunkSize+7)}
	}
	read(t.Context(), list)
	for i, ino := range inos {
		h, err := v.Open(t.Context(), ino, engine.OpenRead)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, 2*engine.ChunkSize+7)
		n, err := h.ReadAt(t.Context(), want, off)
		if err != nil {
			t.Fatal(err)
		}
		if r := list[i]; r.Err != nil || r.N != n || !bytes.Equal(r.Buf[:r.N], want[:n]) {
			t.Errorf("inode %d at %d: %d bytes, %v, want %d", ino, off, r.N, r.Err, n)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
