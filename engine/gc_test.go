package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// gate is a database in which the first read of a node waits, once armed, until the
// gate is opened.
type gate struct {
	*memkv.Store
	mu      sync.Mutex    // guards what follows
	reached chan struct{} // closed by the read that waits; nil: not armed
	open    chan struct{}
}

// arm returns a channel that is closed when a read waits, and what lets it go on.
func (g *gate) arm() (reached <-chan struct{}, open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, o := make(chan struct{}), make(chan struct{})
	g.reached, g.open = r, o
	return r, sync.OnceFunc(func() { close(o) })
}

func (g *gate) wait() {
	g.mu.Lock()
	r, o := g.reached, g.open
	g.reached = nil
	g.mu.Unlock()
	if r != nil {
		close(r)
		<-o
	}
}

// View implements kv.Store.
func (g *gate) View(ctx context.Context, fn func(kv.Reader) error) error {
	return g.Store.View(ctx, func(tx kv.Reader) error { return fn(gatedReader{tx, g}) })
}

type gatedReader struct {
	kv.Reader
	g *gate
}

// Get implements kv.Reader.
func (r gatedReader) Get(t kv.Table, key []byte) ([]byte, bool, error) {
	if t.Name == "nodes" {
		r.g.wait()
	}
	return r.Reader.Get(t, key)
}

// gated is a store whose collections can be stopped while they mark.
func gated(t *testing.T) (*gate, *engine.Store, *engine.Vault) {
	t.Helper()
	ctx := context.Background()
	g := &gate{Store: newMem(t)}
	opts := quietOptions()
	opts.CacheBytes = 1
	st, err := engine.Create(ctx, g, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	v, err := st.CreateVault(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	return g, st, v
}

// dropHistory drops the timeline and the automatic checkpoints.
func dropHistory(v *engine.Vault) error {
	_, err := v.Prune(context.Background(), &engine.PruneOptions{Rule: &engine.Retention{}})
	return err
}

// during runs fn while a collection marks, and returns what that reports.
func during(t *testing.T, g *gate, st *engine.Store, fn func()) engine.GCReport {
	t.Helper()
	ctx := context.Background()
	reached, open := g.arm()
	type result struct {
		rep engine.GCReport
		err error
	}
	done := make(chan result, 1)
	go func() { // ends when the gate is open
		rep, err := st.GC(ctx)
		done <- result{rep, err}
	}()
	<-reached
	late := time.AfterFunc(20*time.Second, open)
	fn()
	if !late.Stop() {
		t.Error("what is done while GC marks waits for it")
	}
	open()
	res := <-done
	if res.err != nil {
		t.Fatal(res.err)
	}
	return res.rep
}

// TestGCBesideCommits changes a store in every way while a collection has just begun
// to mark: nothing waits for it, nothing that is needed goes, and what was garbage
// before is gone after.
func TestGCBesideCommits(t *testing.T) {
	ctx := context.Background()
	g, st, v := gated(t)
	text := func(word string) string { return strings.Repeat(word+" ", 2000) }
	for i := range 300 { // so that the tree has more than one node
		if _, err := v.MkdirAll(ctx, fmt.Sprint("directory", i), 0o755, engine.Owner{}); err != nil {
			t.Fatal(err)
		}
	}
	put(t, v, "keep", text("keep"))
	put(t, v, "replaced", text("old"))
	if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "saved"}); err != nil {
		t.Fatal(err)
	}
	put(t, v, "gone", text("comes back")) // its content is garbage when the collection begins
	put(t, v, "gone2", text("stays away"))
	if _, err := v.Checkpoint(ctx, engine.CheckpointOptions{Name: "dropped"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gone", "gone2"} {
		if err := v.Remove(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(v.Sync(ctx), v.DeleteCheckpoint(ctx, "dropped"), dropHistory(v)); err != nil {
		t.Fatal(err)
	}
	rep := during(t, g, st, func() {
		put(t, v, "again", text("comes back"))
		put(t, v, "replaced", text("new"))
		put(t, v, "young", text("young"))
		if err := v.Sync(ctx); err != nil {
			t.Error(err)
		}
		cp, err := v.FindCheckpoint(ctx, "saved")
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := st.Fork(ctx, "main", "fork"); err != nil {
			t.Error(err)
		}
		other, err := st.CreateVault(ctx, "other")
		if err != nil {
			t.Error(err)
			return
		}
		put(t, other, "f", text("comes back"))
		if _, err := v.Restore(ctx, cp.Root, nil); err != nil {
			t.Error(err)
		}
		if err := v.DeleteCheckpoint(ctx, "saved"); err != nil {
			t.Error(err)
		}
		put(t, v, "after", text("after"))
		if err := v.Sync(ctx); err != nil {
			t.Error(err)
		}
	})
	if rep.Chunks != 1 {
		t.Errorf("%d chunks are gone, of one that nobody needs: %+v", rep.Chunks, rep)
	}
	for vault, files := range map[string]map[string]string{
		"main":  {"keep": "keep", "replaced": "old", "after": "after"},
		"fork":  {"keep": "keep", "replaced": "new", "again": "comes back", "young": "young"},
		"other": {"f": "comes back"},
	} {
		w, err := st.Vault(ctx, vault)
		if err != nil {
			t.Fatal(err)
		}
		for name, word := range files {
			if got := get(t, w, name); got != text(word) {
				t.Errorf("%s in %s is %.20q", name, vault, got)
			}
		}
	}
	sound(t, st, "collected beside changes")
	if rep, err := st.GC(ctx); err != nil || rep.Chunks != 0 {
		t.Errorf("a second collection: %+v, %v", rep, err)
	}
}

// TestGCRandom changes a vault at random while collections run all the time.
func TestGCRandom(t *testing.T) {
	ctx := context.Background()
	h := newHistory(t, &engine.Retention{Last: 5})
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { // ends with stop
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := h.st.GC(ctx); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 300 {
		put(t, h.v, fmt.Sprint("f", i*7%40), strings.Repeat(fmt.Sprint(i*i%13, " of few "), 3000))
		if i%3 == 0 {
			h.record(fmt.Sprint(i % 5))
		}
		if i%11 == 0 {
			if _, err := h.v.Undo(ctx, nil); err != nil && engine.KindOf(err) != engine.Drift {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sound(t, h.st, "collected all the time")
}
