package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// input says where a command's standard input comes from.
type input struct {
	kind  inputKind
	text  string // of inputLiteral; of inputPipe what is surely written, if that is known
	found *token // of inputPipe from a find: a name that it prints
}

type inputKind uint8

const (
	inputInherited inputKind = iota // whatever the whole command was given
	inputPipe                       // another command's output
	inputLiteral                    // text that stands in the script
	inputFile                       // a file
)

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		if w.a.full {
			return
		}
		w.stmt(s, input{})
	}
}

// subshell walks statements whose changes do not come back.
func (w *walker) subshell(list []*syntax.Stmt, wrapper string) {
	n := w.nested(wrapper)
	n.depth = w.depth // the parser bounds this nesting
	n.st = w.st.clone()
	n.sure = false
	n.stmts(list)
}

// branch walks statements that may or may not run.
func (w *walker) branch(list []*syntax.Stmt) {
	before, sure := w.st, w.sure
	w.st, w.sure = before.clone(), false
	w.stmts(list)
	before.join(w.st)
	w.st, w.sure = before, sure
}

// stmt walks one statement with its redirections.
func (w *walker) stmt(s *syntax.Stmt, in input) {
	if s.Background || s.Coprocess {
		n := *w
		n.st, n.sure = w.st.clone(), false
		n.redirected(s, in)
		return
	}
	w.redirected(s, in)
}

func (w *walker) redirected(s *syntax.Stmt, in input) {
	from := len(w.a.items)
	in = w.redirects(s.Redirs, in)
	if s.Cmd == nil {
		if len(s.Redirs) == 0 {
			w.a.opaque(w.via, "", "there is no command")
		}
		return
	}
	to := len(w.a.items)
	w.cmd(s.Cmd, in)
	if from < to && to < len(w.a.items) {
		// The command first, for people; then what its redirections write.
		writes := slices.Clone(w.a.items[from:to])
		n := copy(w.a.items[from:], w.a.items[to:])
		copy(w.a.items[from+n:], writes)
	}
}

func (w *walker) cmd(c syntax.Command, in input) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		w.call(c, in)
	case *syntax.BinaryCmd:
		w.binary(c, in)
	case *syntax.Block:
		for _, s := range c.Stmts {
			w.stmt(s, in)
		}
	case *syntax.Subshell:
		n := *w
		n.st = w.st.clone()
		for _, s := range c.Stmts {
			n.stmt(s, in)
		}
	case *syntax.IfClause:
		w.ifClause(c)
	case *syntax.WhileClause:
		w.loop(c, func() { w.stmts(c.Cond); w.stmts(c.Do) })
	case *syntax.ForClause:
		w.forClause(c)
	case *syntax.CaseClause:
		w.single(c.Word)
		for _, it := range c.Items {
			for _, p := range it.Patterns {
				w.single(p)
			}
			w.branch(it.Stmts)
		}
	case *syntax.FuncDecl:
		w.funcDecl(c)
	case *syntax.DeclClause:
		w.declClause(c)
	case *syntax.TimeClause:
		w.timeClause(c, in)
	case *syntax.CoprocClause:
		n := *w
		n.st, n.sure = w.st.clone(), false
		n.coproc(c, in)
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause:
		w.inner(c)
		w.forgetAssigned(c)
		w.plainShell(w.source(c))
	default:
		w.a.opaque(w.via, w.source(c), "this kind of command is not known")
	}
}

// timeClause walks a timed command. With an option that the shell's own time does not
// know, it is the program of that name that runs.
func (w *walker) timeClause(c *syntax.TimeClause, in input) {
	if c.Stmt == nil {
		return
	}
	call, ok := c.Stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || !strings.HasPrefix(call.Args[0].Lit(), "-") {
		w.stmt(c.Stmt, in)
		return
	}
	in = w.redirects(c.Stmt.Redirs, in)
	w.command(append([]token{literal("time")}, w.fields(call.Args)...), in)
}

// plainShell judges (( )) and [[ ]] as a shell reads them that does not know them: as
// subshells and as a command with lists. What is no command there does not count.
func (w *walker) plainShell(src string) {
	body, ok := strings.CutPrefix(src, "((")
	if ok {
		body = strings.TrimSuffix(body, "))")
	} else if body, ok = strings.CutPrefix(src, "[["); !ok || !strings.Contains(body, "&&") && !strings.Contains(body, "||") {
		return
	}
	if w.depth > 2 || tooComplex(body) != "" {
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(body), "")
	if err != nil {
		return
	}
	n := w.nested("")
	n.st, n.src, n.soft, n.sure = w.st.clone(), body, true, false
	if len(file.Stmts) == 1 && strings.Contains(src, "((") {
		if c, ok := file.Stmts[0].Cmd.(*syntax.CallExpr); !ok || len(c.Args) == 0 || c.Args[0].Lit() == "" {
			return // a calculation with a variable in front is no command
		}
	}
	n.known = true
	n.stmts(file.Stmts)
}

