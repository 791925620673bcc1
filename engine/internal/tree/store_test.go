package tree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// memStore is a Source and a Sink over a map. It counts, and it refuses to
// overwrite a node.
type memStore struct {
	records map[uint64][]byte
	cache   map[uint64]*Node
	nextID  uint64
	step    uint64 // distance between ids; zero counts as one
	shape   shape
	reads   int
	puts    int
	dead    []Ref
}

func newMemStore() *memStore {
	return &memStore{records: map[uint64][]byte{}, cache: map[uint64]*Node{}, shape: standardShape()}
}

func (s *memStore) Node(_ context.Context, ref Ref) (*Node, error) {
	s.reads++
	if n := s.cache[ref.ID]; n != nil {
		return n, nil
	}
	n, err := Decode(s.records[ref.ID], ref)
	if err != nil {
		return nil, err
	}
	s.cache[ref.ID] = n
	return n, nil
}

func (s *memStore) NewID() uint64 {
	s.nextID += max(s.step, 1)
	return s.nextID
}

func (s *memStore) Put(ref Ref, data []byte) error {
	if _, ok := s.records[ref.ID]; ok {
		return fmt.Errorf("node %d put twice", ref.ID)
	}
	s.records[ref.ID] = data
	s.puts++
	return nil
}

func (s *memStore) Dead(ref Ref) { s.dead = append(s.dead, ref) }

// drop deletes the nodes that the last Apply reported dead.
func (s *memStore) drop() {
	for _, ref := range s.dead {
		delete(s.records, ref.ID)
		delete(s.cache, ref.ID)
	}
	s.dead = nil
}

// apply is Apply with s on both sides; it fails the test on an error.
func (s *memStore) apply(t testing.TB, root Ref, list ...Change) Ref {
	t.Helper()
	a := &applier{src: s, sink: s, feed: feed{next: Slice(list)}, shape: s.shape}
	next, err := a.apply(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func (s *memStore) check(t testing.TB, root Ref) {
	t.Helper()
	if root.IsZero() {
		return
	}
	c := &checker{src: s, report: func(d Damage) error { return d.Err }, shape: s.shape}
	if err := c.node(t.Context(), place{ref: root, above: -1, last: true}); err != nil {
		t.Fatal(err)
	}
}

// nodes returns the nodes of the tree at root.
func (s *memStore) nodes(t testing.TB, root Ref) map[Ref]*Node {
	t.Helper()
	found := map[Ref]*Node{}
	err := Walk(t.Context(), s, root, nil, func(r Ref, n *Node) error {
		found[r] = n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// fill returns how full the leaves of the tree at root are on average.
func (s *memStore) fill(t testing.TB, root Ref) float64 {
	t.Helper()
	leaves, total := 0, 0
	for _, n := range s.nodes(t, root) {
		if n.IsLeaf() {
			leaves++
			total += n.RecordSize()
		}
	}
	return float64(total) / float64(leaves) / NodeSize
}

func (s *memStore) height(t testing.TB, root Ref) int {
	t.Helper()
	n, err := s.Node(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return n.Level() + 1
}

// dump returns the entries of the tree at root, read by a cursor.
func (s *memStore) dump(t testing.TB, root Ref) map[string]string {
	t.Helper()
	m := map[string]string{}
	last := ""
	c := NewCursor(s, root)
	for ok := c.Seek(t.Context(), nil); ok; ok = c.Next(t.Context()) {
		if k := string(c.Key()); k <= last {
			t.Fatalf("cursor went from %x to %x", last, k)
		}
		last = string(c.Key())
		m[last] = string(c.Value())
	}
	if c.Err() != nil || c.Valid() {
		t.Fatal(c.Valid(), c.Err())
	}
	return m
}

func put(key, value string) Change {
	return Change{Key: []byte(key), Value: []byte(value)}
}

func del(key string) Change {
	return Change{Key: []byte(key), Delete: true}
}

// sorted returns the changes of m in key order.
func sorted(m map[string]Change) []Change {
	list := make([]Change, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}
