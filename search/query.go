package search

import (
	"bytes"
	"errors"
	"strings"
	"unicode"
)

// Query is what is looked for.
type Query struct {
	must, not []clause
}

// clause is matched by a text that has the word, or its parts one right after the other.
type clause struct {
	word   []byte   // in the form of the index; nil for a phrase
	parts  [][]byte // nil where a word has no parts
	prefix bool     // the word and the last part are beginnings
}

// maxClauses bounds a query.
const maxClauses = 32

var (
	errEmpty   = errors.New("the query has no word; it needs letters or digits")
	errQuote   = errors.New(`the query has a " without another`)
	errClauses = errors.New("the query has more than 32 words and phrases")
	errOnlyNot = errors.New("the query only says what must not match")
	errLong    = errors.New("the query has a word of more than 64 bytes, which is not indexed")
	errPrefix  = errors.New("the beginning of a word is a single word with a star behind it")
)

// Parse reads a query; the package comment says what it may be.
func Parse(text string) (*Query, error) {
	q := &Query{}
	rest := []byte(text)
	for {
		rest = bytes.TrimLeftFunc(rest, unicode.IsSpace)
		if len(rest) == 0 {
			break
		}
		not := rest[0] == '-'
		if not {
			rest = rest[1:]
		}
		var body []byte
		if len(rest) > 0 && rest[0] == '"' {
			end := bytes.IndexByte(rest[1:], '"')
			if end < 0 {
				return nil, errQuote
			}
			body, rest = rest[1:end+1], rest[end+2:]
		} else {
			end := bytes.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(rest)
			}
			body, rest = rest[:end], rest[end:]
		}
		prefix := bytes.HasPrefix(rest, []byte{'*'})
		if prefix {
			rest = rest[1:]
		}
		if err := q.add(body, not, prefix); err != nil {
			return nil, err
		}
	}
	switch {
	case len(q.must)+len(q.not) == 0:
		return nil, errEmpty
	case len(q.must) == 0:
		return nil, errOnlyNot
	case len(q.must)+len(q.not) > maxClauses:
		return nil, errClauses
	}
	return q, nil
}

// add adds what stands in quotes, or between spaces.
func (q *Query) add(body []byte, not, prefix bool) error {
	if b, ok := bytes.CutSuffix(body, []byte{'*'}); ok {
		body, prefix = b, true
	}
	c := clause{prefix: prefix}
	words := 0
	for s := (scanner{text: body}); s.next(); words++ {
		if !s.indexed() {
			return errLong
		}
		c.word = bytes.Clone(s.low)
		for _, a := range s.atoms {
			c.parts = append(c.parts, bytes.Clone(s.part(a)))
		}
	}
	switch {
	case words == 0 && prefix:
		return errPrefix
	case words == 0:
		return nil // punctuation alone
	case words == 1 && len(c.parts) == 1:
		c.parts = nil
	case words > 1:
		c.word = nil
	}
	if not {
		q.not = append(q.not, c)
	} else {
		q.must = append(q.must, c)
	}
	return nil
}

// exact reports whether the index alone tells which texts match.
func (c *clause) exact() bool { return c.parts == nil }

// String shows the clause as a query.
func (c *clause) String() string {
	text := string(c.word)
	if c.word == nil {
		text = `"` + string(bytes.Join(c.parts, []byte{' '})) + `"`
	}
	if c.prefix {
		text += "*"
	}
	return text
}

// String shows the query as it was understood.
func (q *Query) String() string {
	var all []string
	for i := range q.must {
		all = append(all, q.must[i].String())
	}
	for i := range q.not {
		all = append(all, "-"+q.not[i].String())
	}
	return strings.Join(all, " ")
}
