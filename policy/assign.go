package policy

import (
	"path"
	"strings"
)

// checkAssign notes a variable that changes which program runs or makes a program
// run another one. script says that a shell reads the value.
func (w *walker) checkAssign(name string, val token, script bool) {
	why := ""
	switch {
	case name == "PATH":
		switch {
		case harmlessPath(val, w):
		case toolPath(val):
			w.a.floor(AllowWithCheckpoint, "tool-path", w.via, name+"="+val.text, "programs that the project has installed for itself are found first")
		default:
			why = "it changes which programs are found"
		}
	case name == "IFS":
		if script && !harmlessIFS(val) {
			why = "it changes how the shell splits words"
		}
	case modulePaths[name]:
		if !val.known() || !inVault(val.text, w) {
			why = "it makes programs load other code"
		}
	case loaderVars[name] || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "BASH_FUNC_"):
		why = "it makes programs load or run other code"
	case programVars[name]:
		if !harmlessProgram(val) {
			why = "it names a program that others run"
		}
	case buildVars[name] && val.known():
		n := *w
		n.soft, n.known = true, true
		n.code(val, name, nil, true)
	case name == "NODE_OPTIONS":
		if !val.known() || containsAny(val.text, "-r", "--require", "--import", "loader", "--inspect") {
			why = "it makes node load other code"
		}
	case name == "GOFLAGS":
		if !val.known() || containsAny(val.text, "-toolexec", "-exec", "-overlay") {
			why = "it makes go run other programs"
		}
	case name == "MAKEFLAGS" || name == "GNUMAKEFLAGS":
		if !val.known() || containsAny(val.text, "SHELL", "eval") {
			why = "it changes what make runs"
		}
	case name == "JAVA_TOOL_OPTIONS" || name == "_JAVA_OPTIONS" || name == "JDK_JAVA_OPTIONS":
		if !val.known() || containsAny(val.text, "agent", "Xrun", "OnError", "OnOutOfMemory", "@") {
			why = "it makes java load other code"
		}
	case strings.HasPrefix(name, "GIT_"):
		if !harmlessGitVar(name, val) {
			why = "it makes git run other programs or read another configuration"
		}
	case strings.HasSuffix(strings.ToLower(name), "_proxy") && name != "no_proxy" && name != "NO_PROXY":
		if !val.known() || val.text != "" {
			why = "it sends what programs say elsewhere"
		}
	case name == "CDPATH":
		if script && (!val.known() || !inVault(val.text, w)) {
			why = "it changes where cd leads"
		}
	}
	if why != "" {
		w.a.opaque(w.via, name+"="+val.text, "the variable "+name+" is set: "+why)
	}
}

// loaderVars make every program that starts load code, or a shell run it.
var loaderVars = map[string]bool{
	"BASH_ENV": true, "ENV": true, "SHELLOPTS": true, "BASHOPTS": true, "PROMPT_COMMAND": true, "PS4": true,
	"BASH_LOADABLES_PATH": true, "ZDOTDIR": true, "FPATH": true, "fpath": true, "EXECIGNORE": true, "GCONV_PATH": true,
	"GLIBC_TUNABLES": true, "PERL5OPT": true, "PERL5DB": true, "RUBYOPT": true,
	"PYTHONSTARTUP": true, "PYTHONHOME": true, "PYTHONINSPECT": true, "PYTHONBREAKPOINT": true,
	"PYTHONEXECUTABLE": true, "TAR_OPTIONS": true, "RSYNC_RSH": true, "CVS_RSH": true, "SVN_SSH": true, "HGPLAIN": false,
	"RUSTC_WRAPPER": true, "RUSTC_WORKSPACE_WRAPPER": true, "CARGO_BUILD_RUSTC_WRAPPER": true, "RUSTC": true, "LUA_INIT": true,
	"npm_config_script_shell": true, "npm_config_git": true, "GOTOOLCHAIN": false, "OPENSSL_CONF": true, "OPENSSL_MODULES": true,
	"KUBECONFIG": false, "LESSOPEN": true, "LESSCLOSE": true, "WGETRC": true, "CURL_HOME": true, "INPUTRC": true, "TERMINFO": false, "PHPRC": true, "PHP_INI_SCAN_DIR": true,
}

// modulePaths say where an interpreter finds modules. In the vault they are code of the
// project, which runs behind a checkpoint like the rest of it.
var modulePaths = map[string]bool{"NODE_PATH": true, "PERL5LIB": true, "PERLLIB": true, "RUBYLIB": true}

// buildVars name the programs that make and its kind start, with arguments.
var buildVars = map[string]bool{"CC": true, "CXX": true, "CPP": true, "LD": true, "AR": true, "AS": true, "RANLIB": true, "NM": true, "STRIP": true, "INSTALL": true, "RM": true, "HOSTCC": true, "LINKER": true}

// programVars name a program that another one starts.
var programVars = map[string]bool{
	"EDITOR": true, "VISUAL": true, "PAGER": true, "MANPAGER": true, "SYSTEMD_PAGER": true, "BROWSER": true, "SHELL": true,
	"SSH_ASKPASS": true, "SUDO_ASKPASS": true, "SUDO_EDITOR": true, "FCEDIT": true, "SYSTEMD_EDITOR": true, "PSQL_PAGER": true, "PSQL_EDITOR": true,
	"GIT_PAGER": true, "GIT_EDITOR": true, "GIT_SEQUENCE_EDITOR": true, "GH_PAGER": true, "GH_EDITOR": true, "GH_BROWSER": true, "AWS_PAGER": true,
	"BAT_PAGER": true, "DELTA_PAGER": true, "KUBE_EDITOR": true, "HGEDITOR": true, "SVN_EDITOR": true, "CONFIG_SHELL": true, "MAKESHELL": true,
}

