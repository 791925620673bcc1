package policy

import "strings"

// verdict is what one rule set says about one item.
type verdict struct {
	action Action
	rule   string
	reason string
	by     *rule // nil where no rule of the policy decided
}

// tokens returns the words that decided.
func (v verdict) tokens(it *item) string {
	switch {
	case v.by != nil:
		return v.by.tokens(it)
	case it.word != "":
		return shorten(it.word)
	case it.kind == kindWrite || it.kind == kindRead:
		return shorten(it.args[0].text)
	}
	return shorten(it.prog.text)
}

// judge applies the rules. The second result is false for a mere wrapper that no
// rule speaks about: what it runs is judged on its own.
func (s *ruleset) judge(it *item) (verdict, bool) {
	switch it.kind {
	case kindOpaque:
		return verdict{s.opaque, RuleOpaque, it.reason, nil}, true
	case kindFloor:
		return verdict{it.floor, builtinRule + it.id, it.reason, nil}, true
	}
	v, found := s.applyRules(it)
	if !found {
		v = s.unruled(it)
		found = it.kind != kindWrapper && it.kind != kindRead
	}
	return v, found
}

// applyRules finds the strictest rule that matches, then lets rules that may match
// lift the answer as far as the opaque action.
func (s *ruleset) applyRules(it *item) (verdict, bool) {
	var sure, fall, may *rule
	consider := func(r *rule) {
		switch r.match(it) {
		case yes:
			if r.spec.Fallback {
				fall = stricterRule(fall, r)
			} else {
				sure = stricterRule(sure, r)
			}
		case maybe:
			if r.strict() {
				may = stricterRule(may, r)
			}
		}
	}
	for _, r := range s.byProg[it.base] {
		consider(r)
	}
	for _, r := range s.anyProg {
		consider(r)
	}
	if sure == nil {
		sure = fall
	}
	var v verdict
	if sure != nil {
		v = verdict{sure.spec.Action, sure.spec.ID, sure.reason(), sure}
	} else {
		v = s.unruled(it)
	}
	if may != nil {
		if a := laxest(may.spec.Action, s.opaque); a.StricterThan(v.action) {
			return verdict{a, may.spec.ID, may.reason() + " (it may match: a word is only known at run time)", may}, true
		}
	}
	return v, sure != nil
}

func stricterRule(a, b *rule) *rule {
	if a == nil || b.spec.Action.StricterThan(a.spec.Action) {
		return b
	}
	return a
}

// reason never returns an empty string: a decision without a reason helps nobody.
func (r *rule) reason() string {
	if r.spec.Reason != "" {
		return r.spec.Reason
	}
	what := strings.Join(r.spec.Prog, ", ")
	if r.isList {
		what = r.spec.Pattern
	} else if len(r.spec.Prefix) > 0 {
		what += " " + strings.Join(r.spec.Prefix[0], ", ")
	}
	if what == "" {
		what = "any program"
	}
	return "the policy says " + string(r.spec.Action) + " for " + what
}

// unruled answers where no rule speaks about the item.
func (s *ruleset) unruled(it *item) verdict {
	switch it.kind {
	case kindNeutral:
		reason := it.reason
		if reason == "" {
			reason = "it only steers the shell"
		}
		return verdict{Allow, builtinRule + "neutral", reason, nil}
	case kindFunc:
		return verdict{Allow, builtinRule + "function", "a function of the script, whose body is judged on its own", nil}
	case kindWrite:
		return s.unruledWrite(it)
	}
	if strings.Contains(it.prog.text, "/") && !it.trusted && s.def == Allow {
		return verdict{AllowWithCheckpoint, RuleDefault, "no rule knows this program, and it is no program of the system", nil}
	}
	return verdict{s.def, RuleDefault, "no rule of the policy knows this command", nil}
}

// unruledWrite answers for a redirection: inside the vault it can be undone.
func (s *ruleset) unruledWrite(it *item) verdict {
	t := it.args[0]
	id := builtinRule + "redirect"
	switch {
	case insideGit(t.certain()):
		return verdict{Strictest(RequireApproval, s.opaque), id, "the output goes to a file of git itself, which can make git run programs", nil}
	case it.loc.is(classDevice, t) != no:
		return verdict{Strictest(RequireApproval, s.opaque), id, "the output goes to a device", nil}
	case it.loc.is(classOutside, t) != no:
		return verdict{Strictest(RequireApproval, s.opaque), id, "the output goes to a file outside the vault, which cannot be undone", nil}
	case t.dyn && it.loc.is(classTemp, t) == no && !strings.Contains(t.head, "/"):
		return verdict{s.opaque, id, "the file that the output goes to is only known at run time", nil}
	case !t.dyn && harmlessDevice(t.text):
		return verdict{Allow, id, "the output goes to a harmless device", nil}
	}
	return verdict{AllowWithCheckpoint, id, "the output goes to a file", nil}
}

