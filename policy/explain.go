package policy

import (
	"slices"
	"strings"
)

// maxExplained is for how many segments the words that decided are told whatever the
// answer is. Behind it they are told for what does not simply run.
const maxExplained = 64

// maxTold is among how many words of a command those are looked for that decided.
const maxTold = 256

// tokens returns the words of an item that made the rule match, in their order: what
// people should look at. Without conditions on words it is the program.
func (r *rule) tokens(it *item) string {
	if it.kind == kindWrite || it.kind == kindRead {
		return it.args[0].text
	}
	if len(r.reads)+len(r.writes)+len(r.anyArg)+len(r.lastArg)+len(r.prefix)+len(r.allFlags)+len(r.anyFlag)+len(r.pattern) == 0 {
		return shorten(it.prog.text)
	}
	hit := make([]bool, min(len(it.args), maxTold))
	paths := r.pathsOf(it)
	for i := range hit {
		hit[i] = r.decidedBy(it, i, paths)
	}
	if len(r.prefix) > 0 || r.isList && len(r.pattern) > 0 {
		pos := it.positionals().plain
		for i := range min(max(len(r.prefix), 1), len(pos)) {
			if pos[i] < len(hit) {
				hit[pos[i]] = true
			}
		}
	}
	var words []string
	for i, t := range it.args[:len(hit)] {
		if hit[i] && len(words) < 16 {
			words = append(words, shorten(t.text))
		}
	}
	if len(words) == 0 || r.isList {
		words = append([]string{it.prog.text}, words...)
	}
	return shorten(strings.Join(words, " "))
}

// decidedBy reports whether an argument meets one of the rule's conditions.
func (r *rule) decidedBy(it *item, i int, paths []token) bool {
	t := it.args[i]
	for _, p := range r.anyArg {
		if p.match(it.loc, t) != no {
			return true
		}
	}
	if len(r.lastArg) > 0 {
		if pos := it.positionals().plain; len(pos) > 0 && pos[len(pos)-1] == i {
			return true
		}
	}
	if i < it.positionals().dash && strings.HasPrefix(t.certain(), "-") {
		flags := slices.Concat(append(slices.Clone(r.allFlags), r.anyFlag)...)
		for _, f := range flags {
			if it.opts.flagIs(t.certain(), f, r.strict()) {
				return true
			}
		}
	}
	return slices.ContainsFunc(paths, func(p token) bool { return p.text != "" && strings.HasSuffix(t.text, p.text) })
}

// pathsOf returns the first paths that the rule is about.
func (r *rule) pathsOf(it *item) []token {
	var found []token
	take := func(paths []pathFact, pats []argPattern, hostOnly bool) {
		for i := range paths {
			if len(pats) == 0 || len(found) >= 8 {
				return
			}
			if !(hostOnly && paths[i].inside) && r.matchPath(it, &paths[i], pats) != no {
				found = append(found, paths[i].token)
			}
		}
	}
	take(it.effects().writePaths, r.writes, r.writesHost)
	take(it.effects().readPaths, r.reads, r.readsHost)
	return found
}