// coproc walks a background command. The parser reads the first word of a simple
// command ahead, so that words like of=x behind it come out as assignments; or it
// takes that word for the coprocess's name, which only compound commands have.
func (w *walker) coproc(c *syntax.CoprocClause, in input) {
	call, simple := c.Stmt.Cmd.(*syntax.CallExpr)
	if !simple || c.Name == nil && (len(call.Args) == 0 || len(call.Assigns) == 0) {
		w.stmt(c.Stmt, in)
		return
	}
	in = w.redirects(c.Stmt.Redirs, in)
	first, rest := c.Name, call.Args
	if first == nil {
		first, rest = call.Args[0], call.Args[1:]
	}
	toks := w.fields([]*syntax.Word{first})
	for _, as := range call.Assigns {
		val := w.assign(as, false)
		if as.Name != nil && val.known() {
			toks = append(toks, literal(as.Name.Value+"="+val.text))
		} else {
			toks = append(toks, unknown(w.source(as), true))
		}
	}
	w.command(append(toks, w.fields(rest)...), in)
}

// binary walks lists and pipes. Chains lean to the left, so walk them without
// recursion on that side.
func (w *walker) binary(c *syntax.BinaryCmd, in input) {
	if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
		w.stmt(c.X, in)
		before, sure := w.st, w.sure
		w.st, w.sure = before.clone(), sure && c.Op == syntax.AndStmt
		w.stmt(c.Y, in)
		if c.Op == syntax.AndStmt {
			// After "cd x && make" what matters is where make ran.
			before.cwd = w.st.cwd
		}
		before.join(w.st)
		w.st, w.sure = before, sure
		return
	}
	left := *w
	left.st, left.sure = w.st.clone(), false
	left.stmt(c.X, in)
	right := *w
	right.st, right.sure = w.st.clone(), false
	right.stmt(c.Y, w.pipeText(c.X))
	w.st.join(right.st) // some shells run the last command of a pipe themselves
}

// pipeText returns what a statement surely writes into a pipe, where that is
// literal text: echo and printf of known words, cat of a here-document.
func (w *walker) pipeText(s *syntax.Stmt) input {
	unknownText := input{kind: inputPipe}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || len(c.Assigns) > 0 {
		return unknownText
	}
	quiet := w.quiet()
	words := quiet.fields(c.Args)
	for _, t := range words {
		if !t.known() {
			return unknownText
		}
	}
	if len(words) == 0 {
		return unknownText
	}
	var parts []string
	switch words[0].text {
	case "echo", "printf":
		for _, t := range words[1:] {
			parts = append(parts, t.text)
		}
	case "find", "gfind":
		found := foundBelow(words[1:])
		return input{kind: inputPipe, found: &found}
	case "fd", "fdfind", "rg", "grep", "ls", "locate":
		for _, t := range words[1:] {
			if strings.HasPrefix(t.text, "/") || strings.HasPrefix(t.text, "~") || strings.HasPrefix(t.text, "..") {
				found := foundBelow([]token{t})
				return input{kind: inputPipe, found: &found}
			}
		}
	case "cat":
		if in := quiet.redirects(s.Redirs, input{}); len(words) == 1 && in.kind == inputLiteral {
			return input{kind: inputPipe, text: in.text}
		}
	}
	return input{kind: inputPipe, text: strings.ReplaceAll(strings.Join(parts, " "), `\n`, "\n")}
}

// quiet returns a walker whose findings go nowhere, to look at a word twice.
func (w *walker) quiet() *walker {
	n := *w
	n.a = &analyzer{poisoned: w.a.poisoned, funcs: w.a.funcs, full: true}
	n.st = w.st.clone()
	return &n
}

func (w *walker) ifClause(c *syntax.IfClause) {
	w.stmts(c.Cond)
	before, sure := w.st, w.sure
	w.st, w.sure = before.clone(), false
	w.stmts(c.Then)
	then := w.st
	w.st = before.clone()
	if c.Else != nil {
		w.ifClause(c.Else)
	}
	then.join(w.st)
	w.st, w.sure = then, sure
}

// loop walks a body that may run any number of times: what it assigns is not known
// at its start, and what it leaves is not known after it.
func (w *walker) loop(n syntax.Node, body func()) {
	w.forgetAssigned(n)
	if changesDir(n) {
		w.st.cwd = place{kind: placeUnknown}
	}
	sure := w.sure
	w.sure = false
	body()
	w.sure = sure
	w.forgetAssigned(n)
}

