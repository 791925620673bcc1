package tree

import (
	"context"
	"slices"
)

const (
	// frameSize is what a record takes beside its entries.
	frameSize = headerSize + crcSize

	// runHigh and runLow bound, in nodes, how much of a long run of entries
	// waits to be packed. What remains is enough to be divided evenly.
	runHigh = 16
	runLow  = 3

	// cutSlack is what dividing a sequence adds to each part, since its first
	// key is stored whole.
	cutSlack = 64
)

// shape holds the sizes of NodeSize and MinNode. Tests set smaller ones, which
// make deep trees of few entries.
type shape struct {
	node, min int
}

func standardShape() shape { return shape{NodeSize, MinNode} }

// mode says how a sequence of entries is divided into nodes.
type mode int

const (
	// packEven makes parts of about equal size, for changes at random places.
	packEven mode = iota
	// packTail fills nodes, but leaves the last one no smaller than the least,
	// for a run that was appended to the end of a leaf.
	packTail
	// packLast fills nodes and leaves the rest to the last, for the end of a
	// level, where the next append goes.
	packLast
)

func packing(last, tail bool) mode {
	switch {
	case last:
		return packLast
	case tail:
		return packTail
	}
	return packEven
}

// entry is a key with its value in a leaf under construction.
type entry struct {
	key, value []byte
}

// size is what one entry takes in a record: after its predecessor, or whole as
// the first.
type size struct {
	next, first int
}

type sizes []size

// cut returns how many entries the next node takes off the front, and the size
// of its record. Every node gets at least sh.min bytes and at most sh.node,
// unless an entry above sh.min prevents it; a lone rest is whatever is left.
func (s sizes) cut(sh shape, m mode) (n, total int) {
	all := frameSize + s[0].first
	for _, e := range s[1:] {
		all += e.next
	}
	if all <= sh.node {
		return len(s), all
	}
	n, total = s.front(sh, m, all)
	if n == len(s) || m == packLast {
		return n, total
	}
	if tail := all - total + frameSize + s[n].first - s[n].next; tail < sh.min {
		return s.widenTail(sh, n, total, all)
	}
	return n, total
}

// front takes entries up to the aim of m.
func (s sizes) front(sh shape, m mode, all int) (n, total int) {
	aim := sh.node
	if m == packEven {
		parts := (all + sh.node - cutSlack - 1) / (sh.node - cutSlack)
		aim = all / max(parts, 2)
	}
	n, total = 1, frameSize+s[0].first
	for n < len(s) && total < aim {
		with := total + s[n].next
		if total >= sh.min && (with > sh.node || with-aim > aim-total) {
			break
		}
		total = with
		n++
	}
	return n, total
}

// widenTail moves the end of the first node, of n entries, to the left until
// the rest is no longer too small. If that would make the first too small, an
// entry is so large that one node takes everything.
func (s sizes) widenTail(sh shape, n, total, all int) (int, int) {
	for n > 1 {
		n--
		total -= s[n].next
		if total < sh.min {
			break
		}
		if all-total+frameSize+s[n].first-s[n].next >= sh.min {
			return n, total
		}
	}
	return len(s), all
}

// leafRun collects the entries of consecutive leaves.
type leafRun struct {
	sep      []byte // lower bound of the first leaf
	entries  []entry
	sizes    sizes
	total    int // of the sizes
	out      []item
	before   []byte // last key of the last leaf in out
	disorder bool
}

func (r *leafRun) start(sep []byte) {
	clear(r.entries)
	*r = leafRun{sep: sep, entries: r.entries[:0], sizes: r.sizes[:0]}
}

// add appends an entry. Keys that do not increase come from a damaged tree; the
// run remembers them and fails at its end.
func (r *leafRun) add(key, value []byte) {
	values := uvarintLen(len(value)) + len(value)
	sz := size{first: 1 + uvarintLen(len(key)) + len(key) + values}
	sz.next = sz.first
	if n := len(r.entries); n > 0 {
		prev := r.entries[n-1].key
		shared := commonPrefix(prev, key)
		if shared == len(key) || (shared < len(prev) && key[shared] < prev[shared]) {
			r.disorder = true
		}
		rest := len(key) - shared
		sz.next = uvarintLen(shared) + uvarintLen(rest) + rest + values
	}
	r.entries = append(r.entries, entry{key, value})
	r.sizes = append(r.sizes, sz)
	r.total += sz.next
}

// drain packs most of a long run, so that memory does not grow with it.
func (a *applier) drain(ctx context.Context) error {
	r := &a.run
	if r.total < runHigh*a.shape.node {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done := 0
	for {
		n, size := r.sizes[done:].front(a.shape, packLast, 0)
		packed := 0
		for _, s := range r.sizes[done : done+n] {
			packed += s.next
		}
		if r.total-packed < runLow*a.shape.node {
			break
		}
		if err := a.emit(done, done+n, size, false); err != nil {
			return err
		}
		r.total -= packed
		done += n
	}
	r.entries = slices.Delete(r.entries, 0, done)
	r.sizes = slices.Delete(r.sizes, 0, done)
	return nil
}

// endRun packs what remains and returns all leaves of the run, of which only
// the first and the last are drafts.
func (a *applier) endRun(m mode) ([]item, error) {
	r := &a.run
	for done := 0; done < len(r.entries); {
		n, size := r.sizes[done:].cut(a.shape, m)
		if err := a.emit(done, done+n, size, done+n == len(r.entries)); err != nil {
			return nil, err
		}
		done += n
	}
	return r.out, nil
}

// emit makes a leaf of entries lo to hi.
func (a *applier) emit(lo, hi, size int, final bool) error {
	r := &a.run
	if r.disorder {
		return &CorruptError{Reason: "keys of neighbouring leaves overlap"}
	}
	sep := r.sep
	if len(r.out) > 0 {
		sep = separator(r.before, r.entries[lo].key)
	}
	d := &draft{size: size, entries: r.entries[lo:hi]}
	it := item{sep: sep, draft: d}
	if final || len(r.out) == 0 {
		d.entries = slices.Clone(d.entries)
	} else if err := a.store(&it); err != nil {
		return err
	}
	r.out = append(r.out, it)
	r.before = r.entries[hi-1].key
	return nil
}

// branchSizes returns the sizes of items in a branch. The first item of a node
// has no separator, which makes that of the second whole.
func branchSizes(items []item) (sizes, error) {
	const fixed = 3 + digestSize + idSize
	s := make(sizes, len(items))
	for i := range items {
		s[i].first = fixed
		if i == 0 {
			continue
		}
		prev, sep := items[i-1].sep, items[i].sep
		shared := commonPrefix(prev, sep)
		if shared == len(sep) || (shared < len(prev) && sep[shared] < prev[shared]) {
			return nil, &CorruptError{Reason: "separators of neighbouring branches overlap"}
		}
		rest := len(sep) - shared
		s[i].next = uvarintLen(shared) + uvarintLen(rest) + rest + 1 + digestSize + idSize
		whole := 1 + uvarintLen(len(sep)) + len(sep) + 1 + digestSize + idSize
		s[i-1].first += whole - s[i].next
	}
	return s, nil
}
