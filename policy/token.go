package policy

import "strings"

// token is one word of a command as far as it is known before the run.
type token struct {
	// text is the word after quote removal and expansion. Of a dynamic word it
	// is the source text, for people only.
	text string
	// head is what the word certainly begins with, where it is dynamic or wild.
	head string
	// dyn: some part of the word is only known at run time.
	dyn bool
	// wild: the word has unquoted glob characters, so it may become other words.
	wild bool
	// multi: the word may become any number of words.
	multi bool
	// operand: whatever the word becomes, it is meant as operands, not as options.
	operand bool
	// repl is the text in a dynamic word that another program will replace, such
	// as the "{}" of find and xargs.
	repl string
}

// known reports whether the word is exactly its text.
func (t token) known() bool { return !t.dyn && !t.wild }

// literal makes a token that is exactly s.
func literal(s string) token { return token{text: s} }

// unknown makes a token of which nothing is known but its source text. multi says
// that it may become several words.
func unknown(src string, multi bool) token { return token{text: src, dyn: true, multi: multi} }

// after returns the token without its first n bytes. n must not exceed what is
// known of the token: its text, or the head of a dynamic or wild one.
func (t token) after(n int) token {
	if t.dyn {
		t.head = t.head[n:]
		return t
	}
	t.text = t.text[n:]
	if t.wild {
		t.head = t.head[min(n, len(t.head)):]
	}
	return t
}

// certain returns what the token surely begins with: all of it where it is known.
func (t token) certain() string {
	if t.known() {
		return t.text
	}
	return t.head
}

// splitAssign cuts a token of the form name=value and reports whether it is one.
func (t token) splitAssign() (name string, value token, ok bool) {
	c := t.certain()
	i := strings.IndexByte(c, '=')
	if i <= 0 {
		return "", token{}, false
	}
	return c[:i], t.after(i + 1), true
}

// isName reports whether s is a shell variable name.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}

// tri is the answer to a question about a word that may be known only in part.
type tri uint8

const (
	no tri = iota
	maybe
	yes
)

func triOf(b bool) tri {
	if b {
		return yes
	}
	return no
}

func triOr(a, b tri) tri  { return max(a, b) }
func triAnd(a, b tri) tri { return min(a, b) }

// glob is a pattern for one word: "*" stands for any text, "?" for one byte.
type glob struct {
	text string
	lit  string // what stands in front of the first "*" or "?"
	meta bool
}

func newGlob(s string) glob {
	if i := strings.IndexAny(s, "*?"); i >= 0 {
		return glob{text: s, lit: s[:i], meta: true}
	}
	return glob{text: s, lit: s}
}

// match compares the whole of s with the pattern.
func (g glob) match(s string) bool {
	if !g.meta {
		return g.text == s
	}
	return strings.HasPrefix(s, g.lit) && globMatch(g.text[len(g.lit):], s[len(g.lit):])
}

// mayMatch is a quick answer for a text that is not empty.
func (g *glob) mayMatch(s string) bool {
	return len(g.lit) == 0 || g.lit[0] == s[0] && (len(g.lit) == 1 || len(s) > 1 && g.lit[1] == s[1])
}

// globMatch is the usual two-pointer match with one point to come back to.
func globMatch(pat, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pat) && pat[p] == '*':
			star, mark = p, i
			p++
		case p < len(pat) && (pat[p] == '?' || pat[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pat) && pat[p] == '*' {
		p++
	}
	return p == len(pat)
}

// fold returns the pattern for words in lower case.
func (g glob) fold() glob { return newGlob(strings.ToLower(g.text)) }

// matchArg compares a word anywhere among the arguments. An unknown word so seldom
// is the one that a rule looks for that it only counts where what is certain of it
// already reaches the fixed part of the pattern.
func (g glob) matchArg(t token) tri {
	if t.known() {
		return triOf(g.match(t.text))
	}
	if t.wild && !t.dyn && !g.meta && globMatch(t.text, g.text) && strings.Count(t.text, "/") == strings.Count(g.text, "/") && (g.text == "" || g.text[0] != '.' || t.text[0] == '.') {
		return maybe // the shell may expand the word to just this name
	}
	if t.head == "" || g.lit == "" && g.text != "*" || !strings.HasPrefix(t.head, g.lit) {
		return no
	}
	return g.matchToken(t)
}

// matchToken compares a word at a place where a certain word is expected, and that
// may be known only in part.
func (g glob) matchToken(t token) tri {
	if t.known() {
		return triOf(g.match(t.text))
	}
	if g.text == "*" || t.wild && !t.dyn && g.match(t.text) {
		return yes
	}
	if g.meta && len(g.text) == len(g.lit)+1 && g.text[len(g.lit)] == '*' && strings.HasPrefix(t.head, g.lit) {
		return yes
	}
	if strings.HasPrefix(g.lit, t.head) || g.meta && strings.HasPrefix(t.head, g.lit) {
		return maybe
	}
	return no
}
