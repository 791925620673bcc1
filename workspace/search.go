package workspace

import (
	"bytes"
	"context"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// pattern finds matching lines in a text of many. Any number of goroutines may use
// it.
type pattern struct {
	line *regexp.Regexp // decides about one line
	text *regexp.Regexp // finds the line that may match next; nil if line by line is right
	// must is a text that every matching line has; nil if none is known. With fold
	// it is in lower case, and capital letters of ASCII in the line match it, too.
	must []byte
	fold bool
	rare int // with fold: the place in must of what to look for first
}

func newPattern(req *GrepRequest) (*pattern, error) {
	text := req.Pattern
	if req.Fixed {
		text = regexp.QuoteMeta(text)
	}
	if req.Word {
		text = `\b(?:` + text + `)\b`
	}
	if req.IgnoreCase {
		text = "(?i)" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, &engine.Error{Kind: engine.Invalid, Op: "grep", Path: req.Pattern, Err: err}
	}
	p := &pattern{line: re}
	tree, err := syntax.Parse("(?m)"+text, syntax.Perl)
	if err != nil {
		return nil, &engine.Error{Kind: engine.Invalid, Op: "grep", Path: req.Pattern, Err: err}
	}
	if bounded(tree) {
		return p, nil
	}
	p.must, p.fold = required(tree.Simplify())
	p.rare = rarest(p.must)
	p.text, err = regexp.Compile("(?m)" + text)
	return p, err
}

// bounded reports whether an expression looks for the beginning or end of the whole
// text, which for a pattern is a line.
func bounded(re *syntax.Regexp) bool {
	if re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText {
		return true
	}
	for _, sub := range re.Sub {
		if bounded(sub) {
			return true
		}
	}
	return false
}

// required finds the longest text that whatever matches must contain.
func required(re *syntax.Regexp) (text []byte, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return literal(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if t, f := required(sub); len(t) > len(text) {
				text, fold = t, f
			}
		}
	}
	return text, fold
}

// literal is the longest part of a literal that can be looked for byte by byte. Where
// case is folded those are the ASCII letters that no other letter folds to.
func literal(re *syntax.Regexp) (text []byte, fold bool) {
	all := string(re.Rune)
	if strings.ContainsAny(all, "\n\uFFFD") {
		return nil, false
	}
	if re.Flags&syntax.FoldCase == 0 {
		return []byte(all), false
	}
	parts := strings.FieldsFunc(all, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) })
	longest := ""
	for _, part := range parts {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return bytes.ToLower([]byte(longest)), true // of ASCII alone
}

// next finds the first matching line in b, which begins with a line; from is -1 if
// there is none.
func (p *pattern) next(b []byte) (from, to int) {
	for at := 0; at < len(b); {
		i := 0
		switch {
		case len(p.must) > 0 && p.fold:
			i = indexFold(b[at:], p.must, p.rare)
		case len(p.must) > 0:
			i = bytes.Index(b[at:], p.must)
		case p.text != nil:
			i = -1
			if m := p.text.FindIndex(b[at:]); m != nil {
				i = m[0]
			}
		}
		if i < 0 || at+i == len(b) { // behind the last line break there is no line
			break
		}
		from = bytes.LastIndexByte(b[:at+i], '\n') + 1
		to = len(b)
		if end := bytes.IndexByte(b[from:], '\n'); end >= 0 {
			to = from + end
		}
		if p.line.Match(b[from:to]) {
			return from, to
		}
		at = to + 1
	}
	return -1, -1
}

// letters are those of ASCII, those that texts have most first.
const letters = "etaoinsrlcdupmfhgbyvwkxjqz"

// rarest is the place of the byte of text, in lower case, that texts have least often.
func rarest(text []byte) (at int) {
	rank := func(c byte) int {
		if i := strings.IndexByte(letters, c); i >= 0 {
			return i
		}
		return 0 // spaces and punctuation are everywhere
	}
	for i, c := range text {
		if rank(c) > rank(text[at]) {
			at = i
		}
	}
	return at
}

// foldWindow bounds how far one letter is looked for while the other case of it is
// nearer.
const foldWindow = 4 << 10

// indexFold is bytes.Index for a text in lower case that capital letters of ASCII match,
// too. It looks for the byte of text at rare.
func indexFold(b, text []byte, rare int) int {
	small := text[rare]
	capital := small
	if 'a' <= small && small <= 'z' {
		capital -= 'a' - 'A'
	}
	find := func(c byte, from, end int) int {
		if i := bytes.IndexByte(b[from:end], c); i >= 0 {
			return from + i
		}
		return end
	}
	last := len(b) - (len(text) - rare) + 1 // where the byte at rare can be
	for at := rare; at < last; {
		end := min(last, at+foldWindow)
		one, other := find(small, at, end), end
		if capital != small {
			other = find(capital, at, end)
		}
		for one < end || other < end {
			i := min(one, other)
			if equalFold(b[i-rare:i-rare+len(text)], text) {
				return i - rare
			}
			if i == one {
				one = find(small, i+1, end)
			} else {
				other = find(capital, i+1, end)
			}
		}
		at = end
	}
	return -1
}

// equalFold reports whether b is text, in lower case, but for capital letters of ASCII.
func equalFold(b, text []byte) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != text[i] {
			return false
		}
	}
	return true
}

// sniff is how much of a file tells whether it is binary, in bytes.
const sniff = 8 << 10

