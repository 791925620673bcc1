package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
)

// newHooked is a vault with so many bytes of cache for nodes and for chunks.
func newHooked(t *testing.T, cache int64) (*hookedDB, *engine.Vault) {
	t.Helper()
	db := &hookedDB{Store: newMem(t)}
	st, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: -1, CacheBytes: cache})
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	v, err := st.CreateVault(t.Context(), "main")
	must(t, err)
	return db, v
}

// nodesOnly is room for no whole chunk.
const nodesOnly = 2 * engine.ChunkSize

// TestReadBesideCommits replaces what a read is about to fetch, and commits until it is
// deleted. The read must find one of the two states whole, and hold nobody up.
func TestReadBesideCommits(t *testing.T) {
	for _, chunks := range []int{1, 6} {
		db, v := newHooked(t, nodesOnly)
		before, after := noise(1, chunks*engine.ChunkSize), noise(2, chunks*engine.ChunkSize)
		h := openAt(t, v, "file")
		_, err := h.WriteAt(t.Context(), before, 0)
		must(t, err)
		must(t, h.Sync(t.Context()))
		wantContent(t, h, 0, before)
		var replaced error
		db.beforeView = func() { // on any goroutine
			_, err := h.WriteAt(t.Context(), after, 0)
			synced := h.Sync(t.Context())
			_, other := v.WriteFile(t.Context(), "other", strings.NewReader("so that there is something to commit"), nil)
			replaced = errors.Join(err, synced, other, h.Sync(t.Context()))
		}
		wantContent(t, h, 0, after)
		must(t, replaced)
		if keys, _ := rowsOf(t, db, table(t, "chunks")); len(keys) != chunks+1 {
			t.Errorf("%d chunks are stored; what was replaced is still there", len(keys))
		}
		if db.beforeView != nil {
			t.Error("the read fetched nothing")
		}
		must(t, h.Close())
	}
}

// TestLongReadLeavesCache reads a file far larger than the cache in large parts. What
// was in the cache before must be there afterwards.
func TestLongReadLeavesCache(t *testing.T) {
	db, v := newHooked(t, 8*engine.ChunkSize)
	put(t, v, "small", "content")
	h := openAt(t, v, "large")
	data := noise(3, 16*engine.ChunkSize)
	_, err := h.WriteAt(t.Context(), data, 0)
	must(t, err)
	must(t, h.Sync(t.Context()))
	wantContent(t, h, 0, data)
	get(t, v, "small")
	wantContent(t, h, 0, data)
	db.beforeView = func() {}
	if got := get(t, v, "small"); got != "content" || db.beforeView == nil {
		t.Errorf("read %q from the database, or not at all", got)
	}
	must(t, h.Close())
}

// TestCommitBesideWriter writes more than half of what may be pending, and waits for a
// commit although none is due for a long time.
func TestCommitBesideWriter(t *testing.T) {
	_, v, db := newVault(t, &engine.Options{CommitInterval: time.Hour, DirtyBytes: 4 << 20})
	h := openAt(t, v, "file")
	data := noise(4, 3<<20)
	for done := 0; done < len(data); done += 1 << 19 { // the bound is looked at before a write
		_, err := h.WriteAt(t.Context(), data[done:done+1<<19], int64(done))
		must(t, err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if keys, _ := rowsOf(t, db, table(t, "chunks")); len(keys) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing is stored")
		}
	}
	wantContent(t, h, 0, data)
	must(t, h.Close())
}

// TestHastenCalms has an unlinked open file hold most of what may be pending, which a
// commit beside a writer does not take. It must not be a reason for commit after commit
// while small files are written.
func TestHastenCalms(t *testing.T) {
	db := faultkv.Wrap(newMem(t), faultkv.Config{})
	st, err := engine.Create(t.Context(), db, &engine.Options{CommitInterval: time.Hour, DirtyBytes: 4 << 20})
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	v, err := st.CreateVault(t.Context(), "main")
	must(t, err)
	h := openAt(t, v, "file")
	must(t, v.Unlink(t.Context(), engine.RootIno, "file"))
	_, err = h.WriteAt(t.Context(), noise(8, 3<<20), 0)
	must(t, err)
	before := db.Calls(faultkv.Update)
	for i := range 100 {
		put(t, v, fmt.Sprint(i), "content")
		time.Sleep(time.Millisecond) // in which a commit beside it begins and ends
	}
	if n := db.Calls(faultkv.Update) - before; n < 1 || n > 3 {
		t.Errorf("100 small files took %d transactions", n)
	}
	must(t, h.Close())
}

// TestLongReadIsRight compares reads at all kinds of offsets with what was written, in
// a file with holes, pages that are not saved, and chunks.
func TestLongReadIsRight(t *testing.T) {
	_, v := newHooked(t, nodesOnly)
	h := openAt(t, v, "file")
	want := make([]byte, 20*engine.ChunkSize+77)
	write := func(seed uint64, at, n int) {
		t.Helper()
		data := noise(seed, n)
		copy(want[at:], data)
		_, err := h.WriteAt(t.Context(), data, int64(at))
		must(t, err)
	}
	write(5, 0, 9*engine.ChunkSize+5)
	write(6, 12*engine.ChunkSize-1, 8*engine.ChunkSize+78)
	must(t, h.Sync(t.Context()))
	write(7, 3*engine.ChunkSize+9, engine.ChunkSize)
	for _, at := range []int{0, 1, engine.ChunkSize - 1, 3 * engine.ChunkSize, 8*engine.ChunkSize + 4} {
		for _, n := range []int{1, engine.ChunkSize, 4*engine.ChunkSize + 3, len(want)} {
			got := make([]byte, n)
			m, err := h.ReadAt(t.Context(), got, int64(at))
			must(t, err)
			if end := min(at+n, len(want)); m != end-at || !bytes.Equal(got[:m], want[at:end]) {
				t.Errorf("%d bytes at %d are not what was written", n, at)
			}
		}
	}
	must(t, h.Close())
}
