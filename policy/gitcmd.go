package policy

import (
	"slices"
	"strings"
)

// git judges what git is told to run: by configuration on the command line, by
// options that take commands, and by the repository's own configuration.
func (w *walker) git(it *item, in input) {
	pos := it.positionals()
	w.a.add(*it)
	g := gitCall{}
	if w.a.facts != nil {
		g = readGitCall(it, pos)
		w.gitFacts(it, g)
	}
	w.gitGlobals(it, it.args[:pos.start])
	if pos.start >= len(it.args) {
		return
	}
	sub := it.args[pos.start].text
	rest := it.args[pos.start+1:]
	if alias, ok := w.aliasesOf(g)[strings.ToLower(sub)]; ok && w.depth < maxDepth {
		w.gitOwnAlias(it, sub, alias, rest)
	}
	switch sub {
	case "config":
		w.gitConfig(it, rest)
	case "bisect":
		if len(rest) > 1 && rest[0].text == "run" {
			w.run(rest[1:], "git bisect run", input{})
		}
	case "submodule":
		w.gitForeach(rest)
	}
	w.gitOptions(it, sub, rest)
}

// gitCall is what a git command says before its own arguments begin.
type gitCall struct {
	sub  string  // the subcommand; "?" where only the run knows it
	dirs []token // directories to change to, in order, before git looks for its repository
}

// readGitCall reads the options that decide which repository git works in.
func readGitCall(it *item, pos *positions) gitCall {
	g := gitCall{}
	var gitDir *token
	args := it.args[:pos.start]
	for i, t := range args {
		s := t.certain()
		name, value, ok := t.splitAssign()
		switch {
		case s == "-C" && i+1 < len(args):
			g.dirs = append(g.dirs, args[i+1])
		case len(s) > 2 && strings.HasPrefix(s, "-C"):
			g.dirs = append(g.dirs, t.after(2))
		case s == "--git-dir" && i+1 < len(args):
			gitDir = &args[i+1]
		case ok && name == "--git-dir":
			gitDir = &value
		}
	}
	if gitDir != nil {
		g.dirs = append(g.dirs, *gitDir)
	}
	if pos.start < len(it.args) {
		g.sub = "?"
		if t := it.args[pos.start]; t.known() && pos.shifted == nil {
			g.sub = t.text
		}
	}
	return g
}

// gitOwnAlias judges an alias that the repository itself defines.
func (w *walker) gitOwnAlias(it *item, name, value string, rest []token) {
	if riskyGitKey("alias."+name, value) {
		w.a.floor(RequireApproval, "git-config", w.via, it.display(), "the repository's own configuration makes this name run another program: alias."+name)
	}
	w.gitAlias(name, value, rest)
}

// gitAlias judges what an alias stands for: shell code behind "!", the words of a git
// command otherwise.
func (w *walker) gitAlias(name, value string, rest []token) {
	if code, ok := strings.CutPrefix(value, "!"); ok {
		w.softCode("git alias."+name, code)
		return
	}
	toks := []token{literal("git")}
	for f := range strings.FieldsSeq(value) {
		toks = append(toks, literal(strings.Trim(f, `"'`)))
	}
	n := *w
	n.soft = true
	n.run(append(toks, rest...), "git alias."+name, input{})
}

// gitGlobals judges the options in front of the subcommand.
func (w *walker) gitGlobals(it *item, args []token) {
	for i, t := range args {
		s := t.certain()
		switch {
		case s == "-c" && i+1 < len(args):
			w.gitSetting(it, args[i+1])
		case strings.HasPrefix(s, "-c") && !strings.HasPrefix(s, "--"):
			w.gitSetting(it, t.after(2))
		case strings.HasPrefix(s, "--config-env"):
			w.a.floor(RequireApproval, "git-config", w.via, t.text, "a git setting is taken from the environment")
		case strings.HasPrefix(s, "--exec-path="):
			w.a.floor(RequireApproval, "git-config", w.via, t.text, "git is told to take its programs from another directory")
		}
	}
}

// gitSetting judges key=value from the command line.
func (w *walker) gitSetting(it *item, t token) {
	key, value, ok := t.splitAssign()
	if !ok {
		if t.dyn {
			w.a.opaque(w.via, it.display(), "a git setting is only known at run time")
			return
		}
		key, value = t.text, literal("true")
	}
	w.gitKey(it, key, value)
}

