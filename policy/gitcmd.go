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
	if len(w.a.gitKeys) > 0 {
		w.a.floor(RequireApproval, "git-config", w.via, it.display(),
			"the repository's git configuration names programs that git would run: "+strings.Join(w.a.gitKeys, ", "))
	}
	w.gitGlobals(it, it.args[:pos.start])
	if pos.start >= len(it.args) {
		return
	}
	sub := it.args[pos.start].text
	rest := it.args[pos.start+1:]
	if alias, ok := w.a.gitAliases[strings.ToLower(sub)]; ok && w.depth < maxDepth {
		w.gitAlias(sub, alias, rest)
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

// GitConfigRisk names the settings in the text of a git configuration file that
// make git run a program or read further configuration, sorted and without
// repetition: core.fsmonitor, filter.x.clean, alias.y and their kind. It does not
// follow includes; it names them. A text that is no configuration has none.
func GitConfigRisk(configText []byte) []string {
	var risks []string
	eachGitSetting(configText, func(key, value string) {
		if riskyGitKey(key, value) {
			risks = append(risks, key)
		}
	})
	slices.Sort(risks)
	return slices.Compact(risks)
}

// gitAliases returns the aliases that a configuration defines, by lower-case name.
func gitAliases(configText []byte) map[string]string {
	var found map[string]string
	eachGitSetting(configText, func(key, value string) {
		if name, ok := strings.CutPrefix(key, "alias."); ok {
			if found == nil {
				found = map[string]string{}
			}
			found[strings.ToLower(name)] = value
		}
	})
	return found
}

// eachGitSetting calls fn for each setting of a configuration file. Section and key
// are in lower case, the part between them is as written.
func eachGitSetting(configText []byte, fn func(key, value string)) {
	section := ""
	text := strings.ReplaceAll(string(configText), "\\\n", "")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			end := sectionEnd(line)
			section = sectionName(line[1:end])
			line = strings.TrimSpace(strings.TrimPrefix(line[end:], "]"))
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, has := strings.Cut(line, "=")
		if !has {
			value = "true"
		}
		fn(section+"."+strings.ToLower(strings.TrimSpace(key)), unquoteGit(value))
	}
}

// sectionEnd finds the bracket that closes a section's header.
func sectionEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ']' && !quoted:
			return i
		}
	}
	return len(line)
}

// sectionName turns `filter "x"` into "filter.x".
func sectionName(s string) string {
	name, sub, has := strings.Cut(strings.TrimSpace(s), " ")
	if !has {
		return strings.ToLower(name)
	}
	return strings.ToLower(name) + "." + strings.Trim(strings.TrimSpace(sub), `"`)
}

// unquoteGit removes a comment and the quotes of a value.
func unquoteGit(v string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(v):
			i++
			b.WriteByte(v[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// riskyGitKey reports whether a setting makes git run a program.
func riskyGitKey(key, value string) bool {
	key = strings.ToLower(key)
	first, rest, _ := strings.Cut(key, ".")
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	switch first + "." + last {
	case "core.fsmonitor":
		return !gitBool(value)
	case "core.editor", "core.pager", "sequence.editor", "interactive.difffilter", "gpg.program":
		return !harmlessProgram(literal(value)) && value != "gpg" && value != "gpg2"
	case "core.hookspath", "core.sshcommand", "core.askpass", "core.gitproxy", "core.alternaterefscommand", "core.worktree",
		"diff.external", "diff.command", "diff.textconv", "merge.driver", "mergetool.cmd", "mergetool.path", "difftool.cmd", "difftool.path",
		"uploadpack.packobjectshook", "remote.uploadpack", "remote.receivepack", "remote.vcs", "include.path", "includeif.path",
		"man.cmd", "man.path", "browser.cmd", "browser.path", "web.browser", "trailer.command", "trailer.cmd", "init.templatedir", "tar.command",
		"hook.command", "guitool.cmd", "sendemail.smtpserver", "sendemail.sendmailcmd", "sendemail.tocmd", "sendemail.cccmd", "credential.usehttppath.helper", "gc.recentobjectshook", "ssh.command", "core.commentcommand":
		return value != ""
	case "filter.clean", "filter.smudge", "filter.process":
		return value != "" && !strings.HasPrefix(value, "git-lfs ") || strings.ContainsAny(value, ";|&$`\n")
	case "credential.helper":
		return strings.HasPrefix(value, "!") || strings.ContainsAny(value, "/;|&$`")
	case "protocol.allow":
		return strings.HasPrefix(rest, "ext.") && value != "never"
	case "remote.url", "remote.pushurl", "submodule.url", "url.insteadof", "url.pushinsteadof":
		return strings.HasPrefix(value, "ext::") || strings.HasPrefix(rest, "ext::")
	case "submodule.update":
		return strings.HasPrefix(value, "!")
	}
	switch first {
	case "alias":
		return strings.HasPrefix(strings.TrimSpace(value), "!") || strings.Contains(value, "-c ")
	case "pager":
		return !gitBool(value) && !harmlessProgram(literal(value))
	}
	return false
}

func gitBool(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "yes", "no", "on", "off", "1", "0", "":
		return true
	}
	return false
}