// insideGit reports whether a path leads into a repository's own directory.
func insideGit(p string) bool {
	return strings.HasPrefix(p, ".git/") || strings.Contains(p, "/.git/")
}

// match says whether the rule speaks about the item.
func (r *rule) match(it *item) tri {
	got := r.matchProg(it)
	if got == no {
		return no
	}
	if r.isList {
		return triAnd(got, r.matchPattern(it))
	}
	if len(r.prefix) > 0 {
		if got = triAnd(got, r.matchPrefix(it)); got == no {
			return no
		}
	}
	for _, group := range r.allFlags {
		if got = triAnd(got, it.hasFlag(group, r.strict())); got == no {
			return no
		}
	}
	if len(r.anyFlag) > 0 {
		if got = triAnd(got, it.hasFlag(r.anyFlag, r.strict())); got == no {
			return no
		}
	}
	if len(r.anyArg) > 0 {
		if got = triAnd(got, r.matchAnyArg(it)); got == no {
			return no
		}
	}
	if len(r.lastArg) > 0 {
		if got = triAnd(got, r.matchLastArg(it)); got == no {
			return no
		}
	}
	return triAnd(got, r.matchEffects(it))
}

// matchEffects compares what the program does.
func (r *rule) matchEffects(it *item) tri {
	got := yes
	if r.spec.Network {
		got = triOf(it.effects().network)
	}
	if len(r.reads) > 0 && got != no {
		got = triAnd(got, r.matchPaths(it, it.effects().readPaths, r.reads, r.readsHost))
	}
	if len(r.writes) > 0 && got != no {
		got = triAnd(got, r.matchPaths(it, it.effects().writePaths, r.writes, r.writesHost))
	}
	return got
}

// matchProg compares the program. A rule that restricts holds for every spelling
// of the name, in any case and any directory; a rule that allows holds only where
// the name surely means the system's program.
func (r *rule) matchProg(it *item) tri {
	if len(r.progs) == 0 {
		// Whatever a program of the vault is called, no rule that names none knows it.
		return triOf(r.strict() || it.trusted || it.kind == kindWrite || it.kind == kindRead)
	}
	if it.kind == kindWrite || it.kind == kindRead {
		_, ok := r.writtenSet[it.name]
		return triOf(ok)
	}
	if r.strict() {
		if _, ok := r.progSet[it.base]; ok {
			return yes
		}
	} else if _, ok := r.writtenSet[it.name]; ok && it.trusted {
		return yes
	}
	for _, i := range r.odd {
		w := r.written[i]
		switch {
		case strings.Contains(w.text, "/"):
			if w.match(it.prog.text) || r.strict() && r.progs[i].match(strings.ToLower(it.prog.text)) {
				return yes
			}
		case r.strict():
			if r.progs[i].match(it.base) {
				return yes
			}
		case w.text == "*", it.trusted && w.match(it.name):
			return yes
		}
	}
	return no
}

// matchPrefix compares the subcommand words, in both readings where an unknown
// option leaves it open which word is the first.
func (r *rule) matchPrefix(it *item) tri {
	p := it.positionals()
	got := matchWords(r.prefix, it.args, p.plain, p.open)
	if p.shifted != nil {
		alt := matchWords(r.prefix, it.args, p.shifted, p.open)
		if r.strict() {
			return triOr(got, alt)
		}
		return triAnd(got, alt)
	}
	return got
}

// matchWords compares patterns with the words at the given places. open is the
// number of leading words before a word that may have become any number of words.
func matchWords(pats []words, args []token, at []int, open int) tri {
	got := yes
	for i, g := range pats {
		if i >= open {
			return triAnd(got, maybe)
		}
		if i >= len(at) {
			return no
		}
		if got = triAnd(got, g.matchToken(args[at[i]])); got == no {
			return no
		}
	}
	return got
}

