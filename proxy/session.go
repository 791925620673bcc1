package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// session is the session of one execution.
type session struct {
	workspace.Session
	was  string       // the exec that left it so
	cwd  bool         // the caller has chosen no directory, so the session's counts
	file string       // where the shell leaves its state; empty without a shell
	drop func() error // removes it with its directory
}

// loadSession reads the session of a request and completes the request from it. A
// directory that is gone is the top, with a note.
func (p *Proxy) loadSession(ctx context.Context, env *Envelope, req *Request, chosen string) error {
	if req.Session == "" {
		return nil
	}
	vault := req.Vault
	if req.Fork != "" { // which has none yet
		req.session = &session{Session: workspace.Session{Cwd: "/", Env: map[string]string{}, Unset: []string{}}}
		return nil
	}
	s, err := workspace.CallVault(ctx, p.Workspace, vault, workspace.OpSession, func(v string) workspace.SessionRequest {
		return workspace.SessionRequest{Vault: v, Name: req.Session}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	req.session = &session{Session: s, was: s.Exec, cwd: chosen == ""}
	if !req.session.cwd {
		return nil
	}
	req.Cwd = s.Cwd
	stat, err := workspace.CallVault(ctx, p.Workspace, vault, workspace.OpStat, func(v string) workspace.PathRequest {
		return workspace.PathRequest{Vault: v, Paths: []workspace.Path{workspace.Path(s.Cwd)}, Follow: true}
	}, workspace.Streams{})
	gone := engine.KindOf(err) == engine.NotFound || engine.KindOf(err) == engine.NotDirectory
	if err == nil && len(stat) == 1 && stat[0].Type != "dir" {
		gone = true
	}
	if gone {
		note := fmt.Sprintf("the directory %s of session %s is gone; the command runs in /", s.Cwd, req.Session)
		if !slices.Contains(env.Notes, note) {
			env.Notes = append(env.Notes, note)
		}
		req.Cwd, err = "/", nil
	}
	return err
}

// after is the exec that has left the session as it is known.
func (s *session) after() string {
	if s == nil {
		return ""
	}
	return s.was
}

// environ is the caller's environment as the session has it.
func (s *session) environ(caller []string) []string {
	if s == nil {
		return caller
	}
	var env []string
	for _, kv := range caller {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(s.Unset, name) {
			env = append(env, kv)
		}
	}
	return env
}

// unset lists those of the caller's variables that the session takes away.
func (s *session) unset() []string {
	if s == nil {
		return nil
	}
	return s.Unset
}

// variables are those that the session adds.
func (s *session) variables() []string {
	if s == nil {
		return nil
	}
	var list []string
	for name, value := range s.Env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// script is the shell script with its state written to a file at its end, however it
// ends. Neither what it prints nor how it ends changes.
func (s *session) script(w *workspace.Workspace, req *Request) (string, error) {
	program, err := exec.LookPath("env")
	if err != nil {
		return "", err
	}
	dir, drop, err := w.Scratch()
	if err != nil {
		return "", err
	}
	s.file, s.drop = filepath.Join(dir, "state"), drop
	if err := os.WriteFile(s.file, nil, 0o600); err != nil {
		return "", errors.Join(err, drop())
	}
	without := ""
	for _, secret := range req.Secrets {
		without += " -u " + quote(secret.Name)
	}
	save := `{ command printf "%s\\0" "$(command pwd -P)" && ` + quote(program) + without + ` -0; } >|` + quote(s.file) + ` 2>/dev/null || :`
	return "trap " + quote(save) + " EXIT; " + req.Shell, nil
}

// quote makes a word of a shell of s.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// variableName is what a session keeps: not the functions of a shell, for example.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ended is what the command leaves to the next one; nil if that cannot be told. given
// is the environment that the shell got without the session.
func (s *session) ended(req *Request, mountpoint string, given []string) (*workspace.Session, error) {
	next := s.Session
	if s.cwd {
		next.Cwd = req.Cwd
	}
	if s.file == "" {
		return &next, nil
	}
	text, err := os.ReadFile(s.file)
	if err = errors.Join(err, s.drop()); err != nil {
		return nil, err
	}
	entries := bytes.Split(text, []byte{0})
	if len(text) == 0 || len(entries) < 2 {
		return &next, nil // it ended without its trap: replaced, or killed
	}
	next.Cwd = inVault(string(entries[0]), mountpoint, next.Cwd)
	next.Env, next.Unset = map[string]string{}, []string{}
	before := map[string]string{}
	for _, kv := range given {
		name, value, _ := strings.Cut(kv, "=")
		before[name] = value
	}
	red := newRedactor(req.revealed)
	for _, e := range entries[1:] {
		name, value, ok := strings.Cut(string(e), "=")
		had, was := before[name]
		delete(before, name)
		if !ok || was && had == value || s.own(req, name) || red.text(value) != value {
			continue
		}
		next.Env[name] = value
	}
	for name := range before {
		if !s.own(req, name) {
			next.Unset = append(next.Unset, name)
		}
	}
	slices.Sort(next.Unset)
	return &next, nil
}

// own reports whether a variable is no part of a session.
func (s *session) own(req *Request, name string) bool {
	switch name {
	case "PWD", "OLDPWD", "SHLVL", "_", "AVFS_VAULT", "AVFS_EXEC_ID":
		return true
	}
	_, secret := req.revealed[name]
	return secret || !variableName.MatchString(name)
}

// inVault is the path in the vault of a directory; one elsewhere is the one before.
func inVault(dir, mountpoint, before string) string {
	top, err := filepath.EvalSymlinks(mountpoint)
	if err != nil {
		top = mountpoint
	}
	if dir == top {
		return "/"
	}
	if rest, ok := strings.CutPrefix(dir, top+string(filepath.Separator)); ok {
		return "/" + filepath.ToSlash(rest)
	}
	return before
}
