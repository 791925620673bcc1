package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"sort"

	"github.com/agentvfs/avfs/engine/kv"
)

// Postings are pairs of a text's position and of how often it has the term, in order of
// positions. A pair is a varint, twice the step from the position before (from -1 for
// the first) and one more where the count is 1; otherwise the count follows.

// appendPosting appends a pair; prev is the position before.
func appendPosting(b []byte, prev int64, at, count uint32) []byte {
	step := uint64(int64(at)-prev) << 1
	if count == 1 {
		return binary.AppendUvarint(b, step|1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, step), uint64(count))
}

var errPostings = errors.New("malformed postings")

// eachPosting calls fn for every pair.
func eachPosting(b []byte, texts uint32, fn func(at, count uint32)) error {
	at := int64(-1)
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return errPostings
		}
		b = b[n:]
		at += int64(v >> 1)
		count := uint64(1)
		if v&1 == 0 {
			if count, n = binary.Uvarint(b); n <= 0 {
				return errPostings
			}
			b = b[n:]
		}
		if v>>1 == 0 || v>>1 > math.MaxUint32 || at >= int64(texts) || count > math.MaxUint32 {
			return errPostings
		}
		fn(uint32(at), uint32(count))
	}
	return nil
}

// blockBytes is how large a block grows.
const blockBytes = 32 << 10

// blockWriter makes the blocks of a segment of terms in byte order.
type blockWriter struct {
	seg  uint64
	put  func(row) error
	body []byte
	last []byte // the last term of body
	size int64  // of the rows
}

// add takes the next term with all its postings.
func (w *blockWriter) add(term, postings []byte) error {
	if len(postings) > blockBytes {
		return w.split(term, postings)
	}
	if len(w.body) > 0 && len(w.body)+len(postings) > blockBytes {
		if err := w.flush(0); err != nil {
			return err
		}
	}
	w.entry(term, postings)
	return nil
}

func (w *blockWriter) entry(term, postings []byte) {
	shared := 0
	for shared < min(len(term), len(w.last)) && term[shared] == w.last[shared] {
		shared++
	}
	w.body = binary.AppendUvarint(w.body, uint64(shared))
	w.body = binary.AppendUvarint(w.body, uint64(len(term)-shared))
	w.body = append(w.body, term[shared:]...)
	w.body = binary.AppendUvarint(w.body, uint64(len(postings)))
	w.body = append(w.body, postings...)
	w.last = append(w.last[:0], term...)
}

// split writes postings that are too many for one block as several, each of which
// counts from the first text.
func (w *blockWriter) split(term, postings []byte) error {
	if err := w.flush(0); err != nil {
		return err
	}
	var part []byte
	var failed error
	number, prev := uint32(0), int64(-1)
	cut := func() {
		w.entry(term, part)
		failed = errors.Join(failed, w.flush(number))
		number, prev, part = number+1, -1, part[:0]
	}
	err := eachPosting(postings, math.MaxUint32, func(at, count uint32) {
		part = appendPosting(part, prev, at, count)
		prev = int64(at)
		if len(part) >= blockBytes {
			cut()
		}
	})
	if len(part) > 0 {
		cut()
	}
	return errors.Join(err, failed)
}

func blockKey(seg uint64, term []byte, part uint32) []byte {
	key := append(binary.BigEndian.AppendUint64(make([]byte, 0, 13+len(term)), seg), term...)
	return binary.BigEndian.AppendUint32(append(key, 0), part)
}

func (w *blockWriter) flush(part uint32) error {
	if len(w.body) == 0 {
		return nil
	}
	key := blockKey(w.seg, w.last, part)
	w.size += int64(len(key) + len(w.body))
	r := sealed(blocksTable(), key, append([]byte(nil), w.body...))
	w.body, w.last = w.body[:0], w.last[:0]
	return w.put(r)
}

