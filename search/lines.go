package search

import (
	"bytes"
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// Line is a line of a file with something that matches.
type Line struct {
	Number int    // counted from 1
	Text   string // what of it is shown; U+FFFD stands for bytes that are not UTF-8
	Spans  []Span // of Text that match, in order
}

// Span is a part of a text, in bytes.
type Span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// match is a place where a clause matches.
type match struct{ clause, start, end int }

// eachMatch calls fn for every place in text where one of clauses matches, about in
// order, until fn returns false.
func eachMatch(text []byte, clauses []clause, fn func(m match) bool) {
	s := scanner{text: text}
	window := newWindow(clauses)
	for s.next() {
		if !s.indexed() {
			window.clear()
			continue
		}
		for i := range clauses {
			c := &clauses[i]
			if c.word == nil {
				continue
			}
			if like(s.low, c.word, c.prefix) {
				if !fn(match{i, s.start, s.end}) {
					return
				}
			} else if c.exact() && len(s.atoms) > 1 {
				for _, a := range s.atoms {
					if like(s.part(a), c.word, c.prefix) && !fn(match{i, a.start, a.end}) {
						return
					}
				}
			}
		}
		for _, a := range s.atoms {
			window.add(s.part(a), a.start)
			for i := range clauses {
				if start, ok := window.ends(&clauses[i]); ok && !fn(match{i, start, a.end}) {
					return
				}
			}
		}
	}
}

func like(have, want []byte, prefix bool) bool {
	return bytes.Equal(have, want) || prefix && bytes.HasPrefix(have, want)
}

// window holds the last parts of a text, as many as the longest phrase has.
type window struct {
	terms  [][]byte
	starts []int
	size   int
}

func newWindow(clauses []clause) *window {
	w := &window{}
	for i := range clauses {
		w.size = max(w.size, len(clauses[i].parts))
	}
	return w
}

func (w *window) clear() { w.terms, w.starts = w.terms[:0], w.starts[:0] }

// add takes the next part.
func (w *window) add(term []byte, start int) {
	if w.size == 0 {
		return
	}
	if len(w.terms) < w.size {
		w.terms = append(w.terms, bytes.Clone(term))
		w.starts = append(w.starts, start)
		return
	}
	first := w.terms[0]
	copy(w.terms, w.terms[1:])
	copy(w.starts, w.starts[1:])
	w.terms[w.size-1] = append(first[:0], term...)
	w.starts[w.size-1] = start
}

// ends reports whether the parts of a clause end here, and where they begin.
func (w *window) ends(c *clause) (start int, ok bool) {
	n := len(c.parts)
	if n == 0 || n > len(w.terms) {
		return 0, false
	}
	have := w.terms[len(w.terms)-n:]
	for i, part := range c.parts {
		if !like(have[i], part, c.prefix && i == n-1) {
			return 0, false
		}
	}
	return w.starts[len(w.starts)-n], true
}

// matches reports whether a text matches.
func (q *Query) matches(text []byte) bool {
	seen := make([]bool, len(q.must))
	left := len(seen)
	eachMatch(text, q.must, func(m match) bool {
		if !seen[m.clause] {
			seen[m.clause] = true
			left--
		}
		return left > 0
	})
	never := false
	eachMatch(text, q.not, func(match) bool { never = true; return false })
	return left == 0 && !never
}

// lineOf is a line while the best are chosen.
type lineOf struct {
	start, end, number int
	clauses            uint64
	matches            []match
}

// lines finds the lines of a hit: first those in which most of the query is.
func (f *finder) lines(ctx context.Context, h *Hit) error {
	if f.opts.Lines <= 0 {
		return nil
	}
	text, err := readText(ctx, f.snap, h.Ino, &f.buf)
	if err != nil {
		return err
	}
	found := matchingLines(text, f.q.must)
	slices.SortStableFunc(found, func(a, b lineOf) int {
		return cmp.Compare(bits.OnesCount64(b.clauses), bits.OnesCount64(a.clauses))
	})
	found = found[:min(len(found), f.opts.Lines)]
	slices.SortFunc(found, func(a, b lineOf) int { return cmp.Compare(a.number, b.number) })
	for _, l := range found {
		h.Lines = append(h.Lines, l.shown(text))
	}
	return nil
}

// maxLines bounds how many lines are chosen from.
const maxLines = 10_000

func matchingLines(text []byte, clauses []clause) []lineOf {
	var found []lineOf
	at, number := 0, 1 // the beginning of the line that the last match was in
	eachMatch(text, clauses, func(m match) bool {
		if n := len(found); n > 0 && m.start < found[n-1].end {
			l := &found[n-1]
			l.clauses |= 1 << m.clause
			l.matches = append(l.matches, m)
			return true
		}
		if len(found) == maxLines {
			return false
		}
		number += bytes.Count(text[at:m.start], []byte{'\n'})
		start := bytes.LastIndexByte(text[:m.start], '\n') + 1
		end := len(text)
		if i := bytes.IndexByte(text[m.start:], '\n'); i >= 0 {
			end = m.start + i
		}
		at = start
		found = append(found, lineOf{start, end, number, 1 << m.clause, []match{m}})
		return true
	})
	return found
}

// shownBytes is how much of a line is shown.
const shownBytes = 240

// shown cuts a line to what is shown: around its first match.
func (l *lineOf) shown(text []byte) Line {
	slices.SortFunc(l.matches, func(a, b match) int { return cmp.Compare(a.start, b.start) })
	from, to := l.start, l.end
	if to-from > shownBytes {
		from = max(from, min(l.matches[0].start-shownBytes/4, to-shownBytes))
		to = min(to, from+shownBytes)
		for from < l.matches[0].start && !utf8.RuneStart(text[from]) {
			from++
		}
		for to > from && to < l.end && !utf8.RuneStart(text[to]) {
			to--
		}
	}
	out := Line{Number: l.number}
	var b strings.Builder
	write := func(upTo int) {
		b.WriteString(strings.ToValidUTF8(string(text[from:upTo]), "\uFFFD"))
		from = upTo
	}
	for _, m := range l.matches {
		start, end := max(from, m.start), min(to, m.end)
		if start >= end {
			continue
		}
		write(start)
		s := Span{From: b.Len()}
		write(end)
		s.To = b.Len()
		out.Spans = append(out.Spans, s)
	}
	write(max(from, to))
	out.Text = b.String()
	return out
}
