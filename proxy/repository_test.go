package proxy

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

// files is a vault: contents by path. A name ending in "*" is a file that may be
// executed; a content "->" is a link that leads out.
type files map[string]string

func (f files) look(paths []string) ([]workspace.Peek, error) {
	var list []workspace.Peek
	for _, p := range paths {
		list = append(list, f.peek(path.Clean(p)))
	}
	return list, nil
}

func (f files) peek(p string) workspace.Peek {
	got := workspace.Peek{Real: workspace.Path(p)}
	if p == "/" {
		got.Type = "dir"
	}
	for name, text := range f {
		run := strings.HasSuffix(name, "*")
		name = strings.TrimSuffix(name, "*")
		rest, below := strings.CutPrefix(name, strings.TrimSuffix(p, "/")+"/")
		switch {
		case name == p && text == "->":
			got.Type = "symlink"
		case name == p:
			got.Type, got.Data = "file", []byte(text)
		case below:
			got.Type = "dir"
			child, _, deeper := strings.Cut(rest, "/")
			e := workspace.PeekEntry{Name: workspace.Path(child), Type: "file", Mode: 0o644}
			if deeper {
				e.Type = "dir"
			} else if run {
				e.Mode = 0o755
			}
			if !slices.Contains(got.Entries, e) {
				got.Entries = append(got.Entries, e)
			}
		}
	}
	return got
}

func (f files) repository(dir string) *policy.Repository {
	return (&Facts{look: f.look, mount: "/mnt"}).Repository(dir)
}

func paths(r *policy.Repository) string {
	var list []string
	if r == nil {
		return "none"
	}
	for _, c := range r.Configs {
		list = append(list, c.Path)
	}
	for _, s := range r.Submodules {
		list = append(list, "("+paths(s)+")")
	}
	return strings.Join(list, " ")
}

