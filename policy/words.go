package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds the words that one brace expansion is followed into.
const maxBraces = 128

// fields expands words into tokens, as the shell would before it runs a command.
func (w *walker) fields(words []*syntax.Word) []token {
	out := make([]token, 0, len(words))
	for _, word := range words {
		out = w.appendFields(out, word)
	}
	return out
}

func (w *walker) appendFields(out []token, word *syntax.Word) []token {
	if lit, ok := plainLit(word); ok {
		return append(out, token{text: lit})
	}
	if !syntax.SplitBraces(word) {
		return w.expand(word.Parts, word, true).appendTo(out)
	}
	variants, ok := [][]syntax.WordPart(nil), false
	if n := countBraces(word.Parts); n > 0 && n <= maxBraces {
		variants, ok = expandBraces(word.Parts, maxBraces)
	}
	if !ok {
		return append(out, unknown(w.source(word), true))
	}
	for _, parts := range variants {
		out = w.expand(parts, word, true).appendTo(out)
	}
	return out
}

// plainLit is the fast path for a word without anything special in it.
func plainLit(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	lit, ok := word.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	for i := 0; i < len(lit.Value); i++ {
		switch lit.Value[i] {
		case '\\', '*', '?', '[', '{', '~':
			return "", false
		}
	}
	return lit.Value, true
}

// single expands a word that is not split: the value of an assignment, the target
// of a redirection.
func (w *walker) single(word *syntax.Word) token {
	if word == nil {
		return token{}
	}
	if lit, ok := plainLit(word); ok {
		return token{text: lit}
	}
	toks := w.expand(word.Parts, word, false).appendTo(nil)
	if len(toks) == 0 {
		return token{}
	}
	return toks[0]
}

// countBraces returns how many words the parts expand into, as soon as it is past
// the limit only that much, and 0 for what is not followed.
func countBraces(parts []syntax.WordPart) int {
	product := 1
	for _, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if b.Sequence {
			return 0
		}
		sum := 0
		for _, e := range b.Elems {
			n := countBraces(e.Parts)
			if n == 0 {
				return 0
			}
			sum += n
		}
		if product *= sum; product > maxBraces {
			return product
		}
	}
	return product
}

// expandBraces returns the words that brace expansion makes, as lists of parts.
func expandBraces(parts []syntax.WordPart, limit int) ([][]syntax.WordPart, bool) {
	for i, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if b.Sequence {
			return nil, false
		}
		var all [][]syntax.WordPart
		for _, e := range b.Elems {
			joined := append(append(append([]syntax.WordPart{}, parts[:i]...), e.Parts...), parts[i+1:]...)
			sub, ok := expandBraces(joined, limit-len(all))
			if !ok || len(all)+len(sub) > limit {
				return nil, false
			}
			all = append(all, sub...)
		}
		return all, true
	}
	return [][]syntax.WordPart{parts}, true
}

// expansion builds the fields of one word.
type expansion struct {
	w      *walker
	src    *syntax.Word
	split  bool // unquoted values fall apart at blanks
	done   []token
	cur    strings.Builder
	head   string
	dyn    bool
	wild   bool
	multi  bool
	quoted bool // something was quoted, so that an empty field stays
	some   bool // the current field has begun
}

func (w *walker) expand(parts []syntax.WordPart, src *syntax.Word, split bool) *expansion {
	x := &expansion{w: w, src: src, split: split}
	for i, p := range parts {
		x.part(p, i == 0, false)
	}
	return x
}

// appendTo ends the last field and returns all.
func (x *expansion) appendTo(out []token) []token {
	x.flush()
	return append(out, x.done...)
}

func (x *expansion) flush() {
	if x.some || x.quoted {
		t := token{text: x.cur.String(), head: x.head, dyn: x.dyn, wild: x.wild, multi: x.multi}
		if x.dyn {
			t.text = x.w.source(x.src)
		} else if x.wild {
			t.multi = false
		}
		x.done = append(x.done, t)
	}
	x.cur.Reset()
	x.head, x.dyn, x.wild, x.multi, x.quoted, x.some = "", false, false, false, false, false
}

// text appends characters that are known.
func (x *expansion) text(s string) {
	x.cur.WriteString(s)
	x.some = x.some || s != ""
}

// unknown notes a part that only the run knows.
func (x *expansion) unknown(multi bool) {
	if !x.dyn && !x.wild {
		x.head = x.cur.String()
	}
	x.dyn, x.some = true, true
	x.multi = x.multi || multi
}

// value appends the value of a parameter: it falls apart at blanks if unquoted.
func (x *expansion) value(s string, quoted bool) {
	if quoted || !x.split {
		x.text(s)
		return
	}
	if _, set := x.w.st.vars["IFS"]; set {
		x.unknown(true) // where it falls apart depends on the value of IFS
		return
	}
	for i := 0; i < len(s); {
		j := strings.IndexAny(s[i:], " \t\n")
		switch {
		case j == 0:
			if x.some || x.quoted {
				x.flush()
			}
			i++
			continue
		case j < 0:
			j = len(s) - i
		}
		x.globbed(s[i : i+j])
		i += j
	}
}

