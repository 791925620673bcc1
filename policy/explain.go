package policy

import (
	"slices"
	"strings"
)

// maxExplained is for how many segments the words that decided are told whatever the
// answer is. Behind it they are told for what does not simply run.
const maxExplained = 64

// tokens returns the words of an item that made the rule match, in their order: what
// people should look at. Without conditions on words it is the program.
func (r *rule) tokens(it *item) string {
	if it.kind == kindWrite || it.kind == kindRead {
		return it.args[0].text
	}
	hit := make([]bool, len(it.args))
	for i := range it.args {
		hit[i] = r.decidedBy(it, i)
	}
	if len(r.prefix) > 0 || r.isList && len(r.pattern) > 0 {
		pos := it.positionals().plain
		for i := range min(max(len(r.prefix), 1), len(pos)) {
			hit[pos[i]] = true
		}
	}
	var words []string
	for i, t := range it.args {
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
func (r *rule) decidedBy(it *item, i int) bool {
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
	return r.isPathOf(it, t, it.effects().writes, r.writes) || r.isPathOf(it, t, it.effects().reads, r.reads)
}

// isPathOf reports whether a word is, or ends in, one of the paths that the rule is
// about.
func (r *rule) isPathOf(it *item, t token, paths []token, pats []argPattern) bool {
	if len(pats) == 0 {
		return false
	}
	return slices.ContainsFunc(paths, func(p token) bool {
		return p.text != "" && strings.HasSuffix(t.text, p.text) && r.matchPath(it, p, pats) != no
	})
}
