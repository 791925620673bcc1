package tree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func numberKey(i int) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(i)))
}

// numbers returns puts of the keys from lo to hi-1 with values of about 40 bytes.
func numbers(lo, hi int) []Change {
	list := make([]Change, 0, hi-lo)
	for i := lo; i < hi; i++ {
		list = append(list, put(numberKey(i), fmt.Sprintf("value %034d", i)))
	}
	return list
}

// An import appends inode after inode, so appends must leave full nodes,
// however they are grouped.
func TestAppendsFillNodes(t *testing.T) {
	for _, group := range []int{1, 7, 100, 5000, 15_000} {
		s := newMemStore()
		var root Ref
		for i := 0; i < 15_000; i += group {
			root = s.apply(t, root, numbers(i, min(i+group, 15_000))...)
			s.drop()
		}
		s.check(t, root)
		if fill := s.fill(t, root); fill < 0.95 {
			t.Errorf("groups of %d fill leaves to %.2f", group, fill)
		}
	}
}

// Appends to the middle of the key space, such as chunks to an older file, must
// do better than halves where they end a leaf, and never worse.
func TestAppendsInTheMiddleFillNodes(t *testing.T) {
	for _, group := range []int{1, 50, 20_000} {
		s := newMemStore()
		root := s.apply(t, Ref{}, append(numbers(0, 500), numbers(1<<30, 1<<30+500)...)...)
		for i := 500; i < 20_500; i += group {
			root = s.apply(t, root, numbers(i, min(i+group, 20_500))...)
			s.drop()
		}
		s.check(t, root)
		fill := s.fill(t, root)
		t.Logf("groups of %d fill leaves to %.2f", group, fill)
		if fill < 0.49 || (group > 1 && fill < 0.85) {
			t.Errorf("groups of %d fill leaves to %.2f", group, fill)
		}
	}
}

func TestRandomInsertsKeepNodesFilled(t *testing.T) {
	for _, group := range []int{1, 10, 1000} {
		s := newMemStore()
		rnd := rand.New(rand.NewPCG(1, uint64(group)))
		order := rnd.Perm(15_000)
		var root Ref
		for list := range slices.Chunk(order, group) {
			slices.Sort(list)
			var changes []Change
			for _, i := range list {
				changes = append(changes, numbers(i, i+1)...)
			}
			root = s.apply(t, root, changes...)
			s.drop()
		}
		s.check(t, root)
		fill := s.fill(t, root)
		t.Logf("groups of %d fill leaves to %.2f", group, fill)
		if fill < 0.6 {
			t.Errorf("groups of %d fill leaves to %.2f", group, fill)
		}
	}
}

func TestDeletesShrinkTheTree(t *testing.T) {
	const count = 25_000
	for _, group := range []int{1, 50, count} {
		s := newMemStore()
		root := s.apply(t, Ref{}, numbers(0, count)...)
		full := len(s.nodes(t, root))
		order := rand.New(rand.NewPCG(2, 2)).Perm(count)
		for list := range slices.Chunk(order[count/100:], group) {
			slices.Sort(list)
			var changes []Change
			for _, i := range list {
				changes = append(changes, del(numberKey(i)))
			}
			root = s.apply(t, root, changes...)
			s.drop()
		}
		s.check(t, root)
		if left := len(s.nodes(t, root)); left > full/25 {
			t.Errorf("groups of %d: 1 %% of the entries take %d of %d nodes", group, left, full)
		}
		if len(s.records) != len(s.nodes(t, root)) {
			t.Errorf("the store holds %d nodes, the tree has %d", len(s.records), len(s.nodes(t, root)))
		}
	}
}

