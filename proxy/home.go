package proxy

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/workspace"
)

// home is where the home directory of a command is, and what of the caller's own home
// it knows: caches and tool chains by variables that name them, who the caller is by
// copies of settings. Keys, tokens and the sockets of agents stay in the caller's.
type home struct {
	dir    string            // of the command; empty: it has the caller's
	caller string            // the caller's home; empty if there is none
	avfs   string            // the workspace, which a command would look for in its home
	config string            // the directory of the caller's settings
	vars   map[string]string // the caller's variables
	tools  map[string]string // what names the parts of the caller's home that exist
}

// homeVars are the variables that are another home's, or name parts of it.
var homeVars = []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}

// toolVars name what tools keep in a home that is costly to have twice and holds no
// password: each path is below the caller's home. "cache/" begins those that follow
// XDG_CACHE_HOME, "config/" and "data/" likewise.
var toolVars = []struct{ name, path string }{
	{"GOENV", "config/go/env"}, {"GOPATH", "go"}, {"GOCACHE", "cache/go-build"},
	{"CARGO_HOME", ".cargo"}, {"RUSTUP_HOME", ".rustup"},
	{"npm_config_cache", ".npm"}, {"npm_config_devdir", "cache/node-gyp"}, {"NVM_DIR", ".nvm"}, {"VOLTA_HOME", ".volta"}, {"DENO_DIR", "cache/deno"},
	{"PIP_CACHE_DIR", "cache/pip"}, {"PYTHONUSERBASE", ".local"}, {"PYENV_ROOT", ".pyenv"},
	{"UV_CACHE_DIR", "cache/uv"}, {"UV_PYTHON_INSTALL_DIR", "data/uv/python"}, {"PRE_COMMIT_HOME", "cache/pre-commit"},
	{"RBENV_ROOT", ".rbenv"}, {"ASDF_DATA_DIR", ".asdf"}, {"MISE_DATA_DIR", "data/mise"}, {"CCACHE_DIR", "cache/ccache"},
	{"PLAYWRIGHT_BROWSERS_PATH", "cache/ms-playwright"}, {"CYPRESS_CACHE_FOLDER", "cache/Cypress"}, {"PUPPETEER_CACHE_DIR", "cache/puppeteer"},
}

// newHome makes the home of a command in a vault. extra are the variables that the
// command is given: one that is given HOME has that, and no other.
func newHome(w *workspace.Workspace, vault string, caller, extra []string) (*home, error) {
	h := &home{avfs: w.Home(), vars: map[string]string{}, tools: map[string]string{}}
	if slices.ContainsFunc(extra, func(kv string) bool { return variable(kv) == "HOME" }) {
		return h, nil
	}
	var err error
	if h.dir, err = w.CommandHome(vault); err != nil {
		return nil, err
	}
	for _, kv := range caller {
		if name, value, ok := strings.Cut(kv, "="); ok {
			h.vars[name] = value
		}
	}
	if dir := h.vars["HOME"]; filepath.IsAbs(dir) && dir != h.dir {
		h.caller, h.config = dir, xdg(h.vars["XDG_CONFIG_HOME"], dir, ".config")
		h.findTools()
	}
	return h, nil
}

// xdg is a directory that a variable names, or else the one below the home.
func xdg(value, home, usual string) string {
	if filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(home, usual)
}

// findTools finds what of toolVars exists and is named by nothing else.
func (h *home) findTools() {
	bases := map[string]string{
		"config": h.config, "data": xdg(h.vars["XDG_DATA_HOME"], h.caller, ".local/share"), "cache": xdg(h.vars["XDG_CACHE_HOME"], h.caller, ".cache"),
	}
	for _, t := range toolVars {
		if _, set := h.vars[t.name]; set {
			continue
		}
		path := filepath.Join(h.caller, t.path)
		if kind, rest, ok := strings.Cut(t.path, "/"); ok && bases[kind] != "" {
			path = filepath.Join(bases[kind], rest)
		}
		if _, err := os.Stat(path); err == nil {
			h.tools[t.name] = path
		}
	}
	file := h.tools["GOENV"]
	if file == "" {
		file = h.vars["GOENV"]
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return // there is none, or go says what is wrong with it
	}
	for line := range strings.Lines(string(text)) { // go prefers a variable to what its file says
		delete(h.tools, variable(line))
	}
}

