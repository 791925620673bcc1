package policy

import (
	"strings"
	"testing"
)

// oneRepo is a vault with one repository, whose files are in top.
type oneRepo struct {
	top  string
	repo *Repository
}

func (oneRepo) LeadsOut(paths []string) []bool { return make([]bool, len(paths)) }

func (f oneRepo) Repository(dir string) *Repository {
	if dir == f.top || strings.HasPrefix(dir, strings.TrimSuffix(f.top, "/")+"/") {
		return f.repo
	}
	return nil
}

// repoFacts is a vault whose root is a repository with a configuration.
func repoFacts(config string, hooks ...string) Facts {
	return oneRepo{"/", &Repository{Configs: []GitConfig{{"/.git/config", []byte(config)}}, Hooks: hooks}}
}

const evilConfig = `[core]
	bare = false
	fsmonitor = ./evil
	sshCommand = ./evil
	pager = ./evil
[user]
	name = x
[filter "any name"]
	clean = ./c %f
[alias]
	st = status
	x = !rm -rf /
	y = "-c core.editor=./evil commit"
[remote "origin"]
	url = https://example.org
[diff.y]
command = z ; comment
[credential] helper = !./evil
[gpg "ssh"] program = ./evil
`

// TestRepositoryConfig holds that a repository's own configuration is named where it
// makes a command run programs, and leaves alone the commands that it does not touch.
func TestRepositoryConfig(t *testing.T) {
	for _, c := range []struct {
		shell string
		want  Action
		names string
	}{
		{"git status", RequireApproval, "core.fsmonitor, diff.y.command, filter.any name.clean"},
		{"git diff", RequireApproval, "core.fsmonitor, core.pager, diff.y.command, filter.any name.clean"},
		{"git add .", RequireApproval, "core.fsmonitor"},
		{"git log -1", RequireApproval, "core.pager, diff.y.command, gpg.ssh.program"},
		{"git fetch", RequireApproval, "core.sshcommand, credential.helper"},
		{"git frobnicate", RequireApproval, "core.fsmonitor"},
		{"git rev-parse HEAD", Allow, ""},
		{"git ls-tree HEAD", Allow, ""},
		{"git --version", AllowWithCheckpoint, ""},
		{"git x", Deny, ""},
		{"git st", RequireApproval, "core.fsmonitor"},
		{"git y", RequireApproval, "core.editor"},
		{"cd sub && git status", RequireApproval, "core.fsmonitor"},
		{"git -C sub status", RequireApproval, "core.fsmonitor"},
		{"git --git-dir=.git status", RequireApproval, "core.fsmonitor"},
		{"env A=1 nice git status", RequireApproval, "core.fsmonitor"},
		{"ls | xargs git add", RequireApproval, "core.fsmonitor"},
		{`cd "$x" && git status`, RequireApproval, "core.fsmonitor"},
		{"git $x", RequireApproval, "core.fsmonitor"},
		{"ls", Allow, ""},
	} {
		d := Default().Decide(Command{Shell: c.shell, Facts: repoFacts(evilConfig)})
		if d.Action != c.want {
			t.Errorf("%q: %s by %s (%s), want %s", c.shell, d.Action, d.Rule, d.Reason, c.want)
		}
		named := false
		for _, s := range d.Segments {
			named = named || strings.Contains(s.Reason, c.names)
		}
		if !named {
			t.Errorf("%q: no reason names %q: %s", c.shell, c.names, d.Reason)
		}
	}
}

