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
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN", "GOFLAGS",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV",
	"SYSTEMROOT", "USERPROFILE", "PATHEXT", "COMSPEC",
}

// passes reports whether a command gets the caller's variable of that name.
func passes(name string) bool {
	return slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") ||
		slices.ContainsFunc(toolVars, func(t struct{ name, path string }) bool { return t.name == name })
}

// environment is what a command gets: the base, then the extra variables, then those
// that say where it runs.
func environment(base, extra []string, vault, id, dir string) []string {
	return append(slices.Concat(base, extra), "PWD="+dir, "AVFS_VAULT="+vault, "AVFS_EXEC_ID="+id)
}
