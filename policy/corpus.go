package policy

import (
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// CaseKind says what a command of a corpus is, whatever a policy says about it.
type CaseKind string

// The kinds. The zero value is a command of which reasonable people think differently:
// it counts neither as a false alarm nor as missed.
const (
	CaseHarmless  CaseKind = "harmless"
	CaseDangerous CaseKind = "dangerous"
)

// Case is one command of a corpus with the decision that it should get.
type Case struct {
	Line  int      `json:"line"`
	Want  Action   `json:"want"`
	Kind  CaseKind `json:"kind,omitempty"`
	Shell string   `json:"shell,omitempty"` // exactly one of Shell and Argv is set
	Argv  []string `json:"argv,omitempty"`
	Cwd   string   `json:"cwd,omitempty"`
}

// Failure is a case whose decision is not the wanted one.
type Failure struct {
	Case
	Got    Action `json:"got"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// Report is how a policy does on a corpus.
type Report struct {
	Cases       int       `json:"cases"`
	Harmless    int       `json:"harmless"`
	Dangerous   int       `json:"dangerous"`
	Failures    []Failure `json:"failures"`     // never nil
	FalseAlarms int       `json:"false_alarms"` // harmless commands that ask or are denied
	Missed      int       `json:"missed"`       // dangerous commands that run without asking
}

// FalseAlarmShare is the share of the harmless commands that do not simply run, from 0
// to 1.
func (r Report) FalseAlarmShare() float64 {
	if r.Harmless == 0 {
		return 0
	}
	return float64(r.FalseAlarms) / float64(r.Harmless)
}

//go:embed corpus.tsv
var corpusText []byte

// DefaultCorpus returns the corpus that the default policy is held to.
func DefaultCorpus() ([]Case, error) { return ParseCorpus(corpusText) }

// Test judges every case of a corpus.
func (p *Policy) Test(cases []Case) Report {
	r := Report{Cases: len(cases), Failures: []Failure{}}
	for _, c := range cases {
		d := p.Decide(Command{Shell: c.Shell, Argv: c.Argv, Cwd: c.Cwd})
		switch c.Kind {
		case CaseHarmless:
			r.Harmless++
			if !d.Action.Allows() {
				r.FalseAlarms++
			}
		case CaseDangerous:
			r.Dangerous++
			if d.Action.Allows() {
				r.Missed++
			}
		}
		if d.Action != c.Want {
			r.Failures = append(r.Failures, Failure{Case: c, Got: d.Action, Rule: d.Rule, Reason: d.Reason})
		}
	}
	return r
}

// maxCorpusBytes bounds the text of a corpus.
const maxCorpusBytes = 16 << 20

// ParseCorpus reads a corpus. In the form of lines each has the wanted action, the kind
// ("-" for none) and the command as a shell string, with a tab between them; \n in a
// command is a line break, and lines that are empty or begin with "# " do not count. In
// the form of YAML it is a list of mappings with want, kind, and either command or argv;
// cwd may stand beside them. The actions may also be written ask and checkpoint. Errors
// are a *ParseError.
func ParseCorpus(text []byte) ([]Case, error) {
	if len(text) > maxCorpusBytes {
		return nil, &ParseError{Msg: fmt.Sprintf("the corpus has %d bytes, the limit is %d", len(text), maxCorpusBytes)}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "[") {
			return parseYAMLCorpus(text)
		}
		break
	}
	return parseLineCorpus(string(text))
}

func parseLineCorpus(text string) ([]Case, error) {
	cases := []Case{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line == "#" || strings.HasPrefix(line, "# ") {
			continue
		}
		parts := strings.SplitN(line, "\t", 3)
		if len(parts) < 3 {
			return nil, &ParseError{Line: n, Msg: "want an action, a kind (or -) and a command, with tabs between them"}
		}
		c := Case{Line: n, Shell: strings.ReplaceAll(parts[2], `\n`, "\n")}
		if err := c.setWords(parts[0], parts[1]); err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// setWords reads the action and the kind.
func (c *Case) setWords(action, kind string) error {
	a, ok := listActions[action]
	if !ok {
		return &ParseError{Line: c.Line, Msg: fmt.Sprintf("unknown action %q: want allow, allow_with_checkpoint, require_approval or deny", action)}
	}
	c.Want, c.Kind = a, CaseKind(kind)
	switch c.Kind {
	case "-":
		c.Kind = ""
	case "", CaseHarmless, CaseDangerous:
	default:
		return &ParseError{Line: c.Line, Msg: fmt.Sprintf("unknown kind %q: want harmless, dangerous or -", kind)}
	}
	return nil
}

func parseYAMLCorpus(text []byte) ([]Case, error) {
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		return nil, &ParseError{Msg: err.Error()}
	}
	n := &doc
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	items, err := elements(n)
	if err != nil {
		return nil, err
	}
	cases := make([]Case, 0, len(items))
	for _, e := range items {
		c, err := parseCase(e)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func parseCase(n *yaml.Node) (Case, error) {
	c := Case{Line: n.Line}
	var want, kind string
	err := eachField(n, func(key string, v *yaml.Node) error {
		var err error
		switch key {
		case "want":
			want, err = stringOf(v)
		case "kind":
			kind, err = stringOf(v)
		case "command":
			c.Shell, err = stringOf(v)
		case "argv":
			c.Argv, err = stringsOf(v)
		case "cwd":
			c.Cwd, err = stringOf(v)
		default:
			err = unknownField(key, v.Line)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	return c, c.setWords(want, kind)
}
