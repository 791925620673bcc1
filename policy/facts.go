package policy

import (
	"path"
	"slices"
	"strings"
)

// Facts tells what a command will find in the vault, as far as a decision depends on
// it. Decide asks while it judges, only for what the command makes matter, and for
// one thing at most once. It is the caller's to read the vault; the answers are those
// of the moment of the decision, and what the command itself changes before the
// answer matters is judged where it stands in the command.
type Facts interface {
	// Repository returns what git would read in a directory, which is a clean
	// absolute path in the vault: of the repository that the directory or one of
	// its parents belongs to. Nil is no repository.
	Repository(dir string) *Repository
	// LeadsOut tells which of some paths, clean and absolute in the vault, lead out of
	// it through symbolic links.
	LeadsOut(paths []string) []bool
}

// Repository is what makes git run programs in one repository of the vault.
type Repository struct {
	// Configs are the configuration files of the repository in the order in which
	// git reads them, with those that they include and the vault holds.
	Configs []GitConfig
	// Hooks names the hooks that git would run, those in core.hooksPath where that
	// is set: files with the right to be executed and a hook's name, without the
	// samples that git ships.
	Hooks []string
	// Submodules are the repositories that git enters on its own account.
	Submodules []*Repository
	// Unclear says why not everything is known, in words for people; empty where
	// everything is. Git then needs approval.
	Unclear string
}

// GitConfig is one configuration file of git.
type GitConfig struct {
	Path string // clean absolute path in the vault
	Text []byte
}

// GitInclude is one further file that a configuration makes git read.
type GitInclude struct {
	Key  string // include.path, or includeif.CONDITION.path
	Path string // clean absolute path in the vault; empty for one outside
}

// GitIncludes returns the further files that a configuration makes git read. A
// condition counts as met. mount is the place of the vault's root on the host, where
// that is known.
func GitIncludes(c GitConfig, mount string) []GitInclude {
	var found []GitInclude
	eachGitSetting(c.Text, func(key, value string) {
		if !isInclude(key) || value == "" {
			return
		}
		p, _ := VaultPath(value, path.Dir(c.Path), mount)
		found = append(found, GitInclude{key, p})
	})
	return found
}

