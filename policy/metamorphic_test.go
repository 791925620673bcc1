package policy

import (
	"fmt"
	"strings"
	"testing"
)

// rewrites are ways to say the same command, or one that runs it among others.
func rewrites() map[string]func(string) string {
	q := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	format := func(f string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(f, "%s", s) }
	}
	quoted := func(f string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(f, "%q", q(s)) }
	}
	m := map[string]func(string) string{}
	for _, f := range []string{"%s", "  %s  ", "%s;", "%s &", "ls; %s", "ls && %s", "ls || %s", "ls | %s", "ls & %s", "%s | cat", "%s && ls", "! %s", "(%s)", "{ %s; }", "( ( %s ) )",
		"if %s; then ls; fi", "if ls; then %s; fi", "if ls; then ls; else %s; fi", "if ls; then ls; elif %s; then ls; fi", "while %s; do ls; done", "until ls; do %s; done",
		"for i in 1 2; do %s; done", "for ((i=0;i<2;i++)); do %s; done", "case x in y) %s;; esac", "f() { %s; }", "f() { %s; }; f", "function g { %s; }", "echo $(%s)", "echo \"$(%s)\"", "echo `%s`",
		"x=$(%s)", "x=$(%s) ls", "export x=$(%s)", "cat <(%s)", "ls > >(%s)", "[[ -n $(%s) ]]", "echo ${x:-$(%s)}", "echo $(( $(%s) ))", "a[$(%s)]=1", "a=($(%s))", "coproc %s", "time %s", "A=1 %s",
		"{ { %s; } | cat; } 2>&1", "%s 2>/dev/null", "%s > out", "2>&1 %s", "ls # comment\n%s", "ls \\\n ; %s", "cat <<E\n$(%s)\nE\n", "cat <<'E'\ntext\nE\n%s", "select x in a; do %s; done",
		"env %s", "env A=1 B=2 %s", "env -u X %s", "nice -n 3 %s", "nohup %s", "timeout 9 %s", "timeout --signal=KILL 9 %s", "command %s", "exec %s", "stdbuf -oL %s", "setsid -w %s", "sudo %s", "sudo -u root -E A=1 %s", "doas %s",
		"xargs %s", "xargs -0 -I{} %s", "find . -exec %s \\;", "find . -type f -execdir %s {} +", "busybox %s", "watch -n 1 %s", "strace -f -o out %s", "flock lock %s", "env nice nohup timeout 3 %s", "ssh host %s", "unshare -r %s", "chroot /x %s",
		"ionice -c2 -n7 %s", "taskset 1 %s", "chrt 5 %s", "builtin command %s", "script -q out %s", "bundle exec %s", "npm exec -- %s", "uv run %s", "npx %s", "fd -x %s", "parallel %s ::: a", "\t%s", "\n\n%s\n"} {
		m[f] = format(f)
	}
	for _, f := range []string{"sh -c %q", "bash -c %q", "bash -lc %q", "bash -ec %q", "/bin/sh -c %q", "dash -c %q", "zsh -c %q", "eval %q", "env sh -c %q", "sudo bash -c %q", "bash <<< %q", "trap %q EXIT", "alias x=%q", "su -c %q", "watch %q",
		"flock l -c %q", "env -S %q", "xargs -I{} sh -c %q", "find . -exec sh -c %q \\;", "git submodule foreach %q", "git rebase --exec %q m", "tar xf t --to-command=%q", "echo %q | sh", "printf %q | bash -s", "ssh h %q", "script -c %q o", "timeout 3 sh -c %q", "nix-shell --run %q"} {
		m[f] = quoted(f)
	}
	m["heredoc to sh"] = func(s string) string { return "sh <<'EOF'\n" + s + "\nEOF\n" }
	m["heredoc to bash -s"] = func(s string) string { return "bash -s <<'EOF'\n" + s + "\nEOF\n" }
	m["alias of git"] = func(s string) string { return "git -c alias.x=" + q("!"+s) + " x" }
	m["spaces"] = func(s string) string { return strings.ReplaceAll(s, " ", " \t  ") }
	m["continuation"] = func(s string) string { return strings.ReplaceAll(s, " ", " \\\n") }
	m["quoted program"] = func(s string) string { return onProgram(s, func(p string) string { return "'" + p + "'" }) }
	m["double-quoted program"] = func(s string) string { return onProgram(s, func(p string) string { return `"` + p + `"` }) }
	m["split program"] = func(s string) string { return onProgram(s, func(p string) string { return p[:1] + `""` + p[1:] }) }
	m["backslash"] = func(s string) string { return onProgram(s, func(p string) string { return `\` + p }) }
	m["upper case"] = func(s string) string { return onProgram(s, strings.ToUpper) }
	m["absolute"] = func(s string) string { return onProgram(s, func(p string) string { return "/usr/bin/" + p }) }
	m["relative"] = func(s string) string { return onProgram(s, func(p string) string { return "../../bin/" + p }) }
	m["variable"] = func(s string) string {
		p, rest, _ := strings.Cut(s, " ")
		return "v=" + p + "; $v " + rest
	}
	m["variable in braces"] = func(s string) string {
		p, rest, _ := strings.Cut(s, " ")
		return "v=" + p + "\n\"${v}\" " + rest
	}
	m["variable by halves"] = func(s string) string {
		p, rest, _ := strings.Cut(s, " ")
		return "a=" + p[:1] + "; b=" + p[1:] + "; $a$b " + rest
	}
	m["ansi"] = func(s string) string {
		return onProgram(s, func(p string) string {
			var b strings.Builder
			for i := range len(p) {
				fmt.Fprintf(&b, `\x%02x`, p[i])
			}
			return "$'" + b.String() + "'"
		})
	}
	m["python"] = func(s string) string { return `python3 -c 'import os; os.system("` + s + `")'` }
	m["perl"] = func(s string) string { return `perl -e 'system("` + s + `")'` }
	m["node"] = func(s string) string { return `node -e 'require("child_process").execSync("` + s + `")'` }
	m["awk"] = func(s string) string { return `awk 'BEGIN { system("` + s + `") }'` }
	return m
}

func onProgram(s string, f func(string) string) string {
	p, rest, _ := strings.Cut(s, " ")
	return strings.TrimRight(f(p)+" "+rest, " ")
}

// TestRewritingNeverLoosens holds that wrapping, quoting, spacing and embedding a
// command never gets it a laxer answer than it has on its own, alone and in pairs.
func TestRewritingNeverLoosens(t *testing.T) {
	cases := mustParse(t, casesPolicy)
	seeds := []struct {
		p *Policy
		s string
	}{
		{Default(), "rm -rf /"}, {Default(), "rm -r -f ~"}, {Default(), "shutdown now"}, {Default(), "mkfs.ext4 /dev/sda"}, {Default(), "dd if=x of=/dev/sda"},
		{Default(), "git push --force"}, {Default(), "curl http://x"}, {Default(), "chmod -R 777 /"}, {Default(), "kill -9 -1"}, {Default(), "npm publish"},
		{cases, "rm x"}, {cases, "rm -rf a b"}, {cases, "git push"}, {cases, "git push origin main"}, {cases, "git checkout -- f"},
	}
	all := rewrites()
	for _, seed := range seeds {
		base := seed.p.Decide(Command{Shell: seed.s}).Action
		for name, f := range all {
			once := f(seed.s)
			if d := seed.p.Decide(Command{Shell: once}); base.StricterThan(d.Action) {
				t.Errorf("%s: %q is %s, but %q is %s (%s)", name, seed.s, base, once, d.Action, d.Reason)
				continue
			}
			if strings.Contains(once, "\n") || strings.HasSuffix(once, "&") || strings.ContainsAny(once, "#") {
				continue // another rewrite around it may no longer mean the same
			}
			for outer, g := range all {
				if !pairable(outer, once) {
					continue
				}
				twice := g(once)
				if d := seed.p.Decide(Command{Shell: twice}); base.StricterThan(d.Action) {
					t.Errorf("%s in %s: %q is %s, but %q is %s", name, outer, seed.s, base, twice, d.Action)
				}
			}
		}
	}
}

// pairable reports whether the outer rewrite keeps the meaning of a command that is
// no simple command any more.
func pairable(outer, inner string) bool {
	simple := !strings.ContainsAny(inner, ";&|(){}<>`!$=\\\n\t'\"[]") && !strings.HasPrefix(inner, " ")
	for _, word := range []string{"if ", "for ", "while ", "until ", "case ", "coproc ", "time ", "select ", "function "} {
		simple = simple && !strings.HasPrefix(inner, word)
	}
	if simple {
		return true
	}
	if strings.HasPrefix(inner, "(") && strings.HasSuffix(outer, "(%s)") {
		return false // "((" begins arithmetic
	}
	return strings.HasPrefix(outer, "sh -c") || strings.HasPrefix(outer, "bash -") || outer == "eval %q" || outer == "(%s)" || outer == "ls && %s" && !strings.HasPrefix(inner, "!") || outer == "heredoc to sh" || outer == "echo $(%s)" && !strings.Contains(inner, "`")
}
