package policy

import "strings"

// sedScript looks for the commands of a sed script that run a program or write a
// file. It steps over the script command by command, so that data in a pattern or
// a replacement is never taken for a command.
func (w *walker) sedScript(t token) {
	if t.dyn {
		// The unknown part is nearly always a pattern or a replacement; what is
		// certain in front of it is still looked at.
		t = literal(t.head)
	}
	s := &sedReader{text: t.text}
	for s.next() {
		switch s.cmd {
		case 'e':
			w.a.floor(RequireApproval, "sed-runs-programs", joinVia(w.via, "sed"), t.text, "the sed script runs a program")
			if s.arg != "" {
				w.softCode("sed e", s.arg)
			}
		case 'w', 'W':
			w.write(literal(s.arg), ">")
		}
	}
}

// sedReader reads one command after the other. cmd is 'e' for whatever runs a
// program and 'w' for whatever writes a file.
type sedReader struct {
	text string
	i    int
	cmd  byte
	arg  string
}

func (s *sedReader) next() bool {
	s.cmd, s.arg = 0, ""
	s.skip(" \t\n;{}")
	if s.i >= len(s.text) {
		return false
	}
	s.address()
	if s.i >= len(s.text) {
		return false
	}
	c := s.text[s.i]
	s.i++
	switch c {
	case '#':
		s.line()
	case 's':
		s.substitute()
	case 'y':
		s.delimited(2)
	case 'e', 'w', 'W':
		s.cmd, s.arg = c, strings.TrimSpace(s.line())
	case 'a', 'i', 'c':
		s.lines()
	case 'r', 'R', 'b', 't', 'T', ':', 'q', 'Q', 'l', 'L':
		for s.i < len(s.text) && s.text[s.i] != '\n' && s.text[s.i] != ';' && s.text[s.i] != '}' {
			s.i++
		}
	}
	return true
}

func (s *sedReader) skip(set string) {
	for s.i < len(s.text) && strings.IndexByte(set, s.text[s.i]) >= 0 {
		s.i++
	}
}

// address steps over the addresses in front of a command.
func (s *sedReader) address() {
	for s.i < len(s.text) {
		switch c := s.text[s.i]; {
		case c == '/':
			s.i++
			s.until('/')
		case c == '\\' && s.i+1 < len(s.text):
			d := s.text[s.i+1]
			s.i += 2
			s.until(d)
		case strings.IndexByte("0123456789$,~+! \tIM", c) >= 0:
			s.i++
		default:
			return
		}
	}
}

// until moves behind the next delimiter that is not escaped.
func (s *sedReader) until(d byte) {
	for s.i < len(s.text) {
		switch s.text[s.i] {
		case '\\':
			s.i++
		case '[':
			if d != '[' {
				s.bracket(d)
			}
		case d:
			s.i++
			return
		}
		s.i++
	}
}

// bracket steps over a bracket expression, where it is closed before the delimiter
// would have to be looked for elsewhere.
func (s *sedReader) bracket(d byte) {
	end := strings.IndexByte(s.text[min(s.i+2, len(s.text)):], ']')
	if end < 0 || strings.IndexByte(s.text[s.i:s.i+2+end], '\n') >= 0 {
		return
	}
	s.i += 2 + end
}

// delimited steps over n parts behind a delimiter.
func (s *sedReader) delimited(n int) {
	if s.i >= len(s.text) {
		return
	}
	d := s.text[s.i]
	s.i++
	for range n {
		s.until(d)
	}
}

// substitute steps over s/.../.../ and looks at its flags.
func (s *sedReader) substitute() {
	s.delimited(2)
	for s.i < len(s.text) {
		switch c := s.text[s.i]; {
		case c == 'e':
			s.cmd = 'e'
			s.i++
		case c == 'w':
			s.i++
			arg := strings.TrimSpace(s.line())
			if s.cmd == 0 {
				s.cmd, s.arg = 'w', arg
			}
			return
		case strings.IndexByte("gpiImM0123456789", c) >= 0:
			s.i++
		default:
			return
		}
	}
}

// line returns the rest of the line.
func (s *sedReader) line() string {
	rest := s.text[min(s.i, len(s.text)):]
	if j := strings.IndexByte(rest, '\n'); j >= 0 {
		s.i += j + 1
		return rest[:j]
	}
	s.i = len(s.text)
	return rest
}

// lines steps over text that goes on after a backslash at the end of a line.
func (s *sedReader) lines() {
	for strings.HasSuffix(s.line(), `\`) && s.i < len(s.text) {
	}
}
