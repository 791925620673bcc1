package policy

import (
	"slices"
	"strings"
)

// effects is what a program does to files and whom it talks to, as far as its words
// tell. It is known for the programs that pathModels and the network tables list, and
// for redirections; of others nothing is said.
type effects struct {
	reads, writes []token
	known         bool // the program has a model, so that no path is missing
	network       bool

	// The same paths with the places that they mean.
	readPaths, writePaths []pathFact
}

// pathFact is a path with the place that it means, where that is known.
type pathFact struct {
	token
	at     resolved // of a path that is known
	place  string   // at, as patterns write it
	inside bool     // it surely lies in the vault
}

// locate finds the places of paths.
func (it *item) locate(paths []token) []pathFact {
	if len(paths) == 0 {
		return nil
	}
	facts := make([]pathFact, len(paths))
	next := 0
	for i := range paths {
		t, f := &paths[i], &facts[i]
		f.token = *t
		if t.dyn {
			continue
		}
		// Most paths are arguments, in their order.
		from := next
		for next < len(it.args) && next < from+maxBetween && it.args[next].text != t.text {
			next++
		}
		if next < len(it.args) && it.args[next].text == t.text {
			f.at = it.argAt(next)
			next++
		} else {
			f.at, next = it.loc.resolve(t.text), from
		}
		f.place = f.at.shown()
		f.inside = f.at.kind == placeVault
	}
	return facts
}

// maxBetween is how many other arguments may stand between two that are paths, for the
// second to be found.
const maxBetween = 3

// operandUse says what a program does with its operands.
type operandUse uint8

const (
	useNone   operandUse = iota // they are no paths
	useRead                     // it reads them
	useWrite                    // it changes, makes or deletes them
	useCopy                     // it reads all but the last, which it writes
	useMove                     // it changes all of them, and the last is where they go
	useCreate                   // it writes the first and reads the others
)

// pathModel says which words of a program are paths.
type pathModel struct {
	operands operandUse
	skip     int      // operands in front that are no paths
	instead  []string // options that give what the skipped operands would
	reads    []string // options whose value is a path that is read
	writes   []string // options whose value is a path that is written
	target   []string // options that name the directory which operands go into
	inPlace  []string // options with which operands are written, too
	toStdout []string // options with which nothing is written
	more     func(it *item, e *effects)
}

// effects computes what the item does, once.
func (it *item) effects() *effects {
	if it.does != nil {
		return it.does
	}
	e := &effects{}
	it.does = e
	switch it.kind {
	case kindWrite:
		e.known, e.writes = true, it.args
		e.writePaths = it.locate(e.writes)
		return e
	case kindRead:
		e.known, e.reads = true, it.args
		e.readPaths = it.locate(e.reads)
		return e
	case kindOpaque, kindFloor, kindNeutral, kindFunc:
		return e
	}
	if m, ok := pathModels()[it.base]; ok {
		e.known = true
		it.applyPaths(m, e)
		e.readPaths, e.writePaths = it.locate(e.reads), it.locate(e.writes)
	}
	e.network = usesNetwork(it)
	return e
}

// applyPaths adds the paths that a model finds.
func (it *item) applyPaths(m pathModel, e *effects) {
	skip, target, inPlace, quiet := m.skip, false, false, false
	it.eachOption(m, func(name string, value token, has bool) {
		switch {
		case slices.Contains(m.reads, name) && has:
			e.reads = append(e.reads, value)
		case slices.Contains(m.writes, name) && has:
			e.writes = append(e.writes, value)
		case slices.Contains(m.target, name) && has:
			target = true
			e.writes = append(e.writes, value)
		}
		if slices.Contains(m.instead, name) {
			skip = 0
		}
		inPlace = inPlace || slices.Contains(m.inPlace, name)
		quiet = quiet || slices.Contains(m.toStdout, name)
	})
	ops := it.operandTokens()
	ops = ops[min(skip, len(ops)):]
	last := len(ops) - 1
	for i, t := range ops {
		written := false
		switch m.operands {
		case useNone:
			continue
		case useRead:
			written = inPlace
		case useWrite, useMove:
			written = true
		case useCopy:
			written = i == last && last > 0 && !target
		case useCreate:
			written = i == 0
		}
		if written && !quiet {
			e.writes = append(e.writes, t)
		} else {
			e.reads = append(e.reads, t)
		}
	}
	if m.more != nil {
		m.more(it, e)
	}
}

