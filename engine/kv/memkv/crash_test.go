package memkv_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

var table = kv.Table{Name: "t"}

// commit puts key in an update of its own.
func commit(t *testing.T, s *memkv.Store, mode kv.Mode, key string) {
	t.Helper()
	if err := s.Update(t.Context(), mode, func(w kv.Writer) error { return w.Put(table, []byte(key), nil) }); err != nil {
		t.Fatal(err)
	}
}

// keys lists what a store holds, and closes it.
func keys(t *testing.T, s *memkv.Store) (out []string) {
	t.Helper()
	err := s.View(t.Context(), func(r kv.Reader) error {
		return r.Scan(table, nil, nil, func(k, _ []byte) error {
			out = append(out, string(k))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestClone checks which states a crash can leave: after process death all that was
// acknowledged, after power loss every durable update and any number of the relaxed
// ones after it, oldest first.
func TestClone(t *testing.T) {
	s := memkv.New(table)
	defer s.Close()
	commit(t, s, kv.Relaxed, "a")
	commit(t, s, kv.Durable, "b")
	commit(t, s, kv.Relaxed, "c")
	commit(t, s, kv.Relaxed, "d")
	if got := keys(t, s.Clone(memkv.ProcessDeath, 0)); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("after process death: %q", got)
	}
	if n := s.Tail(); n != 2 {
		t.Errorf("Tail() = %d, want 2", n)
	}
	for keep, want := range [][]string{{"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d"}, {"a", "b", "c", "d"}} {
		if got := keys(t, s.Clone(memkv.PowerLoss, keep)); !slices.Equal(got, want) {
			t.Errorf("after power loss that keeps %d: %q, want %q", keep, got, want)
		}
	}
	commit(t, s, kv.Durable, "e")
	if got := keys(t, s.Clone(memkv.PowerLoss, 0)); len(got) != 5 || s.Tail() != 0 {
		t.Errorf("a durable update left a tail of %d, a power loss %q", s.Tail(), got)
	}
}

// TestCloneIsIndependent checks that a clone and its origin do not write into each other.
func TestCloneIsIndependent(t *testing.T) {
	s := memkv.New(table)
	for i := range 500 {
		commit(t, s, kv.Relaxed, fmt.Sprintf("common %03d", i))
	}
	c := s.Clone(memkv.ProcessDeath, 0)
	for i := range 500 {
		commit(t, s, kv.Relaxed, fmt.Sprintf("origin %03d", i))
		commit(t, c, kv.Relaxed, fmt.Sprintf("clone %03d", i))
	}
	for name, got := range map[string][]string{"origin": keys(t, s), "clone": keys(t, c)} {
		own := 0
		for _, k := range got {
			if len(k) >= len(name) && k[:len(name)] == name {
				own++
			}
		}
		if len(got) != 1000 || own != 500 {
			t.Errorf("%s holds %d keys, %d of its own, want 1000 and 500", name, len(got), own)
		}
	}
}

// TestOnCommit checks that a test can take a clone at each commit and open it through
// a driver.
func TestOnCommit(t *testing.T) {
	s := memkv.New(table)
	defer s.Close()
	d := memkv.NewDriver()
	var seen []int
	s.OnCommit(func(n int) {
		seen = append(seen, n)
		c := s.Clone(memkv.ProcessDeath, 0)
		d.Disks.Install(fmt.Sprint("crash ", n), c)
		if got := keys(t, c); len(got) != n {
			t.Errorf("at commit %d the clone holds %q", n, got)
		}
	})
	for _, k := range []string{"a", "b", "c"} {
		commit(t, s, kv.Relaxed, k)
	}
	s.OnCommit(nil)
	commit(t, s, kv.Relaxed, "d")
	if !slices.Equal(seen, []int{1, 2, 3}) {
		t.Errorf("the hook saw %v", seen)
	}
	st, err := d.Open(t.Context(), "crash 2", kv.Options{Tables: []kv.Table{table}})
	if err != nil {
		t.Fatal(err)
	}
	if got := keys(t, st.(*memkv.Store)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the installed clone holds %q", got)
	}
}
