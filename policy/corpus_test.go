package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestDefaultCorpus holds the default policy to its corpus: every decision is the
// wanted one, nothing dangerous runs without asking, and next to nothing harmless asks.
func TestDefaultCorpus(t *testing.T) {
	cases, err := DefaultCorpus()
	if err != nil {
		t.Fatal(err)
	}
	r := Default().Test(cases)
	if r.Cases < 300 || r.Harmless < 150 || r.Dangerous < 150 {
		t.Errorf("the corpus is too small: %d commands, %d harmless, %d dangerous", r.Cases, r.Harmless, r.Dangerous)
	}
	if len(r.Failures) > 0 || r.Missed > 0 || r.FalseAlarmShare() > 0.02 {
		t.Errorf("%d failures, %d missed, %.1f %% false alarms", len(r.Failures), r.Missed, 100*r.FalseAlarmShare())
	}
	seen := map[string]int{}
	for _, c := range cases {
		if first, twice := seen[c.Shell]; twice {
			t.Errorf("line %d: %q stands on line %d already", c.Line, c.Shell, first)
		}
		seen[c.Shell] = c.Line
	}
}

// TestParseCorpus reads both forms, and names the line of what is wrong.
func TestParseCorpus(t *testing.T) {
	lines, err := ParseCorpus([]byte("# a comment\n\nask\tdangerous\tcurl x\r\nallow\t-\tls\\nls\ncheckpoint\tharmless\tmake\n"))
	if err != nil {
		t.Fatal(err)
	}
	form, err := ParseCorpus([]byte("# a comment\n- {want: ask, kind: dangerous, command: curl x}\n- want: allow\n  command: \"ls\\nls\"\n- {want: checkpoint, kind: harmless, argv: [make], cwd: /sub}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range lines {
		f := form[i]
		if c.Want != f.Want || c.Kind != f.Kind || c.Shell != f.Shell && !slices.Equal(f.Argv, []string{c.Shell}) {
			t.Errorf("%+v and %+v", c, f)
		}
	}
	r := mustParse(t, "deny: [make]\nallow: [ls, curl*]").Test(lines)
	if r.Missed != 1 || r.FalseAlarms != 1 || r.Harmless != 1 || r.Dangerous != 1 || len(r.Failures) != 2 || r.FalseAlarmShare() != 1 {
		t.Errorf("%+v", r)
	}
	for text, line := range map[string]int{
		"allow ls": 1, "\nperhaps\t-\tls": 2, "allow\twild\tls": 1, "- {want: allow, command: ls, more: x}": 1, "- {command: ls}": 1, "- x": 1,
	} {
		_, err := ParseCorpus([]byte(text))
		var pe *ParseError
		if !errors.As(err, &pe) || pe.Line != line {
			t.Errorf("%q: %v, want a fault in line %d", text, err, line)
		}
	}
	if _, err := ParseCorpus([]byte(strings.Repeat("#\n", maxCorpusBytes))); err == nil {
		t.Error("a corpus without bound is read")
	}
}
