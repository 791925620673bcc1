package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/agentvfs/avfs/workspace"
)

type vaultBackupCmd struct {
	File string `arg:"" help:"File to make."`
}

func (c *vaultBackupCmd) run(a *app) error {
	dest, err := a.hostPath(c.File)
	if err != nil {
		return err
	}
	progress, done := a.progress("copying")
	res, err := call(a, workspace.OpBackup, func(v string) workspace.BackupRequest {
		return workspace.BackupRequest{Vault: v, Dest: dest}
	}, workspace.Streams{Progress: progress})
	done()
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) {
		fmt.Fprintf(w, "copied %s to %s, %s\n", strings.Join(res.Vaults, ", "), safe(res.Dest), size(res.Bytes))
	})
}

type vaultRestoreCmd struct {
	File    string `arg:"" help:"Backup to put into the workspace."`
	Backend string `help:"Database to keep it in; by default that of the backup." placeholder:"NAME"`
}

func (c *vaultRestoreCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	if _, err := a.hostPath(c.File); err != nil {
		return err
	}
	progress, done := a.progress("copying")
	docs, err := w.Restore(a.ctx, c.File, c.Backend, workspace.Streams{Progress: progress})
	done()
	if err != nil {
		return err
	}
	return a.print(docs, func(w io.Writer) {
		for _, d := range docs {
			fmt.Fprintf(w, "restored vault %s\n", d.Name)
		}
	})
}

type vaultMigrateCmd struct {
	To string `required:"" help:"Database to move to." placeholder:"NAME"`
}

func (c *vaultMigrateCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	progress, done := a.progress("copying")
	res, err := w.Migrate(a.ctx, a.flags.Vault, c.To, workspace.Streams{Progress: progress})
	done()
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) {
		fmt.Fprintf(w, "moved %s from %s (%s) to %s (%s)\n", safe(res.Store), res.From, size(res.BytesBefore), res.To, size(res.BytesAfter))
	})
}

type compactCmd struct{}

func (compactCmd) run(a *app) error {
	res, err := call(a, workspace.OpCompact, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { fmt.Fprintf(w, "%s given back\n", size(res.ReclaimedBytes)) })
}
