package policy

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestActionLattice holds that the actions form one order from lax to strict.
func TestActionLattice(t *testing.T) {
	all := Actions()
	if want := []Action{Allow, AllowWithCheckpoint, RequireApproval, Deny}; !slices.Equal(all, want) {
		t.Fatalf("got %v", all)
	}
	for i, a := range all {
		for j, b := range all {
			if a.StricterThan(b) != (i > j) || (a.Compare(b) > 0) != (i > j) {
				t.Errorf("%s and %s compare wrongly", a, b)
			}
			if got := Strictest(a, b); got != all[max(i, j)] || Strictest(b, a) != got {
				t.Errorf("Strictest(%s, %s) = %s", a, b, got)
			}
			if got := laxest(a, b); got != all[min(i, j)] {
				t.Errorf("laxest(%s, %s) = %s", a, b, got)
			}
			for _, c := range all {
				if Strictest(a, Strictest(b, c)) != Strictest(Strictest(a, b), c) {
					t.Errorf("Strictest is not associative for %s, %s, %s", a, b, c)
				}
			}
		}
	}
	if !Action("").StricterThan(Deny) || Action("").Valid() || Action("").Allows() {
		t.Error("the zero action must never allow anything")
	}
	if _, err := ParseAction("Allow"); err == nil {
		t.Error("an unknown action parses")
	}
}

// TestParseErrors holds that a policy that is not understood is refused with its line.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		text, want string
		line       int
	}{
		{"version: 1\nunknown: 2\n", `unknown field "unknown"`, 2},
		{"version: 2\n", "version 2 is unknown", 1},
		{"version: one\n", "want a whole number", 1},
		{"default: maybe\n", `unknown action "maybe"`, 1},
		{"opaque: allow\n", "opaque must not be allow", 1},
		{"rules:\n  - id: a\n    prog: [b]\n", "needs an action", 2},
		{"rules:\n  - prog: [b]\n    action: deny\n", "needs an id", 2},
		{"rules:\n  - id: a\n    action: deny\n", "needs a condition", 2},
		{"rules:\n  - id: a\n    prog: [b]\n    action: denied\n", `unknown action "denied"`, 4},
		{"rules:\n  - id: a\n    progs: [b]\n    action: deny\n", `unknown field "progs"`, 3},
		{"rules:\n  - id: a\n    prog: b\n    action: deny\n", "want a list", 3},
		{"rules:\n  - id: a\n    prog: []\n    action: deny\n", "an empty list matches nothing", 3},
		{"rules:\n  - id: a\n    any_arg: [$ROOF]\n    action: deny\n", `unknown class "$ROOF"`, 3},
		{"rules:\n  - id: a\n    prog: [b]\n    action: deny\n    fallback: perhaps\n", "want true or false", 5},
		{"rules:\n  - id: default\n    prog: [b]\n    action: deny\n", "is taken", 2},
		{"rules:\n  - id: a\n    id: b\n", "stands twice", 3},
		{"deny: [\"\"]\n", "empty pattern", 1},
		{"deny: rm\n", "want a list", 1},
		{"- a\n", "want a mapping", 1},
		{"a: [\n", "", 0},
		{"", "", 0},
	} {
		p, err := Parse([]byte(c.text))
		var pe *ParseError
		switch {
		case p != nil || !errors.As(err, &pe) || !errors.Is(err, ErrInvalid):
			t.Errorf("%q: got %v, %v", c.text, p, err)
		case !strings.Contains(err.Error(), c.want) || pe.Line != c.line:
			t.Errorf("%q: got line %d, %v; want line %d, %q", c.text, pe.Line, err, c.line, c.want)
		}
	}
	if _, err := Parse([]byte(strings.Repeat("#", maxPolicyBytes+1))); !errors.Is(err, ErrInvalid) {
		t.Errorf("an endless policy: %v", err)
	}
}