// gitKey judges one setting. The code of an alias or a command is judged too.
func (w *walker) gitKey(it *item, key string, value token) {
	v := value.text
	if value.dyn {
		v = "!" + v
	}
	if name, ok := strings.CutPrefix(strings.ToLower(key), "alias."); ok && !value.dyn {
		w.gitAlias(name, value.text, nil)
	}
	if !riskyGitKey(key, v) {
		return
	}
	w.a.floor(RequireApproval, "git-config", w.via, it.display(), "the setting "+key+" makes git run a program")
	if lower := strings.ToLower(key); !value.dyn && !strings.HasPrefix(lower, "include") && !strings.HasPrefix(lower, "alias.") {
		w.softCode("git "+key, strings.TrimPrefix(value.text, "!"))
	}
}

// gitConfig judges `git config`: setting a key that makes git run programs.
func (w *walker) gitConfig(it *item, args []token) {
	var words []token
	for i := 0; i < len(args); i++ {
		s := args[i].certain()
		switch {
		case s == "-f" || s == "--file" || s == "--blob" || s == "--type" || s == "--default" || s == "--comment" || s == "--value":
			i++
		case strings.HasPrefix(s, "--get") || s == "--list" || s == "-l" || strings.HasPrefix(s, "--unset") || strings.HasPrefix(s, "--remove"):
			return
		case len(s) > 1 && s[0] == '-':
		default:
			words = append(words, args[i])
		}
	}
	if len(words) > 0 {
		switch words[0].text {
		case "get", "list", "unset", "remove-section", "rename-section", "edit":
			return
		case "set":
			words = words[1:]
		}
	}
	if len(words) < 2 {
		return
	}
	if words[0].dyn {
		w.a.opaque(w.via, it.display(), "a git setting is only known at run time")
		return
	}
	w.gitKey(it, words[0].text, words[1])
}

// gitForeach judges `git submodule foreach`, which hands its words to a shell.
func (w *walker) gitForeach(args []token) {
	i := slices.IndexFunc(args, func(t token) bool { return t.text == "foreach" })
	if i < 0 {
		return
	}
	words := args[i+1:]
	for len(words) > 0 && strings.HasPrefix(words[0].text, "-") {
		words = words[1:]
	}
	if len(words) > 0 {
		w.joined(words, "git submodule foreach")
	}
}

// gitCodeOptions lists options whose value git hands to a shell, by subcommand.
var gitCodeOptions = map[string][]string{
	"rebase":        {"-x", "--exec"},
	"clone":         {"-u", "--upload-pack"},
	"fetch":         {"--upload-pack"},
	"pull":          {"--upload-pack"},
	"ls-remote":     {"--upload-pack", "--exec"},
	"fetch-pack":    {"--upload-pack", "--exec"},
	"push":          {"--receive-pack", "--exec"},
	"archive":       {"--exec"},
	"difftool":      {"-x", "--extcmd"},
	"grep":          {"--open-files-in-pager"},
	"filter-branch": {"--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--parent-filter", "--commit-filter", "--tag-name-filter", "--setup"},
	"send-email":    {"--smtp-server", "--to-cmd", "--cc-cmd", "--sendmail-cmd"},
	"instaweb":      {"--browser"},
}

// gitOptions judges options that take commands, settings and transport names.
func (w *walker) gitOptions(it *item, sub string, args []token) {
	for i, t := range args {
		if t.text == "--" {
			return
		}
		s := t.certain()
		name, value, ok := t.splitAssign()
		if !ok {
			name = s
			if i+1 < len(args) {
				value = args[i+1]
			}
		}
		switch {
		case slices.Contains(gitCodeOptions[sub], name):
			w.code(value, "git "+sub+" "+name, nil, true)
		case sub == "grep" && len(s) > 2 && strings.HasPrefix(s, "-O"):
			w.code(t.after(2), "git grep -O", nil, true)
		case sub == "rebase" && len(s) > 2 && strings.HasPrefix(s, "-x"):
			w.code(t.after(2), "git rebase -x", nil, true)
		case sub == "clone" && (name == "-c" || name == "--config") && value.certain() != "":
			w.gitSetting(it, value)
		case strings.HasPrefix(s, "ext::"):
			w.a.floor(RequireApproval, "git-transport", w.via, t.text, "the address makes git run a program")
			w.softCode("git ext", strings.TrimPrefix(t.text, "ext::"))
		}
	}
}
