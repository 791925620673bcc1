package policy

import (
	"slices"
	"strings"
)

// shells lists the programs that read shell code, and whether it is the language
// that the parser knows.
var shells = map[string]bool{
	"sh": true, "bash": true, "dash": true, "ash": true, "ksh": true, "mksh": true, "zsh": true, "rbash": true, "rzsh": true,
	"fish": false, "csh": false, "tcsh": false, "pwsh": false, "powershell": false, "cmd": false, "nu": false, "elvish": false, "xonsh": false,
}

// shell judges a shell: its code is in an option, in its input or in a file.
func (w *walker) shell(it *item, in input) {
	p := readShellArgs(it.args)
	posix := shells[it.base]
	if !posix && (p.code || it.base == "cmd") {
		w.a.opaque(joinVia(w.via, it.base), it.display(), "the code is in the language of "+it.base+", which is not known here")
	}
	switch {
	case p.unclear:
		it.kind, it.reason = kindOpaque, "the arguments of the shell are only known at run time"
	case p.info:
	case p.code && len(p.rest) > 0:
		it.kind = kindWrapper
		w.a.add(*it)
		w.code(p.rest[0], it.base, knownTexts(p.rest[1:]), true)
		return
	case p.code:
	case len(p.rest) == 0 || p.stdin || p.rest[0].text == "/dev/stdin" || p.rest[0].text == "-":
		w.shellInput(it, in)
		return
	case p.rest[0].dyn, strings.HasPrefix(p.rest[0].text, "/dev/fd/"), strings.HasPrefix(p.rest[0].text, "/proc/"):
		it.kind, it.reason = kindOpaque, "the script is only known at run time"
	}
	w.a.add(*it)
}

// shellInput judges a shell that reads its code from its input.
func (w *walker) shellInput(it *item, in input) {
	switch in.kind {
	case inputLiteral:
		it.kind = kindWrapper
		w.a.add(*it)
		w.code(literal(in.text), it.base, nil, true)
		return
	case inputFile:
		w.a.add(*it)
		return
	case inputInherited:
		if w.a.terminal {
			w.a.add(*it)
			return
		}
	}
	it.kind, it.reason = kindOpaque, "a shell reads its code from an input that is not known"
	w.a.add(*it)
	if in.text != "" {
		w.code(literal(in.text), it.base, nil, true)
	}
}

// shellArgs is what the arguments of a shell say.
type shellArgs struct {
	code    bool    // -c
	stdin   bool    // -s
	info    bool    // only prints something, or only checks syntax
	unclear bool    // an option is only known at run time
	rest    []token // operands
}

func readShellArgs(args []token) shellArgs {
	var p shellArgs
	i := 0
	for ; i < len(args); i++ {
		t := args[i]
		s := t.certain()
		if t.dyn && t.repl == "" && (t.multi || s == "" && !p.code && i == 0 && len(args) > 1) {
			p.unclear = true
			return p
		}
		if s == "--" || s == "-" {
			i++
			break
		}
		if len(s) < 2 || s[0] != '-' && s[0] != '+' {
			break
		}
		switch {
		case s == "--version" || s == "--help":
			p.info = true
		case s == "--rcfile" || s == "--init-file":
			i++
		case s == "--command" || strings.EqualFold(s, "-command") || strings.EqualFold(s, "-EncodedCommand") || strings.EqualFold(s, "-enc"):
			p.code = true
		case strings.HasPrefix(s, "--"):
		default:
			p.code = p.code || strings.Contains(s[1:], "c") && s[0] == '-'
			p.stdin = p.stdin || strings.Contains(s[1:], "s") && s[0] == '-'
			p.info = p.info || s == "-n"
			if strings.HasSuffix(s, "o") || strings.HasSuffix(s, "O") {
				i++
			}
		}
	}
	p.rest = args[min(i, len(args)):]
	if p.code {
		p.stdin = false
	}
	return p
}

// knownTexts returns the texts of words that are all known, or nil.
func knownTexts(words []token) []string {
	out := []string{}
	for _, t := range words {
		if !t.known() {
			return nil
		}
		out = append(out, t.text)
	}
	return out
}

