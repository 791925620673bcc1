package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/workspace"
)

// callerHome makes a home with the files given, and returns it.
func callerHome(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openHome(t *testing.T, caller, extra []string) (*home, *workspace.Workspace) {
	t.Helper()
	w, err := workspace.Open(workspace.Config{Home: t.TempDir(), Drivers: backends.All()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHome(w, "v", caller, extra)
	if err != nil {
		t.Fatal(err)
	}
	return h, w
}

// Variables of the caller that nobody named may be secrets, or lead to some.
func TestEnvironmentIsAnAllowList(t *testing.T) {
	caller := []string{"PATH=/bin", "AWS_SECRET_ACCESS_KEY=x", "SSH_AUTH_SOCK=/s", "LC_ALL=C", "GIT_DIR=/g",
		"HOME=/nowhere", "XDG_RUNTIME_DIR=/run/user/1", "XDG_CONFIG_HOME=/c", "XDG_DATA_HOME=/d", "XDG_CACHE_HOME=/e", "AVFS_HOME=/other"}
	h, w := openHome(t, caller, nil)
	got := environment(h.base(caller), []string{"MINE=1"}, "v", "id", "/d")
	home := filepath.Join(w.Home(), "homes", "v")
	want := []string{"PATH=/bin", "LC_ALL=C", "AVFS_HOME=" + w.Home(), "HOME=" + home, "USERPROFILE=" + home, "MINE=1", "PWD=/d", "AVFS_VAULT=v", "AVFS_EXEC_ID=id"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if info, err := os.Stat(home); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the home: %v, %v", info, err)
	}
}

// Who names HOME has the home that is named, and what belongs to it.
func TestHomeThatIsNamed(t *testing.T) {
	caller := []string{"HOME=/mine", "XDG_CONFIG_HOME=/mine/c", "XDG_RUNTIME_DIR=/run/user/1"}
	h, w := openHome(t, caller, []string{"HOME=/mine"})
	want := []string{"HOME=/mine", "XDG_CONFIG_HOME=/mine/c", "AVFS_HOME=" + w.Home()}
	if got := h.base(caller); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if _, err := os.Stat(filepath.Join(w.Home(), "homes")); err == nil {
		t.Error("a home was made that nobody has")
	}
}

// A build must find what the caller's tools have at home, and what they are told.
func TestHomeFindsTools(t *testing.T) {
	dir := callerHome(t, map[string]string{
		"go/x": "", ".cargo/x": "", ".rustup/x": "", "other/pip/x": "", ".npm/x": "", ".config/go/env": "GOPATH=/elsewhere\n",
	})
	caller := []string{"HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "other"), "CARGO_HOME=/given"}
	h, _ := openHome(t, caller, nil)
	base := h.base(caller)
	for _, want := range []string{"RUSTUP_HOME=" + dir + "/.rustup", "npm_config_cache=" + dir + "/.npm", "PIP_CACHE_DIR=" + dir + "/other/pip",
		"CARGO_HOME=/given", "GOENV=" + dir + "/.config/go/env"} {
		if !slices.Contains(base, filepath.FromSlash(want)) {
			t.Errorf("no %s in %v", want, base)
		}
	}
	for _, kv := range base {
		if name := variable(kv); name == "GOPATH" || name == "UV_CACHE_DIR" {
			t.Errorf("%s: its own file says something else, or there is none", kv)
		}
	}
}

// A commit has its author, while what runs programs or knows passwords stays away.
func TestHomeCopiesSettingsOfGit(t *testing.T) {
	dir := callerHome(t, map[string]string{
		".gitconfig": "[user]\n\tname = \"A \\\"B\\\" # C\"\n[include]\n\tpath = more\n[credential]\n\thelper = store\n[core]\n\tpager = evil\n\texcludesFile = ~/ignored\n" +
			"\tfsmonitor = ./evil\n[alias]\n\tx = !evil\n[url \"https://u:pw@h/\"]\n\tinsteadOf = h:\n[commit]\n\tgpgsign = true\n[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = evil\n",
		"more": "[user]\n\temail = a@example.org\n", "ignored": "*.o\n",
	})
	h, _ := openHome(t, []string{"HOME=" + dir}, nil)
	if err := h.copySettings(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "config", "--global", "--includes", "--list")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "include.path=.gitconfig-avfs\ncredential.helper=\nuser.name=A \"B\" # C\nuser.email=a@example.org\n" +
		"core.excludesfile=" + dir + "/ignored\nfilter.lfs.clean=git-lfs clean -- %f\n"
	if string(out) != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// Settings of mirrors are needed to build; passwords beside them are not copied. What a
// command has set itself stays.
func TestHomeCopiesSettingsOfTools(t *testing.T) {
	dir := callerHome(t, map[string]string{
		".npmrc":               "registry=https://mirror.example/\n//mirror.example/:_authToken=T0K\nemail=a@b.c\nproxy=http://u:p@h/\nfund=false\n",
		".config/pip/pip.conf": "[global]\nindex-url = https://u:pw@mirror.example/simple\ntimeout = 9\n",
	})
	h, _ := openHome(t, []string{"HOME=" + dir}, nil)
	read := func(name string) string {
		t.Helper()
		if err := h.copySettings(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(h.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := read(".npmrc"); got != "registry=https://mirror.example/\nfund=false\n" {
		t.Errorf("npm: %q", got)
	}
	if got := read(".config/pip/pip.conf"); got != "[global]\ntimeout = 9\n" {
		t.Errorf("pip: %q", got)
	}
	if err := os.WriteFile(filepath.Join(h.dir, ".npmrc"), []byte("mine=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(".npmrc"); got != "mine=1\n" {
		t.Errorf("what the command set: %q", got)
	}
}

// Links that a command puts into its home must not lead avfs out of it.
func TestHomeWritesNothingElsewhere(t *testing.T) {
	dir := callerHome(t, map[string]string{".config/pip/pip.conf": "[global]\n", ".gitconfig": "[user]\n\tname = A\n"})
	h, _ := openHome(t, []string{"HOME=" + dir}, nil)
	victim := t.TempDir()
	for name, to := range map[string]string{".config": victim, ".gitconfig-avfs": filepath.Join(victim, "git")} {
		if err := os.Symlink(to, filepath.Join(h.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := newEnvelope("id", &Request{})
	env.useHome(h)
	if left, err := os.ReadDir(victim); err != nil || len(left) != 0 {
		t.Errorf("written elsewhere: %v, %v", left, err)
	}
	if len(env.Notes) != 1 || !strings.Contains(env.Notes[0], "could not be copied") {
		t.Errorf("notes %q", env.Notes)
	}
	if _, err := os.Stat(filepath.Join(h.dir, ".gitconfig")); err != nil {
		t.Error(err)
	}
}
