package proxy

import (
	"slices"
	"strings"
)

// passed lists the variables of the caller that a command gets. Others may hold
// secrets, or change what runs, and are named with Request.Env where they are
// wanted.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "COLUMNS", "LINES",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN", "GOFLAGS",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV",
	"AVFS_HOME", "SYSTEMROOT", "USERPROFILE", "PATHEXT", "COMSPEC",
}

// passes reports whether a command gets the caller's variable of that name.
func passes(name string) bool {
	return slices.Contains(passed, name) || strings.HasPrefix(name, "LC_")
}

// environment is what a command gets: the caller's variables that pass, then the
// extra ones, then those that say where it runs.
func environment(caller, extra []string, vault, id, dir string) []string {
	var env []string
	for _, kv := range caller {
		if name, _, ok := strings.Cut(kv, "="); ok && passes(name) {
			env = append(env, kv)
		}
	}
	env = append(env, extra...)
	return append(env, "PWD="+dir, "AVFS_VAULT="+vault, "AVFS_EXEC_ID="+id)
}
