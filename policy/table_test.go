package policy

import (
	"os"
	"strings"
	"testing"
)

// tableCase is one line of a table in testdata.
type tableCase struct {
	line    int
	want    Action
	command string
}

func readTable(t testing.TB) []tableCase {
	t.Helper()
	corpus, err := DefaultCorpus()
	if err != nil {
		t.Fatal(err)
	}
	var cases []tableCase
	for _, c := range corpus {
		cases = append(cases, tableCase{c.Line, c.Want, c.Shell})
	}
	return cases
}

func readCases(t testing.TB, name string) []tableCase {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var cases []tableCase
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		want, command, ok := strings.Cut(line, "\t")
		if !ok || !Action(want).Valid() {
			t.Fatalf("line %d: no decision in front of a tab: %q", i+1, line)
		}
		cases = append(cases, tableCase{i + 1, Action(want), strings.ReplaceAll(command, `\n`, "\n")})
	}
	return cases
}

// TestDefaultTable holds the default policy to a table of everyday and of harmful
// commands, so that a change of a rule shows what it changes.
func TestDefaultTable(t *testing.T) {
	cases := readTable(t)
	if len(cases) < 300 {
		t.Fatalf("the table has %d cases only", len(cases))
	}
	for _, c := range cases {
		if d := Default().Decide(Command{Shell: c.command}); d.Action != c.want {
			t.Errorf("line %d: %q: got %s, want %s (%s: %s)", c.line, c.command, d.Action, c.want, d.Rule, d.Reason)
		}
	}
}

// TestBypassTable holds the policy of the bypass cases to a table of disguises.
func TestBypassTable(t *testing.T) {
	p := mustParse(t, casesPolicy)
	for _, c := range readCases(t, "testdata/bypass.txt") {
		if d := p.Decide(Command{Shell: c.command}); d.Action != c.want {
			t.Errorf("line %d: %q: got %s, want %s (%s: %s)", c.line, c.command, d.Action, c.want, d.Rule, d.Reason)
		}
	}
}