// language is an interpreter of a language that is not the shell's.
type language struct {
	code   []string // options whose value is code
	letter string   // letters that mean the same inside a cluster, such as perl's -ne
	module string   // letter of the option that names a module to run; what follows is its business
	file   []string // options whose value is none of these, to be stepped over
	shells *scanner
}

// languages lists interpreters whose code can come with the command line.
var languages = map[string]language{
	"python":    {code: []string{"-c"}, letter: "c", module: "m", file: []string{"-W", "-X"}, shells: pythonShells},
	"node":      {code: []string{"-e", "--eval", "-p", "--print", "-pe"}, file: []string{"-r", "--require", "--import"}, shells: nodeShells},
	"deno":      {code: []string{"eval"}, shells: nodeShells},
	"bun":       {code: []string{"-e", "--eval", "-p", "--print"}, shells: nodeShells},
	"tsx":       {code: []string{"-e", "--eval"}, shells: nodeShells},
	"ts-node":   {code: []string{"-e", "--eval", "-p"}, shells: nodeShells},
	"perl":      {code: []string{"-e", "-E"}, letter: "eE", shells: perlShells},
	"ruby":      {code: []string{"-e"}, letter: "e", file: []string{"-r", "-I"}, shells: perlShells},
	"php":       {code: []string{"-r"}, shells: phpShells},
	"lua":       {code: []string{"-e"}, shells: luaShells},
	"luajit":    {code: []string{"-e"}, shells: luaShells},
	"rscript":   {code: []string{"-e"}, shells: rShells},
	"osascript": {code: []string{"-e"}, shells: appleShells},
	"groovy":    {code: []string{"-e"}, shells: anyShells},
	"elixir":    {code: []string{"-e", "--eval"}, shells: anyShells},
	"julia":     {code: []string{"-e", "--eval", "-E"}, shells: anyShells},
	"guile":     {code: []string{"-c"}, shells: anyShells},
	"emacs":     {code: []string{"--eval", "-eval"}, shells: anyShells},
	"scala":     {code: []string{"-e"}, shells: anyShells},
	"expect":    {code: []string{"-c"}, shells: anyShells},
	"tclsh":     {shells: anyShells},
	"vim":       {code: []string{"-c", "--cmd"}, letter: "c", shells: editorShells},
	"nvim":      {code: []string{"-c", "--cmd"}, letter: "c", shells: editorShells},
	"vi":        {code: []string{"-c"}, letter: "c", shells: editorShells},
	"ex":        {code: []string{"-c"}, letter: "c", shells: editorShells},
	"gdb":       {code: []string{"-ex", "-eval-command", "--eval-command", "-iex"}, shells: editorShells},
	"sqlite3":   {code: []string{"-cmd"}, shells: sqlShells},
	"lldb":      {code: []string{"-o", "--one-line", "-O", "--one-line-before-file"}, shells: editorShells},
	"view":      {code: []string{"-c", "--cmd"}, shells: editorShells},
	"gvim":      {code: []string{"-c", "--cmd"}, shells: editorShells},
	"ed":        {shells: editorShells},
	"psql":      {code: []string{"-c", "--command"}, shells: sqlShells},
}

// languageOf finds the language of a program, whatever version its name carries.
func languageOf(base string) (language, bool) {
	if l, ok := languages[base]; ok {
		return l, true
	}
	trimmed := strings.TrimRight(base, "0123456789.")
	switch trimmed {
	case "python", "pypy", "python-", "pythonw":
		trimmed = "python"
	case "nodejs":
		trimmed = "node"
	}
	if trimmed == base && base != "python" && base != "node" {
		return language{}, false
	}
	l, ok := languages[trimmed]
	return l, ok
}

