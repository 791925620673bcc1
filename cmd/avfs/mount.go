package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/agentvfs/avfs/workspace"
)

type mountCmd struct {
	Args       []string `arg:"" name:"vault-mountpoint" help:"The vault, by default the current one, and the directory; one that is missing is made."`
	Foreground bool     `short:"f" help:"Stay until the mount ends; end it on Ctrl-C."`
	ReadOnly   bool     `short:"r" help:"Refuse every change."`
	driverFlag
}

func (c *mountCmd) run(a *app) error {
	if len(c.Args) > 2 {
		return usageError("mount takes a vault and a directory: avfs mount [VAULT] MOUNTPOINT")
	}
	if err := c.check(); err != nil {
		return err
	}
	vault := ""
	if len(c.Args) == 2 {
		vault = c.Args[0]
	}
	vault, err := a.oneVault(vault)
	if err != nil {
		return err
	}
	point := c.Args[len(c.Args)-1]
	if _, err := a.hostPath(point); err != nil {
		return err
	}
	w, err := a.workspace()
	if err != nil {
		return err
	}
	req := workspace.MountRequest{Vault: vault, Mountpoint: point, ReadOnly: c.ReadOnly, Driver: c.Driver}
	told := func(info workspace.MountInfo) error {
		return a.print(info, func(w io.Writer) { fmt.Fprintln(w, safe(info.Mountpoint)) })
	}
	if c.Foreground {
		return w.HoldMount(a.ctx, req, told)
	}
	info, err := w.Mount(a.ctx, req)
	if err != nil {
		return err
	}
	return told(info)
}

type unmountCmd struct {
	Place string `arg:"" help:"The mount point, or a vault that is mounted once."`
	Force bool   `short:"f" help:"End it although it is used; what was written before is kept."`
}

func (c *unmountCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	if strings.ContainsRune(c.Place, filepath.Separator) { // else it may be a vault
		if _, err := a.hostPath(c.Place); err != nil {
			return err
		}
	}
	info, err := w.Unmount(a.ctx, c.Place, c.Force)
	if err != nil {
		return err
	}
	return a.print(info, func(w io.Writer) { fmt.Fprintf(w, "unmounted %s\n", safe(info.Mountpoint)) })
}

type mountsCmd struct{}

func (mountsCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	owners, err := w.Owners(a.ctx)
	if err != nil {
		return err
	}
	list := []workspace.MountInfo{}
	for _, o := range owners {
		list = append(list, o.Mounts...)
	}
	return a.print(list, func(w io.Writer) {
		rows := [][]string{{"VAULT", "MOUNTPOINT", "MODE", "DRIVER", "SINCE", "PID"}}
		for _, m := range list {
			mode := "rw"
			if m.ReadOnly {
				mode = "ro"
			}
			rows = append(rows, []string{m.Vault, safe(m.Mountpoint), mode, m.Driver, clock(m.Since), fmt.Sprint(m.PID)})
		}
		table(w, rows)
	})
}