// Deleting at either end must collapse the height, not leave a tower of
// branches with one child.
func TestDeletingAnEndCollapses(t *testing.T) {
	const count = 100_000
	for _, keep := range [][2]int{{0, 10}, {count - 10, count}, {count / 2, count/2 + 10}} {
		s := newMemStore()
		root := s.apply(t, Ref{}, numbers(0, count)...)
		s.drop()
		var changes []Change
		for i := range count {
			if i < keep[0] || i >= keep[1] {
				changes = append(changes, del(numberKey(i)))
			}
		}
		root = s.apply(t, root, changes...)
		s.drop()
		s.check(t, root)
		if h := s.height(t, root); h != 1 || len(s.records) != 1 {
			t.Errorf("keeping %v leaves height %d and %d nodes", keep, h, len(s.records))
		}
	}
}

// Appends leave a last branch with one child. When all before it is deleted,
// that child becomes the root although the deletes never touched it.
func TestLoneLastChildBecomesTheRoot(t *testing.T) {
	s := newMemStore()
	s.shape = shape{node: 320, min: 320 / 3}
	var root Ref
	for i := range 2000 {
		root = s.apply(t, root, numbers(i, i+1)...)
		s.drop()
		top, err := s.Node(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		edge, lone := top, false
		for edge.Level() > 0 {
			if edge, err = s.Node(t.Context(), edge.Child(edge.Len()-1)); err != nil {
				t.Fatal(err)
			}
			lone = lone || (edge.Level() > 0 && edge.Len() == 1)
		}
		if !lone {
			continue
		}
		var changes []Change
		for k := range s.dump(t, root) {
			if k < string(top.Key(top.Len()-1)) {
				changes = append(changes, del(k))
			}
		}
		slices.SortFunc(changes, func(a, b Change) int { return bytes.Compare(a.Key, b.Key) })
		next := s.apply(t, root, changes...)
		s.check(t, next)
		compareDead(t, s, root, next)
		s.dead = nil
	}
}

func TestNoEffectRewritesNothing(t *testing.T) {
	s := newMemStore()
	list := numbers(0, 20_000)
	list[7_000].Value = []byte(strings.Repeat("x", MaxValue))
	root := s.apply(t, Ref{}, list...)
	puts := s.puts
	changes := slices.Clone(list)
	for i := range changes {
		if i%3 == 0 {
			changes[i] = Change{Key: append(slices.Clone(list[i].Key), 0), Delete: true}
		}
	}
	if next := s.apply(t, root, changes...); next != root {
		t.Error("puts of what is there and deletes of what is not change the root")
	}
	if next := s.apply(t, root); next != root {
		t.Error("no changes change the root")
	}
	if s.puts != puts || len(s.dead) > 0 {
		t.Error("changes without effect write or free nodes")
	}
	if next := s.apply(t, Ref{}, del("a"), del("b")); !next.IsZero() {
		t.Error("deletes make a node of an empty tree")
	}
}

// One change reads and writes one node per level, and reads at most the
// neighbours of small nodes besides.
func TestOneChangeCostsTheHeight(t *testing.T) {
	s := newMemStore()
	root := s.apply(t, Ref{}, numbers(0, 200_000)...)
	height := s.height(t, root)
	for i := 0; i < 200_000; i += 7_001 {
		s.reads, s.puts = 0, 0
		next := s.apply(t, root, put(numberKey(i), "new"))
		if s.reads != height || s.puts != height {
			t.Fatalf("height %d: %d reads, %d puts", height, s.reads, s.puts)
		}
		compareDead(t, s, root, next)
		s.dead = nil
	}
}

// Node boundaries and digests must not depend on ids, so that the same work
// gives equal roots in every store.
func TestDigestsDoNotDependOnIDs(t *testing.T) {
	a, b := newMemStore(), newMemStore()
	b.nextID, b.step = 1<<40, 1_000_003
	var rootA, rootB Ref
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 60 {
		changes := map[string]Change{}
		for range rnd.IntN(400) {
			c := put(numberKey(rnd.IntN(5000)), strings.Repeat("v", rnd.IntN(300)))
			c.Delete = rnd.IntN(3) == 0
			changes[string(c.Key)] = c
		}
		rootA = a.apply(t, rootA, sorted(changes)...)
		rootB = b.apply(t, rootB, sorted(changes)...)
		if rootA.Digest != rootB.Digest {
			t.Fatal("digests differ between stores")
		}
	}
	if rootA.ID == rootB.ID || a.puts != b.puts {
		t.Fatal("the stores should differ in ids only")
	}
}

// A bulk load must put nodes as it goes, or a large import fills memory.
func TestBulkLoadIsBounded(t *testing.T) {
	s := newMemStore()
	list := numbers(0, 200_000)
	i, puts, waiting := 0, 0, 0
	next := func() (Change, bool, error) {
		if s.puts > puts {
			puts, waiting = s.puts, 0
		}
		if waiting > runHigh*NodeSize {
			t.Fatalf("%d bytes of values wait while %d nodes are put", waiting, s.puts)
		}
		if i == len(list) {
			return Change{}, false, nil
		}
		waiting += len(list[i].Value)
		i++
		return list[i-1], true, nil
	}
	root, err := Apply(t.Context(), s, Ref{}, next, s)
	if err != nil {
		t.Fatal(err)
	}
	s.check(t, root)
}

func TestLargestEntries(t *testing.T) {
	for _, around := range []int{0, 1, 20, 200} {
		s := newMemStore()
		changes := map[string]Change{}
		for i := range 3 {
			key := strings.Repeat(string(rune('b'+i)), MaxKey)
			changes[key] = put(key, strings.Repeat("v", MaxValue))
		}
		for i := range around {
			for _, p := range []string{"a", "b", "c", "d", "e"} {
				key := fmt.Sprintf("%s%04d", p, i)
				changes[key] = put(key, "small")
			}
		}
		root := s.apply(t, Ref{}, sorted(changes)...)
		s.check(t, root)
		for _, rec := range s.records {
			if len(rec) > MaxRecord {
				t.Fatalf("record of %d bytes", len(rec))
			}
		}
		want := map[string]string{}
		for k, c := range changes {
			want[k] = string(c.Value)
		}
		if !maps.Equal(s.dump(t, root), want) {
			t.Fatal("large entries are lost")
		}
	}
}

func TestLimitsAndOrder(t *testing.T) {
	s := newMemStore()
	root := s.apply(t, Ref{}, numbers(0, 1000)...)
	for _, c := range []struct {
		name string
		list []Change
		want error
	}{
		{"empty key", []Change{put("", "v")}, ErrLimit},
		{"long key", []Change{put(strings.Repeat("k", MaxKey+1), "v")}, ErrLimit},
		{"long value", []Change{put("k", strings.Repeat("v", MaxValue+1))}, ErrLimit},
		{"limit later", []Change{put("k", "v"), put("l", strings.Repeat("v", MaxValue+1))}, ErrLimit},
		{"repeated key", []Change{put("k", "v"), del("k")}, ErrOrder},
		{"falling keys", []Change{put("l", "v"), put("k", "v")}, ErrOrder},
	} {
		for _, at := range []Ref{{}, root} {
			next, err := Apply(t.Context(), s, at, Slice(c.list), s)
			if !errors.Is(err, c.want) || !next.IsZero() {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	if len(s.dead) > 0 {
		t.Error("a failed Apply reports dead nodes")
	}
	longest := Change{Key: []byte(strings.Repeat("k", MaxKey)), Value: make([]byte, MaxValue+1), Delete: true}
	if next := s.apply(t, root, longest); next != root {
		t.Error("the value of a delete must be ignored")
	}
}

func TestEmptyValues(t *testing.T) {
	s := newMemStore()
	root := s.apply(t, Ref{}, Change{Key: []byte("a")})
	if v, ok, err := Get(t.Context(), s, root, []byte("a")); v == nil || len(v) > 0 || !ok || err != nil {
		t.Fatal(v, ok, err)
	}
	if next := s.apply(t, root, put("a", "")); next != root {
		t.Error("nil and empty values are the same")
	}
	next := s.apply(t, root, put("a", "x"))
	err := Diff(t.Context(), s, root, next, func(_, old, new []byte) error {
		if old == nil || string(new) != "x" {
			return fmt.Errorf("old %v, new %v", old, new)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