// eachTerm calls fn for the terms of a block, in order. What it passes belongs to the
// caller of eachTerm. kv.Stop from fn ends it.
func eachTerm(key, value []byte, fn func(term, postings []byte) error) error {
	b, err := unseal(blocksTable(), key, value)
	if err != nil {
		return err
	}
	var term []byte
	for len(b) > 0 {
		var n [3]uint64
		for i := range 2 {
			if n[i], b, err = uvarint(b); err != nil {
				return damaged(blocksTable(), key)
			}
		}
		if n[0] > uint64(len(term)) || n[1] > uint64(len(b)) {
			return damaged(blocksTable(), key)
		}
		term = append(term[:n[0]], b[:n[1]]...)
		b = b[n[1]:]
		if n[2], b, err = uvarint(b); err != nil || n[2] > uint64(len(b)) {
			return damaged(blocksTable(), key)
		}
		if err := fn(term, b[:n[2]]); err != nil {
			return err
		}
		b = b[n[2]:]
	}
	return nil
}

func uvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, errPostings
	}
	return v, b[n:], nil
}

// findTerms calls fn with the postings of term in a segment, or of all terms that begin
// with it, in one or more calls for each.
func findTerms(tx kv.Reader, seg segment, term []byte, prefix bool, fn func(at, count uint32)) error {
	from := blockKey(seg.ID, term, 0)
	from = from[:len(from)-4] // before the first part, and after every shorter term
	if prefix {
		from = from[:len(from)-1]
	}
	return tx.Scan(blocksTable(), from[:8], from, func(key, value []byte) error {
		return eachTerm(key, value, func(t, postings []byte) error {
			c := bytes.Compare(t, term)
			switch {
			case c < 0:
				return nil
			case c > 0 && !(prefix && bytes.HasPrefix(t, term)):
				return kv.Stop
			}
			if err := eachPosting(postings, seg.Texts, fn); err != nil {
				return damaged(blocksTable(), key)
			}
			return nil
		})
	})
}

// list collects the postings of one term of the segment that is being built.
type list struct {
	buf         []byte
	prev        int64
	last, count uint32 // the text that is being counted; count is 0 for none
}

// settle appends the text that is being counted.
func (l *list) settle() {
	if l.count > 0 {
		l.buf = appendPosting(l.buf, l.prev, l.last, l.count)
		l.prev, l.count = int64(l.last), 0
	}
}

// builder collects texts for a segment in memory.
type builder struct {
	terms map[string]*list
	docs  []doc
	words int64
	bytes int // about what it takes
}

func newBuilder() *builder { return &builder{terms: map[string]*list{}} }

// termCost is about what a new term takes besides its name, in bytes.
const termCost = 120

// add takes a text.
func (b *builder) add(number uint32, text []byte) {
	s := scanner{text: text}
	at, words := uint32(len(b.docs)), 0
	for s.next() {
		if !s.indexed() {
			continue
		}
		words++
		b.count(s.low, at)
		if len(s.atoms) > 1 {
			for _, a := range s.atoms {
				b.count(s.part(a), at)
			}
		}
	}
	b.docs = append(b.docs, doc{number, lengthCode(words)})
	b.words += int64(words)
	b.bytes += 16
}

func (b *builder) count(term []byte, at uint32) {
	l := b.terms[string(term)]
	if l == nil {
		l = &list{prev: -1}
		b.terms[string(term)] = l
		b.bytes += termCost + len(term)
	}
	if l.count > 0 && l.last != at {
		l.settle()
		b.bytes += 3
	}
	l.last = at
	l.count++
}

// write gives the terms to w in order. Nothing can be added afterwards.
func (b *builder) write(w *blockWriter) error {
	names := make([]string, 0, len(b.terms))
	for t := range b.terms {
		names = append(names, t)
	}
	sort.Strings(names)
	for _, t := range names {
		l := b.terms[t]
		l.settle()
		if err := w.add([]byte(t), l.buf); err != nil {
			return err
		}
	}
	return w.flush(0)
}

// lengthCode makes a byte of a number of words, with an error of at most 9 percent.
func lengthCode(words int) byte {
	return byte(min(255, math.Round(4*math.Log2(float64(words)+1))))
}

// lengthOf is about the number of words that a code stands for.
func lengthOf(code byte) float64 { return math.Exp2(float64(code)/4) - 1 }
