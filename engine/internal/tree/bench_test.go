package tree

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// benchKey returns the i-th key of a tree that looks like a file system: per
// inode its attributes, and every few inodes a directory entry or a chunk.
func benchKey(i uint64) []byte {
	key := make([]byte, 9, 24)
	binary.BigEndian.PutUint64(key, 1<<40+i/3)
	switch i % 3 {
	case 0:
		key[8] = 1
	case 1:
		key[8] = 2
		key = append(key, "name-"...)
		key = binary.BigEndian.AppendUint32(key, uint32(i))
	default:
		key[8] = 4
		key = binary.BigEndian.AppendUint64(key, 0)
	}
	return key
}

func benchValue(i uint64) []byte {
	size := []int{60, 9, 9}[i%3]
	v := make([]byte, size)
	binary.LittleEndian.PutUint64(v, i*0x9e3779b97f4a7c15)
	return v
}

func benchFeed(n uint64) Changes {
	i := uint64(0)
	return func() (Change, bool, error) {
		if i == n {
			return Change{}, false, nil
		}
		i++
		return Change{Key: benchKey(i - 1), Value: benchValue(i - 1)}, true, nil
	}
}

const benchEntries = 1_000_000

// benchTree returns a tree of benchEntries with all nodes decoded.
func benchTree(b *testing.B) (*memStore, Ref) {
	b.Helper()
	s := newMemStore()
	root, err := Apply(context.Background(), s, Ref{}, benchFeed(benchEntries), s)
	if err != nil {
		b.Fatal(err)
	}
	if err := Walk(context.Background(), s, root, nil, func(Ref, *Node) error { return nil }); err != nil {
		b.Fatal(err)
	}
	return s, root
}

func BenchmarkBulk(b *testing.B) {
	b.ReportAllocs()
	var bytes, nodes int
	for b.Loop() {
		s := newMemStore()
		if _, err := Apply(context.Background(), s, Ref{}, benchFeed(benchEntries), s); err != nil {
			b.Fatal(err)
		}
		nodes, bytes = len(s.records), 0
		for _, r := range s.records {
			bytes += len(r)
		}
	}
	b.ReportMetric(float64(benchEntries)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(bytes)/float64(nodes), "B/node")
}

func BenchmarkGet(b *testing.B) {
	s, root := benchTree(b)
	rnd := rand.New(rand.NewPCG(1, 1))
	keys := make([][]byte, 1<<14)
	for i := range keys {
		keys[i] = benchKey(rnd.Uint64N(benchEntries))
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := Get(context.Background(), s, root, keys[i%len(keys)]); !ok || err != nil {
			b.Fatal("lost a key", err)
		}
		i++
	}
}

func BenchmarkScan(b *testing.B) {
	s, root := benchTree(b)
	ctx := context.Background()
	n := 0
	for b.Loop() {
		n = 0
		c := NewCursor(s, root)
		for ok := c.Seek(ctx, nil); ok; ok = c.Next(ctx) {
			n += len(c.Key()) & 1
			n++
		}
		if c.Err() != nil {
			b.Fatal(c.Err())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEntries, "ns/entry")
}

// benchApply measures Apply of puts that change values at keys, and forgets the
// new nodes so that memory does not grow.
func benchApply(b *testing.B, count int, clustered bool) {
	s, root := benchTree(b)
	rnd := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		at := rnd.Uint64N(benchEntries - uint64(count))
		ids := make([]uint64, count)
		for i := range ids {
			ids[i] = at + uint64(i)
			if !clustered {
				ids[i] = rnd.Uint64N(benchEntries)
			}
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		list := make([]Change, len(ids))
		for i, id := range ids {
			list[i] = Change{Key: benchKey(id), Value: benchValue(id + 1)}
		}
		first := s.nextID + 1
		if _, err := Apply(context.Background(), s, root, Slice(list), s); err != nil {
			b.Fatal(err)
		}
		for id := first; id <= s.nextID; id++ {
			delete(s.records, id)
		}
		s.dead = s.dead[:0]
	}
}

func BenchmarkApply1(b *testing.B)             { benchApply(b, 1, true) }
func BenchmarkApply1000Clustered(b *testing.B) { benchApply(b, 1000, true) }
func BenchmarkApply1000Random(b *testing.B)    { benchApply(b, 1000, false) }

func BenchmarkDiff10(b *testing.B) {
	s, root := benchTree(b)
	ctx := context.Background()
	var list []Change
	for i := range uint64(10) {
		list = append(list, Change{Key: benchKey(i * 99_991), Value: []byte("changed")})
	}
	next, err := Apply(ctx, s, root, Slice(list), s)
	if err != nil {
		b.Fatal(err)
	}
	s.reads = 0
	for b.Loop() {
		n := 0
		err := Diff(ctx, s, root, next, func(_, _, _ []byte) error { n++; return nil })
		if err != nil || n != 10 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(s.reads)/float64(b.N), "reads")
}

func BenchmarkDecode(b *testing.B) {
	s, root := benchTree(b)
	var ref Ref
	if err := Walk(context.Background(), s, root, nil, func(r Ref, _ *Node) error { ref = r; return nil }); err != nil {
		b.Fatal(err)
	}
	ref = s.cache[root.ID].Child(0)
	for n := s.cache[ref.ID]; n.Level() > 0; n = s.cache[ref.ID] {
		ref = n.Child(0)
	}
	rec := s.records[ref.ID]
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(rec, ref); err != nil {
			b.Fatal(err)
		}
	}
}
