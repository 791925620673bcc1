package bbolt

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

var ids = kv.Table{Name: "ids", IDs: true}

// TestMapGrows checks what happens when the map must grow under a reader, which bbolt
// alone answers with a deadlock: the update waits, within its deadline, readers go
// on, and it works as soon as they have ended.
func TestMapGrows(t *testing.T) {
	tables, err := kv.NewTables([]kv.Table{ids})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.avfs")
	lock, err := create(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := openHandle(lock, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(path, tables, h, false)
	defer s.Close()
	if err := s.declare(); err != nil {
		t.Fatal(err)
	}
	put := func(ctx context.Context, id uint64) error {
		return s.Update(ctx, kv.Relaxed, func(w kv.Writer) error { return w.Put(ids, kv.ID(id), make([]byte, 1<<20)) })
	}
	read := func(kv.Reader) error { return nil }
	err = s.View(t.Context(), func(kv.Reader) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := put(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an update that must map more under a reader: %v, want the deadline", err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- put(t.Context(), 2) }()
		for range 20 {
			if err := s.View(t.Context(), read); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
		select {
		case err := <-waiting:
			t.Errorf("the update did not wait for the reader: %v", err)
		default:
		}
		t.Cleanup(func() {
			if err := <-waiting; err != nil {
				t.Errorf("the update that waited: %v", err)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(3); id < 40; id++ { // through several sizes of the map
		if err := put(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if mapped := s.cur.mapped; mapped < 32<<20 {
		t.Errorf("the map is taken for %d bytes, and the store is larger", mapped)
	}
}

// TestMapSize checks the bound against what bbolt is known to do.
func TestMapSize(t *testing.T) {
	for size, want := range map[int64]int64{
		1: 32 << 10, 32 << 10: 32 << 10, 32<<10 + 1: 64 << 10, 1 << 30: 1 << 30,
		1<<30 + 1: 2 << 30, 5<<30 - 1: 5 << 30,
	} {
		if got := mapSize(size); got != want {
			t.Errorf("mapSize(%d) = %d, want %d", size, got, want)
		}
	}
}
