package policy

import (
	"fmt"
	"slices"
	"strings"
)

// FindingKind is the stable name of what Lint found.
type FindingKind string

// What Lint finds.
const (
	FindingExample   FindingKind = "example"   // an example in the rule does not come true
	FindingDead      FindingKind = "dead"      // the rule can never match
	FindingShadowed  FindingKind = "shadowed"  // another rule always decides
	FindingDuplicate FindingKind = "duplicate" // two rules have the same id or the same conditions
)

// Finding is one fault of a policy. A policy with findings still works; it does not
// do what its author thinks.
type Finding struct {
	Kind    FindingKind `json:"kind"`
	Rule    string      `json:"rule"`
	Line    int         `json:"line"`
	Message string      `json:"message"`
}

// Lint returns the faults of the policy in the order of its rules, never nil.
func (p *Policy) Lint() []Finding {
	found := []Finding{}
	for _, s := range p.sets {
		for i, r := range s.rules {
			found = append(found, lintDead(r)...)
			found = append(found, lintExamples(r)...)
			found = append(found, lintPairs(s.rules, i)...)
		}
	}
	return found
}

func (r *rule) finding(k FindingKind, format string, args ...any) Finding {
	return Finding{Kind: k, Rule: r.spec.ID, Line: r.spec.Line, Message: fmt.Sprintf(format, args...)}
}

// lintDead finds conditions that no single word can meet.
func lintDead(r *rule) []Finding {
	var found []Finding
	lists := []struct {
		field string
		words []string
	}{{"prog", r.spec.Prog}, {"any_flag", r.spec.AnyFlag}, {"any_arg", r.spec.AnyArg}, {"last_arg", r.spec.LastArg}, {"reads", r.spec.Reads}, {"writes", r.spec.Writes}}
	for _, g := range r.spec.Prefix {
		lists = append(lists, struct {
			field string
			words []string
		}{"prefix", g})
	}
	for _, g := range r.spec.AllFlags {
		lists = append(lists, struct {
			field string
			words []string
		}{"all_flags", g})
	}
	for _, l := range lists {
		for _, s := range l.words {
			switch {
			case l.field == "reads" || l.field == "writes":
				if strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
					found = append(found, r.finding(FindingDead, "%s has %q: write a path from the vault's root, without a dot in front, or an absolute one of the host", l.field, s))
				}
			case strings.ContainsAny(s, " \t\n") && l.field != "any_arg" && l.field != "last_arg":
				found = append(found, r.finding(FindingDead, "%s has %q: several words can never equal one word; write them as a list", l.field, s))
			case strings.ContainsAny(s, " \t\n"):
				found = append(found, r.finding(FindingDead, "%s has %q: it only matches one word that holds a space, not several words", l.field, s))
			case strings.HasSuffix(l.field, "_flags") || l.field == "any_flag":
				if !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "+") {
					found = append(found, r.finding(FindingDead, "%s has %q: an option begins with a dash", l.field, s))
				}
			case l.field == "prefix" && strings.HasPrefix(s, "-"):
				found = append(found, r.finding(FindingDead, "prefix has %q: options are not part of the prefix; use any_flag", s))
			}
		}
	}
	for _, s := range r.spec.Prog {
		if _, mere := wrappers[strings.ToLower(s)]; !mere && strings.Contains(s, "$") {
			found = append(found, r.finding(FindingDead, "prog has %q: a program's name is never a class or a variable", s))
		}
	}
	if len(r.reads)+len(r.writes) > 0 && len(r.progs) > 0 && !slices.ContainsFunc(r.progs, mayHavePaths) {
		found = append(found, r.finding(FindingDead, "of no program in prog it is known which paths it reads or writes; use any_arg"))
	}
	if r.spec.Network && len(r.progs) > 0 && !slices.ContainsFunc(r.progs, mayUseNetwork) {
		found = append(found, r.finding(FindingDead, "of no program in prog it is known when it talks to the network; leave network out"))
	}
	return found
}

func mayHavePaths(g glob) bool {
	_, ok := pathModels()[g.text]
	return ok || g.meta || g.text == ">" || g.text == "<"
}

func mayUseNetwork(g glob) bool {
	_, always := networkPrograms()[g.text]
	_, some := networkSubcommands()[g.text]
	return always || some || g.meta || g.text == "rsync" || strings.HasPrefix(g.text, "python")
}

// lintExamples runs the tests that stand in the rule.
func lintExamples(r *rule) []Finding {
	var found []Finding
	for _, s := range r.spec.Match {
		switch hit, clear := r.matchesShell(s); {
		case !clear:
			found = append(found, r.finding(FindingExample, "match example %q is no valid command", s))
		case !hit:
			found = append(found, r.finding(FindingExample, "the rule does not match its example %q", s))
		}
	}
	for _, s := range r.spec.NotMatch {
		switch hit, clear := r.matchesShell(s); {
		case !clear:
			found = append(found, r.finding(FindingExample, "not_match example %q is no valid command", s))
		case hit:
			found = append(found, r.finding(FindingExample, "the rule matches %q, which it says it does not", s))
		}
	}
	return found
}

