package proxy

import (
	"context"
	"path"
	"strings"

	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

// Bounds on what is looked at of a vault before a decision. What goes beyond makes
// the repository unclear, so that git needs approval there.
const (
	maxConfigBytes = 1 << 20
	maxNames       = 4096
	maxConfigs     = 64
	maxModules     = 512
)

// Facts looks into a vault for the policy. It is made for one decision.
type Facts struct {
	peek   func(req workspace.PeekRequest) ([]workspace.Peek, error)
	look   func(paths []string) ([]workspace.Peek, error)
	mount  string
	err    error
	looked *workspace.Looked // nil until something was looked at
}

// NewFacts returns the facts about a vault, empty being the current one, for a command
// that will see it at mount. Nothing is looked at before the policy asks, and no process is
// started to look.
func NewFacts(ctx context.Context, w *workspace.Workspace, vault, mount string) *Facts {
	f := &Facts{mount: mount}
	f.peek = func(req workspace.PeekRequest) ([]workspace.Peek, error) {
		return workspace.CallVault(ctx, w, vault, workspace.OpPeek, func(vault string) workspace.PeekRequest {
			req.Vault = vault
			return req
		}, workspace.Streams{})
	}
	f.look = func(paths []string) ([]workspace.Peek, error) {
		req := peekRequest(paths)
		req.Bytes, req.Names = maxConfigBytes, maxNames
		seen, err := f.peek(req)
		if err != nil {
			return nil, err
		}
		if f.looked == nil {
			f.looked = &workspace.Looked{}
		}
		return seen, f.looked.Add(req, seen)
	}
	return f
}

func peekRequest(paths []string) workspace.PeekRequest {
	req := workspace.PeekRequest{}
	for _, p := range paths {
		req.Paths = append(req.Paths, workspace.Path(p))
	}
	return req
}

// LeadsOut looks at the symbolic links on paths. What it sees is not looked at again when
// the command begins: another command that makes a link meanwhile is one of many ways to
// change what a command will find.
func (f *Facts) LeadsOut(paths []string) []bool {
	out := make([]bool, len(paths))
	if f.err != nil {
		return out
	}
	seen, err := f.peek(peekRequest(paths))
	if err != nil {
		f.err = err
		return out
	}
	for i := range seen {
		out[i] = seen[i].Type == "symlink"
	}
	return out
}

// Err is why the vault could not be looked at. The decision then counts for nothing.
func (f *Facts) Err() error { return f.err }

// Repository finds the repository of a directory as git does: the directory itself or
// the nearest parent that holds one, but nothing above the vault's root.
func (f *Facts) Repository(dir string) *policy.Repository {
	g := &gathering{facts: f}
	r := g.discover(path.Clean("/" + dir))
	if g.err != nil {
		if f.err == nil {
			f.err = g.err
		}
		return &policy.Repository{Unclear: "the vault could not be read"}
	}
	return r
}

// gathering is one search for a repository.
type gathering struct {
	facts   *Facts
	err     error
	unclear string
	modules int
}

// see looks at paths, in order. After an error it sees nothing.
func (g *gathering) see(paths ...string) []workspace.Peek {
	if g.err == nil {
		var list []workspace.Peek
		if list, g.err = g.facts.look(paths); g.err == nil && len(list) == len(paths) {
			for i, p := range list {
				if p.More {
					g.doubt(paths[i] + " is too large to be looked at")
				}
			}
			return list
		}
	}
	return make([]workspace.Peek, len(paths))
}

// doubt notes the first reason why not everything is known.
func (g *gathering) doubt(why string) {
	if g.unclear == "" {
		g.unclear = why
	}
}

// discover walks from a directory to the vault's root.
func (g *gathering) discover(dir string) *policy.Repository {
	at := g.see(dir)[0]
	if at.Type == "symlink" {
		return &policy.Repository{Unclear: dir + " leads out of the vault"}
	}
	if at.Type == "dir" {
		dir = string(at.Real) // git goes up from where it really is
	}
	var parents, paths []string
	for d := dir; ; d = path.Dir(d) {
		parents = append(parents, d)
		paths = append(paths, path.Join(d, ".git"), path.Join(d, ".git/HEAD"), path.Join(d, "HEAD"), path.Join(d, "objects"), path.Join(d, "refs"))
		if d == "/" {
			break
		}
	}
	seen := g.see(paths...)
	for i, d := range parents {
		s := seen[5*i : 5*i+5]
		switch {
		case s[0].Type == "symlink":
			return &policy.Repository{Unclear: path.Join(d, ".git") + " leads out of the vault"}
		case s[0].Type == "file":
			return g.linked(d, s[0].Data)
		case s[0].Type == "dir" && s[1].Type != "":
			return g.repository(string(s[0].Real), d)
		case s[2].Type != "" && s[3].Type == "dir" && s[4].Type == "dir":
			return g.repository(d, d) // a bare repository, or the inside of one
		}
	}
	return nil
}

// linked follows a .git file, which names the repository's directory.
func (g *gathering) linked(top string, text []byte) *policy.Repository {
	target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if !ok {
		return nil // no file of git; git fails there
	}
	dir, inside := policy.VaultPath(strings.TrimSpace(target), top, g.facts.mount)
	if !inside {
		return &policy.Repository{Unclear: path.Join(top, ".git") + " names a directory outside the vault"}
	}
	return g.repository(dir, top)
}

// repository reads the repository whose own directory is dir and whose files are in
// top.
func (g *gathering) repository(dir, top string) *policy.Repository {
	r := g.read(dir, top)
	r.Submodules = append(r.Submodules, g.oldSubmodules(top)...)
	r.Unclear = g.unclear
	return r
}

// read reads a repository with the submodules that it keeps.
func (g *gathering) read(dir, top string) *policy.Repository {
	s := g.see(dir+"/commondir", dir+"/config.worktree", dir+"/config", dir+"/hooks", dir+"/modules")
	common, own := dir, s[2:]
	if s[0].Type == "file" { // a further worktree: most lies in the main one's directory
		var inside bool
		if common, inside = policy.VaultPath(strings.TrimSpace(string(s[0].Data)), dir, g.facts.mount); !inside {
			g.doubt(dir + "/commondir names a directory outside the vault")
			return &policy.Repository{}
		}
		own = g.see(common+"/config", common+"/hooks", common+"/modules")
	}
	r := &policy.Repository{}
	g.config(r, common+"/config", own[0])
	g.config(r, dir+"/config.worktree", s[1])
	g.hooks(r, common, top, own[1])
	g.submodules(r, common+"/modules", own[2])
	return r
}

// config takes a configuration file, if it is there, and what it includes.
func (g *gathering) config(r *policy.Repository, file string, p workspace.Peek) {
	switch p.Type {
	case "":
		return
	case "file":
	default:
		g.doubt(file + " is no file of the vault")
		return
	}
	if len(r.Configs) >= maxConfigs {
		g.doubt("it includes too many files")
		return
	}
	c := policy.GitConfig{Path: file, Text: p.Data}
	r.Configs = append(r.Configs, c)
	for _, in := range policy.GitIncludes(c, g.facts.mount) {
		if in.Path != "" {
			g.config(r, in.Path, g.see(in.Path)[0])
		}
	}
}

// hooks takes the hooks that git would run.
func (g *gathering) hooks(r *policy.Repository, common, top string, own workspace.Peek) {
	dir, inside := policy.GitHooksDir(r.Configs, top, common+"/hooks", g.facts.mount)
	switch {
	case !inside:
		g.doubt("core.hooksPath names a directory outside the vault")
		return
	case dir == "":
		return
	case dir != common+"/hooks":
		own = g.see(dir)[0]
	}
	if own.Type == "symlink" {
		g.doubt(dir + " leads out of the vault")
	}
	for _, e := range own.Entries {
		if policy.IsGitHook(string(e.Name)) && e.Type != "dir" && e.Mode&0o111 != 0 {
			r.Hooks = append(r.Hooks, string(e.Name))
		}
	}
}

// submodules takes the repositories below .git/modules. The name of a submodule may
// have slashes, so that its repository lies deeper.
func (g *gathering) submodules(r *policy.Repository, dir string, p workspace.Peek) {
	if p.Type == "symlink" {
		g.doubt(dir + " leads out of the vault")
	}
	for _, e := range p.Entries {
		if e.Type != "dir" {
			continue
		}
		if g.modules++; g.modules > maxModules {
			g.doubt("it has too many submodules")
			return
		}
		sub := dir + "/" + string(e.Name)
		s := g.see(sub+"/HEAD", sub)
		if s[0].Type != "" {
			r.Submodules = append(r.Submodules, g.read(sub, sub))
			continue
		}
		g.submodules(r, sub, s[1])
	}
}

// oldSubmodules takes the submodules of a work tree that have a directory .git of
// their own instead of one below .git/modules.
func (g *gathering) oldSubmodules(top string) []*policy.Repository {
	list := g.see(path.Join(top, ".gitmodules"))[0]
	if list.Type != "file" {
		return nil
	}
	var subs []*policy.Repository
	for _, p := range policy.GitSubmodulePaths(list.Data, top) {
		if g.modules++; g.modules > maxModules {
			g.doubt("it has too many submodules")
			break
		}
		if dir := g.see(p + "/.git")[0]; dir.Type == "dir" {
			subs = append(subs, g.read(string(dir.Real), p))
		}
	}
	return subs
}
