package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// checkDecision holds what every decision promises.
func checkDecision(t *testing.T, what string, d Decision) {
	t.Helper()
	if !d.Action.Valid() || d.Rule == "" || d.Reason == "" {
		t.Fatalf("%q: incomplete decision %+v", what, d)
	}
	if len(d.Segments) == 0 {
		t.Fatalf("%q: no segment", what)
	}
	worst := Allow
	for _, s := range d.Segments {
		if !s.Action.Valid() || s.Rule == "" || s.Reason == "" || s.Argv == nil {
			t.Fatalf("%q: incomplete segment %+v", what, s)
		}
		if len(s.Text) > maxText {
			t.Fatalf("%q: text of %d bytes", what, len(s.Text))
		}
		worst = Strictest(worst, s.Action)
	}
	if worst != d.Action {
		t.Fatalf("%q: the decision is %s, its strictest segment %s", what, d.Action, worst)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Fatalf("%q: %v", what, err)
	}
}

// FuzzDecide holds that no input makes a decision panic or come out incomplete, and
// that a denied command stays denied behind what the input says.
func FuzzDecide(f *testing.F) {
	for _, c := range readTable(f) {
		f.Add(c.command, "/")
	}
	for name, s := range hardCommands() {
		if len(s) < 4096 {
			f.Add(s, "/"+name)
		}
	}
	cases := mustParse(f, casesPolicy)
	f.Fuzz(func(t *testing.T, s, cwd string) {
		p := Default()
		c := Command{Shell: s, Cwd: cwd, Mount: "/mnt/v"}
		takeApart(c)
		start := time.Now()
		d := p.Decide(c)
		if took := time.Since(start); took > 2*time.Second {
			t.Fatalf("%q: decided in %v", s, took)
		}
		checkDecision(t, s, d)
		if again := p.Decide(c); again.Action != d.Action {
			t.Fatalf("%q: two answers, %s and %s", s, d.Action, again.Action)
		}
		checkDecision(t, s, cases.Decide(c))
		checkDecision(t, s, p.Decide(Command{Argv: strings.Fields(s), Cwd: cwd}))
		checkDecision(t, s, p.Decide(Command{Argv: []string{"sh", "-c", s}}))
		if behind := p.Decide(Command{Shell: "rm -rf /;\n" + s}); !behind.Action.StricterThan(AllowWithCheckpoint) {
			t.Fatalf("%q: in front of it rm -rf / is %s", s, behind.Action)
		}
		for _, c := range []Command{{Argv: []string{"git", "status"}, Cwd: cwd, Facts: repoFacts(s)}, {Shell: s, Facts: repoFacts(s)}} {
			checkDecision(t, s, p.Decide(c))
		}
	})
}

// FuzzParse holds that no text makes the parser of policies panic, and that what it
// accepts can be used.
func FuzzParse(f *testing.F) {
	f.Add(string(defaultYAML))
	f.Add(casesPolicy)
	f.Add("version: 1\nrules: [{id: a, prog: [b], action: deny, match: [b]}]\n")
	f.Add("rules: [{id: a, prefix: [[x, y], z], any_arg: [$ROOT], action: allow}]")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if !strings.HasPrefix(p.Digest(), "sha256:") {
			t.Fatal(p.Digest())
		}
		checkDecision(t, "ls && rm x", p.Decide(Command{Shell: "ls && rm x"}))
		if p.Lint() == nil {
			t.Fatal("Lint returned nil")
		}
	})
}