// TestRuleFields holds what each condition of a rule means.
func TestRuleFields(t *testing.T) {
	p := mustParse(t, `
version: 1
default: allow
opaque: require_approval
rules:
  - {id: flags, prog: [a], all_flags: [[-r, --recursive], [-f, --force]], action: deny}
  - {id: prefix, prog: [git], prefix: [remote, [add, rm]], action: deny}
  - {id: arg, prog: [b], any_arg: ["of=*", secret], action: require_approval}
  - {id: last, prog: [c], last_arg: [$OUTSIDE], action: deny}
  - {id: fall, prog: [d], action: deny, fallback: true}
  - {id: sure, prog: [d], prefix: [ok], action: allow_with_checkpoint}
  - {id: glob, prog: ["mk*"], action: deny}
  - {id: device, any_arg: [$DEVICE], action: deny}
  - {id: path, prog: ["./tool"], action: allow}
`)
	for _, c := range []struct {
		shell, rule string
		action      Action
	}{
		{"a -rf x", "flags", Deny}, {"a -f x --recursive", "flags", Deny}, {"a --rec --fo", "flags", Deny}, {"a -r x", RuleDefault, Allow}, {"a -- -rf", RuleDefault, Allow},
		{"a -r $opt x", "flags", RequireApproval}, {"a -r \"$f\"", RuleDefault, Allow},
		{"git remote add x y", "prefix", Deny}, {"git -C d remote -v rm x", "prefix", Deny}, {"git remote", RuleDefault, Allow}, {"git add remote", RuleDefault, Allow}, {"git remote $x", "prefix", RequireApproval},
		{"git --unknown x remote add y", "prefix", Deny},
		{"b if=x of=y", "arg", RequireApproval}, {"b secret", "arg", RequireApproval}, {"b secrets", RuleDefault, Allow},
		{"c a /srv/x", "last", Deny}, {"c /srv/x a", RuleDefault, Allow}, {"c a /srv/x -v", "last", Deny},
		{"d", "fall", Deny}, {"d ok", "sure", AllowWithCheckpoint},
		{"mkfoo", "glob", Deny}, {"MKFOO", "glob", Deny}, {"x/mkfoo", "glob", Deny},
		{"anything /dev/sda", "device", Deny}, {"anything > /dev/sda", "device", Deny}, {"anything > /dev/null", RuleDefault, Allow},
		{"./tool", "path", Allow}, {"./other", RuleDefault, AllowWithCheckpoint}, {"other", RuleDefault, Allow},
		{"$x", RuleOpaque, RequireApproval},
	} {
		d := p.Decide(Command{Shell: c.shell})
		if d.Action != c.action || d.Rule != c.rule {
			t.Errorf("%q: got %s by %s, want %s by %s", c.shell, d.Action, d.Rule, c.action, c.rule)
		}
	}
}

// TestListForm holds the short form to its meaning, first of all that a whole phrase
// in a deny list is not a dead rule.
func TestListForm(t *testing.T) {
	p := mustParse(t, "deny: [\"rm -rf /*\"]\nallow: [\"*\"]\nask: [\"npm publish\"]\ncheckpoint: [\"make*\"]\n")
	for shell, want := range map[string]Action{
		"rm -rf /": Deny, "rm -rf /etc": Deny, "rm -fr /": Deny, "rm -r -f /": Deny, "rm --recursive --force /x": Deny, "rm -r /x": Allow, "rm -rf x": Allow, "rm x": Allow,
		"npm publish": RequireApproval, "npm --silent publish": RequireApproval, "npm test": Allow,
		"make": AllowWithCheckpoint, "make all": AllowWithCheckpoint, "ls": Allow, "ls 'x": RequireApproval, "$x": RequireApproval,
	} {
		if d := p.Decide(Command{Shell: shell}); d.Action != want {
			t.Errorf("%q: got %s by %s, want %s", shell, d.Action, d.Rule, want)
		}
	}
	if d := p.Decide(Command{Argv: []string{"rm", "-rf", "/"}}); d.Action != Deny {
		t.Errorf("as an argument list: %s", d.Action)
	}
}

// TestCombine holds that two policies together are never laxer than one of them.
func TestCombine(t *testing.T) {
	a, b := Default(), mustParse(t, casesPolicy)
	both := Combine(a, b)
	for _, c := range readTable(t) {
		cmd := Command{Shell: c.command}
		want := Strictest(a.Decide(cmd).Action, b.Decide(cmd).Action)
		if got := both.Decide(cmd).Action; got.Compare(want) != 0 {
			t.Errorf("%q: got %s, want %s", c.command, got, want)
		}
	}
	if d := Combine().Decide(Command{Shell: "ls"}); d.Action != Deny {
		t.Errorf("no policy at all says %s", d.Action)
	}
	if Combine(a).Digest() != a.Digest() || both.Digest() == a.Digest() || both.Digest() != Combine(a, b).Digest() || both.Digest() == Combine(b, a).Digest() {
		t.Error("the digest of a combination does not name it")
	}
}