// operandTokens returns the words that are neither options nor their values.
func (it *item) operandTokens() []token {
	plain := it.positionals().plain
	if it.ops == nil && len(plain) > 0 {
		it.ops = make([]token, len(plain))
		for i, at := range plain {
			it.ops[i] = it.args[at]
		}
	}
	return slices.Clip(it.ops)
}

// eachOption calls fn for every option with its value: attached, behind "=", at the end
// of a cluster, or in the next word.
func (it *item) eachOption(m pathModel, fn func(name string, value token, has bool)) {
	end := it.positionals().dash
	for i := 0; i < end; i++ {
		t := it.args[i]
		s := t.certain()
		if len(s) < 2 || s[0] != '-' {
			continue
		}
		next, has := token{}, i+1 < len(it.args)
		if has {
			next = it.args[i+1]
		}
		if strings.HasPrefix(s, "--") || it.opts.single {
			if name, v, ok := t.splitAssign(); ok {
				fn(m.fullName(name), v, true)
				continue
			}
			if takes, _ := it.opts.takesValue(t); takes || slices.Contains(it.opts.long, m.fullName(s)) || it.opts.single && m.takesPath(s) {
				fn(m.fullName(s), next, has)
				i++
				continue
			}
			fn(m.fullName(s), token{}, false)
			continue
		}
		for j := 1; j < len(s); j++ {
			name := "-" + s[j:j+1]
			if strings.IndexByte(it.opts.short, s[j]) < 0 {
				fn(name, token{}, false)
				continue
			}
			if j+1 < len(s) || t.dyn {
				fn(name, t.after(min(j+1, len(s))), true)
			} else {
				fn(name, next, has)
				i++
			}
			break
		}
	}
}

// fullName completes an abbreviated long option of the model.
func (m pathModel) fullName(name string) string {
	if !strings.HasPrefix(name, "--") || len(name) < 4 {
		return name
	}
	for _, list := range [][]string{m.reads, m.writes, m.target, m.inPlace, m.instead, m.toStdout} {
		for _, o := range list {
			if strings.HasPrefix(o, name) {
				return o
			}
		}
	}
	return name
}

// takesPath reports whether the option has a path for its value.
func (m pathModel) takesPath(name string) bool {
	return slices.Contains(m.reads, name) || slices.Contains(m.writes, name) || slices.Contains(m.target, name)
}

// matchPaths compares paths with the patterns of a rule. A rule that restricts matches
// where one path does, a rule that allows where there are paths and all of them do.
func (r *rule) matchPaths(it *item, paths []pathFact, pats []argPattern, hostOnly bool) tri {
	if r.strict() {
		got := no
		for i := range paths {
			if hostOnly && paths[i].inside {
				continue
			}
			if got = triOr(got, r.matchPath(it, &paths[i], pats)); got == yes {
				return yes
			}
		}
		return got
	}
	if !it.effects().known || len(paths) == 0 {
		return no
	}
	got := yes
	for i := range paths {
		got = triAnd(got, r.matchPath(it, &paths[i], pats))
	}
	return got
}

// matchPath compares one path: as it is written for rules that restrict, and as the
// place that it means: relative to the vault's root in the vault, absolute outside.
func (r *rule) matchPath(it *item, f *pathFact, pats []argPattern) tri {
	got := no
	known := f.known() && f.text != ""
	written := known && r.strict() && f.text != f.place
	for i := range pats {
		p := &pats[i]
		switch {
		case p.glob.text == "*":
			return yes
		case p.class == "" && known:
			if f.place != "" && p.glob.mayMatch(f.place) && p.glob.match(f.place) ||
				written && p.glob.mayMatch(f.text) && p.glob.match(f.text) {
				return yes
			}
		case p.class == classDynamic, p.class != "" && f.dyn:
			got = triOr(got, it.loc.is(p.class, f.token))
		case p.class != "":
			got = triOr(got, triOf(f.text != "" && f.at.is(p.class, it.loc)))
		case f.place != "" && p.glob.match(f.place):
			return yes
		case f.dyn || r.strict() && f.text != f.place:
			got = triOr(got, p.glob.matchArg(f.token))
		}
	}
	return got
}

// shown writes a place as patterns do; it is empty where the place is not known.
func (r resolved) shown() string {
	p := r.path
	switch r.kind {
	case placeUnknown:
		return ""
	case placeVault:
		p = strings.TrimPrefix(p, "/")
		if p == "" {
			p = "."
		}
	}
	if r.all {
		p += "/*"
	}
	return p
}
