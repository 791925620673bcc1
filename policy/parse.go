package policy

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ErrInvalid is what every error of Parse is, for errors.Is.
var ErrInvalid = errors.New("invalid policy")

// ParseError says where a policy text is wrong, and how.
type ParseError struct {
	Line int    // counted from 1; 0 where the text as a whole is meant
	Rule string // the id of the rule, where there is one
	Msg  string
}

// Error returns the place and the fault in one line.
func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString("policy")
	if e.Line > 0 {
		fmt.Fprintf(&b, " line %d", e.Line)
	}
	if e.Rule != "" {
		fmt.Fprintf(&b, ", rule %q", e.Rule)
	}
	return b.String() + ": " + e.Msg
}

// Is makes every ParseError an ErrInvalid.
func (e *ParseError) Is(target error) bool { return target == ErrInvalid }

// Limits on the size of a policy text.
const (
	maxPolicyBytes = 1 << 20
	maxRules       = 4096
)

// Parse compiles a policy text. It is strict: an unknown field, an unknown action
// or a rule that says nothing is a *ParseError with its line. The short list form
// (allow, checkpoint, ask, deny with patterns) may stand beside rules or alone.
// Without "default" and "opaque" both are require_approval.
func Parse(text []byte) (*Policy, error) {
	if len(text) > maxPolicyBytes {
		return nil, &ParseError{Msg: fmt.Sprintf("the text has %d bytes, the limit is %d", len(text), maxPolicyBytes)}
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		return nil, &ParseError{Msg: err.Error()}
	}
	n := &doc
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	set, err := parseTop(n)
	if err != nil {
		return nil, err
	}
	return &Policy{sets: []*ruleset{set}}, nil
}

// listActions are the keys of the short list form.
var listActions = map[string]Action{
	"allow":                 Allow,
	"checkpoint":            AllowWithCheckpoint,
	"allow_with_checkpoint": AllowWithCheckpoint,
	"ask":                   RequireApproval,
	"require_approval":      RequireApproval,
	"deny":                  Deny,
}