// changesDir reports whether a node may change the working directory.
func changesDir(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			switch c.Args[0].Lit() {
			case "cd", "pushd", "popd", "eval", "builtin", "command":
				found = true
			}
		}
		return !found
	})
	return found
}

func (w *walker) forClause(c *syntax.ForClause) {
	it, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		w.inner(c.Loop)
		w.loop(c, func() { w.stmts(c.Do) })
		return
	}
	items := w.fields(it.Items)
	name := ""
	if it.Name != nil {
		name = it.Name.Value
	}
	w.loop(c, func() {
		v := variable{}
		for _, t := range items {
			if t.dyn || c.Select || len(items) > maxValues {
				v = unknownVariable
				break
			}
			v.values = append(v.values, t.text)
		}
		if setsVariable(c.Do, name) {
			v = unknownVariable
		}
		w.st.set(name, v)
		w.stmts(c.Do)
	})
	w.st.forget(name)
}

// funcDecl walks a function's body where it is defined. It may run at any later
// time, so nothing is known of variables there, and what it sets is never known.
func (w *walker) funcDecl(c *syntax.FuncDecl) {
	if c.Name == nil || c.Body == nil {
		return
	}
	name := c.Name.Value
	a := w.a
	if a.poisoned == nil {
		a.poisoned, a.funcs = map[string]bool{}, map[string]funcInfo{}
	}
	if forksItself(c.Body, name) {
		a.floor(Deny, "fork-bomb", w.via, w.source(c), "the function starts copies of itself without end")
	}
	for _, n := range assignedNames(c.Body) {
		a.poisoned[n] = true
	}
	a.funcs[name] = funcInfo{always: w.sure && w.inFunc == "", moves: changesDir(c.Body)}
	n := w.nested("function " + name)
	n.st = newState(place{kind: placeUnknown})
	if w.st.cwd.kind == placeVault && len(w.st.vars) == 0 {
		n.st.cwd = w.st.cwd
	}
	n.inFunc, n.sure = name, false
	if n.depth > maxDepth {
		a.opaque(w.via, w.source(c), "commands are nested too deeply")
		return
	}
	n.stmt(c.Body, input{})
}

// forksItself finds the pattern of a fork bomb: a function that calls itself in a
// pipe or in the background.
func forksItself(body *syntax.Stmt, name string) bool {
	found := false
	calls := func(s *syntax.Stmt) bool {
		hit := false
		syntax.Walk(s, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == name {
				hit = true
			}
			return !hit
		})
		return hit
	}
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || n.Background && calls(n)
		case *syntax.BinaryCmd:
			found = found || (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && calls(n.X) && calls(n.Y)
		}
		return !found
	})
	return found
}

// inner walks the commands inside a node that runs nothing itself.
func (w *walker) inner(n syntax.Node) {
	if n == nil {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.subshell(n.Stmts, "$()")
			return false
		case *syntax.ProcSubst:
			w.subshell(n.Stmts, "<()")
			return false
		}
		return true
	})
}

// call walks a simple command.
func (w *walker) call(c *syntax.CallExpr, in input) {
	if len(c.Args) == 0 {
		for _, as := range c.Assigns {
			w.assign(as, true)
		}
		return
	}
	run := w
	if len(c.Assigns) > 0 {
		n := *w
		run = &n
		run.st = w.st.clone()
		name := c.Args[0].Lit()
		for _, as := range c.Assigns {
			if name == "read" && as.Name != nil && as.Name.Value == "IFS" {
				continue // it only steers how read splits its line
			}
			run.assign(as, true)
		}
	}
	// The words are expanded before the assignments in front take effect.
	w.asked = nil
	toks := w.fields(c.Args)
	asked := w.asked
	w.asked = nil
	if len(asked) > 0 {
		w.variants(c, asked, in)
		return
	}
	run.command(toks, in)
	if run != w {
		w.st.join(run.st) // eval, read and their kind may have set something for good
	}
}

// variants judges a command once for each combination of the values that its
// variables may have.
func (w *walker) variants(c *syntax.CallExpr, names []string, in input) {
	combos := []map[string]reading{maps.Clone(w.choice)}
	if combos[0] == nil {
		combos[0] = map[string]reading{}
	}
	for _, name := range names {
		var next []map[string]reading
		for _, base := range combos {
			for _, v := range w.st.vars[name].readings() {
				m := maps.Clone(base)
				m[name] = v
				next = append(next, m)
			}
		}
		if len(next) > maxVariants {
			w.command(w.quiet().fields(c.Args), in)
			return
		}
		combos = next
	}
	old := w.choice
	for _, m := range combos {
		w.choice = m
		w.command(w.quiet().fields(c.Args), in)
	}
	w.choice = old
}
