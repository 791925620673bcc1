package main

import (
	"os"
	"strings"

	"github.com/agentvfs/avfs/proxy"
)

// environ turns the flags about variables into those of a request. Of several with one
// name the last counts, and --env counts more than a file.
func (c *execCmd) environ(a *app, req *proxy.Request) error {
	for _, file := range c.EnvFile {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		list, err := envLines(file, string(text))
		if err != nil {
			return err
		}
		req.Env = append(req.Env, list...)
	}
	for _, kv := range c.Env {
		name, _, ok := strings.Cut(kv, "=")
		if name == "" {
			return usageError("--env takes NAME or NAME=VALUE, not %q", kv)
		}
		if ok {
			req.Env = append(req.Env, kv)
		} else if value, set := a.lookupEnv(name); set {
			req.Env = append(req.Env, name+"="+value)
		}
	}
	for _, s := range c.Secret {
		name, from, _ := strings.Cut(s, "=")
		if name == "" || !strings.HasPrefix(from, "file:") && !strings.HasPrefix(from, "cmd:") {
			return usageError("--secret takes NAME=file:PATH or NAME=cmd:SCRIPT")
		}
		if file, ok := strings.CutPrefix(from, "file:"); ok {
			if _, err := a.hostPath(file); err != nil {
				return err
			}
		}
		req.Secrets = append(req.Secrets, proxy.Secret{Name: name, From: from})
	}
	return nil
}

// envLines reads a file of variables: NAME=VALUE a line, perhaps behind "export", with
// empty lines and those that begin with '#' left out. One pair of quotes around a value
// goes; nothing in it is expanded.
func envLines(file, text string) ([]string, error) {
	var list []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " \t\"'") {
			return nil, usageError("%s, line %d: want NAME=VALUE", file, i+1)
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		list = append(list, name+"="+value)
	}
	return list, nil
}
