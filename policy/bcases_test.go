package policy

import (
	"strings"
	"testing"
)

// TestFieldCases holds the ways around a policy that people have found, each with the
// policy that allows `git`, `ls` and `echo` and denies `rm`, `git push` and
// `git checkout --`. never: not simply allowed, whatever else; the empty action.
func TestFieldCases(t *testing.T) {
	p := mustParse(t, casesPolicy)
	const never = Action("")
	for name, c := range map[string]struct {
		want   Action
		shells []string
	}{
		"separators":               {Deny, []string{"ls && rm x", "ls & rm x", "ls; rm x", "ls | rm x", "ls || rm x", "ls |& rm x", "ls\nrm x", "(rm x)", "{ rm x; }", "if true; then rm x; fi", "! rm x", "ls;rm x", "ls&&rm x", "ls\r\nrm x", "ls &\nrm x"}},
		"substitutions":            {Deny, []string{"echo $(rm x)", "echo `rm x`", "echo \"$(rm x)\"", "ls <(rm x)", "ls >(rm x)", "echo ${y:-$(rm x)}", "echo $((1+$(rm x)))", "x=$(rm x)", "ls > \"$(rm x)\"", "cat <<E\n$(rm x)\nE", "echo $(echo $(rm x))", "for i in $(rm x); do :; done", "case $(rm x) in *) ;; esac"}},
		"assignments":              {Deny, []string{"CI=1 git push", "A=1 B=2 rm x", "A=$(rm x) ls", "export A=1; rm x"}},
		"assignments that run":     {never, []string{"PATH=.:$PATH ls", "LD_PRELOAD=./e.so ls", "GIT_SSH_COMMAND=./e git fetch", "GIT_EXTERNAL_DIFF=./e git diff", "export PATH=.; ls", "env PATH=. ls", "declare -x LD_PRELOAD=./e; ls", "BASH_ENV=e ls", "GIT_CONFIG_COUNT=1 git status", "GIT_DIR=x git status"}},
		"wrappers":                 {Deny, []string{"env rm x", "env A=1 rm x", "nice rm x", "nohup rm x", "timeout 5 rm x", "sudo rm x", "xargs rm", "command rm x", "exec rm x", "setsid rm x", "busybox rm x", "flock l rm x", "watch rm x", "strace rm x", "stdbuf -oL rm x", "time rm x", "env -S 'rm x'", "builtin command rm x", "ionice -c3 rm x", "chroot / rm x", "find . -exec rm {} \\;", "ls | xargs -I{} rm {}", "nice -n 3 env -i timeout 3 rm x"}},
		"options before":           {Deny, []string{"git -C . push", "git --git-dir=.git push", "git -c a=b checkout -- f", "git --no-pager push", "git  push", "cd . && git push", "git --work-tree . push", "git -p push", "git --literal-pathspecs push", "git --bare push"}},
		"option order":             {Deny, []string{"rm -r -f x", "rm -fr x", "rm x -rf", "rm --recursive --force x", "rm -r x -f", "rm -- x", "git push -f", "git push --force-with-lease", "git push origin -f", "git push -uf origin main", "git push origin +main"}},
		"spellings of the program": {Deny, []string{"/bin/rm x", `\rm x`, `r""m x`, "r'm' x", "../../bin/rm x", "RM x", "rm.exe x", "'rm' x", "/usr//bin/rm x", "/bin/./rm x"}},
		"copies of the program":    {never, []string{"./tidy x", "./ls2 x", "./ls x", "bin/git status", "$PWD/ls", "/tmp/ls x", "~/bin/echo x"}},
		"interpreters":             {Deny, []string{"sh -c 'rm x'", "bash -c \"rm x\"", "bash -xec 'rm x'", "python3 -c 'import os; os.system(\"rm x\")'", "node -e 'require(\"child_process\").execSync(\"rm x\")'", "perl -e 'system(\"rm x\")'", "ruby -e 'system \"rm x\"'", "awk 'BEGIN{system(\"rm x\")}'", "sed '1e rm x' f", "eval 'rm x'", "bash <<< 'rm x'", "echo 'rm x' | sh", "trap 'rm x' EXIT", "php -r 'system(\"rm x\");'"}},
		"quoting":                  {Deny, []string{`$'\x72\x6d' x`, "rm${IFS}x", "{rm,x}", "r\\\nm x", "a=rm; $a x", `eval "r""m x"`, "$'\\162m' x", "a=r; b=m; $a$b x"}},
		"unclear":                  {never, []string{"rm\u00a0x", `${0##*/} -c "rm x"`, "$(printf rm) x", "$x", "\"$@\"", "r? x", "/bin/r* x", "ls\u2003x", "\u200brm x", "$(echo rm) x", "${!x} y", "eval $x", "sh -c \"$x\"", ". <(echo rm)"}},
		"redirections":             {never, []string{"echo x > /etc/passwd", "echo x > ~/.bashrc", "echo x >> ../../x", "echo x >| /dev/sda", "echo x &> /etc/y", "ls 2> ~/z", "echo x > \"$y\"", "exec 3<>/dev/tcp/h/1", "echo x > .git/hooks/pre-commit", "echo x > /proc/sysrq-trigger"}},
		"git runs code":            {never, []string{"git -c alias.x='!rm x' x", "git -c core.fsmonitor=./e status", "git -c core.pager=./e log", "git --exec-path=. status", "git config core.hooksPath x", "git clone 'ext::sh -c x'", "git submodule foreach ./e", "git rebase -x ./e", "git difftool -x ./e", "git -c diff.external=./e diff", "git config alias.z '!./e'", "git fetch --upload-pack=./e o", "git archive --remote=h --exec=./e x"}},
		"paths that leave":         {never, []string{"cd / && echo x > y", "cd ..; echo x > ../y", "pushd /etc; echo x > y", "(cd ~; echo x > y)", "echo x > ./../../y", "echo x > a/../../y"}},
		"unparsable":               {never, []string{`ls "unterminated`, "ls )", "", "for", "ls |", "case x in", " ", "ls &&", "$(", "ls ${", "<<E", "if ls"}},
		"too much":                 {never, []string{strings.Repeat("ls;", 600) + "ls", "ls " + strings.Repeat("x", 64<<10), strings.Repeat("$(", 100) + "ls" + strings.Repeat(")", 100), strings.Repeat("env ", 40) + "ls", "ls \x00"}},
	} {
		for _, s := range c.shells {
			d := p.Decide(Command{Shell: s})
			if c.want == never && d.Action.Allows() || c.want != never && d.Action != c.want {
				t.Errorf("%s: %.60q: %s by %s (%s)", name, s, d.Action, d.Rule, d.Reason)
			}
		}
	}
}

// TestDataIsData holds that text which only speaks of harmful commands alarms nobody.
func TestDataIsData(t *testing.T) {
	p := mustParse(t, casesPolicy)
	for _, s := range []string{
		"echo rm x", `echo "rm -rf /"`, "echo 'ls && rm x'", "git commit -m 'rm x; git push'", "git log --grep='git push'", "echo \"a; rm x\"", "ls # rm x", "echo '$(rm x)'", `echo "\$(rm x)"`, "echo \\; rm x", "git commit -m \"$(echo 'rm x')\"",
		"echo <<'E'\nrm x\n$(rm x)\nE", "echo a\\\n rm x", "git show HEAD:rm", "ls rm", "git add rm push", "echo git push", "ls 'a|rm x'", "git commit -m '`rm x`'", "[[ $a == 'rm x' ]]", "git checkout -b rm",
	} {
		if d := p.Decide(Command{Shell: s}); d.Action != Allow {
			t.Errorf("%q: %s by %s (%s)", s, d.Action, d.Rule, d.Reason)
		}
	}
}
