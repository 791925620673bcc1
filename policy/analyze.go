package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Limits on what is analysed. Past any of them the command is opaque.
const (
	maxInput    = 64 << 10 // bytes of a shell string, or of all words of an argv
	maxSegments = 256
	maxDepth    = 24   // commands inside commands: sh -c, sudo, xargs, eval
	maxAllWords = 8192 // words of all segments
	maxVariants = 16   // readings of one command whose variables have several values
)

// analyzer collects the items of one command.
type analyzer struct {
	items    []item
	full     bool
	facts    Facts                  // what the vault holds; nil where nobody looked
	terminal bool                   // the input of the whole is a terminal
	repos    map[string]*Repository // answers of facts, by directory
	start    place                  // where the command starts
	poisoned map[string]bool        // variables that a function or a trap may change at any time
	funcs    map[string]funcInfo    // functions that the script defines
	words    int                    // words of all items so far
	work     int                    // bytes of code that were parsed so far
}

// funcInfo is what is known of a function.
type funcInfo struct {
	always bool // defined for sure before what follows
	moves  bool // it may change the working directory
}

// analyze takes a command apart. It always returns at least one item, except for a
// shell string that runs nothing.
func analyze(c Command) []item {
	// The parser is not ours. A fault in it must not become an allowed command or
	// take the caller down; FuzzDecide calls takeApart itself, so none stays hidden.
	var items []item
	func() {
		defer func() {
			if fault := recover(); fault != nil {
				items = []item{{kind: kindOpaque, reason: "the command could not be taken apart"}}
			}
		}()
		items = takeApart(c)
	}()
	return items
}

// takeApart does the work of analyze.
func takeApart(c Command) []item {
	loc := locator{cwd: place{kind: placeVault, path: path.Clean("/" + c.Cwd)}}
	a := &analyzer{facts: c.Facts, start: loc.cwd, terminal: c.Terminal}
	if c.Mount != "" {
		loc.mount = path.Clean(c.Mount)
	}
	w := &walker{a: a, mount: loc.mount, st: newState(loc.cwd)}
	w.environment(c.Env)
	switch {
	case len(c.Argv) > 0 && c.Shell != "":
		a.opaque("", "", "both an argument list and a shell string are given")
	case len(c.Argv) > 0:
		w.argv(c.Argv)
	case strings.TrimSpace(c.Shell) == "":
		a.opaque("", c.Shell, "there is no command")
	default:
		w.script(c.Shell)
	}
	if a.facts != nil {
		a.leadsOut()
	}
	return a.items
}

// add appends an item, up to the limit.
func (a *analyzer) add(it item) {
	if a.full {
		return
	}
	a.words += len(it.args)
	if len(a.items) >= maxSegments || a.words > maxAllWords {
		a.full = true
		a.items = append(a.items, item{kind: kindOpaque, reason: "the command has more parts than are looked at"})
		return
	}
	a.items = append(a.items, it)
}

// opaque notes something that cannot be understood.
func (a *analyzer) opaque(via, src, reason string) {
	a.add(item{kind: kindOpaque, via: via, src: src, word: src, reason: reason})
}

// floor notes something that needs at least the given action.
func (a *analyzer) floor(act Action, id, via, src, reason string) {
	a.add(item{kind: kindFloor, floor: act, id: id, via: via, src: src, word: src, reason: reason})
}

// environment judges the variables that the caller sets, in a stable order.
func (w *walker) environment(env map[string]string) {
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w.st.setValue(name, env[name])
		w.checkAssign(name, literal(env[name]), false)
	}
}

// argv analyses a command that no shell reads.
func (w *walker) argv(argv []string) {
	size := 0
	toks := make([]token, len(argv))
	for i, s := range argv {
		size += len(s) + 1
		toks[i] = literal(s)
	}
	if size > maxInput || len(argv) > maxWords {
		w.a.opaque("", argv[0], "the command is longer than 64 KiB")
		return
	}
	w.command(toks, input{})
}

