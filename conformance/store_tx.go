package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// errOwn is an error of the caller that must come back as it is.
var errOwn = errors.New("the caller's own error")

// txTests are the rules of transactions.
var txTests = []storeTest{
	{"Atomicity", "a root swap and its data are one update; half of it would be a mixed state", (*storeSuite).testAtomicity},
	{"NoLostUpdate", "ids and counters come from read-then-write; a lost update would hand one id out twice", (*storeSuite).testNoLostUpdate},
	{"Serialisable", "two updates that each read what the other writes must not both succeed on old data", (*storeSuite).testSerialisable},
	{"SnapshotReads", "a reader walks a tree over many reads; seeing two moments would look like damage", (*storeSuite).testSnapshotReads},
	{"SnapshotStartsAtView", "a snapshot that starts at the first read would show what was committed after View began", (*storeSuite).testSnapshotStart},
	{"ReadYourWrites", "one update builds on what it has just written", (*storeSuite).testReadYourWrites},
	{"RollbackOnError", "an update that gives up must leave nothing and must be told its own error", (*storeSuite).testRollbackOnError},
	{"RollbackOnPanic", "a panic in the engine must neither commit half an update nor leave the store locked", (*storeSuite).testRollbackOnPanic},
	{"FnMayRunAgain", "a back end with optimistic transactions reruns the function; its effect must count once", (*storeSuite).testRerun},
	{"ReaderAndWriterDoNotWait", "a mount reads while it commits; waiting for each other would hang it", (*storeSuite).testNoWaiting},
	{"NestedViews", "operations that call each other may each have a View open", (*storeSuite).testNestedViews},
	{"UseAfterEnd", "a transaction that leaked must fail, not read another one's data", (*storeSuite).testUseAfterEnd},
	{"ContextCancelled", "an exec that times out must get away from the store at once, leaving nothing", (*storeSuite).testContext},
	{"ContextWhileWaiting", "a deadline must also end the wait for another writer", (*storeSuite).testContextWaiting},
}

func (s *storeSuite) testAtomicity(t *testing.T) {
	st := s.create(t)
	// Readers look all the time while the writer changes two tables together.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := st.View(context.Background(), sameInBoth); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 200 {
		v := fmt.Appendf(nil, "%d", i)
		update(t, st, func(w kv.Writer) error {
			return errors.Join(w.Put(tblBlob, []byte("pair"), v), w.Put(tblIDs, kv.ID(7), v))
		})
	}
	close(stop)
	wg.Wait()
}

// sameInBoth fails unless the two halves of a pair are equal.
func sameInBoth(r kv.Reader) error {
	a, _, err := r.Get(tblBlob, []byte("pair"))
	if err != nil {
		return err
	}
	b, _, err := r.Get(tblIDs, kv.ID(7))
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("half an update is visible: %.20q and %.20q", a, b)
	}
	return nil
}

func (s *storeSuite) testNoLostUpdate(t *testing.T) {
	st := s.create(t)
	const workers, each = 8, 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if err := st.Update(context.Background(), kv.Relaxed, increment); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantValue(t, st, tblBlob, []byte("counter"), binary.BigEndian.AppendUint64(nil, workers*each))
}

// increment adds one to a counter by reading and writing it.
func increment(w kv.Writer) error {
	v, ok, err := w.Get(tblBlob, []byte("counter"))
	if err != nil {
		return err
	}
	n := uint64(0)
	if ok {
		n = binary.BigEndian.Uint64(v)
	}
	time.Sleep(50 * time.Microsecond) // invite others in between
	return w.Put(tblBlob, []byte("counter"), binary.BigEndian.AppendUint64(nil, n+1))
}

