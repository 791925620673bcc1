package workspace

import (
	"bytes"
	"context"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// pattern finds matching lines in a text of many. Any number of goroutines may use
// it.
type pattern struct {
	line *regexp.Regexp // decides about one line
	text *regexp.Regexp // finds the line that may match next; nil if line by line is right
	// must is a text that every matching line has; nil if none is known. With fold
	// it is in lower case and so is every letter of the line.
	must []byte
	fold bool
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
	return lower(nil, []byte(longest)), true
}

// next finds the first matching line in b, which begins with a line; from is -1 if
// there is none. low is b in lower case where the pattern needs that.
func (p *pattern) next(b, low []byte) (from, to int) {
	for at := 0; at < len(b); {
		i := 0
		switch {
		case len(p.must) > 0 && p.fold:
			i = bytes.Index(low[at:], p.must)
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

// sniff is how much of a file tells whether it is binary, in bytes.
const sniff = 8 << 10

// maxLine bounds the line that one match looks at, in bytes; a longer one is cut
// into several.
const maxLine = 1 << 20

// searchBytes is how much of a file is read at once.
const searchBytes = 256 << 10

// searcher searches one file after the other.
type searcher struct {
	pattern       *pattern
	before, after int

	buf, low []byte
	found    []GrepMatch
	line     int      // the number of the next line
	due      int      // how many more lines of context the last match has
	tail     [][]byte // the lines before the next that were not given out, at most before
}

// file searches a file. It gives nothing for a binary one.
func (s *searcher) file(ctx context.Context, f fileReader) ([]GrepMatch, error) {
	s.found, s.line, s.due, s.tail = nil, 1, 0, nil
	kept := 0 // bytes of an unfinished line at the beginning of buf
	for off := int64(0); ; {
		if need := kept + searchBytes; len(s.buf) < need {
			s.buf = append(s.buf, make([]byte, need-len(s.buf))...)
		}
		n, err := f.ReadAt(ctx, s.buf[kept:kept+searchBytes], off)
		if err != nil {
			return nil, err
		}
		b := s.buf[:kept+n]
		if off == 0 && bytes.IndexByte(b[:min(len(b), sniff)], 0) >= 0 {
			return nil, nil
		}
		off += int64(n)
		whole := len(b)
		if n > 0 && (len(b) < maxLine || bytes.IndexByte(b, '\n') >= 0) {
			whole = bytes.LastIndexByte(b, '\n') + 1
		}
		s.block(b[:whole])
		kept = copy(s.buf, b[whole:])
		if n == 0 {
			return s.found, nil
		}
	}
}

// block searches whole lines.
func (s *searcher) block(b []byte) {
	var low []byte
	if s.pattern.fold && len(s.pattern.must) > 0 {
		s.low = lower(s.low[:0], b)
		low = s.low
	}
	for len(b) > 0 {
		from, to := s.pattern.next(b, low)
		if from < 0 {
			s.skip(b)
			return
		}
		s.skip(b[:from])
		s.match(b[from:to])
		to = min(to+1, len(b))
		b = b[to:]
		if low != nil {
			low = low[to:]
		}
	}
}

// lower appends b to dst with the capital letters of ASCII made small.
func lower(dst, b []byte) []byte {
	for _, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
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
