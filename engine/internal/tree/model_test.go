package tree

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// memStore is a Source and Sink over a map.
type memStore struct {
	records map[uint64][]byte
	cache   map[uint64]*Node
	nextID  uint64
	reads   int
	puts    int
	dead    []Ref
}

func newMemStore() *memStore {
	return &memStore{records: map[uint64][]byte{}, cache: map[uint64]*Node{}}
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

func (s *memStore) NewID() uint64 { s.nextID++; return s.nextID }

func (s *memStore) Put(ref Ref, data []byte) error {
	if _, ok := s.records[ref.ID]; ok {
		return fmt.Errorf("node %d put twice", ref.ID)
	}
	s.records[ref.ID] = data
	s.puts++
	return nil
}

func (s *memStore) Dead(ref Ref) { s.dead = append(s.dead, ref) }

func reach(t testing.TB, s *memStore, root Ref) map[uint64]bool {
	m := map[uint64]bool{}
	if err := Walk(context.Background(), s, root, nil, func(r Ref, _ *Node) error { m[r.ID] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	return m
}

func dump(t testing.TB, s *memStore, root Ref) map[string]string {
	m := map[string]string{}
	c := NewCursor(s, root)
	for ok := c.Seek(context.Background(), nil); ok; ok = c.Next(context.Background()) {
		m[string(c.Key())] = string(c.Value())
	}
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	return m
}

func TestModel(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newMemStore()
		var root Ref
		model := map[string]string{}
		for step := range 60 {
			before := maps.Clone(model)
			n := []int{1, 3, 30, 300, 3000}[rnd.IntN(5)]
			ch := map[string]Change{}
			del := rnd.IntN(3)
			lo := rnd.IntN(20000)
			span := []int{n + 1, 20000}[rnd.IntN(2)]
			for range n {
				k := fmt.Sprintf("key%06d", lo+rnd.IntN(span))
				v := bytes.Repeat([]byte{byte(rnd.IntN(256))}, rnd.IntN(60))
				if rnd.IntN(400) == 0 {
					v = bytes.Repeat([]byte{7}, rnd.IntN(70000))
				}
				ch[k] = Change{Key: []byte(k), Value: v, Delete: rnd.IntN(10) < del*4}
			}
			if rnd.IntN(15) == 0 {
				for k := range model {
					ch[k] = Change{Key: []byte(k), Delete: true}
				}
			}
			var list []Change
			for _, k := range slices.Sorted(maps.Keys(ch)) {
				c := ch[k]
				list = append(list, c)
				if c.Delete {
					delete(model, k)
				} else {
					model[k] = string(c.Value)
				}
			}
			s.dead = nil
			first := s.nextID + 1
			next, err := Apply(ctx, s, root, Slice(list), s)
			if err != nil {
				t.Fatal(seed, step, err)
			}
			if err := Check(ctx, s, next); err != nil {
				t.Fatal(seed, step, err)
			}
			if !maps.Equal(dump(t, s, next), model) {
				t.Fatal(seed, step, "content")
			}
			want := map[uint64]bool{}
			a, b := reach(t, s, root), reach(t, s, next)
			for id := range a {
				if !b[id] {
					want[id] = true
				}
			}
			got := map[uint64]bool{}
			for _, r := range s.dead {
				if got[r.ID] {
					t.Fatal("dead twice")
				}
				got[r.ID] = true
			}
			if !maps.Equal(want, got) {
				for id := range got {
					if !want[id] {
						n := s.cache[id]
						t.Log(id, "reach old", a[id], "reach new", b[id], "first new id", first, "level", n.level, "size", n.size, "len", n.Len(), len(list), s.nextID)
					}
				}
				t.Fatal(seed, step, "dead", len(want), len(got))
			}
			diff := maps.Clone(before)
			err = Diff(ctx, s, root, next, func(k, o, n []byte) error {
				if v, ok := diff[string(k)]; ok != (o != nil) || v != string(o) {
					return fmt.Errorf("old of %s", k)
				}
				if n == nil {
					delete(diff, string(k))
				} else {
					diff[string(k)] = string(n)
				}
				return nil
			})
			if err != nil || !maps.Equal(diff, model) {
				t.Fatal(seed, step, "diff", err)
			}
			root = next
		}
	}
}