// TestDigest holds that the digest follows the meaning, not the layout.
func TestDigest(t *testing.T) {
	a := mustParse(t, "rules: [{id: a, prog: [b], action: deny}]")
	same := mustParse(t, "# comment\nversion: 1\nrules:\n  - action: deny\n    id: a\n    prog:\n      - b\n    match: [b]\n")
	other := mustParse(t, "rules: [{id: a, prog: [b], action: require_approval}]")
	if a.Digest() != same.Digest() {
		t.Error("layout changes the digest")
	}
	if a.Digest() == other.Digest() || a.Digest() == Default().Digest() {
		t.Error("meaning does not change the digest")
	}
}

// TestArgvIsNotParsed holds that an argument list is taken as it is.
func TestArgvIsNotParsed(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want Action
	}{
		{[]string{"echo", "$(rm -rf /)"}, Allow},
		{[]string{"echo", ";", "rm", "-rf", "/"}, Allow},
		{[]string{"rm", "-rf", "/"}, Deny},
		{[]string{"sh", "-c", "rm -rf /"}, Deny},
		{[]string{"sh", "-c", "echo \"$1\"", "x", "rm -rf /"}, Allow},
		{[]string{"sh", "-c", "$1 -rf /", "x", "rm"}, Deny},
		{[]string{"sh", "-c", "\"$@\"", "x", "rm"}, RequireApproval},
		{[]string{"env", "A=1", "rm", "-rf", "/"}, Deny},
		{[]string{"rm -rf /"}, AllowWithCheckpoint},
		{[]string{""}, RequireApproval},
		{[]string{"ls\u00a0x"}, RequireApproval},
		{[]string{"cat", strings.Repeat("x", maxInput)}, RequireApproval},
		{[]string{"sh"}, RequireApproval},
		{nil, RequireApproval},
	} {
		if d := Default().Decide(Command{Argv: c.argv}); d.Action != c.want {
			t.Errorf("%.60q: got %s by %s (%s), want %s", c.argv, d.Action, d.Rule, d.Reason, c.want)
		}
	}
	if d := Default().Decide(Command{Argv: []string{"ls"}, Shell: "ls"}); d.Action != RequireApproval {
		t.Errorf("both forms at once: %s", d.Action)
	}
}

// TestWorkingDirectory holds that paths are judged from where the command runs.
func TestWorkingDirectory(t *testing.T) {
	for _, c := range []struct {
		cwd, mount, shell string
		want              Action
	}{
		{"/", "", "rm -rf ..", Deny},
		{"/a/b", "", "rm -rf ../b2", AllowWithCheckpoint},
		{"/a/b", "", "rm -rf ..", Deny},
		{"/a/b", "", "rm -rf ../..", Deny},
		{"/a/b", "", "rm -rf *", AllowWithCheckpoint},
		{"/a/b", "", "rm -rf ../*", Deny},
		{"/a", "", "echo x > ../f", AllowWithCheckpoint},
		{"/a", "", "echo x > ../../f", RequireApproval},
		{"", "", "echo x > f", AllowWithCheckpoint},
		{"/", "/mnt/v", "echo x > /mnt/v/f", AllowWithCheckpoint},
		{"/", "/mnt/v", "rm -rf /mnt/v", Deny},
		{"/", "/mnt/v", "rm -rf /mnt/v/build", AllowWithCheckpoint},
		{"/", "/mnt/v", "echo x > /mnt/other", RequireApproval},
		{"/", "/mnt/v", "cd /mnt/v/a && rm -rf b", AllowWithCheckpoint},
		{"/", "/mnt/v", "cd /etc && touch x", Deny},
		{"/", "", "cd sub && rm -rf ../x", AllowWithCheckpoint},
		{"/", "", "cd sub && rm -rf ..", Deny},
		{"/", "", "(cd /etc); touch x", AllowWithCheckpoint},
	} {
		d := Default().Decide(Command{Shell: c.shell, Cwd: c.cwd, Mount: c.mount})
		if d.Action != c.want {
			t.Errorf("in %q, mount %q: %q: got %s by %s, want %s", c.cwd, c.mount, c.shell, d.Action, d.Rule, c.want)
		}
	}
}

// TestEnvironment holds that variables from the caller are judged like those in the
// script, and that their values are used.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, value, shell string
		want               Action
	}{
		{"A", "1", "ls", Allow},
		{"LD_PRELOAD", "./x.so", "ls", RequireApproval},
		{"PATH", "/usr/bin:/bin", "ls", Allow},
		{"PATH", "bin:/usr/bin", "ls", RequireApproval},
		{"DIR", "/", "rm -rf $DIR", Deny},
		{"DIR", "build", "rm -rf $DIR", AllowWithCheckpoint},
		{"CMD", "rm -rf /", "$CMD", Deny},
	} {
		d := Default().Decide(Command{Shell: c.shell, Env: map[string]string{c.name: c.value}})
		if d.Action != c.want {
			t.Errorf("%s=%s %s: got %s by %s, want %s", c.name, c.value, c.shell, d.Action, d.Rule, c.want)
		}
	}
}