// TestRepository holds that the configuration that git would read is found, and no
// other.
func TestRepository(t *testing.T) {
	repo := files{"/r/.git/HEAD": "x", "/r/.git/config": "[a]\n", "/r/src/f": ""}
	with := func(more files) files {
		all := files{}
		for _, m := range []files{repo, more} {
			for name, text := range m {
				all[name] = text
			}
		}
		return all
	}
	for _, c := range []struct {
		name string
		f    files
		dir  string
		want string
	}{
		{"at its top", repo, "/r", "/r/.git/config"},
		{"below", repo, "/r/src", "/r/.git/config"},
		{"in a directory that does not exist yet", repo, "/r/new/deep", "/r/.git/config"},
		{"its own directory", with(files{"/r/.git/objects/x": "", "/r/.git/refs/x": ""}), "/r/.git", "/r/.git/config"},
		{"outside", repo, "/", "none"},
		{"without HEAD", files{"/r/.git/config": ""}, "/r", "none"},
		{"bare", files{"/b/HEAD": "", "/b/objects/x": "", "/b/refs/x": "", "/b/config": ""}, "/b/refs", "/b/config"},
		{"includes", with(files{"/r/.git/config": "[include]\npath = more\npath = /etc/no\npath=/mnt/inc\n", "/r/.git/more": "[include]\npath=../x\n", "/r/x": "", "/inc": ""}), "/r", "/r/.git/config /r/.git/more /r/x /inc"},
		{"of the worktree", with(files{"/r/.git/config.worktree": ""}), "/r", "/r/.git/config /r/.git/config.worktree"},
		{"a further worktree", with(files{"/w/.git": "gitdir: /mnt/r/.git/worktrees/w\n", "/r/.git/worktrees/w/commondir": "../..\n", "/r/.git/worktrees/w/config.worktree": ""}), "/w", "/r/.git/config /r/.git/worktrees/w/config.worktree"},
		{"a submodule", with(files{"/r/s/.git": "gitdir: ../.git/modules/s\n", "/r/.git/modules/s/config": "", "/r/.git/modules/s/HEAD": ""}), "/r/s", "/r/.git/modules/s/config"},
		{"with submodules", with(files{"/r/.git/modules/s/config": "", "/r/.git/modules/s/HEAD": "", "/r/.git/modules/a/b/HEAD": "", "/r/.git/modules/a/b/config": "", "/r/.git/modules/s/modules/t/HEAD": "", "/r/.git/modules/s/modules/t/config": ""}), "/r", ""},
		{"with an old submodule", with(files{"/r/.gitmodules": "[submodule \"o\"]\n\tpath = o\n", "/r/o/.git/HEAD": "", "/r/o/.git/config": ""}), "/r", "/r/.git/config (/r/o/.git/config)"},
	} {
		r := c.f.repository(c.dir)
		got := paths(r)
		if c.name == "with submodules" { // whose order is that of a map
			for _, want := range []string{"(/r/.git/modules/a/b/config)", "(/r/.git/modules/s/config (/r/.git/modules/s/modules/t/config))"} {
				if !strings.Contains(got, want) {
					t.Errorf("%s: %s lacks %s", c.name, got, want)
				}
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if r != nil && r.Unclear != "" {
			t.Errorf("%s: unclear: %s", c.name, r.Unclear)
		}
	}
}

// TestRepositoryHooks holds that samples, other files and files that cannot be executed
// are no hooks, and that core.hooksPath counts.
func TestRepositoryHooks(t *testing.T) {
	f := files{"/.git/HEAD": "", "/.git/config": "", "/.git/hooks/pre-commit*": "", "/.git/hooks/commit-msg": "", "/.git/hooks/pre-push.sample*": "", "/.git/hooks/readme*": "", "/h/post-merge*": ""}
	if r := f.repository("/"); !slices.Equal(r.Hooks, []string{"pre-commit"}) {
		t.Errorf("hooks: %v", r.Hooks)
	}
	f["/.git/config"] = "[core]\nhooksPath = h\n"
	if r := f.repository("/"); !slices.Equal(r.Hooks, []string{"post-merge"}) {
		t.Errorf("hooks: %v", r.Hooks)
	}
}

// TestRepositoryUnclear holds that what cannot be looked at is said.
func TestRepositoryUnclear(t *testing.T) {
	many := files{"/.git/HEAD": "", "/.git/config": "[include]\npath = config\n"}
	for want, f := range map[string]files{
		"/.git leads out":       {"/.git": "->"},
		"/.git names":           {"/.git": "gitdir: /etc/x\n"},
		"/.git/config is no":    {"/.git/HEAD": "", "/.git/config": "->"},
		"core.hooksPath names":  {"/.git/HEAD": "", "/.git/config": "[core]\nhooksPath=/etc/h\n"},
		"/.git/hooks leads":     {"/.git/HEAD": "", "/.git/hooks": "->"},
		"includes too many":     many,
		"/.git/commondir names": {"/.git/HEAD": "", "/.git/commondir": "/etc\n"},
	} {
		if r := f.repository("/"); r == nil || !strings.Contains(r.Unclear, want) {
			t.Errorf("want %q, got %+v", want, r)
		}
	}
	cut := &Facts{look: func(paths []string) ([]workspace.Peek, error) {
		list, err := files{"/.git/HEAD": "", "/.git/config": ""}.look(paths)
		list[0].More = true
		return list, err
	}}
	if r := cut.Repository("/"); !strings.Contains(r.Unclear, "too large") {
		t.Errorf("got %+v", r)
	}
}

// TestFactsFail holds that a vault that cannot be read is an error, and meanwhile no
// repository that allows anything.
func TestFactsFail(t *testing.T) {
	broken := errors.New("broken")
	f := &Facts{look: func([]string) ([]workspace.Peek, error) { return nil, broken }}
	if r := f.Repository("/"); r == nil || r.Unclear == "" || !errors.Is(f.Err(), broken) {
		t.Errorf("got %+v, %v", r, f.Err())
	}
}
