package tree

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// countDiff returns how many keys differ and how many nodes were read.
func countDiff(t testing.TB, s *memStore, a, b Ref) (keys, reads int) {
	t.Helper()
	s.reads = 0
	err := Diff(t.Context(), s, a, b, func(_, _, _ []byte) error { keys++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return keys, s.reads
}

func TestDiffReadsWhatDiffers(t *testing.T) {
	s := newMemStore()
	const count = 300_000
	root := s.apply(t, Ref{}, numbers(0, count)...)
	height := s.height(t, root)
	rnd := rand.New(rand.NewPCG(4, 4))
	for _, changed := range []int{0, 1, 10, 100} {
		changes := map[string]Change{}
		for len(changes) < changed {
			c := put(numberKey(rnd.IntN(2*count)), "changed")
			c.Delete = rnd.IntN(3) == 0
			changes[string(c.Key)] = c
		}
		next := s.apply(t, root, sorted(changes)...)
		keys, reads := countDiff(t, s, root, next)
		if keys > changed || reads > changed*2*height {
			t.Errorf("%d changes: %d keys with %d reads at height %d", changed, keys, reads, height)
		}
	}
}

// A run that is gone or new is read on its side only, and shifts no comparison
// behind it.
func TestDiffOfARun(t *testing.T) {
	s := newMemStore()
	const count = 300_000
	root := s.apply(t, Ref{}, numbers(0, count)...)
	for _, r := range [][2]int{{0, 60_000}, {100_000, 160_000}, {count - 60_000, count}, {1, count - 1}} {
		var changes []Change
		for i := r[0]; i < r[1]; i++ {
			changes = append(changes, del(numberKey(i)))
		}
		next := s.apply(t, root, changes...)
		s.dead = nil
		gone := len(s.nodes(t, root)) - len(s.nodes(t, next))
		for _, pair := range [][2]Ref{{root, next}, {next, root}} {
			keys, reads := countDiff(t, s, pair[0], pair[1])
			if keys != r[1]-r[0] || reads > gone+4*s.height(t, root) {
				t.Errorf("%v: %d keys, %d nodes gone, %d reads", r, keys, gone, reads)
			}
		}
	}
}

// Trees of different heights share what they can: a small tree that grew.
func TestDiffOfDifferentHeights(t *testing.T) {
	s := newMemStore()
	small := s.apply(t, Ref{}, numbers(0, 4000)...)
	large := s.apply(t, small, numbers(4000, 200_000)...)
	if s.height(t, small) >= s.height(t, large) {
		t.Fatal("the heights do not differ")
	}
	added := len(s.nodes(t, large))
	for ref := range s.nodes(t, small) {
		if s.nodes(t, large)[ref] != nil {
			added--
		}
	}
	keys, reads := countDiff(t, s, small, large)
	if keys != 196_000 || reads > added+4 {
		t.Errorf("%d keys, %d nodes added, %d reads", keys, added, reads)
	}
}

// Equal content in nodes of another shape differs in nothing.
func TestDiffOfAnotherShape(t *testing.T) {
	s := newMemStore()
	const count = 20_000
	bulk := s.apply(t, Ref{}, numbers(0, count)...)
	var grown Ref
	for _, i := range rand.New(rand.NewPCG(5, 5)).Perm(count) {
		grown = s.apply(t, grown, numbers(i, i+1)...)
		s.drop()
	}
	if bulk.Digest == grown.Digest {
		t.Fatal("the shapes do not differ")
	}
	if keys, _ := countDiff(t, s, bulk, grown); keys != 0 {
		t.Errorf("%d keys differ", keys)
	}
}

// Stores that did the same work have equal digests under other ids.
func TestDiffComparesDigestsNotIDs(t *testing.T) {
	s := newMemStore()
	a := s.apply(t, Ref{}, numbers(0, 50_000)...)
	b := s.apply(t, Ref{}, numbers(0, 50_000)...)
	if keys, reads := countDiff(t, s, a, b); a.ID == b.ID || keys != 0 || reads != 0 {
		t.Errorf("%d keys, %d reads", keys, reads)
	}
	c := s.apply(t, b, put(numberKey(1234), "x"))
	if keys, reads := countDiff(t, s, a, c); keys != 1 || reads > 2*s.height(t, a) {
		t.Errorf("%d keys, %d reads", keys, reads)
	}
}

func TestDiffStopsAtAnError(t *testing.T) {
	s := newMemStore()
	a := s.apply(t, Ref{}, numbers(0, 1000)...)
	b := s.apply(t, a, put(numberKey(1), "x"), del(numberKey(2)), put(numberKey(1<<20), "x"))
	for stop := range 3 {
		want, calls := errors.New("enough"), 0
		err := Diff(context.Background(), s, a, b, func(_, _, _ []byte) error {
			if calls++; calls > stop {
				return want
			}
			return nil
		})
		if err != want || calls != stop+1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	}
}

// A range of keys gives that part of the whole difference, and reads little else.
func TestDiffRange(t *testing.T) {
	s := newMemStore()
	const count = 50_000
	a := s.apply(t, Ref{}, numbers(0, count)...)
	changes := map[string]Change{}
	rnd := rand.New(rand.NewPCG(6, 6))
	for len(changes) < 5000 {
		c := put(numberKey(rnd.IntN(2*count)), "changed")
		c.Delete = rnd.IntN(2) == 0
		changes[string(c.Key)] = c
	}
	b := s.apply(t, a, sorted(changes)...)
	var all []string
	if err := Diff(t.Context(), s, a, b, func(k, _, _ []byte) error { all = append(all, string(k)); return nil }); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		from, to := []byte(numberKey(rnd.IntN(2*count))), []byte(numberKey(rnd.IntN(2*count)))
		switch rnd.IntN(8) {
		case 0:
			from = nil
		case 1:
			to = nil
		case 2:
			to = append([]byte{}, from...)
		case 3:
			to = append(append([]byte{}, from...), 0)
		}
		var want, got []string
		for _, k := range all {
			if k >= string(from) && (to == nil || k < string(to)) {
				want = append(want, k)
			}
		}
		s.reads = 0
		err := DiffRange(t.Context(), s, a, b, from, to, func(k, _, _ []byte) error { got = append(got, string(k)); return nil })
		if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("%q to %q: %d keys, want %d: %v", from, to, len(got), len(want), err)
		}
		if limit := 4*s.height(t, a) + 4*len(want); s.reads > limit+8 {
			t.Fatalf("%d reads for %d keys", s.reads, len(want))
		}
	}
}