// TestEachExecutingKey holds every key that makes an everyday command run a program,
// and that without the key the command is left alone.
func TestEachExecutingKey(t *testing.T) {
	all := mustParse(t, "allow: [\"*\"]")
	for _, c := range []struct{ key, section, value, command string }{
		{"core.fsmonitor", "core", "fsmonitor = ./e", "git status"}, {"diff.external", "diff", "external = ./e", "git diff"}, {"diff.a.textconv", `diff "a"`, "textconv = ./e", "git log -p"},
		{"core.pager", "core", "pager = ./e", "git log"}, {"pager.log", "pager", "log = ./e", "git log"}, {"core.sshcommand", "core", "sshCommand = ./e", "git fetch"},
		{"filter.a.clean", `filter "a"`, "clean = ./e", "git add ."}, {"filter.a.smudge", `filter "a"`, "smudge = ./e", "git checkout x"}, {"filter.a.process", `filter "a"`, "process = ./e", "git status"},
		{"gpg.program", "gpg", "program = ./e", "git commit -m x"}, {"credential.helper", "credential", "helper = !./e", "git pull"}, {"credential.https://h.helper", `credential "https://h"`, "helper = ./e", "git fetch"},
		{"merge.a.driver", `merge "a"`, "driver = ./e", "git merge b"}, {"core.editor", "core", "editor = ./e", "git commit"}, {"sequence.editor", "sequence", "editor = ./e", "git rebase -i x"},
		{"core.askpass", "core", "askPass = ./e", "git fetch"}, {"core.gitproxy", "core", "gitProxy = ./e", "git fetch"}, {"remote.o.uploadpack", `remote "o"`, "uploadpack = ./e", "git fetch o"},
		{"remote.o.url", `remote "o"`, "url = ext::./e", "git fetch o"}, {"submodule.s.update", `submodule "s"`, "update = !./e", "git submodule update"}, {"difftool.a.cmd", `difftool "a"`, "cmd = ./e", "git difftool"},
		{"mergetool.a.cmd", `mergetool "a"`, "cmd = ./e", "git mergetool"}, {"include.path", "include", "path = ~/x", "git status"}, {"includeif.gitdir:/.path", `includeIf "gitdir:/"`, "path = /etc/x", "git status"},
		{"core.worktree", "core", "worktree = /etc", "git status"}, {"interactive.difffilter", "interactive", "diffFilter = ./e", "git add -p"},
	} {
		config := "[" + c.section + "]\n\t" + c.value + "\n"
		d := all.Decide(Command{Shell: c.command, Facts: repoFacts(config)})
		if !d.Action.StricterThan(AllowWithCheckpoint) || !strings.Contains(d.Reason, c.key) {
			t.Errorf("%s: %q is %s: %s", c.key, c.command, d.Action, d.Reason)
		}
		if d := all.Decide(Command{Shell: c.command, Facts: repoFacts("[user]\n\tname = x\n")}); !d.Action.Allows() {
			t.Errorf("%q without %s is %s: %s", c.command, c.key, d.Action, d.Reason)
		}
	}
}

// TestHarmlessConfig holds that what repositories have all day asks nobody.
func TestHarmlessConfig(t *testing.T) {
	for _, config := range []string{
		"", "[core]\nfsmonitor = true\n", "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n", "[credential]\nhelper = store\n", "[core] pager = less -R\n",
		"# [core] fsmonitor = x\n", "\x00\xff[[[", "[include]\n\tpath = more\n", "[core]\n\tworktree = ..\n", "[alias]\n\tst = status\n\tx = !make\n", "[commit]\n\tgpgsign = true\n", "[core]\n\thooksPath = .husky/_\n",
	} {
		for _, command := range []string{"git status", "git log"} {
			if d := Default().Decide(Command{Shell: command, Facts: repoFacts(config)}); d.Action != Allow {
				t.Errorf("%q: %q is %s: %s", config, command, d.Action, d.Reason)
			}
		}
	}
}

// TestHooks holds that hooks matter for the subcommands that run them: one that is
// meant to change things runs them behind a checkpoint, one that only reads asks.
func TestHooks(t *testing.T) {
	for _, c := range []struct {
		hook, command string
		want          Action
	}{
		{"pre-commit", "git commit -m x", AllowWithCheckpoint}, {"pre-commit", "git status", Allow}, {"post-index-change", "git status", RequireApproval}, {"post-index-change", "git add x", AllowWithCheckpoint},
		{"post-checkout", "git checkout x", AllowWithCheckpoint}, {"post-merge", "git merge x", AllowWithCheckpoint}, {"pre-push", "git push", RequireApproval}, {"reference-transaction", "git tag v1", AllowWithCheckpoint},
		{"reference-transaction", "git log", Allow},
	} {
		d := Default().Decide(Command{Shell: c.command, Facts: repoFacts("", c.hook)})
		if d.Action != c.want {
			t.Errorf("%q with the hook %s: %s (%s), want %s", c.command, c.hook, d.Action, d.Reason, c.want)
		}
		named := false
		for _, s := range d.Segments {
			named = named || strings.Contains(s.Reason, c.hook)
		}
		if named != (c.want != Allow) {
			t.Errorf("%q with the hook %s: the segments name it: %v", c.command, c.hook, named)
		}
	}
	// A policy that allows everything still keeps the state before a hook runs.
	all := mustParse(t, "allow: [\"*\"]")
	if d := all.Decide(Command{Shell: "git commit -m x", Facts: repoFacts("", "pre-commit")}); d.Action != AllowWithCheckpoint {
		t.Errorf("%s: %s", d.Action, d.Reason)
	}
}