// matchesShell reports whether the rule speaks about any part of a shell command,
// and whether the command can be read at all.
func (r *rule) matchesShell(s string) (hit, clear bool) {
	clear = true
	for _, it := range analyze(Command{Shell: s}) {
		switch it.kind {
		case kindOpaque:
			clear = clear && it.prog.text != ""
		case kindFloor:
		default:
			hit = hit || r.match(&it) != no
		}
	}
	return hit, clear || hit
}

// lintPairs compares one rule with all others.
func lintPairs(rules []*rule, i int) []Finding {
	var found []Finding
	r := rules[i]
	for j, o := range rules {
		if i == j {
			continue
		}
		if j < i && o.spec.ID == r.spec.ID {
			found = append(found, r.finding(FindingDuplicate, "the id is also used on line %d", o.spec.Line))
		}
		same := o.covers(r) && r.covers(o)
		switch {
		case same && j < i && r.spec.Action == o.spec.Action && r.spec.Fallback == o.spec.Fallback:
			found = append(found, r.finding(FindingDuplicate, "it says the same as %q on line %d", o.spec.ID, o.spec.Line))
		case same && r.spec.Action == o.spec.Action && r.spec.Fallback == o.spec.Fallback:
		case o.covers(r) && o.outranks(r):
			found = append(found, r.finding(FindingShadowed, "it never decides: %q on line %d matches whatever it matches and is stricter", o.spec.ID, o.spec.Line))
		case o.covers(r) && r.spec.Fallback && !o.spec.Fallback:
			found = append(found, r.finding(FindingShadowed, "it never decides: it is a fallback, and %q on line %d matches whatever it matches", o.spec.ID, o.spec.Line))
		}
	}
	return found
}

// outranks reports whether o's answer wins over r's wherever both match.
func (o *rule) outranks(r *rule) bool {
	if o.spec.Fallback && !r.spec.Fallback {
		return false
	}
	return o.spec.Action.StricterThan(r.spec.Action)
}

// covers reports whether o surely matches whatever r matches. It is not complete:
// it may miss a shadow, and never claims one that is not there.
func (o *rule) covers(r *rule) bool {
	if o.isList != r.isList {
		return false
	}
	if !coversPrograms(o, r) {
		return false
	}
	if o.isList {
		return coversPattern(o, r)
	}
	if len(o.prefix) > len(r.prefix) {
		return false
	}
	for i, ws := range o.prefix {
		for _, p := range r.prefix[i].list {
			if !slices.ContainsFunc(ws.list, func(g glob) bool { return g.covers(p) }) {
				return false
			}
		}
	}
	return coversGroups(o.allFlags, r.allFlags) && coversAny(o.anyFlag, r.anyFlag) &&
		coversAny(o.spec.AnyArg, r.spec.AnyArg) && coversAny(o.spec.LastArg, r.spec.LastArg) &&
		coversAny(o.spec.Reads, r.spec.Reads) && coversAny(o.spec.Writes, r.spec.Writes) && (!o.spec.Network || r.spec.Network)
}

// covers reports whether g surely matches whatever p matches.
func (g glob) covers(p glob) bool {
	return g.text == p.text || g.text == "*" || g.meta && !p.meta && g.match(p.text)
}

func coversPrograms(o, r *rule) bool {
	if len(o.progs) == 0 {
		return true
	}
	if len(r.progs) == 0 {
		return false
	}
	for _, p := range r.progs {
		if !slices.ContainsFunc(o.progs, func(g glob) bool { return g.covers(p) }) {
			return false
		}
	}
	return true
}

// coversPattern compares two patterns of the short list form word by word.
func coversPattern(o, r *rule) bool {
	for i, g := range o.pattern {
		if i >= len(r.pattern) {
			return false
		}
		if !g.covers(r.pattern[i]) {
			return false
		}
	}
	if o.rest {
		return true
	}
	return len(o.pattern) == len(r.pattern) && !r.rest
}

// coversGroups reports whether every group of o holds whenever the groups of r do.
func coversGroups(o, r [][]string) bool {
	for _, g := range o {
		if !slices.ContainsFunc(r, func(h []string) bool { return subset(h, g) }) {
			return false
		}
	}
	return true
}

// coversAny reports whether "one of o" holds whenever "one of r" does.
func coversAny(o, r []string) bool {
	if len(o) == 0 {
		return true
	}
	return len(r) > 0 && subset(r, o)
}

func subset(a, b []string) bool {
	for _, s := range a {
		if !slices.Contains(b, s) {
			return false
		}
	}
	return true
}
