package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// setsVariable reports whether a body sets the variable itself.
func setsVariable(list []*syntax.Stmt, name string) bool {
	for _, s := range list {
		for _, n := range assignedNames(s) {
			if n == name {
				return true
			}
		}
	}
	return false
}

// forgetAssigned makes every variable unknown that a node may set.
func (w *walker) forgetAssigned(n syntax.Node) {
	for _, name := range assignedNames(n) {
		w.st.forget(name)
	}
}

// assignedNames lists the variables that a node may set, by any means that shows
// in the syntax. Arguments of read and its kind count as names.
func assignedNames(n syntax.Node) []string {
	var names []string
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				names = append(names, n.Name.Value)
			}
		case *syntax.WordIter:
			if n.Name != nil {
				names = append(names, n.Name.Value)
			}
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil {
				names = append(names, n.Param.Value)
			}
		case *syntax.BinaryArithm:
			names = appendLit(names, n.X)
		case *syntax.UnaryArithm:
			names = appendLit(names, n.X)
		case *syntax.CallExpr:
			if len(n.Args) > 1 {
				switch n.Args[0].Lit() {
				case "read", "mapfile", "readarray", "printf", "getopts", "unset", "export", "eval", "let":
					for _, a := range n.Args[1:] {
						names = appendLit(names, a)
					}
				}
			}
		}
		return true
	})
	return names
}

func appendLit(names []string, x syntax.ArithmExpr) []string {
	if word, ok := x.(*syntax.Word); ok {
		if s, _, _ := strings.Cut(word.Lit(), "="); isName(s) {
			names = append(names, s)
		}
	}
	return names
}

// declClause walks export, declare and their kind.
func (w *walker) declClause(c *syntax.DeclClause) {
	persist := c.Variant.Value != "local" || w.inFunc == ""
	for _, as := range c.Args {
		if as.Name == nil {
			// A dynamic word may set any variable.
			if as.Value != nil {
				if t := w.single(as.Value); t.dyn {
					w.a.opaque(w.via, w.source(c), "which variable is set is only known at run time")
				}
			}
			continue
		}
		if c.Variant.Value == "nameref" || as.Naked {
			w.st.forget(as.Name.Value)
			continue
		}
		w.assign(as, persist)
	}
	for _, as := range c.Args {
		if as.Naked && as.Value != nil && as.Name == nil && strings.Contains(as.Value.Lit(), "n") && strings.HasPrefix(as.Value.Lit(), "-") {
			w.forgetNames(c) // declare -n makes aliases of variables
		}
	}
}

func (w *walker) forgetNames(c *syntax.DeclClause) {
	if w.a.poisoned == nil {
		w.a.poisoned, w.a.funcs = map[string]bool{}, map[string]funcInfo{}
	}
	for _, as := range c.Args {
		if as.Name != nil {
			w.a.poisoned[as.Name.Value] = true
			if as.Value != nil && isName(as.Value.Lit()) {
				w.a.poisoned[as.Value.Lit()] = true
			}
		}
	}
}

// temporaryName finds a substitution that makes a new name below the directory for
// temporary files, whatever it is in the end.
var temporaryName = compiled(`^\$\(mktemp( -d| -q| -dq| --directory| -t [\w.-]+| /tmp/[\w.-]+)*\)$`)

// assign evaluates one assignment and, where it lasts, remembers the value.
func (w *walker) assign(as *syntax.Assign, lasting bool) token {
	if as.Index != nil {
		w.inner(as.Index)
	}
	if as.Array != nil {
		w.inner(as.Array)
		if as.Name != nil {
			w.st.forget(as.Name.Value)
		}
		return unknown("", true)
	}
	val := w.single(as.Value)
	if as.Name == nil {
		return val
	}
	if subscriptRuns(val.text) && !val.dyn {
		w.a.opaque(w.via, as.Name.Value+"="+val.text, "where arithmetic uses the value, it runs the command in it")
	}
	name := as.Name.Value
	if as.Append {
		if old, ok := w.lookup(name); ok && val.known() {
			val = literal(old + val.text)
		} else {
			val = unknown(w.source(as), false)
		}
	}
	if as.Index != nil {
		val = unknown(w.source(as), false)
	}
	w.checkAssign(name, val, true)
	switch {
	case !lasting:
	case val.dyn && temporaryName().MatchString(strings.Trim(w.source(as.Value), `"`)):
		w.st.setValue(name, "/tmp/tmp.XXXXXXXXXX")
	case val.dyn:
		w.st.forget(name)
	default:
		w.st.setValue(name, val.text)
	}
	return val
}