// maxLine bounds the line that one match looks at, in bytes; a longer one is cut
// into several.
const maxLine = 1 << 20

// searchBytes is how much of a large file is read at once.
const searchBytes = 256 << 10

// searcher searches one file after the other.
type searcher struct {
	pattern       *pattern
	before, after int

	buf   []byte
	big   [2][]byte // take turns while a large file is read
	found []GrepMatch
	line  int      // the number of the next line
	due   int      // how many more lines of context the last match has
	tail  [][]byte // the lines before the next that were not given out, at most before
}

// onceReader is what a vault and a snapshot have for this.
type onceReader interface {
	ReadOnce(ctx context.Context, list []engine.Once)
}

// files searches files, and gives what it found in each of those that match.
func (s *searcher) files(ctx context.Context, t tree, files []grepFile) (all [][]GrepMatch, err error) {
	in, ok := t.(onceReader)
	if !ok {
		return nil, &engine.Error{Kind: engine.Unsupported, Op: "read"}
	}
	total := 0
	for _, f := range files {
		total += s.room(f)
	}
	if len(s.buf) < total {
		s.buf = make([]byte, total)
	}
	list := make([]engine.Once, len(files))
	at := 0
	for i, f := range files {
		list[i] = engine.Once{Ino: f.ino, Buf: s.buf[at : at+s.room(f) : at+s.room(f)]}
		at += s.room(f)
	}
	in.ReadOnce(ctx, list)
	for i, f := range files {
		found, err := s.file(ctx, in, &list[i])
		if engine.KindOf(err) == engine.NotFound {
			continue // removed meanwhile
		}
		if err != nil {
			return all, &engine.Error{Kind: engine.KindOf(err), Op: "read", Path: f.path, Err: err}
		}
		if len(found) == 0 {
			continue
		}
		text, b64 := exactly("/" + f.path)
		for i := range found {
			found[i].Path, found[i].PathB64 = text, b64
		}
		all = append(all, found)
	}
	return all, nil
}

// room is how much of a file is read first: one byte more than it has, so that its end
// shows.
func (s *searcher) room(f grepFile) int { return int(min(f.size, searchBytes-1)) + 1 }

// file searches a file of which r has read the beginning. It gives nothing for a binary
// one.
func (s *searcher) file(ctx context.Context, in onceReader, r *engine.Once) ([]GrepMatch, error) {
	s.found, s.line, s.due, s.tail = nil, 1, 0, nil
	if r.Err != nil {
		return nil, r.Err
	}
	b := r.Buf[:r.N]
	if bytes.IndexByte(b[:min(len(b), sniff)], 0) >= 0 {
		return nil, nil
	}
	ended := r.N < len(r.Buf)
	for off, turn := int64(r.N), 0; ; turn = 1 - turn {
		whole := len(b)
		if !ended && (len(b) < maxLine || bytes.IndexByte(b, '\n') >= 0) {
			whole = bytes.LastIndexByte(b, '\n') + 1
		}
		s.block(b[:whole])
		if ended {
			return s.found, nil
		}
		rest := b[whole:] // of an unfinished line
		next := append(s.big[turn][:0], rest...)
		next = slices.Grow(next, searchBytes)[:len(rest)+searchBytes]
		s.big[turn] = next
		more := []engine.Once{{Ino: r.Ino, Off: off, Buf: next[len(rest):]}}
		if in.ReadOnce(ctx, more); more[0].Err != nil {
			return nil, more[0].Err
		}
		off += int64(more[0].N)
		ended = more[0].N < searchBytes
		b = next[:len(rest)+more[0].N]
	}
}

// block searches whole lines.
func (s *searcher) block(b []byte) {
	for len(b) > 0 {
		from, to := s.pattern.next(b)
		if from < 0 {
			s.skip(b)
			return
		}
		s.skip(b[:from])
		s.match(b[from:to])
		b = b[min(to+1, len(b)):]
	}
}

// skip passes lines that do not match.
func (s *searcher) skip(b []byte) {
	for s.due > 0 && len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte{'\n'})
		s.add(s.line, line, true)
		s.line, s.due, b = s.line+1, s.due-1, rest
	}
	if len(b) == 0 {
		return
	}
	s.line += bytes.Count(b, []byte{'\n'})
	if b[len(b)-1] != '\n' {
		s.line++ // a line that was cut, or the last of the file
	}
	if s.before == 0 {
		return
	}
	var last [][]byte // of b, backwards
	for rest := bytes.TrimSuffix(b, []byte{'\n'}); len(last) < s.before; {
		i := bytes.LastIndexByte(rest, '\n')
		last = append(last, bytes.Clone(rest[i+1:]))
		if i < 0 {
			break
		}
		rest = rest[:i]
	}
	for i := len(last) - 1; i >= 0; i-- {
		s.tail = append(s.tail, last[i])
	}
	s.tail = s.tail[max(0, len(s.tail)-s.before):]
}

// match takes a line that matches.
func (s *searcher) match(line []byte) {
	for i, t := range s.tail {
		s.add(s.line-len(s.tail)+i, t, true)
	}
	s.tail = s.tail[:0]
	s.add(s.line, line, false)
	s.line++
	s.due = s.after
}

func (s *searcher) add(n int, line []byte, context bool) {
	s.found = append(s.found, GrepMatch{Line: n, Text: strings.ToValidUTF8(string(line), "\uFFFD"), Context: context})
}