// TestRepositoryPlaces holds that the repository which git works in is the one that is
// asked about, and that one that nobody can know is not simply allowed.
func TestRepositoryPlaces(t *testing.T) {
	facts := oneRepo{"/evil", &Repository{Configs: []GitConfig{{"/evil/.git/config", []byte("[core]\nfsmonitor = ./e\n")}}}}
	for _, c := range []struct {
		cwd, shell string
		want       Action
	}{
		{"/", "git status", Allow}, {"/evil", "git status", RequireApproval}, {"/evil/deep", "git status", RequireApproval}, {"/", "git -C evil status", RequireApproval}, {"/", "git -Cevil status", RequireApproval},
		{"/", "cd evil && git status", RequireApproval}, {"/", "(cd evil); git status", Allow}, {"/evil", "git -C .. status", Allow}, {"/", "git --git-dir=evil/.git status", RequireApproval}, {"/", "git --git-dir evil/.git status", RequireApproval},
		{"/", "git -C /mnt/evil status", RequireApproval}, {"/", "git -C /elsewhere status", AllowWithCheckpoint}, {"/", `git -C "$d" status`, AllowWithCheckpoint}, {"/", `cd "$d"; git status`, AllowWithCheckpoint},
		{"/", "git -C evil rev-parse HEAD", Allow}, {"/", "sh -c 'cd evil; git status'", RequireApproval}, {"/", "git submodule foreach 'cd /mnt/evil && git status'", RequireApproval},
	} {
		d := Default().Decide(Command{Shell: c.shell, Cwd: c.cwd, Mount: "/mnt", Facts: facts})
		if d.Action != c.want {
			t.Errorf("in %s: %q: %s by %s (%s), want %s", c.cwd, c.shell, d.Action, d.Rule, d.Reason, c.want)
		}
	}
}

// TestSubmodulesAndUnclear holds that git which enters submodules is judged by them
// too, and that a repository which could not be looked at whole asks.
func TestSubmodulesAndUnclear(t *testing.T) {
	sub := &Repository{Configs: []GitConfig{{"/.git/modules/s/config", []byte("[core]\nfsmonitor = ./e\n")}}}
	facts := oneRepo{"/", &Repository{Submodules: []*Repository{sub}}}
	if d := Default().Decide(Command{Shell: "git status", Facts: facts}); d.Action != RequireApproval || !strings.Contains(d.Reason, "core.fsmonitor") {
		t.Errorf("git status: %s: %s", d.Action, d.Reason)
	}
	if d := Default().Decide(Command{Shell: "git log", Facts: facts}); d.Action != Allow {
		t.Errorf("git log: %s: %s", d.Action, d.Reason)
	}
	unclear := oneRepo{"/", &Repository{Unclear: "the file is too large"}}
	if d := Default().Decide(Command{Shell: "git log", Facts: unclear}); d.Action != RequireApproval || !strings.Contains(d.Reason, "too large") {
		t.Errorf("unclear: %s: %s", d.Action, d.Reason)
	}
}

// TestExecutingSettings holds that a setting which makes git run a program is judged
// where a command gives or keeps it.
func TestExecutingSettings(t *testing.T) {
	for _, key := range []string{"core.fsmonitor", "core.hooksPath", "diff.external", "alias.x", "filter.a.b.clean"} {
		value := "./evil"
		if key == "alias.x" {
			value = "!" + value
		}
		for _, argv := range [][]string{{"git", "-c", key + "=" + value, "status"}, {"git", "config", key, value}, {"git", "config", "--local", key, value}, {"git", "-C", "sub", "config", "set", key, value}, {"git", "clone", "-c", key + "=" + value, "x"}} {
			if d := Default().Decide(Command{Argv: argv}); !d.Action.StricterThan(AllowWithCheckpoint) || !strings.Contains(d.Reason, key) {
				t.Errorf("%q: %s, %s", argv, d.Action, d.Reason)
			}
		}
	}
}

// TestGitHooksDir holds where git takes hooks from.
func TestGitHooksDir(t *testing.T) {
	for _, c := range []struct {
		value, dir string
		inside     bool
	}{
		{"", "/r/.git/hooks", true}, {"hooksPath = .husky/_", "/r/.husky/_", true}, {"hooksPath = /dev/null", "", true}, {"hooksPath = /etc/hooks", "", false}, {"hooksPath = /mnt/h", "/h", true}, {"hooksPath = ../../x", "", false},
	} {
		dir, inside := GitHooksDir([]GitConfig{{"/r/.git/config", []byte("[core]\n" + c.value + "\n")}}, "/r", "/r/.git/hooks", "/mnt")
		if dir != c.dir || inside != c.inside {
			t.Errorf("%q: %q, %v", c.value, dir, inside)
		}
	}
}
