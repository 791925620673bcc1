package tree

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

var errFault = errors.New("injected fault")

// faulty fails the n-th read, put or change, whichever it counts.
type faulty struct {
	*memStore
	reads, puts, changes int // calls before the fault; negative for none
}

func (f *faulty) Node(ctx context.Context, ref Ref) (*Node, error) {
	if f.reads--; f.reads == -1 {
		return nil, errFault
	}
	return f.memStore.Node(ctx, ref)
}

func (f *faulty) Put(ref Ref, data []byte) error {
	if f.puts--; f.puts == -1 {
		return errFault
	}
	return f.memStore.Put(ref, data)
}

func (f *faulty) feed(list []Change) Changes {
	next := Slice(list)
	return func() (Change, bool, error) {
		if f.changes--; f.changes == -1 {
			return Change{}, false, errFault
		}
		return next()
	}
}

// A fault anywhere ends Apply with that very error, reports nothing dead and
// leaves the old tree whole.
func TestFaultsLeaveTheOldTree(t *testing.T) {
	s := newMemStore()
	root := s.apply(t, Ref{}, numbers(0, 30_000)...)
	s.dead = nil
	want := s.dump(t, root)
	var list []Change
	for i := 0; i < 30_000; i++ {
		if i%500 < 130 {
			list = append(list, del(numberKey(i)))
		} else if i%500 < 135 {
			list = append(list, put(numberKey(i), strings.Repeat("new", 40)))
		}
	}
	list = append(list, numbers(1<<20, 1<<20+500)...)
	const never = -2
	for _, kind := range []string{"read", "put", "change"} {
		for n := 0; ; n += 1 + n/10 {
			f := &faulty{s, never, never, never}
			switch kind {
			case "read":
				f.reads = n
			case "put":
				f.puts = n
			case "change":
				f.changes = n
			}
			next, err := Apply(t.Context(), f, root, f.feed(list), f)
			if err == nil {
				if n < 20 {
					t.Fatalf("only %d %ss were needed", n, kind)
				}
				s.check(t, next)
				break
			}
			if err != errFault || !next.IsZero() || len(s.dead) > 0 {
				t.Fatalf("%s %d: %v, %d dead", kind, n, err, len(s.dead))
			}
		}
		s.dead = nil
	}
	s.check(t, root)
	if got := s.dump(t, root); len(got) != len(want) {
		t.Error("the old tree changed")
	}
}