func isInclude(key string) bool {
	return key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

// GitHooksDir returns the directory that git takes hooks from: what core.hooksPath of
// the configurations says, read from top, where the repository's files are, or the
// directory own. It is empty where hooks are switched off, and inside is false for a
// directory that is not in the vault.
func GitHooksDir(configs []GitConfig, top, own, mount string) (dir string, inside bool) {
	dir, inside = own, true
	for _, c := range configs {
		eachGitSetting(c.Text, func(key, value string) {
			switch {
			case key != "core.hookspath":
			case value == "" || value == "/dev/null":
				dir, inside = "", true
			default:
				dir, inside = VaultPath(value, top, mount)
			}
		})
	}
	return dir, inside
}

// GitSubmodulePaths returns where the text of a .gitmodules file, which lies in the
// directory top, puts submodules: clean absolute paths in the vault.
func GitSubmodulePaths(text []byte, top string) []string {
	var found []string
	eachGitSetting(text, func(key, value string) {
		if strings.HasPrefix(key, "submodule.") && strings.HasSuffix(key, ".path") && value != "" {
			if p, ok := VaultPath(value, top, ""); ok {
				found = append(found, p)
			}
		}
	})
	return found
}

// VaultPath turns a path that git reads from a directory of the vault into a clean
// absolute one in the vault, and reports whether it lies there. mount is the place of
// the vault's root on the host, where that is known.
func VaultPath(p, dir, mount string) (string, bool) {
	l := locator{cwd: place{kind: placeVault, path: dir}}
	if mount != "" {
		l.mount = path.Clean(mount)
	}
	r := l.resolve(p)
	if r.kind != placeVault {
		return "", false
	}
	return r.path, true
}

// IsGitHook reports whether git runs a file of that name as a hook.
func IsGitHook(name string) bool {
	_, ok := hookUses[name]
	return ok
}

// maxLinked bounds the paths of one command whose links are looked at.
const maxLinked = 256

// leadsOut adds what commands change outside the vault through its symbolic links. The
// spelling of such a path does not tell.
func (a *analyzer) leadsOut() {
	var items []*item
	var paths, gone []string // gone: what the command removes first
	for i := range a.items {
		it := &a.items[i]
		switch it.kind {
		case kindCall, kindWrapper, kindWrite:
		default:
			continue
		}
		for k, f := range it.effects().writePaths {
			if !f.inside || f.at.path == "/" || len(paths) >= maxLinked {
				continue
			}
			p := f.at.path
			into := f.at.all || it.base == "mv" && k == len(it.effects().writePaths)-1
			if unlinks[it.base] && !into { // the link itself goes, not what it leads to
				if it.base != "ln" {
					gone = append(gone, p)
				}
				p = path.Dir(p)
			}
			if p != "/" && !slices.ContainsFunc(gone, func(g string) bool { return g == p || isAncestor(g, p) }) {
				items, paths = append(items, it), append(paths, p)
			}
		}
	}
	if len(paths) == 0 {
		return
	}
	for i, out := range a.facts.LeadsOut(paths) {
		if out {
			a.floor(RequireApproval, "leads-out", items[i].via, items[i].display(), "a symbolic link of the vault leads out of it, to what no checkpoint has: "+strings.TrimPrefix(paths[i], "/"))
		}
	}
}

// unlinks names the programs that change the entry of a directory that a path names.
var unlinks = map[string]bool{"rm": true, "unlink": true, "rmdir": true, "mv": true, "ln": true}

// repository asks the facts about a directory.
func (w *walker) repository(dir string) *Repository {
	if r, ok := w.a.repos[dir]; ok {
		return r
	}
	r := w.a.facts.Repository(dir)
	if w.a.repos == nil {
		w.a.repos = map[string]*Repository{}
	}
	w.a.repos[dir] = r
	return r
}

// gitFacts judges a git command by the repository that it will work in.
func (w *walker) gitFacts(it *item, g gitCall) {
	at := w.gitPlace(g)
	if at.kind != placeVault {
		act := AllowWithCheckpoint
		if _, reads := gitReaders()[g.sub]; !reads && at.kind == placeHost {
			act = RequireApproval
		}
		w.a.floor(act, "git-repository", w.via, it.display(),
			"which repository git works in is not known, so neither is what its configuration runs")
		if at.kind == placeHost {
			return
		}
		at = w.a.start
	}
	r := w.repository(at.path)
	if r == nil {
		return
	}
	w.gitRepository(it, g, r, 0)
}

// maxSubmoduleDepth bounds how deep submodules are judged in one another.
const maxSubmoduleDepth = 8

// gitRepository judges one repository and the submodules in it.
func (w *walker) gitRepository(it *item, g gitCall, r *Repository, depth int) {
	if r.Unclear != "" {
		w.a.floor(RequireApproval, "git-repository", w.via, it.display(), "what the repository's own configuration runs is not known: "+r.Unclear)
	}
	uses := gitUsesOf(g.sub)
	if isPartialClone(r.Configs) {
		uses |= useNet // git fetches what is missing whenever it is asked for
	}
	if keys := riskyKeys(r, g.sub, uses, w.mount); len(keys) > 0 {
		list := strings.Join(keys, ", ")
		w.a.add(item{kind: kindFloor, floor: RequireApproval, id: "git-config", via: w.via, src: it.display(), word: list,
			reason: "the repository's own configuration names programs that git would run: " + list})
	}
	if hooks := hooksOf(r, uses); len(hooks) > 0 {
		act, what := AllowWithCheckpoint, "git runs hooks of the repository: "
		if uses&useChange == 0 {
			act, what = RequireApproval, "git only reads here, yet runs hooks of the repository: "
		}
		list := strings.Join(hooks, ", ")
		w.a.add(item{kind: kindFloor, floor: act, id: "git-hooks", via: w.via, src: it.display(), word: list, reason: what + list})
	}
	if uses&(useIndex|useNet) == 0 || depth >= maxSubmoduleDepth {
		return
	}
	for _, sub := range r.Submodules {
		w.gitRepository(it, g, sub, depth+1)
	}
}

// gitPlace is the directory in which git looks for its repository.
func (w *walker) gitPlace(g gitCall) place {
	at := w.st.cwd
	for _, t := range g.dirs {
		if !t.known() || at.kind == placeUnknown {
			return place{kind: placeUnknown}
		}
		r := locator{cwd: at, mount: w.mount}.resolve(t.text)
		at = place{kind: r.kind, path: r.path}
	}
	return at
}

// riskyKeys names the settings of a repository that make the subcommand run programs.
func riskyKeys(r *Repository, sub string, uses gitUse, mount string) []string {
	var keys []string
	for _, c := range r.Configs {
		eachGitSetting(c.Text, func(key, value string) {
			switch {
			case isInclude(key):
				// What the vault holds was read; what it does not hold, git steps over.
				if _, ok := VaultPath(value, path.Dir(c.Path), mount); ok {
					return
				}
			case key == "core.hookspath":
				return // the hooks there stand among the repository's hooks
			case key == "core.worktree":
				if _, ok := VaultPath(value, path.Dir(c.Path), mount); ok {
					return
				}
			}
			if riskyGitKey(key, value) && gitKeyMatters(key, sub, uses) {
				keys = append(keys, key)
			}
		})
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// isPartialClone reports whether git may fetch at any time what is missing.
func isPartialClone(configs []GitConfig) bool {
	found := false
	for _, c := range configs {
		eachGitSetting(c.Text, func(key, value string) {
			found = found || key == "extensions.partialclone" || strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor")
		})
	}
	return found
}

// hooksOf names the hooks that git runs for what a subcommand does.
func hooksOf(r *Repository, uses gitUse) []string {
	var names []string
	for _, h := range r.Hooks {
		if hookUses[h]&uses != 0 {
			names = append(names, h)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// aliasesOf returns the aliases that a repository defines, by lower-case name.
func (w *walker) aliasesOf(g gitCall) map[string]string {
	if w.a.facts == nil {
		return nil
	}
	at := w.gitPlace(g)
	if at.kind == placeUnknown {
		at = w.a.start
	}
	if at.kind != placeVault {
		return nil
	}
	found := map[string]string{}
	if r := w.repository(at.path); r != nil {
		for _, c := range r.Configs {
			eachGitSetting(c.Text, func(key, value string) {
				if name, ok := strings.CutPrefix(key, "alias."); ok {
					found[strings.ToLower(name)] = value
				}
			})
		}
	}
	return found
}
