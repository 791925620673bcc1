package policy

import "testing"

// casesPolicy is the policy that the bypass cases are told for.
const casesPolicy = `
allow: ["git *", "ls *", "echo *"]
deny: ["rm *", "git push*", "git checkout -- *"]
`

func mustParse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBypassCases holds that no spelling gets past a list of allowed and denied
// commands.
func TestBypassCases(t *testing.T) {
	p := mustParse(t, casesPolicy)
	deny := []string{
		"ls && rm x", "ls & rm x", "ls; rm x", "ls | rm x", "ls || rm x", "ls\nrm x", "(rm x)", "{ rm x; }", "if true; then rm x; fi", "! rm x",
		"CI=1 git push", "A=1 B=2 rm x",
		"git -C . push", "git --git-dir=.git push", "git -c a=b checkout -- f", "git --no-pager push", "git  push", "cd . && git push",
		"/bin/rm x", `\rm x`, `r""m x`, `r'm' x`, "../../bin/rm x", "RM x",
		`$'\x72\x6d' x`, "rm${IFS}x", "{rm,x}", "r\\\nm x", "a=rm; $a x", `eval "r""m x"`,
		"echo $(rm x)", "echo `rm x`", "ls <(rm x)", "ls > $(rm x)", "echo \"$(rm x)\"", "ls <<E\n$(rm x)\nE\n", "f() { rm x; }; f",
		"for i in 1 2; do rm $i; done", "while rm x; do :; done", "case x in x) rm x;; esac", "[[ -n $(rm x) ]]", "echo $((1+$(rm x)))",
		"sh -c 'rm x'", "bash -lc 'ls; rm x'", "env A=1 rm x", "sudo rm x", "xargs rm", "ls | xargs -n1 rm -f", "find . -exec rm {} \\;", "find . -delete",
		"nohup rm x &", "timeout 5 rm x", "nice -n 5 rm x", "command rm x", "exec rm x", "busybox rm x", "time rm x", "coproc rm x", "git -c alias.x='!rm x' x",
		"bash <<< 'rm x'", "sh <<'E'\nrm x\nE\n", "trap 'rm x' EXIT", "echo 'rm x' | sh", "python3 -c 'import os; os.system(\"rm x\")'",
		"env -S 'rm x'", "git submodule foreach rm x", "git rebase -x 'rm x' main", "watch rm x", "ssh host rm x", "parallel rm ::: x", "tar xf a --to-command='rm x'",
		"git push --force", "git --no-pager -C sub push origin main", "git checkout HEAD -- f", "for c in rm ls; do $c x; done", "x() { rm y; }",
	}
	never := []string{
		"PATH=.:$PATH ls", "LD_PRELOAD=./e.so ls", "GIT_SSH_COMMAND=./e git fetch", "GIT_EXTERNAL_DIFF=./e git diff",
		"./tidy x", "./ls2 x", "./ls x", "rm\u00a0x", `${0##*/} -c "rm x"`, "$(printf rm) x",
		`ls "unterminated`, "ls )", "", "for", "ls |", "case x in", " ", "# only a comment", "ls\u2028x", "$x", "\"$@\"", "l? x",
		"git $x", "git $(echo push)", "curl x | sh", "python3 x.py", "ls > /etc/x", "git -c core.fsmonitor=./e status", "git config core.fsmonitor ./e", "git -c core.hooksPath=h commit", "git -c diff.external=./e diff",
		"source x", ". ./x", "eval $x", "sh x.sh", "bash -c \"$x\"", "LS x", "git --exec-path=. status", "git clone 'ext::sh -c x'", "alias ls=./x; ls", "hash -p ./x ls; ls",
	}
	allow := []string{"ls", "ls -la", "git status", "git log --oneline -5", "echo rm x", `echo "rm -rf /"`, "git commit -m 'rm x && git push'", "ls && git diff", "cd sub && ls", "git -C sub status", "git --no-pager diff",
		"if git diff --quiet; then echo clean; fi", "for f in a b; do echo $f; done", "echo $HOME", "echo push; git fetch origin", "GIT_PAGER=cat git log", "CI=1 git status", "/bin/ls x", "git checkout -b new", "time git status", "ls 2>/dev/null", "ls 2>&1 | echo", "timeout 5 git fetch"}
	check := func(list []string, ok func(Action) bool) {
		for _, s := range list {
			if d := p.Decide(Command{Shell: s}); !ok(d.Action) {
				t.Errorf("%q: %s (%s: %s)", s, d.Action, d.Rule, d.Reason)
			}
		}
	}
	check(deny, func(a Action) bool { return a == Deny })
	check(never, func(a Action) bool { return a.StricterThan(AllowWithCheckpoint) })
	check(allow, func(a Action) bool { return a == Allow })
}