// TestLimits holds that what is too large or too deep is opaque, and that data is
// not taken for too much code.
func TestLimits(t *testing.T) {
	for name, s := range map[string]string{
		"bytes":    "echo " + strings.Repeat("x", maxInput),
		"commands": strings.Repeat("ls;", maxSegments+10) + "ls",
		"pipe":     strings.Repeat("ls | ", 2000) + "ls",
		"depth":    strings.Repeat("$(", 200) + "ls" + strings.Repeat(")", 200),
		"wrappers": strings.Repeat("env ", maxDepth+5) + "ls",
		"zero":     "ls \x00",
	} {
		if d := Default().Decide(Command{Shell: s}); d.Action != RequireApproval || d.Rule != RuleOpaque {
			t.Errorf("%s: %s by %s", name, d.Action, d.Rule)
		}
	}
	table := strings.Repeat("| a | b | c && d; e |\n", 1500)
	for _, s := range []string{"cat <<'E'\n" + table + "E\n", "echo '" + table + "'", "echo \"" + table + "\""} {
		if d := Default().Decide(Command{Shell: s}); d.Action != Allow {
			t.Errorf("%.20q: %s by %s: %s", s, d.Action, d.Rule, d.Reason)
		}
	}
	if d := Default().Decide(Command{Shell: strings.Repeat("ls;", maxSegments-1) + "ls"}); d.Action != Allow {
		t.Errorf("%d commands: %s, %s", maxSegments, d.Action, d.Reason)
	}
}

// TestSegments holds that a decision tells what each part is wrapped in.
func TestSegments(t *testing.T) {
	d := Default().Decide(Command{Shell: "ls; sudo env A=1 sh -c 'rm -rf /'"})
	var got []string
	for _, s := range d.Segments {
		got = append(got, s.Via+"|"+s.Text+"|"+string(s.Action))
	}
	want := []string{"|ls|allow", "|sudo env A=1 sh -c 'rm -rf /'|deny", "sudo|env A=1 sh -c 'rm -rf /'|allow", "sudo > env > sh|rm -rf /|deny"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestConcurrentUse holds that one policy serves many goroutines.
func TestConcurrentUse(t *testing.T) {
	p := Default()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if d := p.Decide(Command{Shell: "ls && rm -rf /"}); d.Action != Deny {
					t.Error(d.Action)
				}
				p.Digest()
			}
		})
	}
	wg.Wait()
}

// TestGoldenJSON pins the JSON form of decisions and findings.
func TestGoldenJSON(t *testing.T) {
	bad := mustParse(t, "rules:\n  - {id: phrase, prog: [\"rm -rf\"], action: deny}\n")
	doc := map[string]any{
		"allowed":  Default().Decide(Command{Argv: []string{"ls", "-la"}}),
		"wrapped":  Default().Decide(Command{Shell: "cd src && timeout 5 rm -rf / > ~/log"}),
		"opaque":   Default().Decide(Command{Shell: "$x a"}),
		"invalid":  Default().Decide(Command{Shell: "ls 'x"}),
		"findings": bad.Lint(),
	}
	got, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const name = "testdata/golden.json"
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the JSON form changed:\n%s", got)
	}
}

// TestTerminal holds that a shell at a terminal is the person's who types there, and that
// everything else is judged as ever.
func TestTerminal(t *testing.T) {
	for _, c := range []struct {
		cmd  Command
		rule string
	}{
		{Command{Argv: []string{"/bin/sh"}, Terminal: true}, RuleDefault},
		{Command{Argv: []string{"nice", "bash", "-i"}, Terminal: true}, RuleDefault},
		{Command{Argv: []string{"/bin/sh"}}, RuleOpaque},
		{Command{Argv: []string{"sh", "-c", "$x | sh"}, Terminal: true}, RuleOpaque},
	} {
		if d := Default().Decide(c.cmd); d.Rule != c.rule {
			t.Errorf("%q, terminal %v: %s by %s, want %s", c.cmd.Argv, c.cmd.Terminal, d.Action, d.Rule, c.rule)
		}
	}
}
