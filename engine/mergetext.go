package engine

import (
	"bytes"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// maxMergeText is up to which size, in bytes, the three versions of a text are merged
// line by line. It bounds memory; beyond it both sides' edits are a conflict.
const maxMergeText = 8 << 20

// maxRefine bounds how often a diff looks again at what it left out. What is left
// then counts as replaced, which can make a conflict but never a wrong result.
const maxRefine = 4000

// isText reports whether b is text as git sees it: without a zero byte.
func isText(b []byte) bool { return bytes.IndexByte(b, 0) < 0 }

// textMerge is the outcome of a three-way merge of texts.
type textMerge struct {
	text  []byte // the merge, with markers around conflicts
	hunks int    // conflicts
}

// markers names the two sides in conflict markers.
type markers struct{ ours, theirs string }

// mergeText merges two edits of base line by line: where one side changed lines, its
// lines are taken; where both changed the same lines, or lines that touch, in different
// ways, it is a conflict, as it is for git. Line ends belong to their lines, so that a
// missing one at the end of the file and CRLF are kept.
func mergeText(base, ours, theirs []byte, names markers) textMerge {
	m := textMerger{names: names, ids: map[string]rune{}}
	m.base, m.ours, m.theirs = splitLines(base), splitLines(ours), splitLines(theirs)
	m.baseIDs, m.oursIDs, m.theirsIDs = m.number(m.base), m.number(m.ours), m.number(m.theirs)
	m.run()
	return m.out
}

// splitLines cuts b after each line feed.
func splitLines(b []byte) [][]byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	if n := len(lines) - 1; len(lines[n]) == 0 {
		lines = lines[:n]
	}
	return lines
}

// textMerger is one merge. Lines have numbers that are equal where they are.
type textMerger struct {
	names                       markers
	ids                         map[string]rune
	base, ours, theirs          [][]byte
	baseIDs, oursIDs, theirsIDs []rune
	out                         textMerge
}

func (m *textMerger) number(lines [][]byte) []rune {
	ids := make([]rune, len(lines))
	for i, line := range lines {
		id, ok := m.ids[string(line)]
		if !ok {
			id = rune(len(m.ids))
			m.ids[string(line)] = id
		}
		ids[i] = id
	}
	return ids
}

// edit is lines from to to of one text that became others in another.
type edit struct{ from, to, newFrom, newTo int }

// editsBetween lists the edits that make b of a, in order. The library's search for
// common lines gives up after a number of differences, and leaves the middle to be
// replaced; that is looked at again for as long as something in common is found.
func editsBetween(a, b []rune) []edit {
	budget := maxRefine
	var out []edit
	var refine func(a, b []rune, atA, atB int)
	refine = func(a, b []rune, atA, atB int) {
		for _, d := range lcs.DiffRunes(a, b) {
			n, m := d.End-d.Start, d.ReplEnd-d.ReplStart
			if n > 0 && m > 0 && n+m < len(a)+len(b) && n+m > 2 && budget > 0 {
				budget--
				refine(a[d.Start:d.End:d.End], b[d.ReplStart:d.ReplEnd:d.ReplEnd], atA+d.Start, atB+d.ReplStart)
				continue
			}
			out = append(out, edit{atA + d.Start, atA + d.End, atB + d.ReplStart, atB + d.ReplEnd})
		}
	}
	refine(a, b, 0, 0)
	return out
}

// run walks both lists of edits together. Edits that overlap or touch form one region.
func (m *textMerger) run() {
	mine, other := editsBetween(m.baseIDs, m.oursIDs), editsBetween(m.baseIDs, m.theirsIDs)
	done := 0 // lines of base that are dealt with
	for len(mine) > 0 || len(other) > 0 {
		r := takeRegion(&mine, &other)
		m.write(m.base[done:r.from])
		m.settle(r)
		done = r.to
	}
	m.write(m.base[done:])
}

// region is lines of base that one side or both changed, and what they made of them.
type region struct {
	from, to     int
	mine, theirs []edit
}

// takeRegion takes the edits of the first region off the lists, at least one of which
// is not empty.
func takeRegion(mine, other *[]edit) region {
	first := mine
	if len(*mine) == 0 || len(*other) > 0 && (*other)[0].from < (*mine)[0].from {
		first = other
	}
	r := region{from: (*first)[0].from, to: (*first)[0].to}
	for more := true; more; {
		more = false
		for _, s := range []struct {
			list *[]edit
			into *[]edit
		}{{mine, &r.mine}, {other, &r.theirs}} {
			for len(*s.list) > 0 && (*s.list)[0].from <= r.to {
				e := (*s.list)[0]
				*s.list, *s.into = (*s.list)[1:], append(*s.into, e)
				r.to = max(r.to, e.to)
				more = true
			}
		}
	}
	return r
}

// settle writes what a region becomes.
func (m *textMerger) settle(r region) {
	ours, oursIDs := side3(r, r.mine, m.base, m.ours, m.baseIDs, m.oursIDs)
	theirs, theirsIDs := side3(r, r.theirs, m.base, m.theirs, m.baseIDs, m.theirsIDs)
	switch {
	case len(r.theirs) == 0 || sameIDs(oursIDs, theirsIDs):
		m.write(ours)
		return
	case len(r.mine) == 0:
		m.write(theirs)
		return
	}
	m.out.hunks++
	// What both sides begin and end with alike is no part of the conflict.
	head := commonPrefix(oursIDs, theirsIDs)
	tail := commonSuffix(oursIDs[head:], theirsIDs[head:])
	m.write(ours[:head])
	m.mark("<<<<<<< "+m.names.ours, ours[head:len(ours)-tail])
	m.mark("=======", theirs[head:len(theirs)-tail])
	m.mark(">>>>>>> "+m.names.theirs, nil)
	m.write(ours[len(ours)-tail:])
}

// side3 is what one side made of a region: its own lines for its edits, those of base
// between them.
func side3(r region, edits []edit, base, own [][]byte, baseIDs, ownIDs []rune) (lines [][]byte, ids []rune) {
	at := r.from
	for _, e := range edits {
		lines = append(append(lines, base[at:e.from]...), own[e.newFrom:e.newTo]...)
		ids = append(append(ids, baseIDs[at:e.from]...), ownIDs[e.newFrom:e.newTo]...)
		at = e.to
	}
	return append(lines, base[at:r.to]...), append(ids, baseIDs[at:r.to]...)
}

func (m *textMerger) write(lines [][]byte) {
	for _, line := range lines {
		m.out.text = append(m.out.text, line...)
	}
}

// mark writes a marker on a line of its own, and lines after it, the last of which
// gets an end if it has none.
func (m *textMerger) mark(marker string, lines [][]byte) {
	if n := len(m.out.text); n > 0 && m.out.text[n-1] != '\n' {
		m.out.text = append(m.out.text, '\n')
	}
	m.out.text = append(append(m.out.text, marker...), '\n')
	m.write(lines)
}

func sameIDs(a, b []rune) bool {
	return len(a) == len(b) && commonPrefix(a, b) == len(a)
}

func commonPrefix(a, b []rune) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []rune) int {
	i := 0
	for i < min(len(a), len(b)) && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}
