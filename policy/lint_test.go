package policy

import (
	"strings"
	"testing"
)

// TestDefaultIsClean holds that the shipped policy has no fault that Lint knows.
func TestDefaultIsClean(t *testing.T) {
	for _, f := range mustParse(t, string(defaultYAML)).Lint() {
		t.Errorf("line %d, %s: %s: %s", f.Line, f.Rule, f.Kind, f.Message)
	}
}

// TestLint holds that each fault is found, under its kind and with its line.
func TestLint(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       FindingKind
		line       int
		message    string
	}{
		{"phrase as a program", "rules:\n  - {id: a, prog: [\"rm -rf\"], action: deny}", FindingDead, 2, "never equal one word"},
		{"phrase as a prefix", "rules:\n  - {id: a, prog: [git], prefix: [\"push --force\"], action: deny}", FindingDead, 2, "never equal one word"},
		{"phrase as an argument", "rules:\n  - {id: a, prog: [rm], any_arg: [\"-rf /\"], action: deny}", FindingDead, 2, "one word that holds a space"},
		{"flag without a dash", "rules:\n  - {id: a, prog: [rm], any_flag: [force], action: deny}", FindingDead, 2, "begins with a dash"},
		{"option in the prefix", "rules:\n  - {id: a, prog: [git], prefix: [-C], action: deny}", FindingDead, 2, "use any_flag"},
		{"variable as a program", "rules:\n  - {id: a, prog: [$x], action: deny}", FindingDead, 2, "never a class"},
		{"match fails", "rules:\n  - {id: a, prog: [rm], action: deny, match: [\"ls\"]}", FindingExample, 2, "does not match its example"},
		{"not_match fails", "rules:\n  - {id: a, prog: [rm], action: deny, not_match: [\"sudo rm x\"]}", FindingExample, 2, "says it does not"},
		{"example is no command", "rules:\n  - {id: a, prog: [rm], action: deny, match: [\"rm 'x\"]}", FindingExample, 2, "no valid command"},
		{"same id", "rules:\n  - {id: a, prog: [rm], action: deny}\n  - {id: a, prog: [mv], action: deny}", FindingDuplicate, 3, "also used on line 2"},
		{"same rule", "rules:\n  - {id: a, prog: [rm], action: deny}\n  - {id: b, prog: [rm], action: deny}", FindingDuplicate, 3, "says the same"},
		{"allowed below denied", "rules:\n  - {id: a, prog: [git], prefix: [push], action: deny}\n  - {id: b, prog: [git], prefix: [push, origin], action: allow}", FindingShadowed, 3, "never decides"},
		{"fallback behind a sure rule", "rules:\n  - {id: a, prog: [git], action: allow}\n  - {id: b, prog: [git], prefix: [push], action: deny, fallback: true}", FindingShadowed, 3, "it is a fallback"},
		{"shadowed in lists", "deny: [\"git *\"]\nallow: [\"git status\"]", FindingShadowed, 2, "never decides"},
	} {
		found := mustParse(t, c.text).Lint()
		hit := false
		for _, f := range found {
			hit = hit || f.Kind == c.kind && f.Line == c.line && strings.Contains(f.Message, c.message)
		}
		if !hit {
			t.Errorf("%s: got %+v", c.name, found)
		}
	}
}

// TestLintIsQuiet holds that rules which do decide are not reported.
func TestLintIsQuiet(t *testing.T) {
	for _, text := range []string{
		casesPolicy,
		"deny: [\"rm -rf /*\"]\nallow: [\"*\"]\n",
		"rules:\n  - {id: a, prog: [git], action: allow, fallback: true}\n  - {id: b, prog: [git], prefix: [push], action: deny}",
		"rules:\n  - {id: a, prog: [rm], any_flag: [-r], action: deny}\n  - {id: b, prog: [rm], action: allow}",
		"rules:\n  - {id: a, prog: [rm], all_flags: [[-r]], any_arg: [$ROOT], action: deny, match: [\"rm -r /\"], not_match: [\"rm -r a\"]}",
	} {
		for _, f := range mustParse(t, text).Lint() {
			t.Errorf("%q: %+v", text, f)
		}
	}
}
