package policy

import (
	"path"
	"slices"
	"strings"
)

// command judges one command whose words are expanded, and everything that it runs
// in turn. The words are at least one.
func (w *walker) command(toks []token, in input) {
	if w.a.full || len(toks) == 0 {
		return
	}
	if w.depth > maxDepth {
		w.a.opaque(w.via, "", "commands are nested too deeply")
		return
	}
	prog, args := toks[0], toks[1:]
	if reason := unclearProgram(prog); reason != "" {
		it := newCall(prog, args, w.via, w.loc())
		it.kind, it.reason = kindOpaque, reason
		if !w.known {
			w.a.add(it)
		}
		return
	}
	it := newCall(prog, args, w.via, w.loc())
	if info, ok := w.a.funcs[prog.text]; ok {
		if info.always && it.kind != kindNeutral {
			it.kind = kindFunc
		}
		if info.moves {
			w.st.cwd = place{kind: placeUnknown}
		}
	}
	if w.soft && it.kind == kindCall {
		it.kind = kindWrapper
	}
	if w.builtin(&it, in) {
		return
	}
	if handle := specialOf(it.base); handle != nil {
		handle(w, &it, in)
		return
	}
	if spec, ok := wrapperOf(it.base); ok {
		w.wrapper(&it, spec, in)
		return
	}
	if lang, ok := languageOf(it.base); ok {
		w.interpreter(&it, lang, in)
		return
	}
	w.a.add(it)
	w.optionCode(&it)
	if it.kind == kindCall && !isKnown(&it) {
		w.unknownTail(&it, in)
	}
}

// unclearProgram says why a program's name is not understood, or "".
func unclearProgram(t token) string {
	switch {
	case t.dyn:
		return "the program is only known at run time"
	case t.wild && t.text != "[" && t.text != "[[":
		return "the program's name is a pattern"
	case t.text == "":
		return "the program's name is empty"
	case oddSpace(t.text):
		return "the program's name holds an odd space or an invisible character"
	}
	return ""
}

// run judges a command inside another one.
func (w *walker) run(toks []token, wrapper string, in input) {
	if len(toks) == 0 {
		return
	}
	n := w.nested(wrapper)
	n.sure = false
	n.command(toks, in)
}

// code judges shell code inside a command. A word that is not fully known cannot
// be parsed.
func (w *walker) code(t token, wrapper string, params []string, ownShell bool) {
	n := w.nested(wrapper)
	if t.dyn && t.repl != "" {
		// What the wrapper puts in becomes a variable of unknown value.
		t = literal(strings.ReplaceAll(t.text, t.repl, "${_}"))
	}
	if t.dyn {
		w.a.opaque(n.via, t.text, "the shell code is only known at run time")
		return
	}
	n.sure = false
	if ownShell {
		n.st = w.st.clone()
		n.params, n.inFunc = params, ""
	}
	if strings.TrimSpace(t.text) == "" {
		return
	}
	if ownShell && w.depth == 0 && w.src == "" {
		n.sure = true
	}
	sure := n.sure
	n.script(t.text)
	n.sure = sure
}

// builtin handles the commands that change the shell itself, and reports whether
// nothing is left to do.
func (w *walker) builtin(it *item, in input) bool {
	args := it.args
	switch it.name {
	case "test", "[", "unset", "read", "declare", "typeset", "local", "export", "readonly", "let", "mapfile", "readarray":
		for _, t := range args {
			if subscriptRuns(t.text) && !t.dyn {
				w.a.opaque(w.via, it.display(), "the subscript of an array is evaluated, and holds a command")
				break
			}
		}
	}
	switch it.name {
	case "cd", "pushd":
		w.changeDir(args)
	case "popd":
		w.st.cwd = place{kind: placeUnknown}
	case "eval":
		w.eval(it)
		return true
	case ".", "source":
		w.sourceFile(it, in)
		return true
	case "read", "mapfile", "readarray", "getopts", "unset":
		w.forgetWords(args)
		if it.name != "read" && hasWord(args, "-C") {
			w.a.opaque(w.via, it.display(), "mapfile runs a callback")
		}
		if it.name == "unset" && hasWord(args, "PATH") {
			w.a.opaque(w.via, it.display(), "PATH is removed, which changes which programs are found")
		}
	case "printf":
		if hasWord(args, "-v") {
			if i := slices.IndexFunc(args, func(t token) bool { return t.text == "-v" }); i+1 < len(args) && subscriptRuns(args[i+1].text) {
				w.a.opaque(w.via, it.display(), "the subscript of an array is evaluated, and holds a command")
			}
			w.forgetWords(args)
		}
	case "export", "readonly", "local", "declare", "typeset":
		w.assignWords(args)
	case "let":
		w.st.forgetAll()
	case "set":
		w.params = nil
	case "shift":
		w.params = nil
	case "trap":
		w.trap(it)
	case "alias":
		w.alias(it)
	case "compgen":
		for i, t := range args {
			if t.text == "-C" && i+1 < len(args) {
				w.code(args[i+1], it.name, nil, true)
			}
		}
	case "hash":
		if hasWord(args, "-p") {
			w.a.opaque(w.via, it.display(), "hash -p changes which program a name runs")
		}
	case "enable":
		if hasWord(args, "-f") {
			w.a.opaque(w.via, it.display(), "enable -f loads code into the shell")
		}
	}
	return false
}

