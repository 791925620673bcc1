// Package redact takes secrets out of command lines before they are stored.
//
// What is recognised, and replaced by Mark:
//
//   - the value of a flag, a variable, a query parameter or a JSON member whose name
//     ends in a word for a secret: --password=X, --token X, AWS_SECRET_ACCESS_KEY=X,
//     ?access_token=X, "client_secret": "X"
//   - the value of a flag that is a password with its program only: sshpass -p X,
//     mysql -pX, docker login -p X, curl -u user:X
//   - what follows the name of a header that identifies: Authorization: Bearer X
//   - the password in a URL: https://user:X@host
//   - tokens that can be told by their form: those of GitHub, GitLab, AWS, Slack,
//     OpenAI, Google, Stripe, npm, PyPI, Hugging Face and others, and JSON Web Tokens
//   - private keys in PEM form
//   - literal values that the caller knows to be secret
//
// A reference such as $TOKEN or $(pass show x) is no secret and stays. A secret of
// no known form under an innocent name is not found; the caller has to name it. The
// package does no I/O, has no state, and its time is in proportion to the
// length of the text.
package redact

import (
	"slices"
	"sort"
	"strings"
)

// Mark stands for what was taken out.
const Mark = "[redacted]"

// minLiteral is the shortest literal value that is looked for, in bytes: shorter ones
// would be found everywhere.
const minLiteral = 4

// Redactor takes secrets out of texts. The zero value and nil know the general forms.
type Redactor struct {
	literals []string // the longest first, so that none is found inside of another
}

// New is a redactor that also takes out the literal values, of which those of less
// than four bytes are ignored.
func New(literals ...string) *Redactor {
	r := &Redactor{}
	for _, l := range literals {
		if len(l) >= minLiteral && l != Mark {
			r.literals = append(r.literals, l)
		}
	}
	sort.SliceStable(r.literals, func(i, j int) bool { return len(r.literals[i]) > len(r.literals[j]) })
	return r
}

// Text is a shell script or any other text without the secrets in it.
func (r *Redactor) Text(s string) string {
	f := finder{text: s}
	f.all(r)
	return f.replaced()
}

// Argv is a command line without the secrets in it. The slice is the given one where
// there are none.
func (r *Redactor) Argv(argv []string) []string {
	found := make([]finder, len(argv))
	for i, arg := range argv {
		found[i].text = arg
		found[i].all(r)
	}
	words := make([]word, len(argv))
	for i, arg := range argv {
		words[i] = word{text: arg, in: &found[i], end: len(arg)}
	}
	command(words)
	out := argv
	for i := range found {
		if len(found[i].spans) == 0 {
			continue
		}
		if &out[0] == &argv[0] {
			out = slices.Clone(argv)
		}
		out[i] = found[i].replaced()
	}
	return out
}

// span is a part of a text.
type span struct{ from, to int }

// finder collects the parts of a text that are secret.
type finder struct {
	text  string
	spans []span
	runs  [3]span // the last ones that run has seen
}

func (f *finder) add(from, to int) {
	if from < to && f.text[from:to] != Mark {
		f.spans = append(f.spans, span{from, to})
	}
}

// all looks for everything that one text tells by itself.
func (f *finder) all(r *Redactor) {
	f.keys()
	f.scan()
	f.commands()
	if r == nil {
		return
	}
	for _, l := range r.literals {
		for at := 0; ; {
			i := strings.Index(f.text[at:], l)
			if i < 0 {
				break
			}
			f.add(at+i, at+i+len(l))
			at += i + len(l)
		}
	}
}

// replaced is the text with a mark for each run of secret parts.
func (f *finder) replaced() string {
	if len(f.spans) == 0 {
		return f.text
	}
	slices.SortFunc(f.spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for i := 0; i < len(f.spans); {
		s := f.spans[i]
		for i++; i < len(f.spans) && f.spans[i].from <= s.to; i++ {
			s.to = max(s.to, f.spans[i].to)
		}
		b.WriteString(f.text[at:s.from])
		b.WriteString(Mark)
		at = s.to
	}
	b.WriteString(f.text[at:])
	return b.String()
}
