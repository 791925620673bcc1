package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// denied are commands with ways to write their options. Each part is a list of
// alternatives; parts may stand in any order behind the subcommand.
var denied = []struct {
	p    func(t *testing.T) *Policy
	prog string // with its subcommand
	opts [][]string
	args string
	want Action
}{
	{defaultFor, "rm", [][]string{{"-r", "-R", "--recursive", "--rec", "--recursi"}, {"-f", "--force", "--for", "-v", "-i", ""}}, "/", Deny},
	{defaultFor, "rm", [][]string{{"-rf", "-fr", "-rfv", "-vRf", "-r -f"}}, "~", Deny},
	{defaultFor, "chmod", [][]string{{"-R", "--recursive", "-Rv", "-vR"}}, "777 /", Deny},
	{defaultFor, "docker run", [][]string{{"--privileged", "--privileged=true"}, {"--rm", "-it", "-d", ""}}, "alpine", Deny},
	{defaultFor, "find / -name x", [][]string{{"-delete"}}, "", Deny},
	{defaultFor, "find /", [][]string{{"-exec rm -rf {} ;", "-exec rm -rf {} +", "-execdir rm -r {} +"}}, "", Deny},
	{defaultFor, "dd", [][]string{{"if=x"}, {"bs=1M", ""}}, "of=/dev/sda", Deny},
	{defaultFor, "sort", [][]string{{"-o /etc/x", "-o/etc/x", "--output=/etc/x", "--output /etc/x", "--out=/etc/x", "-uo /etc/x"}}, "f", Deny},
	{defaultFor, "cp", [][]string{{"-t /etc/x.d", "--target-directory=/etc/x.d", "--target-dir /etc/x.d"}, {"-r", "-a", ""}}, "f", Deny},
	{defaultFor, "tar", [][]string{{"-C /etc/x", "--directory=/etc/x", "--directory /etc/x"}, {"-xf a", "-xzf a", "--extract --file=a", "-x -f a"}}, "", Deny},
	{defaultFor, "wget", [][]string{{"-O /etc/x", "-O/etc/x", "--output-document=/etc/x", "-qO /etc/x"}}, "http://h", Deny},
	{defaultFor, "git push", [][]string{{"-f", "--force", "-uf", "--force-with-lease"}}, "origin main", RequireApproval},
	{defaultFor, "git -C x --no-pager push", [][]string{{"-f", "--mirror"}}, "origin", RequireApproval},
	{defaultFor, "git -c a.b=c --git-dir=.git push", [][]string{{"-f"}}, "", RequireApproval},
	{defaultFor, "npm publish", [][]string{{"--tag x", "--tag=x", ""}, {"--access public", "--access=public", ""}}, "", RequireApproval},
	{defaultFor, "npm --silent --prefix p publish", [][]string{{"--tag x"}}, "", RequireApproval},
	{defaultFor, "tar", [][]string{{"--to-command=reboot", "--to-command reboot"}, {"-xf a", "--extract -f a"}}, "", Deny},
	{casesFor, "rm", [][]string{{"-r", ""}, {"-f", "--force", ""}}, "x", Deny},
	{casesFor, "git push", [][]string{{"-f", ""}, {"-v", "--tags", ""}}, "origin main", Deny},
}

func defaultFor(*testing.T) *Policy { return Default() }

func casesFor(t *testing.T) *Policy { return mustParse(t, casesPolicy) }

// optionForms lists every choice of alternatives, in every order of two parts, in front of
// and behind the arguments.
func optionForms(prog string, opts [][]string, args string) []string {
	choices := [][]string{{}}
	for _, alternatives := range opts {
		var next [][]string
		for _, c := range choices {
			for _, a := range alternatives {
				next = append(next, append(append([]string{}, c...), a))
			}
		}
		choices = next
	}
	var forms []string
	add := func(parts ...string) {
		words := []string{prog}
		for _, p := range parts {
			if p != "" {
				words = append(words, p)
			}
		}
		forms = append(forms, strings.Join(words, " "))
	}
	for _, c := range choices {
		add(append(append([]string{}, c...), args)...)
		add(append([]string{args}, c...)...)
		if len(c) == 2 {
			add(c[1], c[0], args)
			add(c[0], args, c[1])
		}
	}
	return forms
}

