package policy

import "strings"

// Limits on shell text that keep parsing it below a millisecond. They count what
// stands outside quotes and here-documents, so that data is never too complex.
const (
	maxNesting    = 64
	maxWords      = 1024
	maxExpansions = 2048
	maxSeparators = 384     // a little over maxSegments: newlines and ";;" count too
	maxBareWord   = 8 << 10 // bytes of one word that are not quoted
)

// scan is a rough reading of shell text in one pass. It only guards the parser's
// time: where it misjudges a text, the decision is opaque or takes longer, but what
// the parser then says still holds.
type scan struct {
	src                           string
	i                             int
	depth                         int
	words, expansions, separators int
	keywords                      int
	heredocs                      []heredocMark
}

type heredocMark struct {
	word string
	tabs bool // <<- : tabs in front of the delimiter are ignored
}

// tooComplex returns why a text is not parsed, or "".
func tooComplex(src string) string {
	if strings.IndexByte(src, 0) >= 0 {
		return "the command holds a zero byte"
	}
	if len(src) < 256 {
		return "" // too short to exceed any limit but the one on nesting
	}
	s := &scan{src: src}
	return s.run()
}

func (s *scan) run() string {
	inWord, bare := false, 0
	for s.i < len(s.src) {
		c := s.src[s.i]
		blank := c == ' ' || c == '\t' || c == '\n'
		if !blank && !inWord {
			s.words++
			s.keyword()
			bare = 0
		}
		bare++
		inWord = !blank && c != ';' && c != '|' && c != '&' && c != '(' && c != ')'
		s.step(c)
		switch {
		case s.depth > maxNesting, s.keywords > 4*maxNesting:
			return "commands are nested too deeply"
		case s.separators > maxSeparators:
			return "the command has more than 256 parts"
		case bare > maxBareWord && inWord:
			return "a word is too long"
		case s.words > maxWords:
			return "the command has too many words"
		case s.expansions > maxExpansions:
			return "the command has too many expansions"
		}
	}
	return ""
}

// step consumes what begins with c.
func (s *scan) step(c byte) {
	s.i++
	switch c {
	case '\\':
		s.expansions++
		s.i++
	case '*', '?':
		s.expansions++
	case '\'':
		s.skipTo('\'')
	case '"':
		s.dquoted()
	case '`':
		s.expansions++
	case '$':
		s.expansions++
	case '(', '{', '[':
		s.expansions++
		s.depth++
	case ')', '}', ']':
		s.depth = max(0, s.depth-1)
	case '|', ';', '&':
		s.separators++
		for s.i < len(s.src) && s.src[s.i] == c {
			s.i++
		}
	case '#':
		if s.i == 1 || strings.IndexByte(" \t\n;&|(", s.src[s.i-2]) >= 0 {
			s.skipTo('\n')
			s.i-- // the newline still counts
		}
	case '<':
		if strings.HasPrefix(s.src[s.i:], "<") && !strings.HasPrefix(s.src[s.i:], "<<") {
			s.i++
			s.heredocMark()
		} else if strings.HasPrefix(s.src[s.i:], "<<") {
			s.i += 2
		}
	case '\n':
		if len(s.heredocs) > 0 {
			s.skipHeredocs()
		}
		s.separators++
		for s.i < len(s.src) && s.src[s.i] == '\n' {
			s.i++
		}
	}
}

// skipTo moves behind the next q, or to the end.
func (s *scan) skipTo(q byte) {
	if j := strings.IndexByte(s.src[min(s.i, len(s.src)):], q); j >= 0 {
		s.i += j + 1
		return
	}
	s.i = len(s.src) + 1
}

// dquoted skips a double-quoted text; what is nested in it counts as expansions.
func (s *scan) dquoted() {
	for s.i < len(s.src) && s.depth <= maxNesting && s.expansions <= maxExpansions {
		switch s.src[s.i] {
		case '"':
			s.i++
			return
		case '\\':
			s.i++
		case '$', '`':
			s.expansions++
			if strings.HasPrefix(s.src[s.i:], "$(") {
				s.depth++ // never taken back here: a text with many is rare
				s.depth -= s.closes()
			}
		}
		s.i++
	}
}

// closes reports 1 where the substitution at the current place is closed in the
// same text, which it nearly always is.
func (s *scan) closes() int {
	if strings.IndexByte(s.src[s.i:], ')') >= 0 {
		return 1
	}
	return 0
}

// keyword counts words that open a construct which the parser recurses into.
func (s *scan) keyword() {
	if strings.IndexByte("iwufcst!", s.src[s.i]) < 0 {
		return
	}
	rest := s.src[s.i:]
	for _, k := range []string{"if", "while", "until", "for", "case", "select", "function", "coproc", "time", "!"} {
		if strings.HasPrefix(rest, k) && (len(rest) == len(k) || strings.IndexByte(" \t\n", rest[len(k)]) >= 0) {
			s.keywords++
			return
		}
	}
}

// heredocMark reads the delimiter after "<<".
func (s *scan) heredocMark() {
	m := heredocMark{}
	if s.i < len(s.src) && s.src[s.i] == '-' {
		m.tabs = true
		s.i++
	}
	for s.i < len(s.src) && (s.src[s.i] == ' ' || s.src[s.i] == '\t') {
		s.i++
	}
	start := s.i
	for s.i < len(s.src) && strings.IndexByte(" \t\n;&|()<>", s.src[s.i]) < 0 {
		s.i++
	}
	m.word = s.src[start:s.i]
	if strings.ContainsAny(m.word, `\'"`) {
		m.word = strings.Map(func(r rune) rune {
			if r == '\\' || r == '\'' || r == '"' {
				return -1
			}
			return r
		}, m.word)
	}
	if m.word != "" && !isNumber(m.word) {
		s.heredocs = append(s.heredocs, m)
	}
}

// skipHeredocs moves behind the bodies that begin at the current line.
func (s *scan) skipHeredocs() {
	for _, m := range s.heredocs {
		for s.i < len(s.src) {
			line := s.src[s.i:]
			if j := strings.IndexByte(line, '\n'); j >= 0 {
				line = line[:j]
			}
			s.i += len(line) + 1
			if m.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == m.word {
				break
			}
		}
	}
	s.heredocs = s.heredocs[:0]
}
