package tree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pieces cuts entries or items and returns the drafts.
func pieces(t *testing.T, m mode, entries []entry, items []item) []*draft {
	t.Helper()
	var s sizes
	if items != nil {
		var err error
		if s, err = branchSizes(items); err != nil {
			t.Fatal(err)
		}
	} else {
		var r leafRun
		for _, e := range entries {
			r.add(e.key, e.value)
		}
		s = r.sizes
	}
	var out []*draft
	for len(s) > 0 {
		n, size := s.cut(standardShape(), m)
		d := &draft{size: size}
		if items != nil {
			d.level, d.items, items = 1, items[:n], items[n:]
		} else {
			d.entries, entries = entries[:n], entries[n:]
		}
		s, out = s[n:], append(out, d)
	}
	return out
}

// checkPieces proves the promises of cut.
func checkPieces(t *testing.T, m mode, list []*draft, large bool) {
	t.Helper()
	var a applier
	a.shape = standardShape()
	for i, d := range list {
		_, rec := d.encode(1)
		last := i == len(list)-1
		exact := d.level == 0 || len(d.items) > 1 || last
		if len(rec) > d.size || (exact && len(rec) != d.size) {
			t.Fatalf("piece %d of %d has %d bytes, not %d", i, len(list), len(rec), d.size)
		}
		if d.size < MinNode && len(list) > 1 && (m != packLast || !last) {
			t.Fatalf("piece %d of %d has only %d bytes", i, len(list), d.size)
		}
		if len(rec) > MaxRecord || (d.size > NodeSize && !large) {
			t.Fatalf("piece %d of %d has %d bytes", i, len(list), d.size)
		}
		// repair must not find room for a rest that cut found none for.
		if m == packLast && last && i > 0 && a.fits(list[i-1], d) {
			t.Fatalf("pieces of %d and %d bytes fit together", list[i-1].size, d.size)
		}
	}
}

// Any sequence is cut into pieces of the promised sizes, which are exact.
func TestCut(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 400 {
		wide := 1 + rnd.IntN(600)
		keys := map[string]bool{}
		for range 1 + rnd.IntN(200) {
			keys[fmt.Sprintf("%03d%s", rnd.IntN(999), strings.Repeat("k", rnd.IntN(wide)))] = true
		}
		large := rnd.IntN(3) == 0
		var entries []entry
		var items []item
		for i, key := range slices.Sorted(maps.Keys(keys)) {
			value := make([]byte, rnd.IntN(300))
			if large && rnd.IntN(10) == 0 {
				value = make([]byte, rnd.IntN(MaxValue+1))
			}
			entries = append(entries, entry{[]byte(key), value})
			items = append(items, item{sep: []byte(key), ref: Ref{ID: uint64(i + 1)}})
		}
		for _, m := range []mode{packEven, packTail, packLast} {
			checkPieces(t, m, pieces(t, m, entries, nil), large)
			checkPieces(t, m, pieces(t, m, nil, items), false)
		}
	}
}

// The last node may be small, but not when its neighbour has room for it.
func TestSmallLastNodeIsJoined(t *testing.T) {
	s := newMemStore()
	root := s.apply(t, Ref{}, numbers(0, 150)...)
	if len(s.nodes(t, root)) != 3 {
		t.Fatal("two leaves and a branch are needed")
	}
	var changes []Change
	for i := range 148 {
		if i < 40 || i > 90 {
			changes = append(changes, del(numberKey(i)))
		}
	}
	root = s.apply(t, root, changes...)
	if s.check(t, root); len(s.nodes(t, root)) != 1 {
		t.Errorf("%d nodes are left", len(s.nodes(t, root)))
	}
}