func parseTop(n *yaml.Node) (*ruleset, error) {
	def, opaque := RequireApproval, RequireApproval
	var rules []*rule
	var approver *Approver
	err := eachField(n, func(key string, v *yaml.Node) error {
		var err error
		if a, ok := listActions[key]; ok {
			rules, err = parseList(rules, key, a, v)
			return err
		}
		switch key {
		case "version":
			var version int
			if version, err = intOf(v); err == nil && version != 1 {
				err = &ParseError{Line: v.Line, Msg: fmt.Sprintf("version %d is unknown: this build reads version 1", version)}
			}
		case "default":
			def, err = actionOf(v)
		case "opaque":
			opaque, err = actionOf(v)
			if err == nil && opaque == Allow {
				err = &ParseError{Line: v.Line, Msg: "opaque must not be allow: what cannot be understood is never simply allowed"}
			}
		case "rules":
			rules, err = parseRules(rules, v)
		case "approver":
			approver, err = approverOf(v)
		default:
			err = unknownField(key, v.Line)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(rules) > maxRules {
		return nil, &ParseError{Msg: fmt.Sprintf("there are %d rules, the limit is %d", len(rules), maxRules)}
	}
	set := newRuleset(def, opaque, rules)
	set.approver = approver
	return set, nil
}

// parseList reads one key of the short list form.
func parseList(rules []*rule, key string, a Action, n *yaml.Node) ([]*rule, error) {
	items, err := elements(n)
	if err != nil {
		return nil, err
	}
	for _, e := range items {
		s, err := stringOf(e)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(s) == "" {
			return nil, &ParseError{Line: e.Line, Msg: key + " has an empty pattern"}
		}
		spec := ruleSpec{ID: key + ": " + s, Pattern: s, Action: a, Line: e.Line}
		rules = append(rules, compile(spec))
	}
	return rules, nil
}

func parseRules(rules []*rule, n *yaml.Node) ([]*rule, error) {
	items, err := elements(n)
	if err != nil {
		return nil, err
	}
	for i, e := range items {
		spec, err := parseRule(e)
		if err != nil {
			return nil, inRule(err, spec.ID, i)
		}
		rules = append(rules, compile(spec))
	}
	return rules, nil
}

// inRule names the rule in an error about one of its fields.
func inRule(err error, id string, index int) error {
	var pe *ParseError
	if errors.As(err, &pe) && pe.Rule == "" {
		if id == "" {
			id = fmt.Sprintf("#%d", index+1)
		}
		return &ParseError{Line: pe.Line, Rule: id, Msg: pe.Msg}
	}
	return err
}

func parseRule(n *yaml.Node) (ruleSpec, error) {
	spec := ruleSpec{Line: n.Line}
	err := eachField(n, func(key string, v *yaml.Node) error {
		var err error
		switch key {
		case "id":
			spec.ID, err = stringOf(v)
		case "prog":
			spec.Prog, err = stringsOf(v)
		case "prefix":
			spec.Prefix, err = groupsOf(v)
		case "all_flags":
			spec.AllFlags, err = groupsOf(v)
		case "any_flag":
			spec.AnyFlag, err = stringsOf(v)
		case "any_arg":
			spec.AnyArg, err = argsOf(v)
		case "last_arg":
			spec.LastArg, err = argsOf(v)
		case "reads":
			spec.Reads, err = argsOf(v)
		case "writes":
			spec.Writes, err = argsOf(v)
		case "network":
			spec.Network, err = boolOf(v)
			if err == nil && !spec.Network {
				err = &ParseError{Line: v.Line, Msg: "network is true or left out: no rule can ask for what does not happen"}
			}
		case "action":
			spec.Action, err = actionOf(v)
		case "reason":
			spec.Reason, err = stringOf(v)
		case "fallback":
			spec.Fallback, err = boolOf(v)
		case "match":
			spec.Match, err = stringsOf(v)
		case "not_match":
			spec.NotMatch, err = stringsOf(v)
		default:
			err = unknownField(key, v.Line)
		}
		return err
	})
	if err != nil {
		return spec, err
	}
	return spec, checkRule(&spec)
}

// checkRule refuses what cannot be meant.
func checkRule(s *ruleSpec) error {
	switch {
	case s.ID == "":
		return &ParseError{Line: s.Line, Msg: "a rule needs an id"}
	case s.Action == "":
		return &ParseError{Line: s.Line, Msg: "a rule needs an action"}
	case strings.HasPrefix(s.ID, builtinRule), s.ID == RuleDefault, s.ID == RuleOpaque:
		return &ParseError{Line: s.Line, Msg: fmt.Sprintf("the id %q is taken", s.ID)}
	}
	if len(s.Prog)+len(s.Prefix)+len(s.AllFlags)+len(s.AnyFlag)+len(s.AnyArg)+len(s.LastArg)+len(s.Reads)+len(s.Writes) == 0 && !s.Network {
		return &ParseError{Line: s.Line, Msg: `a rule needs a condition; write prog: ["*"] for every program`}
	}
	return nil
}

func unknownField(key string, line int) error {
	return &ParseError{Line: line, Msg: fmt.Sprintf("unknown field %q", key)}
}

// eachField calls fn for every field of a mapping and refuses a repeated one.
func eachField(n *yaml.Node, fn func(key string, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return &ParseError{Line: n.Line, Msg: "want a mapping of fields"}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := stringOf(n.Content[i])
		if err != nil {
			return err
		}
		if seen[key] {
			return &ParseError{Line: n.Content[i].Line, Msg: fmt.Sprintf("field %q stands twice", key)}
		}
		seen[key] = true
		if err := fn(key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func elements(n *yaml.Node) ([]*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, &ParseError{Line: n.Line, Msg: "want a list"}
	}
	return n.Content, nil
}

func stringOf(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", &ParseError{Line: n.Line, Msg: "want a text"}
	}
	return n.Value, nil
}

func stringsOf(n *yaml.Node) ([]string, error) {
	items, err := elements(n)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(items))
	for _, e := range items {
		s, err := stringOf(e)
		if err != nil {
			return nil, err
		}
		if s == "" {
			return nil, &ParseError{Line: e.Line, Msg: "an empty text matches nothing"}
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, &ParseError{Line: n.Line, Msg: "an empty list matches nothing"}
	}
	return out, nil
}

// groupsOf reads a list of lists. A single text may stand for its group.
func groupsOf(n *yaml.Node) ([][]string, error) {
	items, err := elements(n)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, e := range items {
		if e.Kind == yaml.ScalarNode {
			e = &yaml.Node{Kind: yaml.SequenceNode, Line: e.Line, Content: []*yaml.Node{e}}
		}
		g, err := stringsOf(e)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	if len(out) == 0 {
		return nil, &ParseError{Line: n.Line, Msg: "an empty list matches nothing"}
	}
	return out, nil
}

// argsOf reads argument patterns and refuses a class that does not exist.
func argsOf(n *yaml.Node) ([]string, error) {
	out, err := stringsOf(n)
	for i, s := range out {
		if strings.HasPrefix(s, "$") && strings.ToUpper(s) == s && !validClass(s) {
			return nil, &ParseError{Line: n.Content[i].Line, Msg: fmt.Sprintf("unknown class %q: want $ROOT, $SYSTEM, $OUTSIDE, $TEMP, $DEVICE or $DYNAMIC", s)}
		}
	}
	return out, err
}

func actionOf(n *yaml.Node) (Action, error) {
	s, err := stringOf(n)
	if err != nil {
		return "", err
	}
	a, err := ParseAction(s)
	if err != nil {
		return "", &ParseError{Line: n.Line, Msg: err.Error()}
	}
	return a, nil
}

func intOf(n *yaml.Node) (int, error) {
	var v int
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil {
		return 0, &ParseError{Line: n.Line, Msg: "want a whole number"}
	}
	return v, nil
}

func boolOf(n *yaml.Node) (bool, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "true":
		return true, nil
	case n.Kind == yaml.ScalarNode && n.Value == "false":
		return false, nil
	}
	return false, &ParseError{Line: n.Line, Msg: "want true or false"}
}