func (s *storeSuite) testSerialisable(t *testing.T) {
	st := s.create(t)
	// Write skew: each update may take its own key only while the other is free.
	for round := range 40 {
		a, b := fmt.Appendf(nil, "a%d", round), fmt.Appendf(nil, "b%d", round)
		var wg sync.WaitGroup
		for _, k := range [][2][]byte{{a, b}, {b, a}} {
			wg.Go(func() {
				err := st.Update(context.Background(), kv.Relaxed, func(w kv.Writer) error {
					if _, taken, err := w.Get(tblBlob, k[1]); taken || err != nil {
						return err
					}
					time.Sleep(50 * time.Microsecond)
					return w.Put(tblBlob, k[0], nil)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		_, okA := get(t, st, tblBlob, a)
		_, okB := get(t, st, tblBlob, b)
		if okA == okB {
			t.Fatalf("round %d: a taken %v, b taken %v, want exactly one", round, okA, okB)
		}
	}
}

func (s *storeSuite) testSnapshotReads(t *testing.T) {
	st := s.create(t)
	put(t, st, tblBlob, []byte("k"), []byte("old"))
	put(t, st, tblBlob, []byte("gone"), []byte("old"))
	view(t, st, func(r kv.Reader) error {
		if _, _, err := r.Get(tblBlob, []byte("k")); err != nil {
			return err
		}
		update(t, st, func(w kv.Writer) error {
			return errors.Join(w.Put(tblBlob, []byte("k"), []byte("new")),
				w.Put(tblBlob, []byte("l"), []byte("new")), w.Delete(tblBlob, []byte("gone")))
		})
		v, _, err := r.Get(tblBlob, []byte("k"))
		if string(v) != "old" {
			t.Errorf("the snapshot changed to %q", v)
		}
		keys, scanErr := keysOf(r, tblBlob, nil, nil)
		if want := []string{"gone", "k"}; fmt.Sprint(keys) != fmt.Sprint(want) {
			t.Errorf("scan of the snapshot: %q, want %q", keys, want)
		}
		return errors.Join(err, scanErr)
	})
	wantValue(t, st, tblBlob, []byte("k"), []byte("new"))
	wantNone(t, st, tblBlob, []byte("gone"))
}

func (s *storeSuite) testSnapshotStart(t *testing.T) {
	st := s.create(t)
	view(t, st, func(r kv.Reader) error {
		put(t, st, tblBlob, []byte("later"), nil)
		_, ok, err := r.Get(tblBlob, []byte("later"))
		if ok {
			t.Error("the first read shows what was committed after View began")
		}
		return err
	})
}

func (s *storeSuite) testReadYourWrites(t *testing.T) {
	st := s.create(t)
	put(t, st, tblBlob, []byte("b"), []byte("committed"))
	update(t, st, func(w kv.Writer) error {
		err := errors.Join(w.Put(tblBlob, []byte("c"), []byte("1")), w.Put(tblBlob, []byte("c"), []byte("2")),
			w.Put(tblBlob, []byte("a"), []byte("3")), w.Delete(tblBlob, []byte("b")), w.Delete(tblBlob, []byte("never")))
		if err != nil {
			return err
		}
		v, ok, err := w.Get(tblBlob, []byte("c"))
		if string(v) != "2" || !ok {
			t.Errorf("own write reads as %q, %v", v, ok)
		}
		_, ok, getErr := w.Get(tblBlob, []byte("b"))
		if ok {
			t.Error("own delete is not seen")
		}
		keys, scanErr := keysOf(w, tblBlob, nil, nil)
		if want := []string{"a", "c"}; fmt.Sprint(keys) != fmt.Sprint(want) {
			t.Errorf("scan in the update: %q, want %q", keys, want)
		}
		return errors.Join(err, getErr, scanErr)
	})
}

func (s *storeSuite) testRollbackOnError(t *testing.T) {
	st := s.create(t)
	put(t, st, tblBlob, []byte("k"), []byte("old"))
	err := st.Update(t.Context(), kv.Durable, func(w kv.Writer) error {
		return errors.Join(w.Put(tblBlob, []byte("k"), []byte("new")), w.Put(tblIDs, kv.ID(1), nil),
			w.Delete(tblBlob, []byte("k")), errOwn)
	})
	wantErr(t, "Update", err, errOwn)
	err = st.Update(t.Context(), kv.Relaxed, func(kv.Writer) error { return errOwn })
	if err != errOwn {
		t.Errorf("Update returned %#v, want the caller's error unchanged", err)
	}
	err = st.View(t.Context(), func(kv.Reader) error { return errOwn })
	if err != errOwn {
		t.Errorf("View returned %#v, want the caller's error unchanged", err)
	}
	wantValue(t, st, tblBlob, []byte("k"), []byte("old"))
	wantNone(t, st, tblIDs, kv.ID(1))
}

func (s *storeSuite) testRollbackOnPanic(t *testing.T) {
	st := s.create(t)
	panics := func(fn func()) (got any) {
		defer func() { got = recover() }()
		fn()
		return nil
	}
	got := panics(func() {
		_ = st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
			if err := w.Put(tblBlob, []byte("k"), nil); err != nil {
				t.Error(err)
			}
			panic("in Update")
		})
	})
	if got != "in Update" {
		t.Errorf("recovered %v from Update", got)
	}
	got = panics(func() {
		_ = st.View(t.Context(), func(r kv.Reader) error {
			return r.Scan(tblBlob, nil, nil, func(_, _ []byte) error { panic("never: the table is empty") })
		})
		_ = st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
			if err := w.Put(tblBlob, []byte("k"), nil); err != nil {
				t.Error(err)
			}
			return w.Scan(tblBlob, nil, nil, func(_, _ []byte) error { panic("in Scan") })
		})
	})
	if got != "in Scan" {
		t.Errorf("recovered %v from Scan", got)
	}
	got = panics(func() { _ = st.View(t.Context(), func(kv.Reader) error { panic("in View") }) })
	if got != "in View" {
		t.Errorf("recovered %v from View", got)
	}
	wantNone(t, st, tblBlob, []byte("k"))
	put(t, st, tblBlob, []byte("k"), []byte("works again"))
	wantValue(t, st, tblBlob, []byte("k"), []byte("works again"))
}

func (s *storeSuite) testRerun(t *testing.T) {
	st := s.create(t)
	var mu sync.Mutex
	runs, want := 0, 0
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 10 {
				err := st.Update(context.Background(), kv.Relaxed, func(w kv.Writer) error {
					mu.Lock()
					runs++
					mu.Unlock()
					if err := increment(w); err != nil {
						return err
					}
					return w.Put(tblBlob, fmt.Appendf(nil, "run %d.%d", i, j), nil)
				})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				want++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d updates ran their functions %d times", want, runs)
	wantValue(t, st, tblBlob, []byte("counter"), binary.BigEndian.AppendUint64(nil, uint64(want)))
	view(t, st, func(r kv.Reader) error {
		keys, err := keysOf(r, tblBlob, []byte("run "), nil)
		if len(keys) != want {
			t.Errorf("%d marks, want %d", len(keys), want)
		}
		return err
	})
}

func (s *storeSuite) testNoWaiting(t *testing.T) {
	st := s.create(t)
	put(t, st, tblBlob, []byte("k"), []byte("old"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := st.Update(ctx, kv.Relaxed, func(w kv.Writer) error {
		if err := w.Put(tblBlob, []byte("k"), []byte("new")); err != nil {
			return err
		}
		return st.View(ctx, func(r kv.Reader) error {
			v, _, err := r.Get(tblBlob, []byte("k"))
			if string(v) != "old" {
				t.Errorf("a view sees %q of a running update", v)
			}
			return err
		})
	})
	if err != nil {
		t.Errorf("a view inside an update: %v", err)
	}
	err = st.View(ctx, func(kv.Reader) error {
		return st.Update(ctx, kv.Durable, func(w kv.Writer) error { return w.Put(tblBlob, []byte("l"), nil) })
	})
	if err != nil {
		t.Errorf("an update inside a view: %v", err)
	}
}

func (s *storeSuite) testNestedViews(t *testing.T) {
	st := s.create(t)
	put(t, st, tblBlob, []byte("k"), []byte("v"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var nest func(depth int) error
	nest = func(depth int) error {
		return st.View(ctx, func(r kv.Reader) error {
			if depth > 1 {
				if err := nest(depth - 1); err != nil {
					return err
				}
			}
			_, ok, err := r.Get(tblBlob, []byte("k"))
			if !ok && err == nil {
				return errors.New("the key is not seen")
			}
			return err
		})
	}
	if err := nest(20); err != nil {
		t.Error(err)
	}
}

func (s *storeSuite) testUseAfterEnd(t *testing.T) {
	st := s.create(t)
	var r kv.Reader
	var w kv.Writer
	view(t, st, func(tx kv.Reader) error { r = tx; return nil })
	update(t, st, func(tx kv.Writer) error { w = tx; return nil })
	_, _, err := r.Get(tblBlob, []byte("k"))
	wantErr(t, "Get after View", err, kv.ErrTxDone)
	err = r.Scan(tblBlob, nil, nil, func(_, _ []byte) error { return nil })
	wantErr(t, "Scan after View", err, kv.ErrTxDone)
	wantErr(t, "Put after Update", w.Put(tblBlob, []byte("k"), nil), kv.ErrTxDone)
	wantErr(t, "Delete after Update", w.Delete(tblBlob, []byte("k")), kv.ErrTxDone)
}

func (s *storeSuite) testContext(t *testing.T) {
	st := s.create(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	never := errors.New("the function ran under a cancelled context")
	wantErr(t, "View", st.View(cancelled, func(kv.Reader) error { return never }), context.Canceled)
	err := st.Update(cancelled, kv.Relaxed, func(kv.Writer) error { return never })
	wantErr(t, "Update", err, context.Canceled)

	ctx, cancel := context.WithCancel(t.Context())
	err = st.Update(ctx, kv.Relaxed, func(w kv.Writer) error {
		err := w.Put(tblBlob, []byte("k"), nil)
		cancel()
		return err
	})
	wantErr(t, "Update cancelled by its function", err, context.Canceled)
	wantNone(t, st, tblBlob, []byte("k"))

	update(t, st, func(w kv.Writer) error {
		for id := range uint64(2000) {
			if err := w.Put(tblIDs, kv.ID(id+1), nil); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, cancel = context.WithCancel(t.Context())
	n := 0
	err = st.View(ctx, func(r kv.Reader) error {
		return r.Scan(tblIDs, nil, nil, func(_, _ []byte) error {
			if n++; n == 10 {
				cancel()
			}
			return nil
		})
	})
	wantErr(t, "Scan cancelled half way", err, context.Canceled)
	put(t, st, tblBlob, []byte("k"), []byte("works again"))
}

func (s *storeSuite) testContextWaiting(t *testing.T) {
	st := s.create(t)
	update(t, st, func(w kv.Writer) error {
		if err := w.Put(tblBlob, []byte("k"), []byte("outer")); err != nil {
			return err
		}
		done := make(chan error, 1)
		start := time.Now()
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			done <- st.Update(ctx, kv.Relaxed, func(w kv.Writer) error {
				// A back end with optimistic transactions gets here, reads
				// what the outer update writes, and must not commit over it.
				_, _, err := w.Get(tblBlob, []byte("k"))
				<-ctx.Done()
				return errors.Join(err, w.Put(tblBlob, []byte("k"), []byte("inner")))
			})
		}()
		wantErr(t, "Update beside another one", <-done, context.DeadlineExceeded)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("it took %v to give up after 50ms", d)
		}
		return nil
	})
	wantValue(t, st, tblBlob, []byte("k"), []byte("outer"))
}
