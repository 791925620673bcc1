package search

import (
	"unicode"
	"unicode/utf8"
)

// MaxTerm is the longest word that is indexed, in bytes.
const MaxTerm = 64

// class sorts runes by what they do to words.
type class uint8

const (
	other class = iota
	small
	capital
	digit
	underscore
	ideograph
)

// classOf sorts a rune.
func classOf(r rune) class {
	switch {
	case r >= 'a' && r <= 'z':
		return small
	case r >= 'A' && r <= 'Z':
		return capital
	case r >= '0' && r <= '9':
		return digit
	case r == '_':
		return underscore
	case r < utf8.RuneSelf || r == utf8.RuneError:
		return other
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return ideograph
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return capital
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return small
	case unicode.IsNumber(r):
		return digit
	}
	return other
}

// asciiClasses are those of the bytes that are runes by themselves.
var asciiClasses = func() (t [utf8.RuneSelf]class) {
	for i := range t {
		t[i] = classOf(rune(i))
	}
	return t
}()

// atom is a part of a word: where it is in the text and in the word's low form.
type atom struct{ start, end, from, to int }

// scanner cuts a text into words.
type scanner struct {
	text []byte
	at   int

	// Of the word that next has found: its place in the text, its form in lower case
	// without underscores, and its parts, at least one.
	start, end int
	low        []byte
	atoms      []atom
}

// rune is the rune at s.at.
func (s *scanner) rune() (r rune, size int, c class) {
	if b := s.text[s.at]; b < utf8.RuneSelf {
		return rune(b), 1, asciiClasses[b]
	}
	r, size = utf8.DecodeRune(s.text[s.at:])
	return r, size, classOf(r)
}

// next finds the next word that has a letter or digit.
func (s *scanner) next() bool {
	for {
		for s.at < len(s.text) {
			_, size, c := s.rune()
			if c != other {
				break
			}
			s.at += size
		}
		if s.at >= len(s.text) {
			return false
		}
		if s.word(); len(s.atoms) > 0 {
			return true
		}
	}
}

// word takes the word at s.at.
func (s *scanner) word() {
	s.start, s.low, s.atoms = s.at, s.low[:0], s.atoms[:0]
	prev, prevAt, prevLow := underscore, 0, 0
	for s.at < len(s.text) {
		r, size, c := s.rune()
		if c == other || c == ideograph && s.at > s.start {
			break
		}
		switch {
		case c == underscore:
		case prev == underscore, c == capital && prev != capital:
			s.atoms = append(s.atoms, atom{start: s.at, from: len(s.low)})
		case c == small && prev == capital:
			// The last of several capitals begins the next part, as in HTTPBody.
			if a := &s.atoms[len(s.atoms)-1]; a.start < prevAt {
				a.end, a.to = prevAt, prevLow
				s.atoms = append(s.atoms, atom{start: prevAt, from: prevLow})
			}
		}
		prevAt, prevLow = s.at, len(s.low)
		s.at += size
		if c != underscore {
			s.low = appendLow(s.low, r)
			a := &s.atoms[len(s.atoms)-1]
			a.end, a.to = s.at, len(s.low)
		}
		if prev = c; c == ideograph {
			break
		}
	}
	s.end = s.at
}

// appendLow appends r in lower case.
func appendLow(dst []byte, r rune) []byte {
	switch {
	case r >= 'A' && r <= 'Z':
		return append(dst, byte(r)+'a'-'A')
	case r < utf8.RuneSelf:
		return append(dst, byte(r))
	}
	return utf8.AppendRune(dst, unicode.ToLower(r))
}

// indexed reports whether the word is one that the index has.
func (s *scanner) indexed() bool { return len(s.low) <= MaxTerm }

// part is the low form of an atom.
func (s *scanner) part(a atom) []byte { return s.low[a.from:a.to] }