// base is what of the caller's variables a command gets, and what the home adds.
func (h *home) base(caller []string) []string {
	var list []string
	for _, kv := range caller {
		if name, _, ok := strings.Cut(kv, "="); ok && passes(name) && (h.dir == "" || !slices.Contains(homeVars, name)) {
			list = append(list, kv)
		}
	}
	list = append(list, "AVFS_HOME="+h.avfs)
	if h.dir == "" {
		return list
	}
	for _, t := range toolVars {
		if path, ok := h.tools[t.name]; ok {
			list = append(list, t.name+"="+path)
		}
	}
	return append(list, "HOME="+h.dir, "USERPROFILE="+h.dir)
}

// The files of a home that avfs writes: settings of the caller's. Git reads the first
// by way of its usual file, which is the command's.
const (
	gitSettingsFile = ".gitconfig-avfs"
	gitInclude      = "[include]\n\tpath = " + gitSettingsFile + "\n"
)

// copySettings gives the home the caller's settings of git, npm and pip that hold no
// secret. Nothing is written outside of it, whatever links a command has put there.
func (h *home) copySettings() error {
	if h.caller == "" {
		return nil
	}
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = replace(root, gitSettingsFile, gitSettings(h.vars, h.caller, h.config))
	if _, lerr := root.Lstat(".gitconfig"); errors.Is(lerr, fs.ErrNotExist) {
		err = errors.Join(err, replace(root, ".gitconfig", gitInclude))
	}
	return errors.Join(err,
		copyNewer(root, ".npmrc", filepath.Join(h.caller, ".npmrc")),
		copyNewer(root, ".config/pip/pip.conf", filepath.Join(h.config, "pip", "pip.conf")),
		copyNewer(root, ".pip/pip.conf", filepath.Join(h.caller, ".pip", "pip.conf")))
}

// copyNewer copies a file of settings, without secrets, where the one in the home is
// older: what a command has set stays until the caller sets something.
func copyNewer(root *os.Root, to, from string) error {
	theirs, err := os.Stat(from)
	if err != nil {
		return nil // the tool would not have read it either
	}
	if ours, err := root.Stat(to); err == nil && !theirs.ModTime().After(ours.ModTime()) {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return replace(root, to, withoutSecrets(string(text)))
}

// withoutSecrets drops the lines of a file of settings that may hold a password: those
// of one host or registry, those with such a name, and URLs with a user in them.
func withoutSecrets(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		low := strings.ToLower(strings.TrimSpace(line))
		name, value, _ := strings.Cut(low, "=")
		if strings.HasPrefix(low, "//") || strings.Contains(value, "@") || slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) }) {
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

var secretWords = []string{"auth", "token", "pass", "secret", "user", "email", "key", "cert", "otp"}

// replace writes a file of the home, in one step, if it is not what it should be.
func replace(root *os.Root, name, text string) error {
	if old, err := root.ReadFile(name); err == nil && string(old) == text {
		return nil
	}
	tmp := name + "-" + rand.Text()
	err := root.WriteFile(tmp, []byte(text), 0o600)
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp) // it may not be there
	}
	return err
}

// useHome fills the home of the command, and says in the envelope what it is. Without
// the caller's settings the command runs all the same.
func (e *Envelope) useHome(h *home) {
	if h.dir == "" {
		return
	}
	e.Isolation.Applied = append(e.Isolation.Applied, "scratch home")
	if err := h.copySettings(); err != nil {
		e.Notes = append(e.Notes, "settings of the caller could not be copied to the home of the command: "+err.Error())
	}
}
