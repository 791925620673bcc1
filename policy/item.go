package policy

import (
	"path"
	"strings"
)

// item is what the analysis of a command yields: something to be judged.
type item struct {
	kind itemKind
	id   string // of a finding: its stable name
	// reason is the finding's sentence for people.
	reason string
	word   string // of a finding: what to look at
	floor  Action // of a kindFloor: the least strict answer
	via    string
	src    string // source text, where it says more than the words

	prog    token
	args    []token
	base    string // the program's name in lower case, without directory and .exe
	name    string // the program's name as spelled, without directory
	trusted bool   // the name surely means the system's program of that name
	loc     locator

	opts *optModel
	pos  *positions // computed once, on demand
	does *effects   // likewise
	at   []resolved // likewise: the places that args mean as paths, where seen
	seen []bool
	ops  []token // likewise: the words that are neither options nor their values
}

type itemKind uint8

const (
	kindCall    itemKind = iota // a program with its arguments
	kindWrapper                 // a call that only runs another one, which is judged itself
	kindFunc                    // a call of a function whose body was judged
	kindWrite                   // a redirection that writes a file; prog is ">"
	kindRead                    // a redirection that reads a file; prog is "<"
	kindOpaque                  // something that cannot be understood
	kindFloor                   // something that is never laxer than a fixed action
	kindNeutral                 // something that does nothing
)

// maxText bounds the text of a segment, in bytes.
const maxText = 256

// newCall makes an item of a program with its arguments.
func newCall(prog token, args []token, via string, loc locator) item {
	it := item{kind: kindCall, prog: prog, args: args, via: via, loc: loc}
	it.name, it.base, it.trusted = programName(prog.text)
	it.opts = modelOf(it.base)
	if _, ok := neutralBuiltins[it.name]; ok && it.trusted {
		it.kind = kindNeutral
	}
	return it
}

// programName splits what names a program: its name without directory, the name
// that strict rules compare (lower case, no extension, no zsh "=" in front), and
// whether the spelling surely means the system's program.
func programName(s string) (name, base string, trusted bool) {
	dir, name := path.Split(strings.ReplaceAll(s, `\`, "/"))
	base = strings.ToLower(strings.TrimPrefix(name, "="))
	for _, ext := range []string{".exe", ".cmd", ".bat", ".com"} {
		if b, ok := strings.CutSuffix(base, ext); ok && b != "" {
			base = b
		}
	}
	switch dir {
	case "", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/", "/opt/homebrew/bin/":
		trusted = name != "" && !strings.Contains(s, `\`)
	}
	return name, base, trusted
}

// neutralBuiltins are commands that do nothing but steer the shell itself. They
// are allowed where no rule speaks about them, so that a policy that lists what is
// allowed need not list them.
var neutralBuiltins = map[string]struct{}{
	":": {}, "true": {}, "false": {}, "cd": {}, "pwd": {}, "test": {}, "[": {}, "[[": {}, "exit": {},
	"return": {}, "break": {}, "continue": {}, "shift": {}, "set": {}, "unset": {}, "export": {},
	"readonly": {}, "local": {}, "declare": {}, "typeset": {}, "wait": {}, "read": {}, "let": {},
	"getopts": {}, "shopt": {}, "umask": {}, "times": {}, "pushd": {}, "popd": {}, "dirs": {}, "mapfile": {},
	"readarray": {}, "unalias": {}, "type": {}, "hash": {}, "jobs": {}, "fg": {}, "bg": {}, "disown": {}, "setopt": {}, "unsetopt": {},
}

// argv returns the words for people and programs, never nil.
func (it *item) argv() []string {
	if it.prog.text == "" && len(it.args) == 0 {
		return []string{}
	}
	out := make([]string, 0, 1+len(it.args))
	out = append(out, it.prog.text)
	for _, a := range it.args {
		out = append(out, a.text)
	}
	return out
}

// display returns the text of the segment.
func (it *item) display() string {
	if it.src != "" || it.prog.text == "" && len(it.args) == 0 {
		return shorten(it.src)
	}
	var b strings.Builder
	size := len(it.prog.text) + 2
	for i := 0; i < len(it.args) && size < maxText; i++ {
		size += len(it.args[i].text) + 3
	}
	b.Grow(min(size, 2*maxText))
	b.WriteString(quoteWord(it.prog))
	for _, a := range it.args {
		if b.Len() > maxText {
			break
		}
		b.WriteByte(' ')
		b.WriteString(quoteWord(a))
	}
	return shorten(b.String())
}

// quoteWord shows a word so that its borders can be seen.
func quoteWord(t token) string {
	s := t.text
	if t.dyn || t.wild {
		return s
	}
	if len(s) > maxText {
		s = s[:maxText+1] // so that the whole is too long, and shorten marks the cut
	}
	if s != "" && !strings.ContainsAny(s, " \t\n\r'\"\\$`|&;<>()*?[]{}#!") {
		return s
	}
	if len(s) <= 2 && strings.Trim(s, "{}<>!") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shorten cuts a text at a rune border and marks the cut.
func shorten(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.ToValidUTF8(s[:maxText-3], "") + "..."
}