// harmlessProgram reports whether the value names one of the programs that only
// show or edit text, or none.
func harmlessProgram(val token) bool {
	if !val.known() {
		return false
	}
	words := strings.Fields(val.text)
	if len(words) == 0 {
		return true
	}
	for _, f := range words[1:] {
		if !strings.HasPrefix(f, "-") || strings.ContainsAny(f, "!$`;|&") {
			return false
		}
	}
	name, _, trusted := programName(words[0])
	switch name {
	case "cat", "less", "more", "most", "true", ":", "false", "echo", "vi", "vim", "nvim", "nano", "emacs", "ed", "code", "bat", "delta",
		"bash", "sh", "zsh", "dash", "xdg-open", "open", "firefox":
		return trusted
	}
	return false
}

// harmlessIFS lists separators that scripts set all day.
func harmlessIFS(val token) bool {
	return val.known() && (strings.Trim(val.text, " \t\n") == "" || val.text == "," || val.text == ":" || val.text == ";" || val.text == "|")
}

// harmlessGitVar reports whether the variable changes nothing that runs.
func harmlessGitVar(name string, val token) bool {
	switch name {
	case "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_MERGE_AUTOEDIT", "GIT_LFS_SKIP_SMUDGE", "GIT_CONFIG_NOSYSTEM", "GIT_MERGE_VERBOSITY",
		"GIT_PAGER_IN_USE", "GIT_ADVICE", "GIT_NO_REPLACE_OBJECTS", "GIT_LITERAL_PATHSPECS", "GIT_REFLOG_ACTION", "GIT_FLUSH", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CEILING_DIRECTORIES":
		return true
	}
	if strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_") {
		return true
	}
	if strings.HasPrefix(name, "GIT_TRACE") || name == "GIT_CURL_VERBOSE" {
		return val.known() && (len(val.text) <= 1 || val.text == "true" || val.text == "false")
	}
	return false
}

// harmlessPath accepts a PATH that only adds directories which the vault cannot
// hold: after the old value any absolute one, before it well-known ones.
func harmlessPath(val token, w *walker) bool {
	src := val.text
	if !val.dyn {
		src = strings.ReplaceAll(src, "${PATH}", "$PATH")
	}
	src = strings.Trim(src, `"'`)
	if i := strings.IndexByte(src, '='); i >= 0 && strings.HasPrefix(src, "PATH") {
		src = strings.Trim(src[i+1:], `"'`)
	}
	src = strings.ReplaceAll(strings.ReplaceAll(src, "${PATH}", "$PATH"), "${HOME}", "~")
	src = strings.ReplaceAll(src, "$HOME", "~")
	behind := false
	for _, dir := range strings.Split(src, ":") {
		switch {
		case dir == "$PATH":
			behind = true
		case behind && (strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "~/")) && !strings.ContainsAny(dir, "$`*") && !tempDir(dir):
			if in, ok := (locator{mount: w.mount}).inMount(path.Clean(dir)); ok && in != "" {
				return false
			}
		case systemBin(dir):
		default:
			return false
		}
	}
	return true
}

// toolPath accepts a PATH with a directory of the vault in front in which package
// managers put the tools of one project, and nothing else new.
func toolPath(val token) bool {
	src := strings.Trim(val.text, `"'`)
	if i := strings.IndexByte(src, '='); i >= 0 && strings.HasPrefix(src, "PATH") {
		src = strings.Trim(src[i+1:], `"'`)
	}
	src = strings.ReplaceAll(src, "${PATH}", "$PATH")
	first, rest, ok := strings.Cut(src, ":")
	for _, here := range []string{"$PWD/", "${PWD}/", "$(pwd)/", "./"} {
		first = strings.TrimPrefix(first, here)
	}
	switch strings.TrimSuffix(first, "/") {
	case "node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin":
		return ok && rest == "$PATH"
	}
	return false
}

// inVault reports whether a list of directories surely names places of the vault only.
func inVault(list string, w *walker) bool {
	for dir := range strings.SplitSeq(list, ":") {
		if dir != "" && w.loc().resolve(dir).kind != placeVault {
			return false
		}
	}
	return true
}

func tempDir(dir string) bool {
	p := path.Clean(dir)
	return p == "/tmp" || resolved{kind: placeHost, path: p}.isTemp()
}

// systemBin lists where installed programs live.
func systemBin(dir string) bool {
	d := path.Clean(dir)
	for _, p := range []string{"/usr/", "/opt/", "/snap/", "/nix/"} {
		if strings.HasPrefix(d, p) && !strings.Contains(dir, "..") && !strings.ContainsAny(d, "$`") {
			return true
		}
	}
	switch d {
	case "/bin", "/sbin", "~/.cargo/bin", "~/go/bin", "~/.local/bin", "~/.bun/bin", "~/.deno/bin", "~/.pyenv/bin", "~/.pyenv/shims", "~/.rbenv/bin", "~/.rbenv/shims", "~/.volta/bin", "~/.yarn/bin", "~/.nvm/current/bin", "~/.dotnet", "~/bin":
		return true
	}
	return false
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
