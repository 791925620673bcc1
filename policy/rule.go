package policy

import "strings"

// ruleSpec is a rule as it is written. Its JSON form feeds the digest.
type ruleSpec struct {
	ID       string
	Prog     []string   `json:",omitempty"`
	Prefix   [][]string `json:",omitempty"`
	AllFlags [][]string `json:",omitempty"`
	AnyFlag  []string   `json:",omitempty"`
	AnyArg   []string   `json:",omitempty"`
	LastArg  []string   `json:",omitempty"`
	Reads    []string   `json:",omitempty"`
	Writes   []string   `json:",omitempty"`
	Network  bool       `json:",omitempty"`
	Pattern  string     `json:",omitempty"` // of the short list form
	Action   Action
	Reason   string   `json:",omitempty"`
	Fallback bool     `json:",omitempty"`
	Match    []string `json:"-"`
	NotMatch []string `json:"-"`
	Line     int      `json:"-"`
}

// rule is a compiled rule.
type rule struct {
	spec     ruleSpec
	progs    []glob // lower case; empty: any program
	written  []glob // as written, for rules that allow
	prefix   []words
	allFlags [][]string
	anyFlag  []string
	anyArg   []argPattern
	lastArg  []argPattern
	reads    []argPattern
	writes   []argPattern
	pattern  []glob // words after the program, of the short list form
	rest     bool   // the pattern ends in "*": any further words match
	isList   bool   // made from the short list form
	// progSet holds the programs that are plain names in lower case, writtenSet the
	// same as written; odd holds the indexes of the others.
	progSet, writtenSet map[string]struct{}
	odd                 []int
	// readsHost and writesHost say that no pattern of reads or writes can match a path
	// that surely lies in the vault.
	readsHost, writesHost bool
	// argFirst holds the first bytes of all any_arg patterns; nil where a pattern
	// may match whatever its first byte is.
	argFirst *[256]bool
}

// words are alternatives for one word.
type words struct {
	list  []glob
	exact map[string]struct{} // all of list, where none is a pattern; nil otherwise
}

// matchToken compares a word with all alternatives.
func (ws words) matchToken(t token) tri {
	if ws.exact != nil && t.known() {
		_, ok := ws.exact[t.text]
		return triOf(ok)
	}
	got := no
	for _, g := range ws.list {
		if got = triOr(got, g.matchToken(t)); got == yes {
			return yes
		}
	}
	return got
}

func newGroups(lists [][]string) []words {
	var out []words
	for _, l := range lists {
		ws := words{list: newGlobs(l), exact: map[string]struct{}{}}
		for _, g := range ws.list {
			if g.meta {
				ws.exact = nil
				break
			}
			ws.exact[g.text] = struct{}{}
		}
		out = append(out, ws)
	}
	return out
}

// argPattern is a class or a glob.
type argPattern struct {
	class class
	glob  glob
}

func newArgPatterns(list []string) []argPattern {
	var out []argPattern
	for _, s := range list {
		if strings.HasPrefix(s, "$") && validClass(s) {
			out = append(out, argPattern{class: class(s)})
		} else {
			out = append(out, argPattern{glob: newGlob(s)})
		}
	}
	return out
}

func newGlobs(list []string) []glob {
	var out []glob
	for _, s := range list {
		out = append(out, newGlob(s))
	}
	return out
}

// compile prepares a rule for matching. The spec has been checked.
func compile(spec ruleSpec) *rule {
	r := &rule{spec: spec, prefix: newGroups(spec.Prefix), allFlags: spec.AllFlags, anyFlag: spec.AnyFlag,
		anyArg: newArgPatterns(spec.AnyArg), lastArg: newArgPatterns(spec.LastArg), reads: newArgPatterns(spec.Reads), writes: newArgPatterns(spec.Writes)}
	progs := spec.Prog
	if spec.Pattern != "" {
		fields := strings.Fields(spec.Pattern)
		progs = fields[:1]
		r.isList = true
		r.rest = strings.HasSuffix(fields[len(fields)-1], "*")
		r.pattern = newGlobs(fields[1:])
		if n := len(r.pattern); n > 0 && r.pattern[n-1].text == "*" {
			// The last "*" is the rest itself: it matches no word as well.
			r.pattern = r.pattern[:n-1]
		}
	}
	r.written = newGlobs(progs)
	for _, g := range r.written {
		r.progs = append(r.progs, g.fold())
	}
	r.index()
	return r
}

// index prepares the quick answers: most rules speak about few programs, and most
// words begin with none of the bytes that a rule looks for.
func (r *rule) index() {
	r.progSet, r.writtenSet = map[string]struct{}{}, map[string]struct{}{}
	for i, g := range r.progs {
		if g.meta || strings.Contains(g.text, "/") {
			r.odd = append(r.odd, i)
			continue
		}
		r.progSet[g.text] = struct{}{}
		r.writtenSet[r.written[i].text] = struct{}{}
	}
	r.readsHost, r.writesHost = hostOnly(r.reads), hostOnly(r.writes)
	first := new([256]bool)
	for _, p := range r.anyArg {
		if p.class != "" || p.glob.lit == "" {
			return
		}
		first[p.glob.lit[0]] = true
	}
	r.argFirst = first
}

// hostOnly reports whether patterns can match nothing in the vault.
func hostOnly(pats []argPattern) bool {
	for _, p := range pats {
		switch p.class {
		case classOutside, classDevice, classSystem, classTemp:
			continue
		case "":
			if p.glob.lit != "" && (p.glob.lit[0] == '/' || p.glob.lit[0] == '~') {
				continue
			}
		}
		return false
	}
	return true
}

// mayMatchArg is a quick answer whether any_arg may match the word.
func (r *rule) mayMatchArg(t *token) bool {
	return r.argFirst == nil || t.wild || t.dyn && t.head != "" && r.argFirst[t.head[0]] ||
		!t.dyn && t.text != "" && r.argFirst[t.text[0]]
}

// strict reports whether the rule restricts: it then matches in every spelling,
// while a rule that allows matches only what it surely means.
func (r *rule) strict() bool { return !r.spec.Action.Allows() }

// exactProgs reports whether the rule can be found by program name.
func (r *rule) exactProgs() bool { return len(r.progs) > 0 && len(r.odd) == 0 }
