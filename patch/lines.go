package patch

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/maphash"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// maxLines is how many lines of a file, between an equal beginning and an equal end,
// are compared.
const maxLines = 500_000

// lineDiff is how two texts differ.
type lineDiff struct {
	old, new text
	edits    []edit
	coarse   bool
}

// edit replaces some lines by others; the numbers are indexes.
type edit struct{ oldStart, oldEnd, newStart, newEnd int }

// text is content in lines, which keep their line breaks.
type text struct {
	bytes []byte
	ends  []int32 // of the lines, as offsets; MaxText fits
}

func newText(content []byte) text {
	t := text{bytes: content, ends: make([]int32, 0, bytes.Count(content, []byte{'\n'})+1)}
	for at := 0; at < len(content); {
		n := bytes.IndexByte(content[at:], '\n') + 1
		if n == 0 {
			n = len(content) - at
		}
		at += n
		t.ends = append(t.ends, int32(at))
	}
	return t
}

func (t text) len() int { return len(t.ends) }

func (t text) line(i int) []byte {
	start := int32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.bytes[start:t.ends[i]]
}

// compareLines finds a small set of edits that make before after.
func compareLines(before, after []byte) *lineDiff {
	d := &lineDiff{old: newText(before), new: newText(after)}
	// What is equal at both ends need not be compared line by line with all.
	oldEnd, newEnd, head := d.old.len(), d.new.len(), 0
	for head < min(oldEnd, newEnd) && bytes.Equal(d.old.line(head), d.new.line(head)) {
		head++
	}
	for min(oldEnd, newEnd) > head && bytes.Equal(d.old.line(oldEnd-1), d.new.line(newEnd-1)) {
		oldEnd--
		newEnd--
	}
	switch n, m := oldEnd-head, newEnd-head; {
	case n == 0 && m == 0:
	case n == 0 || m == 0 || max(n, m) > maxLines:
		d.coarse = n > 0 && m > 0
		d.edits = []edit{{head, oldEnd, head, newEnd}}
	default:
		ids := map[string]rune{}
		d.compare(number(d.old, head, oldEnd, ids), number(d.new, head, newEnd, ids), head, head)
	}
	return d
}

// number gives equal lines equal numbers, which compare faster.
func number(t text, start, end int, ids map[string]rune) []rune {
	list := make([]rune, 0, end-start)
	for i := start; i < end; i++ {
		id, ok := ids[string(t.line(i))]
		if !ok {
			id = rune(len(ids))
			ids[string(t.line(i))] = id
		}
		list = append(list, id)
	}
	return list
}

// compare adds the edits between two runs of lines that begin at lines x and y. The
// library stops after a hundred differences and gives the middle as one block; what it
// has found on both sides of that stands, and the block is compared in turn. So the time
// is proportional to the number of lines times that bound, however much differs.
func (d *lineDiff) compare(a, b []rune, x, y int) {
	for _, f := range lcs.DiffRunes(a, b) {
		n, m := f.End-f.Start, f.ReplEnd-f.ReplStart
		if n > 1 && m > 1 && (n < len(a) || m < len(b)) {
			d.compare(a[f.Start:f.End], b[f.ReplStart:f.ReplEnd], x+f.Start, y+f.ReplStart)
			continue
		}
		d.add(edit{x + f.Start, x + f.End, y + f.ReplStart, y + f.ReplEnd})
	}
}

// add appends an edit, to the last one where they touch.
func (d *lineDiff) add(e edit) {
	if k := len(d.edits) - 1; k >= 0 && d.edits[k].oldEnd == e.oldStart && d.edits[k].newEnd == e.newStart {
		d.edits[k].oldEnd, d.edits[k].newEnd = e.oldEnd, e.newEnd
		return
	}
	d.edits = append(d.edits, e)
}

// count is how many lines came and went.
func (d *lineDiff) count() (added, deleted int) {
	for _, e := range d.edits {
		added += e.newEnd - e.newStart
		deleted += e.oldEnd - e.oldStart
	}
	return added, deleted
}

// write writes the hunks, with up to context equal lines around each edit.
func (d *lineDiff) write(w *bufio.Writer, context int) error {
	for i := 0; i < len(d.edits); {
		j := i + 1
		for j < len(d.edits) && d.edits[j].oldStart-d.edits[j-1].oldEnd <= 2*context {
			j++
		}
		d.hunk(w, d.edits[i:j], context)
		i = j
	}
	return w.Flush()
}

func (d *lineDiff) hunk(w *bufio.Writer, edits []edit, context int) {
	first, last := edits[0], edits[len(edits)-1]
	lead := min(context, first.oldStart)
	trail := min(context, d.old.len()-last.oldEnd)
	fmt.Fprintf(w, "@@ -%s +%s @@\n",
		span(first.oldStart-lead, last.oldEnd+trail), span(first.newStart-lead, last.newEnd+trail))
	at := first.oldStart - lead
	for _, e := range edits {
		printLines(w, ' ', d.old, at, e.oldStart)
		printLines(w, '-', d.old, e.oldStart, e.oldEnd)
		printLines(w, '+', d.new, e.newStart, e.newEnd)
		at = e.oldEnd
	}
	printLines(w, ' ', d.old, at, at+trail)
}

// printLines writes some lines; the writer keeps an error until it is flushed.
func printLines(w *bufio.Writer, sign byte, t text, start, end int) {
	for i := start; i < end; i++ {
		line := t.line(i)
		w.WriteByte(sign)
		w.Write(line)
		if line[len(line)-1] != '\n' {
			w.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// span is a range of lines in the head of a hunk. One without lines names the line
// before it.
func span(start, end int) string {
	switch end - start {
	case 0:
		return fmt.Sprintf("%d,0", start)
	case 1:
		return fmt.Sprint(start + 1)
	}
	return fmt.Sprintf("%d,%d", start+1, end-start)
}

// pieceBytes is the size of the pieces by which content without line breaks is
// compared.
const pieceBytes = 64

// similarity is how much of the larger content both have, in percent; 100 is equal.
// Pieces are lines, cut after pieceBytes, whatever their order.
func similarity(before, after *blob) int {
	if before.id == after.id {
		return 100
	}
	seed := maphash.MakeSeed()
	have := map[uint64]int64{}
	eachPiece(before.bytes, func(p []byte) { have[maphash.Bytes(seed, p)] += int64(len(p)) })
	var common int64
	eachPiece(after.bytes, func(p []byte) {
		h := maphash.Bytes(seed, p)
		if n := int64(len(p)); have[h] >= n {
			have[h] -= n
			common += n
		}
	})
	return int(min(common*100/max(before.size, after.size, 1), 99))
}

func eachPiece(content []byte, fn func([]byte)) {
	for len(content) > 0 {
		n := min(pieceBytes, len(content))
		if i := bytes.IndexByte(content[:n], '\n'); i >= 0 {
			n = i + 1
		}
		fn(content[:n])
		content = content[n:]
	}
}
