package policy

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Command is what somebody wants to run. Exactly one of Argv and Shell is set; a
// command that sets both or neither cannot be understood and gets the opaque
// action.
type Command struct {
	// Argv is the program and its arguments, taken as they are: no quoting,
	// no expansion.
	Argv []string
	// Shell is a script for a POSIX shell or bash.
	Shell string
	// Cwd is the working directory inside the vault, "/" being the vault's
	// root. Relative paths of the command start here. Empty means "/".
	Cwd string
	// Mount is the absolute path on the host under which the command will see
	// the vault's root, where the caller knows it. Absolute paths below it
	// belong to the vault; all other absolute paths lie outside.
	Mount string
	// Terminal says that the input of the command is a terminal, at which a person
	// types: a shell that reads its code from there is that person's.
	Terminal bool
	// Env holds the variables that the caller adds to the child's environment.
	// Variables that change what runs (PATH, LD_PRELOAD) are judged as if they
	// stood in front of the command.
	Env map[string]string
	// Facts tells what the vault holds, where the caller can look. Without it a
	// git command is judged by its words alone.
	Facts Facts
}

// Decision is the answer about one command.
type Decision struct {
	Action   Action    `json:"action"`
	Rule     string    `json:"rule"`            // the rule of the strictest segment; "default", "opaque" or "builtin:..." where no rule of the policy decided
	Reason   string    `json:"reason"`          // a sentence for people
	Token    string    `json:"token,omitempty"` // of the strictest segment
	Segments []Segment `json:"segments"`
}

// Segment is one part of a command with the answer about it.
type Segment struct {
	Text   string   `json:"text"`          // the part, for people; cut off past 256 bytes
	Argv   []string `json:"argv"`          // the words as far as they are known; a word that the run decides is shown as it was written
	Via    string   `json:"via,omitempty"` // what it is wrapped in, from the outside in: "sudo > env"
	Action Action   `json:"action"`
	Rule   string   `json:"rule"`
	Reason string   `json:"reason"`
	Token  string   `json:"token,omitempty"` // the words that decided; past 64 segments only where something does not simply run
}

// Names that stand in a decision where no rule of the policy decided.
const (
	RuleDefault = "default" // no rule knows the command
	RuleOpaque  = "opaque"  // the command cannot be understood
	builtinRule = "builtin:"

	gitConfigRule = builtinRule + "git-config"
)

// Policy is a set of compiled rules. It never changes after it was made and may
// be used by any number of goroutines.
type Policy struct {
	sets []*ruleset // at least one; the strictest answer wins
}

// ruleset is one policy text, compiled.
type ruleset struct {
	def, opaque Action
	rules       []*rule
	byProg      map[string][]*rule // rules that name their programs exactly, by lower-case name
	anyProg     []*rule            // the others
	digest      func() string
	approver    *Approver // nil: the text names nobody
}

//go:embed default.yaml
var defaultYAML []byte

// loadDefault compiles what default.yaml says. To read it as YAML takes several
// times as long as all the rest of a short command.
var loadDefault = sync.OnceValue(func() *Policy {
	rules := make([]*rule, len(defaultSpecs))
	for i, spec := range defaultSpecs {
		rules[i] = compile(spec)
	}
	return &Policy{sets: []*ruleset{newRuleset(defaultDef, defaultOpaque, rules)}}
})

// Default returns the policy that ships with avfs. A test holds that it is the one
// of DefaultYAML, and that all examples in its rules come true.
func Default() *Policy { return loadDefault() }

// DefaultYAML returns the text of the default policy, as a start for one's own.
func DefaultYAML() []byte { return slices.Clone(defaultYAML) }

// Combine returns a policy that answers with the strictest answer of all of its
// parts. Without parts it denies everything, for nobody said otherwise.
func Combine(policies ...*Policy) *Policy {
	c := &Policy{}
	for _, p := range policies {
		if p != nil {
			c.sets = append(c.sets, p.sets...)
		}
	}
	if len(c.sets) == 0 {
		c.sets = []*ruleset{newRuleset(Deny, Deny, nil)}
	}
	return c
}

// newRuleset indexes the rules by program.
func newRuleset(def, opaque Action, rules []*rule) *ruleset {
	s := &ruleset{def: def, opaque: opaque, rules: rules, byProg: map[string][]*rule{}}
	for _, r := range rules {
		if r.exactProgs() {
			for _, g := range r.progs {
				name := strings.ToLower(g.text)
				if !slices.Contains(s.byProg[name], r) {
					s.byProg[name] = append(s.byProg[name], r)
				}
			}
		} else {
			s.anyProg = append(s.anyProg, r)
		}
	}
	s.digest = sync.OnceValue(s.computeDigest)
	return s
}

// computeDigest hashes what the rules mean, not how their text is laid out.
func (s *ruleset) computeDigest() string {
	type canon struct {
		Version      int
		Def, Opaque  Action
		Descriptions []ruleSpec
	}
	c := canon{Version: 1, Def: s.def, Opaque: s.opaque}
	for _, r := range s.rules {
		spec := r.spec
		spec.Line = 0
		c.Descriptions = append(c.Descriptions, spec)
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic("policy: a rule cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Digest names the meaning of the policy: two policies with the same rules in the
// same order have the same digest, whatever their comments and layout.
func (p *Policy) Digest() string {
	if len(p.sets) == 1 {
		return p.sets[0].digest()
	}
	h := sha256.New()
	for _, s := range p.sets {
		h.Write([]byte(s.digest()))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Decide judges a command. It never panics and always returns at least one
// segment.
func (p *Policy) Decide(c Command) Decision {
	items := analyze(c)
	d := Decision{Segments: make([]Segment, 0, len(items))}
	for i := range items {
		if seg, ok := p.judge(&items[i], len(d.Segments) < maxExplained); ok {
			d.Segments = append(d.Segments, seg)
		}
	}
	if len(d.Segments) == 0 {
		it := item{kind: kindNeutral, id: "neutral", reason: "nothing is run"}
		seg, _ := p.judge(&it, true)
		d.Segments = append(d.Segments, seg)
	}
	worst := &d.Segments[0]
	for i := range d.Segments {
		// Of equally strict answers a setting of git tells most: its key.
		s := &d.Segments[i]
		if s.Action.StricterThan(worst.Action) || s.Action == worst.Action && s.Rule == gitConfigRule && worst.Rule != gitConfigRule {
			worst = s
		}
	}
	d.Action, d.Rule, d.Reason, d.Token = worst.Action, worst.Rule, worst.Reason, worst.Token
	return d
}

// judge returns the strictest verdict of all rule sets on one item, and false
// where the item is a mere wrapper that no rule mentions.
func (p *Policy) judge(it *item, explain bool) (Segment, bool) {
	v, ok := verdict{}, false
	for _, s := range p.sets {
		w, counts := s.judge(it)
		if counts && (!ok || w.action.StricterThan(v.action)) {
			v, ok = w, true
		}
	}
	if !ok {
		return Segment{}, false
	}
	seg := Segment{Text: it.display(), Argv: it.argv(), Via: it.via, Action: v.action, Rule: v.rule, Reason: v.reason}
	if explain || !v.action.Allows() {
		seg.Token = v.tokens(it)
	}
	return seg, true
}