// globbed appends unquoted characters, in which glob characters are alive.
func (x *expansion) globbed(s string) {
	for i := 0; i < len(s) && !x.wild; i++ {
		if s[i] == '*' || s[i] == '?' || s[i] == '[' && strings.IndexByte(s[i:], ']') > 0 {
			if !x.dyn {
				x.head = x.cur.String() + s[:i]
			}
			x.wild = true
		}
	}
	x.text(s)
}

func (x *expansion) part(p syntax.WordPart, first, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		x.lit(p.Value, first, quoted)
	case *syntax.SglQuoted:
		s := p.Value
		if p.Dollar {
			if strings.Contains(s, `\'`) {
				x.w.a.opaque(x.w.via, x.w.source(x.src), "shells do not agree where this quoting ends")
			}
			s = ansiC(s)
		}
		x.quoted = true
		x.guardTilde(s, first)
		x.text(s)
	case *syntax.DblQuoted:
		x.quoted = true
		for i, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok && i == 0 {
				x.guardTilde(lit.Value, first)
			}
			x.part(q, false, true)
		}
	case *syntax.ParamExp:
		x.param(p, quoted)
	case *syntax.CmdSubst:
		x.w.subshell(p.Stmts, "$()")
		if isPwd(p.Stmts) {
			x.text(".")
			return
		}
		x.unknown(!quoted)
	case *syntax.ProcSubst:
		x.w.subshell(p.Stmts, "<()")
		x.text("/dev/fd/")
		x.unknown(false)
	case *syntax.ArithmExp:
		x.w.inner(p.X)
		x.unknown(false)
	case *syntax.ExtGlob:
		if !x.dyn && !x.wild {
			x.head = x.cur.String()
		}
		x.wild = true
		x.text(p.Op.String() + p.Pattern.Value + ")")
	default:
		x.unknown(true)
	}
}

// guardTilde keeps a quoted tilde from being read as a home.
func (x *expansion) guardTilde(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		x.text("./")
	}
}

// lit appends literal text of the script, with its backslashes resolved.
func (x *expansion) lit(s string, first, quoted bool) {
	if quoted {
		x.text(unescape(s, "$`\"\\"))
		return
	}
	if first && strings.HasPrefix(s, `\~`) {
		x.text("./")
	}
	from := 0
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		x.globbed(s[from:i])
		i++
		from = i + 1
		if s[i] != '\n' {
			x.text(s[i : i+1])
			x.quoted = true
		}
	}
	x.globbed(s[from:])
}

// unescape resolves the backslashes in front of the given bytes and newlines.
func unescape(s, special string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(special, s[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// param appends the value of a parameter where it is known.
func (x *expansion) param(p *syntax.ParamExp, quoted bool) {
	x.w.inner(p)
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && p.Exp.Word.Lit() == "P" {
		x.w.a.opaque(x.w.via, x.w.source(p), "the value is expanded like a prompt, which runs the commands in it")
	}
	if p.Param == nil || p.Flags != nil || p.Excl || p.Length || p.Width || p.IsSet || p.NestedParam != nil ||
		p.Index != nil || len(p.Modifiers) > 0 || p.Slice != nil || p.Repl != nil || p.Names != 0 {
		// A length or a set test is a number; an indirect or array value may be anything.
		x.unknown(!quoted && !p.Length && !p.IsSet || p.Index != nil || p.Names != 0)
		return
	}
	name := p.Param.Value
	v, ok := x.w.lookup(name)
	if p.Exp == nil {
		if !ok {
			x.unknown(!quoted && !numericParam(name) || name == "@" || name == "*")
			return
		}
		x.value(v, quoted)
		return
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if ok && v != "" {
			x.value(v, quoted)
			return
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if ok && v != "" {
			x.value(v, quoted)
			return
		}
		x.w.st.forget(name)
	}
	x.unknown(!quoted)
}

// numericParam reports whether the parameter is always one number.
func numericParam(name string) bool {
	switch name {
	case "?", "$", "!", "#", "RANDOM", "SECONDS", "UID", "EUID", "PPID", "LINENO":
		return true
	}
	return false
}

// isPwd recognises `pwd` as the whole of a command substitution.
func isPwd(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 || len(stmts[0].Redirs) > 0 {
		return false
	}
	c, ok := stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(c.Assigns) == 0 && len(c.Args) == 1 && c.Args[0].Lit() == "pwd"
}

// ansiC resolves the escapes of $'...'.
func ansiC(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'f':
			b.WriteByte(12)
		case 'v':
			b.WriteByte(11)
		case 'e', 'E':
			b.WriteByte(27)
		case 'x':
			i += ansiNumber(&b, s[i+1:], 16, 2, false)
		case 'u':
			i += ansiNumber(&b, s[i+1:], 16, 4, true)
		case 'U':
			i += ansiNumber(&b, s[i+1:], 16, 8, true)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			i += ansiNumber(&b, s[i:], 8, 3, false) - 1
		case 'c':
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 0x1f)
			}
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// ansiNumber appends the character with the number at the start of s and returns
// how many digits it has.
func ansiNumber(b *strings.Builder, s string, base, digits int, char bool) int {
	n := 0
	for n < len(s) && n < digits && isDigit(s[n], base) {
		n++
	}
	v, err := strconv.ParseUint(s[:n], base, 32)
	switch {
	case err != nil: // no digits: the escape stands for nothing
	case char && v <= utf8.MaxRune:
		b.WriteRune(rune(v))
	default:
		b.WriteByte(byte(v))
	}
	return n
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