// interpreter judges a call of an interpreter with the code that it is given.
func (w *walker) interpreter(it *item, lang language, in input) {
	w.a.add(*it)
	codes, operand := splitCode(it.args, lang)
	for _, c := range codes {
		w.languageCode(it, lang, c)
	}
	if lang.shells == sqlShells {
		for _, i := range it.positionals().plain {
			w.languageCode(it, lang, it.args[i])
		}
	}
	if lang.shells == editorShells {
		w.editor(it, lang, in)
		return
	}
	if len(codes) > 0 {
		return
	}
	if operand.text != "" && operand.text != "-" && operand.text != "/dev/stdin" {
		if operand.dyn && strings.HasPrefix(operand.head, "/dev/fd/") {
			w.a.opaque(joinVia(w.via, it.base), it.display(), "the code is only known at run time")
		}
		if lang.shells == sqlShells && in.kind == inputLiteral {
			w.languageCode(it, lang, literal(in.text))
		}
		return
	}
	switch {
	case in.kind == inputLiteral, in.kind == inputPipe && in.text != "":
		w.languageCode(it, lang, literal(in.text))
	}
	if in.kind == inputPipe && lang.shells != sqlShells {
		w.a.opaque(joinVia(w.via, it.base), it.display(), "an interpreter reads its code from an input that is not known")
	}
}

// editor judges what makes editors and debuggers run programs besides their options for
// code: vim's +command, the program behind gdb's --args, the commands that ed reads.
func (w *walker) editor(it *item, lang language, in input) {
	for i, t := range it.args {
		s := t.certain()
		switch {
		case len(s) > 1 && s[0] == '+':
			w.languageCode(it, lang, t.after(1))
		case (s == "--args" || s == "-args") && it.base == "gdb", s == "--" && it.base == "lldb":
			n := *w
			n.soft = true
			n.run(it.args[i+1:], it.base, input{})
		}
	}
	if it.base != "ed" && it.base != "ex" || in.text == "" {
		return
	}
	for i, line := range strings.Split(in.text, "\n") {
		if i == maxScans {
			w.a.opaque(joinVia(w.via, it.base), in.text, "the editor's script is longer than is looked at")
			return
		}
		w.languageCode(it, lang, literal(line))
	}
}

// splitCode returns the code among the arguments and the first operand.
func splitCode(args []token, lang language) (codes []token, operand token) {
	for i := 0; i < len(args); i++ {
		t := args[i]
		s := t.certain()
		name, value, attached := t.splitAssign()
		switch {
		case slices.Contains(lang.code, s) && t.known():
			if i+1 < len(args) {
				codes = append(codes, args[i+1])
				i++
			}
		case attached && slices.Contains(lang.code, name):
			codes = append(codes, value)
		case s == "--" || s == "-m":
			if i+1 < len(args) && operand.text == "" {
				operand = args[i+1]
			}
			return codes, operand
		case lang.module != "" && moduleOption(s) > 0:
			return codes, literal("-m")
		case slices.Contains(lang.file, s):
			i++
		case len(s) > 1 && s[0] == '-' && s[1] != '-' && lang.letter != "":
			if j := strings.IndexAny(s, lang.letter); j > 0 && clusterOnly(s[1:j]) {
				if j+1 < len(s) {
					codes = append(codes, t.after(j+1))
				} else if i+1 < len(args) {
					codes = append(codes, args[i+1])
					i++
				}
			}
		case len(s) > 1 && s[0] == '-':
		default:
			if operand.text == "" {
				operand = t
			}
			if len(codes) == 0 {
				return codes, operand
			}
		}
	}
	return codes, operand
}

// moduleOption returns where the letter m stands in a cluster of python's options, such
// as -Im or -mpip; 0 where it does not.
func moduleOption(s string) int {
	if len(s) < 2 || s[0] != '-' || s[1] == '-' {
		return 0
	}
	if i := strings.IndexByte(s, 'm'); i > 0 && strings.Trim(s[1:i], "bBdEiIOPqsSuvx") == "" {
		return i
	}
	return 0
}

// clusterOnly reports whether s can be letters of options in front of the one that
// takes code.
func clusterOnly(s string) bool {
	return strings.Trim(s, "nplwaisSuBEIOqvdWTtx0123456789") == ""
}

// languageCode judges code in another language: it can do anything, and what it
// hands to a shell is judged where it can be read.
func (w *walker) languageCode(it *item, lang language, code token) {
	via := joinVia(w.via, it.base)
	if code.dyn && code.repl == "" {
		w.a.opaque(via, code.text, "the code is only known at run time")
		return
	}
	if lang.shells != editorShells && lang.shells != sqlShells && lang.shells != awkShells {
		w.a.floor(AllowWithCheckpoint, "inline-code", via, code.text, "code in another language can do anything")
	}
	w.scanCode(it.base, lang.shells, code.text)
}