// TestOptionFormsNeverLoosen holds that neither order nor spelling of options gets a
// command a laxer answer, alone and behind every simple wrapper.
func TestOptionFormsNeverLoosen(t *testing.T) {
	wraps := []string{""}
	for name, w := range wrappers {
		if w.mere && !w.join && len(w.nothing) == 0 {
			wraps = append(wraps, name+" "+strings.Repeat("1 ", w.skip))
		}
	}
	wraps = append(wraps, "sudo -n ", "env -i A=1 ", "xargs ", "xargs -0 -n1 ", "busybox ", "avfs exec -- ", "avfs exec --session s -- ", "avfs shell -- ", "avfs fanout --keep 0 2 -- ", "avfs terminal-of /dev/pts/1 -- ", "poetry run ", "npx ", "nice -n 3 nohup timeout -k 1 5 ")
	n := 0
	for _, d := range denied {
		p := d.p(t)
		for i, form := range optionForms(d.prog, d.opts, d.args) {
			for j, w := range wraps {
				if j%8 != i%8 && j > 0 {
					continue // every form as it is, and behind some of the wrappers in turn
				}
				s := w + strings.ReplaceAll(form, ";", "\\;")
				n++
				if got := p.Decide(Command{Shell: s}); d.want.StricterThan(got.Action) {
					t.Errorf("%q: %s by %s, want %s", s, got.Action, got.Rule, d.want)
				}
				argv := strings.Fields(w + form)
				if got := p.Decide(Command{Argv: argv}); d.want.StricterThan(got.Action) {
					t.Errorf("%q: %s by %s, want %s", argv, got.Action, got.Rule, d.want)
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d forms were tried", n)
	}
}

// disguise writes a command's words in another way, character by character: with
// quotes, backslashes, escapes, line continuations, other blanks and empty quotes.
func disguise(r *rand.Rand, s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i : i+1]
		if c == " " {
			b.WriteString([]string{" ", "  ", "\t", " \\\n", " \t "}[r.IntN(5)])
			continue
		}
		if r.IntN(12) == 0 {
			b.WriteString([]string{"''", `""`, "\\\n", `""""`}[r.IntN(4)])
		}
		forms := []string{c, c, c, c, `\` + c, "'" + c + "'", `"` + c + `"`, fmt.Sprintf(`$'\x%02x'`, c[0]), fmt.Sprintf(`$'\%03o'`, c[0])}
		if c == "~" {
			forms = forms[:4] // a quoted one is a name like any other
		}
		if c == "$" || c == "*" || c == "{" || c == "}" {
			forms = forms[:1]
		}
		b.WriteString(forms[r.IntN(len(forms))])
	}
	return b.String()
}

// TestDisguisesNeverLoosen holds that no quoting gets a denied command a laxer answer.
func TestDisguisesNeverLoosen(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cases := mustParse(t, casesPolicy)
	for _, seed := range []struct {
		p *Policy
		s string
	}{
		{Default(), "rm -rf /"}, {Default(), "rm -r --force /etc"}, {Default(), "sudo ls"}, {Default(), "git push --force origin"}, {Default(), "npm publish"}, {Default(), "curl http://x"}, {Default(), "dd of=/dev/sda"},
		{Default(), "find / -delete"}, {Default(), "sort -o /etc/x f"}, {Default(), "env nice rm -rf /"}, {Default(), "xargs rm -rf /"}, {Default(), "git -C a -c b.c=d push"}, {Default(), "cp x /etc/y"},
		{cases, "rm x"}, {cases, "git push"}, {cases, "git --no-pager push origin"}, {cases, "git checkout -- f"}, {cases, "command rm -f x"}, {cases, "timeout 3 rm x"},
	} {
		base := seed.p.Decide(Command{Shell: seed.s}).Action
		for range 400 {
			s := disguise(r, seed.s)
			if d := seed.p.Decide(Command{Shell: s}); base.StricterThan(d.Action) {
				t.Errorf("%q is %s, but %q is %s by %s", seed.s, base, s, d.Action, d.Rule)
				break
			}
		}
	}
}

// FuzzDisguise looks for a chain of rewrites that gets a denied command a laxer answer.
func FuzzDisguise(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, i*7)
	}
	cases := mustParse(f, casesPolicy)
	var wraps []string
	for name := range rewrites() {
		again := strings.HasPrefix(name, "watch") || strings.HasPrefix(name, "ssh") || strings.HasPrefix(name, "parallel") // a shell reads their words once more
		if strings.Contains(name, "%s") && !strings.ContainsAny(name, "\n#") && !again {
			wraps = append(wraps, name)
		}
	}
	slices.Sort(wraps) // so that a found input says the same again
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		s := disguise(r, "rm x")
		for range r.IntN(3) {
			q := "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
			s = []string{"sh -c ", "eval ", "bash -lc ", "env bash -c ", "xargs -I{} sh -c ", "watch "}[r.IntN(6)] + q
		}
		s = strings.ReplaceAll(wraps[r.IntN(len(wraps))], "%s", s)
		if d := cases.Decide(Command{Shell: s}); d.Action.Allows() {
			t.Fatalf("%q is %s by %s", s, d.Action, d.Rule)
		}
	})
}
