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
	API    bool   `name:"api" help:"Serve the HTTP API for programs of this machine instead, for all vaults: see docs/api.md."`
	Listen string `help:"With --api: where to listen, unix:PATH or 127.0.0.1:PORT; by default at api.sock in AVFS_HOME." placeholder:"ADDRESS"`
	Token  string `name:"token-file" help:"With --api and a port: the file to write the token to that requests need; by default api.token in AVFS_HOME." placeholder:"FILE"`
	driverFlag
}

func (c *serveCmd) run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.API {
		return c.serveAPI(a)
	}
	if c.Listen != "" || c.Token != "" {
		return usageError("--listen and --token-file belong to --api")
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