func (r *rule) matchAnyArg(it *item) tri {
	got := no
	for i := range it.args {
		t := &it.args[i]
		if !r.mayMatchArg(t) {
			continue
		}
		known := t.known() && t.text != ""
		for j := range r.anyArg {
			p := &r.anyArg[j]
			m := no
			switch {
			case p.class != "":
				m = it.argIs(i, p.class)
			case !known:
				m = p.glob.matchArg(*t)
			case p.glob.mayMatch(t.text):
				m = triOf(p.glob.match(t.text))
			}
			if got = triOr(got, m); got == yes {
				return yes
			}
		}
	}
	return got
}

// matchLastArg looks at the last word that is no option.
func (r *rule) matchLastArg(it *item) tri {
	pos := it.positionals().plain
	if len(pos) == 0 {
		return no
	}
	got := no
	for _, p := range r.lastArg {
		got = triOr(got, p.match(it.loc, it.args[pos[len(pos)-1]]))
	}
	return got
}

func (p argPattern) match(loc locator, t token) tri {
	if p.class != "" {
		return loc.is(p.class, t)
	}
	return p.glob.matchArg(t)
}

// matchPattern compares the words of the short list form. The literal comparison
// goes word by word. A pattern that restricts also matches where the same words
// stand in another spelling or order, or among other options.
func (r *rule) matchPattern(it *item) tri {
	args := it.plainArgs(r.strict())
	got := r.matchLiteral(args)
	if got != yes && len(args) != len(it.args) {
		got = triOr(got, r.matchLiteral(it.args))
	}
	if got != yes && r.strict() {
		got = triOr(got, r.matchLoosely(it))
	}
	return got
}

func (r *rule) matchLiteral(args []token) tri {
	got := yes
	for i, g := range r.pattern {
		if i >= len(args) {
			return no
		}
		got = triAnd(got, g.matchToken(args[i]))
		if args[i].multi && got != no {
			return maybe
		}
		if got == no {
			return no
		}
	}
	if len(args) > len(r.pattern) && !r.rest {
		return no
	}
	return got
}

// matchLoosely asks for every option of the pattern in any spelling, and for its
// other words in their order, the first of them at the first place.
func (r *rule) matchLoosely(it *item) tri {
	var words []glob
	got, afterDash := yes, false
	for _, g := range r.pattern {
		switch {
		case g.text == "--":
			afterDash = true
			got = triAnd(got, it.hasDoubleDash())
		case !afterDash && len(g.text) > 1 && g.text[0] == '-' && !g.meta:
			for _, f := range splitCluster(g.text) {
				got = triAnd(got, it.hasFlag(spellings(f), true))
			}
		default:
			words = append(words, g)
		}
		if got == no {
			return no
		}
	}
	p := it.positionals()
	alt := no
	if p.shifted != nil {
		alt = subsequence(words, it.args, p.shifted, p.open, r.rest)
	}
	return triAnd(got, triOr(alt, subsequence(words, it.args, p.plain, p.open, r.rest)))
}

// spellings returns an option with its other common spellings.
func spellings(f string) []string {
	switch f {
	case "-r", "-R", "--recursive":
		return []string{"-r", "-R", "--recursive"}
	case "-f", "--force":
		return []string{"-f", "--force"}
	case "-d", "--delete":
		return []string{"-d", "--delete"}
	case "-a", "--all":
		return []string{"-a", "--all"}
	}
	return []string{f}
}

// splitCluster turns "-rf" into "-r" and "-f".
func splitCluster(f string) []string {
	if strings.HasPrefix(f, "--") || len(f) == 2 {
		return []string{f}
	}
	var out []string
	for i := 1; i < len(f); i++ {
		out = append(out, "-"+f[i:i+1])
	}
	return out
}

// subsequence looks for the patterns in order among the words. The first pattern
// must be the first word; without rest the counts must agree.
func subsequence(pats []glob, args []token, at []int, open int, rest bool) tri {
	if len(pats) == 0 {
		return triOf(rest || len(at) == 0)
	}
	if open == 0 {
		return maybe
	}
	if !rest && len(at) != len(pats) {
		return no
	}
	if len(at) == 0 {
		return no
	}
	got := pats[0].matchToken(args[at[0]])
	i := 1
	for _, g := range pats[1:] {
		best := no
		for ; i < len(at) && best == no; i++ {
			best = g.matchToken(args[at[i]])
		}
		if best == no && open <= len(at) {
			best = maybe
		}
		if got = triAnd(got, best); got == no {
			return no
		}
	}
	return got
}
