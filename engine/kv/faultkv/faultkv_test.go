package faultkv_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

var (
	ctx     = context.Background()
	table   = kv.Table{Name: "t"}
	other   = kv.Table{Name: "other"}
	errTest = errors.New("injected")
)

// wrap returns a store with two tables and the faults of cfg.
func wrap(t *testing.T, cfg faultkv.Config) *faultkv.Store {
	s := faultkv.Wrap(memkv.New(table, other), cfg)
	t.Cleanup(func() { _ = s.Unwrap().Close() })
	return s
}

// put sets key to value in a relaxed update of its own.
func put(s kv.Store, tb kv.Table, key, value string) error {
	return s.Update(ctx, kv.Relaxed, func(w kv.Writer) error { return w.Put(tb, []byte(key), []byte(value)) })
}

// has reports whether key exists in the store that s wraps.
func has(t *testing.T, s *faultkv.Store, key string) (ok bool) {
	t.Helper()
	err := s.Unwrap().View(ctx, func(r kv.Reader) (err error) {
		_, ok, err = r.Get(table, []byte(key))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// TestEachOpFails checks for every kind of call that its error reaches the caller
// and that the store is left as the rule says.
func TestEachOpFails(t *testing.T) {
	get := func(r kv.Reader) error { _, _, err := r.Get(table, []byte("old")); return err }
	scan := func(r kv.Reader) error {
		return r.Scan(table, nil, nil, func(_, _ []byte) error { return nil })
	}
	del := func(w kv.Writer) error { return w.Delete(table, []byte("old")) }
	for _, tc := range []struct {
		name string
		op   faultkv.Op
		call func(s kv.Store) error
		new  bool // the new key is there afterwards
	}{
		{"View", faultkv.View, func(s kv.Store) error { return s.View(ctx, get) }, false},
		{"Update", faultkv.Update, func(s kv.Store) error { return put(s, table, "new", "") }, false},
		{"Get", faultkv.Get, func(s kv.Store) error { return s.View(ctx, get) }, false},
		{"Scan", faultkv.Scan, func(s kv.Store) error { return s.View(ctx, scan) }, false},
		{"Put", faultkv.Put, func(s kv.Store) error { return put(s, table, "new", "") }, false},
		{"Delete", faultkv.Delete, func(s kv.Store) error { return s.Update(ctx, kv.Relaxed, del) }, false},
		{"Commit", faultkv.Commit, func(s kv.Store) error { return put(s, table, "new", "") }, false},
		{"AfterCommit", faultkv.AfterCommit, func(s kv.Store) error { return put(s, table, "new", "") }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := wrap(t, faultkv.Config{})
			if err := put(s, table, "old", ""); err != nil {
				t.Fatal(err)
			}
			s.Arm(faultkv.Rule{Op: tc.op, Err: errTest})
			if err := tc.call(s); !errors.Is(err, errTest) {
				t.Fatalf("got %v, want the injected error", err)
			}
			if n := s.Calls(tc.op); n != 1 {
				t.Errorf("%d calls counted, want 1", n)
			}
			if got := has(t, s, "new"); got != tc.new {
				t.Errorf("new key present: %v, want %v", got, tc.new)
			}
			if !has(t, s, "old") {
				t.Error("the old key is gone")
			}
			s.Arm()
			if err := put(s, table, "new", ""); err != nil {
				t.Errorf("after disarming: %v", err)
			}
		})
	}
}

// TestCloseFails checks that the wrapped store is closed all the same.
func TestCloseFails(t *testing.T) {
	s := wrap(t, faultkv.Config{Rules: []faultkv.Rule{{Op: faultkv.Close, Err: errTest}}})
	if err := s.Close(); !errors.Is(err, errTest) {
		t.Errorf("Close: %v, want the injected error", err)
	}
	if err := s.View(ctx, func(kv.Reader) error { return nil }); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("View after Close: %v, want ErrClosed", err)
	}
}

// TestNth checks counting, tables and stickiness.
func TestNth(t *testing.T) {
	s := wrap(t, faultkv.Config{Rules: []faultkv.Rule{
		{Op: faultkv.Put, Table: "t", N: 2, Err: errTest},
		{Op: faultkv.Put, Table: "other", N: 2, Sticky: true, Err: kv.ErrNoSpace},
	}})
	for i, want := range []error{nil, errTest, nil} {
		if err := put(s, table, "k", ""); !errors.Is(err, want) {
			t.Errorf("put %d: %v, want %v", i, err, want)
		}
	}
	for i, want := range []error{nil, kv.ErrNoSpace, kv.ErrNoSpace} {
		if err := put(s, other, "k", ""); !errors.Is(err, want) {
			t.Errorf("put %d on other: %v, want %v", i, err, want)
		}
	}
}

// TestScribble checks that slices are right while valid, garbage afterwards, and
// that the store itself is untouched.
func TestScribble(t *testing.T) {
	s := wrap(t, faultkv.Config{Scribble: true})
	if err := put(s, table, "key", "value"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var got, key, value []byte
		err := s.View(ctx, func(r kv.Reader) (err error) {
			got, _, err = r.Get(table, []byte("key"))
			if err != nil {
				return err
			}
			err = r.Scan(table, nil, nil, func(k, v []byte) error {
				if string(k) != "key" || string(v) != "value" {
					t.Errorf("scan saw %q = %q", k, v)
				}
				key, value = k, v
				return nil
			})
			if string(got) != "value" {
				t.Errorf("Get's result changed inside its transaction: %q", got)
			}
			if string(key) == "key" || string(value) == "value" {
				t.Error("a scanned slice survived its callback")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Repeat([]byte{0xdb}, 5); !bytes.Equal(got, want) {
			t.Errorf("Get's result after the transaction: %q", got)
		}
	}
}

// TestConcurrent checks that exactly one of many concurrent calls meets a rule.
func TestConcurrent(t *testing.T) {
	s := wrap(t, faultkv.Config{Rules: []faultkv.Rule{{Op: faultkv.Update, N: 50, Err: errTest}}, Scribble: true})
	var failed sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				if err := put(s, table, "k", "v"); err != nil {
					failed.Store([2]int{i, j}, err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	failed.Range(func(_, err any) bool {
		n++
		if !errors.Is(err.(error), errTest) {
			t.Error(err)
		}
		return true
	})
	if n != 1 {
		t.Errorf("%d calls failed, want 1", n)
	}
}

// TestAs checks that abilities are found through the decorator.
func TestAs(t *testing.T) {
	if _, ok := kv.As[kv.Sizer](wrap(t, faultkv.Config{})); !ok {
		t.Error("Size of the wrapped store is not found")
	}
}