// walker walks one script. Walkers of nested scripts share the analyzer.
type walker struct {
	a     *analyzer
	mount string
	st    *state
	via   string
	src   string
	depth int
	// params are the known positional parameters; nil: none is known.
	params []string
	// choice fixes the values of variables that have several.
	choice map[string]reading
	// asked lists variables with several values that were looked up.
	asked []string
	// sure: what is walked runs whenever the script does.
	sure bool
	// inFunc names the function whose body is walked.
	inFunc string
	// soft: a command that no rule speaks about does not count, because the
	// program around it stands for it.
	soft bool
	// known: a program whose name is not known does not count, because the text
	// is most likely no command at all.
	known bool
}

// loc returns the locator for the current directory.
func (w *walker) loc() locator { return locator{cwd: w.st.cwd, mount: w.mount} }

// nested returns a walker for code inside the current command.
func (w *walker) nested(wrapper string) *walker {
	n := *w
	n.via = joinVia(w.via, wrapper)
	n.depth++
	n.asked = nil
	return &n
}

func joinVia(via, wrapper string) string {
	switch {
	case wrapper == "":
		return via
	case via == "":
		return wrapper
	case len(via) > maxText:
		return via
	}
	return via + " > " + wrapper
}

// script parses and walks shell code.
func (w *walker) script(src string) {
	if w.depth > maxDepth {
		w.a.opaque(w.via, src, "commands are nested too deeply")
		return
	}
	w.a.work += len(src)
	if len(src) > maxInput || w.a.work > 4*maxInput {
		w.a.opaque(w.via, src, "the command is longer than 64 KiB")
		return
	}
	if reason := tooComplex(src); reason != "" {
		w.a.opaque(w.via, src, reason)
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil {
		w.a.opaque(w.via, src, "it is no valid shell: "+shorten(err.Error()))
		return
	}
	if w.a.items == nil { // most scripts are lists, and to grow the slice copies all of it
		w.a.items = make([]item, 0, min(2*len(file.Stmts), maxSegments+1))
	}
	if len(file.Stmts) == 0 {
		w.a.opaque(w.via, src, "there is no command")
		return
	}
	w.src, w.sure = src, true
	w.stmts(file.Stmts)
}

// source returns the source text of a node.
func (w *walker) source(n syntax.Node) string {
	if n == nil {
		return ""
	}
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.src) || from >= to {
		return "$..."
	}
	return w.src[from:to]
}

// lookup returns the value of a parameter, where there is exactly one.
func (w *walker) lookup(name string) (string, bool) {
	if i, ok := paramIndex(name); ok {
		if w.inFunc == "" && i < len(w.params) {
			return w.params[i], true
		}
		return "", false
	}
	if w.a.poisoned[name] {
		return "", false
	}
	if c, ok := w.choice[name]; ok {
		return c.value, c.known
	}
	v, set := w.st.vars[name]
	switch {
	case !set:
		return ambient(name)
	case len(v.values) == 1 && !v.open:
		return v.values[0], true
	case len(v.values) > 0 && !slices.Contains(w.asked, name):
		w.asked = append(w.asked, name)
	}
	return "", false
}

// reading is one value that a variable may have; not known stands for all others.
type reading struct {
	value string
	known bool
}

// readings lists what a variable may be.
func (v variable) readings() []reading {
	var out []reading
	for _, s := range v.values {
		out = append(out, reading{s, true})
	}
	if v.open {
		out = append(out, reading{})
	}
	return out
}

// ambient returns what is known of variables that the environment sets.
func ambient(name string) (string, bool) {
	switch name {
	case "HOME":
		return "~", true
	case "PWD":
		return ".", true
	case "IFS":
		return " \t\n", true
	case "TMPDIR":
		return "/tmp", true
	}
	return "", false
}

// paramIndex reads the name of a positional parameter.
func paramIndex(name string) (int, bool) {
	n := 0
	for i := 0; i < len(name); i++ {
		if name[i] < '0' || name[i] > '9' || n > 1000 {
			return 0, false
		}
		n = n*10 + int(name[i]-'0')
	}
	return n, name != ""
}

// oddSpace reports whether a program's name holds something that people take for a
// space or do not see.
func oddSpace(s string) bool {
	for _, r := range s {
		if r == ' ' {
			continue
		}
		if r == unicode.ReplacementChar || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zs, r) {
			return true
		}
	}
	return false
}