// Every reader passes the error of its source on, wherever it strikes.
func TestFaultsReachReaders(t *testing.T) {
	s := newMemStore()
	a := s.apply(t, Ref{}, numbers(0, 20_000)...)
	b := s.apply(t, a, put(numberKey(5), "x"), put(numberKey(15_000), "x"))
	readers := map[string]func(src Source) error{
		"get": func(src Source) error {
			_, ok, err := Get(t.Context(), src, a, []byte(numberKey(7_000)))
			if ok == (err != nil) {
				t.Error("a value beside an error, or neither")
			}
			return err
		},
		"cursor": func(src Source) error {
			c := NewCursor(src, a)
			for ok := c.Seek(t.Context(), nil); ok; ok = c.Next(t.Context()) {
			}
			if c.Valid() || c.Next(t.Context()) {
				t.Error("a cursor goes on after its end")
			}
			return c.Err()
		},
		"walk": func(src Source) error {
			return Walk(t.Context(), src, a, nil, func(Ref, *Node) error { return nil })
		},
		"diff": func(src Source) error {
			return Diff(t.Context(), src, a, b, func(_, _, _ []byte) error { return nil })
		},
		"check": func(src Source) error { return Check(t.Context(), src, a) },
	}
	for name, read := range readers {
		for n := 0; ; n++ {
			f := &faulty{s, n, -2, -2}
			if err := read(f); err == nil {
				if n < s.height(t, a) {
					t.Errorf("%s needed only %d reads", name, n)
				}
				break
			} else if err != errFault {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

func TestCursorRecovers(t *testing.T) {
	s := newMemStore()
	root := s.apply(t, Ref{}, numbers(0, 1000)...)
	c := NewCursor(&faulty{s, 0, -2, -2}, root)
	if c.Seek(t.Context(), nil) || c.Err() != errFault {
		t.Fatal(c.Err())
	}
	if !c.Seek(t.Context(), []byte(numberKey(3))) || c.Err() != nil || string(c.Key()) != numberKey(3) {
		t.Error("a new Seek does not clear the error", c.Err())
	}
}

func TestApplyStopsWithItsContext(t *testing.T) {
	s := newMemStore()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Apply(ctx, s, Ref{}, Slice(numbers(0, 10_000)), s); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// forge stores a leaf or branch that decodes well but may not fit its place.
func forge(s *memStore, level int, keys []string, children ...Ref) Ref {
	values := make([][]byte, len(keys))
	var ids []uint64
	for i := range keys {
		values[i] = []byte("v")
		if level > 0 {
			values[i] = children[i].Digest[:]
			ids = append(ids, children[i].ID)
		}
	}
	ref, rec := encodeNode(s.NewID(), level, keys, values, ids...)
	s.records[ref.ID] = rec
	return ref
}

// Nodes that are sound each but make no tree must be found by Audit, and end
// elsewhere in ErrCorrupt or in an orderly answer, never in a panic or a loop.
func TestForgedTrees(t *testing.T) {
	s := newMemStore()
	leaf := func(keys ...string) Ref { return forge(s, 0, keys) }
	ab, cd := leaf("a", "b"), leaf("c", "d")
	large := s.apply(t, Ref{}, put("x", strings.Repeat("x", NodeSize)), put("y", strings.Repeat("y", NodeSize)))
	for name, c := range map[string]struct {
		root Ref
		want string
	}{
		"key too low":    {forge(s, 1, []string{"", "d"}, ab, cd), "keys outside the bounds in the parent"},
		"key too high":   {forge(s, 1, []string{"", "b"}, ab, cd), "keys outside the bounds in the parent"},
		"branch too low": {forge(s, 2, []string{"", "c"}, forge(s, 1, []string{""}, ab), forge(s, 1, []string{"", "c"}, ab, cd)), "keys outside the bounds in the parent"},
		"same twice":     {forge(s, 1, []string{"", "c"}, ab, ab), "keys outside the bounds in the parent"},
		"leaf too deep":  {forge(s, 2, []string{"", "c"}, ab, cd), "level does not fit its parent"},
		"leaf too high":  {forge(s, 1, []string{"", "c"}, ab, forge(s, 1, []string{"", "d"}, cd, leaf("d"))), "level does not fit its parent"},
		"lone child":     {forge(s, 1, []string{""}, ab), "root with a single child"},
		"small":          {forge(s, 1, []string{"", "c"}, ab, cd), "node too small"},
		"sound":          {large, ""},
	} {
		reasons := map[string]bool{}
		err := Audit(t.Context(), s, c.root, nil, func(d Damage) error {
			var corrupt *CorruptError
			if !errors.As(d.Err, &corrupt) || !strings.Contains(d.Err.Error(), corrupt.Reason) {
				t.Errorf("%s: %v", name, d.Err)
			} else {
				reasons[corrupt.Reason] = true
			}
			return nil
		})
		if err != nil || reasons[c.want] == (c.want == "") || (c.want == "" && len(reasons) > 0) {
			t.Errorf("%s: %v, %v", name, reasons, err)
		}
		if err := Check(t.Context(), s, c.root); errors.Is(err, ErrCorrupt) == (c.want == "") {
			t.Errorf("%s: check: %v", name, err)
		}
		useForged(t, s, name, c.root, large)
	}
}

// useForged puts a forged tree through every operation.
func useForged(t *testing.T, s *memStore, name string, root, other Ref) {
	t.Helper()
	orderly := func(what string, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %s: %v", name, what, err)
		}
	}
	for _, list := range [][]Change{
		{del("a"), del("b"), del("c")}, {put("a", "x"), put("c", "y"), put("zz", "z")},
		{del("d")}, numbers(0, 500), {put("b", "w")},
	} {
		next, err := Apply(t.Context(), s, root, Slice(list), s)
		orderly("apply", err)
		for _, other := range []Ref{{}, other, next} {
			orderly("diff", Diff(t.Context(), s, root, other, func(_, _, _ []byte) error { return nil }))
			orderly("diff", Diff(t.Context(), s, other, root, func(_, _, _ []byte) error { return nil }))
		}
	}
	_, _, err := Get(t.Context(), s, root, []byte("c"))
	orderly("get", err)
	c := NewCursor(s, root)
	for ok := c.Seek(t.Context(), nil); ok; ok = c.Next(t.Context()) {
	}
	orderly("cursor", c.Err())
}

// Joining neighbours is where Apply would notice too late that their keys
// overlap, and must not write what it cannot read back.
func TestApplyRefusesOverlap(t *testing.T) {
	s := newMemStore()
	xy, c := forge(s, 0, []string{"x", "y"}), forge(s, 0, []string{"c", "d"})
	leaves := forge(s, 1, []string{"", "b"}, xy, c)
	if _, err := Apply(t.Context(), s, leaves, Slice([]Change{put("a", "new")}), s); !errors.Is(err, ErrCorrupt) {
		t.Error("leaves:", err)
	}
	branches := forge(s, 2, []string{"", "b"},
		forge(s, 1, []string{"", "y"}, forge(s, 0, []string{"a"}), forge(s, 0, []string{"y"})),
		forge(s, 1, []string{"", "d"}, forge(s, 0, []string{"c"}), forge(s, 0, []string{"e"})))
	if _, err := Apply(t.Context(), s, branches, Slice([]Change{put("aa", "new")}), s); !errors.Is(err, ErrCorrupt) {
		t.Error("branches:", err)
	}
}

// A child of the wrong level must stop readers, or a damaged tree could send
// them in circles.
func TestReadersCheckLevels(t *testing.T) {
	s := newMemStore()
	deep := forge(s, 2, []string{"", "c"}, forge(s, 0, []string{"a", "b"}), forge(s, 0, []string{"c", "d"}))
	if _, _, err := Get(t.Context(), s, deep, []byte("c")); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	if c := NewCursor(s, deep); c.Seek(t.Context(), nil) || !errors.Is(c.Err(), ErrCorrupt) {
		t.Error(c.Err())
	}
	if _, err := Apply(t.Context(), s, deep, Slice([]Change{put("a", "x")}), s); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// Audit names each damaged node with the keys it held, and reads on beside it.
func TestAuditGoesOn(t *testing.T) {
	s := newMemStore()
	root := s.apply(t, Ref{}, numbers(0, 60_000)...)
	n, err := s.Node(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	branch, leaf := n.Child(2), Ref{}
	left, err := s.Node(t.Context(), n.Child(0))
	if err != nil {
		t.Fatal(err)
	}
	leaf = left.Child(1)
	clear(s.cache)
	s.records[branch.ID] = nil
	s.records[leaf.ID][100] ^= 1
	var found []Damage
	enters := 0
	err = Audit(t.Context(), s, root,
		func(Ref) (bool, error) { enters++; return true, nil },
		func(d Damage) error { found = append(found, d); return nil })
	if err != nil || len(found) != 2 {
		t.Fatal(err, found)
	}
	if found[0].Ref != leaf || !bytes.Equal(found[0].Low, left.Key(1)) || !bytes.Equal(found[0].High, left.Key(2)) {
		t.Errorf("leaf: %+v", found[0])
	}
	if found[1].Ref != branch || !bytes.Equal(found[1].Low, n.Key(2)) || !errors.Is(found[1].Err, ErrCorrupt) {
		t.Errorf("branch: %+v", found[1])
	}
	if enters < 300 {
		t.Errorf("only %d nodes were read", enters)
	}
	if err := Check(t.Context(), s, root); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// Check does not trust a source that hands out another node.
func TestCheckComparesDigests(t *testing.T) {
	s := newMemStore()
	a := s.apply(t, Ref{}, numbers(0, 50)...)
	b := s.apply(t, Ref{}, numbers(0, 51)...)
	n, err := s.Node(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	s.cache[a.ID] = n
	if err := Check(t.Context(), s, a); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// A mark phase declines what it has seen, unread.
func TestWalkDeclines(t *testing.T) {
	s := newMemStore()
	a := s.apply(t, Ref{}, numbers(0, 60_000)...)
	b := s.apply(t, a, put(numberKey(30_000), "x"))
	seen := map[uint64]bool{}
	mark := func(root Ref) int {
		s.reads = 0
		err := Walk(t.Context(), s, root,
			func(r Ref) (bool, error) {
				fresh := !seen[r.ID]
				seen[r.ID] = true
				return fresh, nil
			},
			func(r Ref, n *Node) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return s.reads
	}
	if all, more := mark(a), mark(b); all != len(s.nodes(t, a)) || more != s.height(t, b) {
		t.Errorf("%d and %d reads", all, more)
	}
	stop := errors.New("stop")
	if err := Walk(t.Context(), s, a, func(Ref) (bool, error) { return false, stop }, nil); err != stop {
		t.Error(err)
	}
	if err := Walk(t.Context(), s, a, nil, func(Ref, *Node) error { return stop }); err != stop {
		t.Error(err)
	}
}
