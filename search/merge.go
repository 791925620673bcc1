package search

import (
	"bytes"
	"context"
	"slices"

	"github.com/agentvfs/avfs/engine/kv"
)

// mergeFrom says from which segment on all are to be merged into one: so that each is
// at least twice as large as all behind it, and their number stays logarithmic.
func mergeFrom(segments []segment) int {
	from := len(segments) - 1
	if from < 0 {
		return 0
	}
	sum := segments[from].Bytes
	for from > 0 && segments[from-1].Bytes < 2*sum {
		from--
		sum += segments[from].Bytes
	}
	return from
}

// merge makes one segment of several neighbours where there are too many.
func (x *Index) merge(ctx context.Context) error {
	from := mergeFrom(x.state.Segments)
	if from >= len(x.state.Segments)-1 {
		return nil
	}
	old := slices.Clone(x.state.Segments[from:])
	next := x.state
	seg := segment{ID: next.NextSegment}
	var docs []doc
	var inputs []*cursor
	err := x.db.View(ctx, func(tx kv.Reader) error {
		for _, s := range old {
			more, err := readDocs(tx, s)
			if err != nil {
				return err
			}
			inputs = append(inputs, &cursor{db: x.db, seg: s, base: uint32(len(docs))})
			docs = append(docs, more...)
			seg.Texts += s.Texts
			seg.Words += s.Words
		}
		return nil
	})
	if err != nil {
		return err
	}
	b := &batch{x: x}
	w := &blockWriter{seg: seg.ID, put: func(r row) error { return b.put(ctx, r) }}
	if err := mergeTerms(ctx, inputs, w); err != nil {
		return err
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	seg.Bytes = w.size + int64(len(docs)*docBytes)
	next.NextSegment++
	next.Segments = append(slices.Clone(next.Segments[:from]), seg)
	if err := x.commit(ctx, docRows(seg.ID, docs), next); err != nil {
		return err
	}
	for _, s := range old {
		if err := x.dropSegment(ctx, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// mergeTerms writes the terms of all inputs in order, with the postings of all.
func mergeTerms(ctx context.Context, inputs []*cursor, w *blockWriter) error {
	for _, c := range inputs {
		if err := c.next(ctx); err != nil {
			return err
		}
	}
	for {
		var low []byte
		for _, c := range inputs {
			if t := c.term(); t != nil && (low == nil || bytes.Compare(t, low) < 0) {
				low = t
			}
		}
		if low == nil {
			return w.flush(0)
		}
		low = bytes.Clone(low)
		var l list
		l.prev = -1
		for _, c := range inputs {
			for bytes.Equal(c.term(), low) { // several parts of one term follow each other
				err := eachPosting(c.terms[0].postings, c.seg.Texts, func(at, count uint32) {
					l.last, l.count = c.base+at, count
					l.settle()
				})
				if err != nil {
					return damaged(blocksTable(), low)
				}
				if err := c.next(ctx); err != nil {
					return err
				}
			}
		}
		if err := w.add(low, l.buf); err != nil {
			return err
		}
	}
}

// cursor reads the terms of a segment, a block at a time.
type cursor struct {
	db    kv.Store
	seg   segment
	base  uint32 // of its positions in the merged segment
	after []byte // the key of the last block
	terms []termPostings
	ended bool
}

type termPostings struct{ term, postings []byte }

// term is the term that the cursor is at; nil at the end.
func (c *cursor) term() []byte {
	if len(c.terms) == 0 {
		return nil
	}
	return c.terms[0].term
}

func (c *cursor) next(ctx context.Context) error {
	if len(c.terms) > 0 {
		c.terms = c.terms[1:]
	}
	if len(c.terms) > 0 || c.ended {
		return nil
	}
	c.ended = true
	prefix := partKey(c.seg.ID, 0)[:8]
	return c.db.View(ctx, func(tx kv.Reader) error {
		return tx.Scan(blocksTable(), prefix, append(bytes.Clone(c.after), 0), func(key, value []byte) error {
			c.ended = false
			c.after = append(c.after[:0], key...)
			err := eachTerm(key, value, func(term, postings []byte) error {
				c.terms = append(c.terms, termPostings{bytes.Clone(term), bytes.Clone(postings)})
				return nil
			})
			if err == nil {
				err = kv.Stop
			}
			return err
		})
	})
}
