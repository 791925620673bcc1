package sqlite_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// TestLogStaysShort checks that the log does not grow with what is written.
func TestLogStaysShort(t *testing.T) {
	st, path := kit.Create(t)
	for id := uint64(1); id <= 48; id++ {
		kit.MustPut(t, st, id, id, 1<<20)
		if n := size(t, path+"-wal"); n > 24<<20 {
			t.Fatalf("after %d MiB the log has %d bytes", id, n)
		}
	}
}

// putEach sets the ids from to to, each in its own update of 1 MiB.
func putEach(t *testing.T, st kv.Store, from, to uint64) {
	t.Helper()
	for id := from; id <= to; id++ {
		kit.MustPut(t, st, id, id, 1<<20)
	}
}

// TestLogAfterLongReader checks that a log that grew while a reader kept an old
// snapshot is cut when the reader has gone.
func TestLogAfterLongReader(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 1, 100)
	err := st.View(t.Context(), func(r kv.Reader) error {
		putEach(t, st, 2, 81)
		if n := size(t, path+"-wal"); n < 80<<20 {
			t.Errorf("the log has %d bytes under a reader: the test has lost its point", n)
		}
		_, ok, err := r.Get(nodes, kv.ID(2))
		if ok {
			t.Error("the reader lost its snapshot")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	putEach(t, st, 100, 110)
	if n := size(t, path+"-wal"); n > 24<<20 {
		t.Errorf("after the reader has gone the log still has %d bytes", n)
	}
}

// TestLogUnderOverlappingReaders checks that readers which never pause, each of them
// short, do not make the log grow for ever.
func TestLogUnderOverlappingReaders(t *testing.T) {
	st, path := kit.Create(t)
	kit.MustPut(t, st, 1, 1, 100)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 2 * time.Millisecond) // so that they overlap
			for ctx.Err() == nil {
				err := st.View(context.Background(), func(r kv.Reader) error {
					_, _, err := r.Get(nodes, kv.ID(1))
					time.Sleep(8 * time.Millisecond)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writes := uint64(400)
	if testing.Short() {
		writes = 200
	}
	longest := int64(0)
	for id := uint64(2); id <= writes; id++ {
		kit.MustPut(t, st, id, id, 1<<20)
		longest = max(longest, size(t, path+"-wal"))
	}
	stop()
	wg.Wait()
	t.Logf("%d MiB written, the log had at most %d MiB", writes, longest>>20)
	if longest > 128<<20 {
		t.Errorf("the log grew to %d bytes", longest)
	}
}

// TestEmptyDurableUpdate checks that a durable update which changes nothing still
// syncs the relaxed ones before it, which shows in a new frame of the log, and that
// it costs nothing when there are none.
func TestEmptyDurableUpdate(t *testing.T) {
	st, path := kit.Create(t)
	empty := func(kv.Writer) error { return nil }
	missing := func(w kv.Writer) error { return w.Delete(nodes, kv.ID(99)) }
	for _, fn := range []func(kv.Writer) error{empty, missing} {
		kit.MustPut(t, st, 1, 1, 100)
		for i, grows := range []bool{true, false, false} {
			before := size(t, path+"-wal")
			if err := st.Update(t.Context(), kv.Durable, fn); err != nil {
				t.Fatal(err)
			}
			if got := size(t, path+"-wal") > before; got != grows {
				t.Errorf("empty durable update %d: the log grew: %v, want %v", i, got, grows)
			}
		}
	}
}
