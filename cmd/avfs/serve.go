package main

import (
	"fmt"
	"io"
	"time"

	"github.com/agentvfs/avfs/workspace"
)

type serveCmd struct {
	Vault  string `arg:"" optional:"" help:"The vault whose store to serve; by default the current one."`
	Linger string `help:"End when nothing has needed the store for so long; by default never." placeholder:"DURATION"`
	Stop   bool   `help:"End the running owner of the store instead."`
	Force  bool   `help:"With --stop: also while commands run; they are ended."`
	driverFlag
}

func (c *serveCmd) run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	w, err := a.workspaceWith(c.Driver)
	if err != nil {
		return err
	}
	vault, err := a.oneVault(c.Vault)
	if err != nil {
		return err
	}
	_, store, err := w.Locate(vault)
	if err != nil {
		return err
	}
	if c.Force && !c.Stop {
		return usageError("--force belongs to --stop")
	}
	if c.Stop {
		return c.stop(a, w, store)
	}
	linger := time.Duration(-1)
	if c.Linger != "" {
		if linger, err = time.ParseDuration(c.Linger); err != nil || linger < 0 {
			return usageError("--linger is a duration such as 30s, not %q", c.Linger)
		}
	}
	return w.Serve(a.ctx, store, workspace.ServeOptions{Linger: linger, Ready: func() { a.note("serving %s", store) }})
}

// stopDoc is what 'serve --stop' prints.
type stopDoc struct {
	Store   string `json:"store"`
	Stopped bool   `json:"stopped"` // false: nobody had it open
}

func (c *serveCmd) stop(a *app, w *workspace.Workspace, store string) error {
	stopped, err := w.StopOwner(a.ctx, store, c.Force)
	if err != nil {
		return err
	}
	return a.print(stopDoc{Store: store, Stopped: stopped}, func(w io.Writer) {
		if stopped {
			fmt.Fprintf(w, "stopped the owner of %s\n", safe(store))
		} else {
			fmt.Fprintf(w, "%s has no owner\n", safe(store))
		}
	})
}
