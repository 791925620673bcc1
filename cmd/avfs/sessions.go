package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/workspace"
)

type sessionsCmds struct {
	List   sessionsListCmd   `cmd:"" help:"List the sessions of a vault."`
	Show   sessionsShowCmd   `cmd:"" help:"Show the directory and the variables of a session."`
	Delete sessionsDeleteCmd `cmd:"" help:"Forget a session."`
}

type sessionsListCmd struct{}

func (c *sessionsListCmd) run(a *app) error {
	list, err := call(a, workspace.OpSessions, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		rows := [][]string{}
		for _, s := range list {
			rows = append(rows, []string{s.Name, safe(s.Cwd), fmt.Sprintf("%d variables", len(s.Env)), clock(s.UpdatedAt)})
		}
		table(w, rows)
	})
}

type sessionArg struct {
	Name string `arg:"" help:"The name of the session."`
}

func (c *sessionArg) request(v string) workspace.SessionRequest {
	return workspace.SessionRequest{Vault: v, Name: c.Name}
}

type sessionsShowCmd struct{ sessionArg }

func (c *sessionsShowCmd) run(a *app) error {
	s, err := call(a, workspace.OpSession, c.request, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(s, func(w io.Writer) {
		fmt.Fprintln(w, "directory:", safe(s.Cwd))
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			fmt.Fprintf(w, "%s=%s\n", safe(name), safe(s.Env[name]))
		}
		if len(s.Unset) > 0 {
			fmt.Fprintln(w, "unset:", safe(strings.Join(s.Unset, " ")))
		}
	})
}

type sessionsDeleteCmd struct{ sessionArg }

func (c *sessionsDeleteCmd) run(a *app) error {
	s, err := call(a, workspace.OpSessionDelete, c.request, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(s, func(w io.Writer) { fmt.Fprintf(w, "deleted session %s\n", s.Name) })
}