// subscriptRuns reports whether a text, taken for a name or for arithmetic, makes the
// shell run what its subscript holds.
func subscriptRuns(s string) bool {
	i := strings.IndexByte(s, '[')
	return i > 0 && isName(s[:i]) && (strings.Contains(s[i:], "$(") || strings.Contains(s[i:], "`"))
}

func hasWord(args []token, s string) bool {
	for _, t := range args {
		if t.text == s && !t.dyn {
			return true
		}
	}
	return false
}

// forgetWords makes the variables unknown that words name.
func (w *walker) forgetWords(args []token) {
	for _, t := range args {
		if t.dyn {
			w.st.forgetAll()
			continue
		}
		name, _, _ := strings.Cut(t.text, "[")
		if isName(name) {
			w.st.forget(name)
		}
	}
}

// assignWords handles assignments that stand as arguments.
func (w *walker) assignWords(args []token) {
	for _, t := range args {
		name, v, ok := t.splitAssign()
		if !ok || !isName(name) {
			continue
		}
		w.checkAssign(name, v, true)
		if v.known() {
			w.st.setValue(name, v.text)
		} else {
			w.st.forget(name)
		}
	}
}

// changeDir follows the working directory.
func (w *walker) changeDir(args []token) {
	for len(args) > 0 && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L") {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		w.st.cwd = place{kind: placeHost, path: "~"}
	case len(args) > 1, !args[0].known(), args[0].text == "-", strings.HasPrefix(args[0].text, "+"):
		w.st.cwd = place{kind: placeUnknown}
	default:
		r := w.loc().resolve(args[0].text)
		w.st.cwd = place{kind: placeKind(r.kind), path: r.path}
		if _, set := w.st.vars["CDPATH"]; set || r.kind == placeUnknown {
			w.st.cwd = place{kind: placeUnknown}
		}
		if w.a.facts != nil && r.kind == placeVault && r.path != "/" && w.a.facts.LeadsOut([]string{r.path})[0] {
			w.st.cwd = place{kind: placeHost, path: "/../" + path.Base(r.path)} // a link to somewhere outside
		}
	}
}

// eval joins its words, as the shell does, and judges the result as code that runs
// in the same shell.
func (w *walker) eval(it *item) {
	var parts []string
	for _, t := range it.args {
		if t.dyn {
			it.kind, it.reason = kindOpaque, "the code for eval is only known at run time"
			w.a.add(*it)
			w.st.forgetAll()
			return
		}
		parts = append(parts, t.text)
	}
	it.kind = kindWrapper
	w.a.add(*it)
	w.code(literal(strings.Join(parts, " ")), "eval", nil, false)
}

// sourceFile judges the source builtin: after it nothing is known of the shell.
func (w *walker) sourceFile(it *item, in input) {
	if len(it.args) > 0 && it.args[0].dyn {
		it.kind, it.reason = kindOpaque, "the file with the code is only known at run time"
	}
	if len(it.args) > 0 && it.args[0].text == "/dev/stdin" {
		if in.kind == inputLiteral {
			w.code(literal(in.text), it.name, nil, false)
		} else {
			it.kind, it.reason = kindOpaque, "the code is read from an unknown input"
		}
	}
	w.a.add(*it)
	w.st.forgetAll()
}

// trap judges the code that runs on a signal or at the end.
func (w *walker) trap(it *item) {
	args := it.args
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) < 2 || args[0].text == "-" || strings.HasPrefix(args[0].text, "-") {
		it.kind = kindNeutral
		return
	}
	it.kind = kindWrapper
	w.code(args[0], "trap", nil, true)
}

// alias judges what aliases stand for.
func (w *walker) alias(it *item) {
	it.kind = kindWrapper
	if len(it.args) == 0 {
		it.kind = kindNeutral
	}
	for _, t := range it.args {
		if name, v, ok := t.splitAssign(); ok {
			w.code(v, "alias "+name, nil, true)
		}
	}
}
