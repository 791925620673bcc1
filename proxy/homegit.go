package proxy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/policy"
)

// gitKept are the caller's settings of git that commands get: who commits, and what
// tells how files and history are treated. What runs programs, names hosts or finds
// passwords is none of them.
var gitKept = []string{
	"user.name", "user.email", "user.useconfigonly", "author.name", "author.email", "committer.name", "committer.email",
	"init.defaultbranch", "core.autocrlf", "core.eol", "core.safecrlf", "core.quotepath", "core.excludesfile", "core.attributesfile",
	"pull.rebase", "pull.ff", "push.default", "merge.ff", "merge.conflictstyle", "rebase.autostash", "rebase.autosquash", "rerere.enabled",
	"diff.algorithm", "diff.renames", "fetch.prune", "safe.directory", "color.ui", "log.date", "i18n.commitencoding",
	"filter.lfs.clean", "filter.lfs.smudge", "filter.lfs.process", "filter.lfs.required",
}

// maxGitIncludes bounds the files that the caller's configuration includes.
const maxGitIncludes = 16

// gitSettings is a configuration file of git with what commands get of the caller's.
// Files that are included on a condition count for nothing: the conditions are about
// repositories of the caller's. config is the directory of the caller's settings.
func gitSettings(vars map[string]string, home, config string) string {
	g := &gitCopy{home: home}
	if file := vars["GIT_CONFIG_GLOBAL"]; file != "" {
		g.read(file)
	} else {
		g.kept("core.excludesfile", filepath.Join(config, "git", "ignore"))
		g.kept("core.attributesfile", filepath.Join(config, "git", "attributes"))
		g.read(filepath.Join(config, "git", "config"))
		g.read(filepath.Join(home, ".gitconfig"))
	}
	// The empty helper takes back those that the system's configuration names.
	return "# Written by avfs for each command; change ~/.gitconfig instead.\n[credential]\n\thelper =\n" + g.text.String()
}

// gitCopy collects settings.
type gitCopy struct {
	home  string
	text  strings.Builder
	files int
}

// read takes a file, if it is there, with what it includes.
func (g *gitCopy) read(file string) {
	if g.files++; g.files > maxGitIncludes {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return // git goes on without it too
	}
	for _, s := range policy.GitSettings(text) {
		switch {
		case s.Key == "include.path" && s.Value != "":
			g.read(g.path(s.Value, filepath.Dir(file)))
		case s.Key == "core.excludesfile", s.Key == "core.attributesfile":
			g.kept(s.Key, g.path(s.Value, filepath.Dir(file)))
		case slices.Contains(gitKept, s.Key) && !policy.GitSettingRuns(s):
			g.set(s.Key, s.Value)
		}
	}
}

// path is a path in a configuration file, which lies in dir.
func (g *gitCopy) path(value, dir string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		return filepath.Join(g.home, rest)
	}
	if filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(dir, value)
}

// kept sets the path of a file, if that is there.
func (g *gitCopy) kept(key, path string) {
	if _, err := os.Stat(path); err == nil {
		g.set(key, path)
	}
}

func (g *gitCopy) set(key, value string) {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
		return
	}
	at := strings.LastIndexByte(key, '.')
	section, sub, _ := strings.Cut(key[:at], ".")
	if sub != "" {
		section += ` "` + sub + `"`
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
	g.text.WriteString("[" + section + "]\n\t" + key[at+1:] + ` = "` + quoted + "\"\n")
}
