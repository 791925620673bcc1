package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/agentvfs/avfs/workspace"
)

type vaultCmds struct {
	Create vaultCreateCmd `cmd:"" help:"Create an empty vault."`
	List   vaultListCmd   `cmd:"" aliases:"ls" help:"List all vaults."`
	Use    vaultUseCmd    `cmd:"" help:"Make a vault the current one."`
	Info   vaultInfoCmd   `cmd:"" help:"Describe a vault."`
	Fork   vaultForkCmd   `cmd:"" help:"Make a copy of a vault that shares everything with it until one of them changes."`
	Delete vaultDeleteCmd `cmd:"" aliases:"rm" help:"Delete a vault with its checkpoints."`

	Merge   vaultMergeCmd   `cmd:"" help:"Bring what changed in a fork, or in another relative, into a vault."`
	Discard vaultDiscardCmd `cmd:"" help:"Delete a fork, merged or not, and tell what goes with it."`

	Backup  vaultBackupCmd  `cmd:"" help:"Copy a vault's whole store into one file, while it is in use."`
	Restore vaultRestoreCmd `cmd:"" help:"Put a backup into the workspace."`
	Migrate vaultMigrateCmd `cmd:"" help:"Move a vault's whole store to another database."`
}

type vaultCreateCmd struct {
	Name    string `arg:"" help:"Name of the new vault."`
	Backend string `help:"Database to keep it in." env:"AVFS_BACKEND" placeholder:"NAME"`
}

func (c *vaultCreateCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	doc, err := w.CreateVault(a.ctx, c.Name, c.Backend)
	if err != nil {
		return err
	}
	return a.print(doc, func(w io.Writer) {
		fmt.Fprintf(w, "created vault %s\n", doc.Name)
		if doc.Current {
			fmt.Fprintf(w, "it is the current vault\n")
		}
	})
}

type vaultListCmd struct{}

func (vaultListCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	docs, faults, err := w.List(a.ctx)
	if err != nil {
		return err
	}
	for _, f := range faults {
		a.warn("%s cannot be read: %s", f.Store, f.Error.Message)
	}
	if len(faults) > 0 && len(docs) == 0 {
		return faults[0].Error.Err()
	}
	return a.print(docs, func(w io.Writer) {
		rows := [][]string{{"", "NAME", "FILES", "SIZE", "CHECKPOINTS", "PARENT", "MOUNTED AT"}}
		for _, d := range docs {
			mark := ""
			if d.Current {
				mark = "*"
			}
			var at []string
			for _, m := range d.Mounts {
				at = append(at, m.Mountpoint)
			}
			rows = append(rows, []string{mark, d.Name, fmt.Sprint(d.Files), size(d.Bytes), fmt.Sprint(d.Checkpoints), parentText(d), safe(strings.Join(at, ", "))})
		}
		table(w, rows)
	})
}

type vaultUseCmd struct {
	Name string `arg:"" help:"Name of the vault."`
}

func (c *vaultUseCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	if err := w.Use(c.Name); err != nil {
		return err
	}
	doc, err := w.Info(a.ctx, c.Name)
	if err != nil {
		return err
	}
	return a.print(doc, func(w io.Writer) { fmt.Fprintf(w, "now using vault %s\n", doc.Name) })
}

type vaultInfoCmd struct {
	Name string `arg:"" optional:"" help:"Name of the vault; by default the current one."`
}

func (c *vaultInfoCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	name, err := a.oneVault(c.Name)
	if err != nil {
		return err
	}
	d, err := w.Info(a.ctx, name)
	if err != nil {
		return err
	}
	return a.print(d, func(w io.Writer) { describeVault(w, d) })
}

func describeVault(w io.Writer, d workspace.VaultDoc) {
	rows := [][]string{
		{"name", d.Name},
		{"created", clock(d.CreatedAt)},
		{"files", fmt.Sprint(d.Files)},
		{"size", size(d.Bytes)},
		{"checkpoints", fmt.Sprint(d.Checkpoints)},
		{"root", d.Root.String()},
		{"store", fmt.Sprintf("%s (%s, %s)", safe(d.Store), d.Backend, size(d.StoreBytes))},
	}
	if d.Parent != "" {
		rows = append(rows, []string{"parent", parentText(d)})
	}
	for _, m := range d.Mounts {
		rows = append(rows, []string{"mounted at", safe(m.Mountpoint)})
	}
	table(w, rows)
}

// oneVault is the vault that an argument or else --vault names; naming two
// different ones is a mistake.
func (a *app) oneVault(arg string) (string, error) {
	if arg != "" && a.flags.Vault != "" && arg != a.flags.Vault {
		return "", usageError("two vaults are named: %s and, by --vault, %s", arg, a.flags.Vault)
	}
	if arg == "" {
		arg = a.flags.Vault
	}
	return arg, nil
}

type vaultForkCmd struct {
	Names []string `arg:"" name:"src-new" help:"The vault to fork, by default the current one, and the name of the fork."`
	At    string   `help:"Fork the state of this checkpoint instead of the present one." placeholder:"CHECKPOINT"`
	Use   bool     `help:"Make the fork the current vault."`
}

func (c *vaultForkCmd) run(a *app) error {
	if len(c.Names) > 2 {
		return usageError("fork takes one or two names: avfs vault fork [SRC] NEW")
	}
	src := ""
	if len(c.Names) == 2 {
		src = c.Names[0]
	}
	src, err := a.oneVault(src)
	if err != nil {
		return err
	}
	w, err := a.workspace()
	if err != nil {
		return err
	}
	doc, err := w.Fork(a.ctx, workspace.ForkRequest{Vault: src, Name: c.Names[len(c.Names)-1], At: c.At})
	if err != nil {
		return err
	}
	if c.Use {
		if err := w.Use(doc.Name); err != nil {
			return err
		}
		current, err := w.Current() // AVFS_VAULT goes before
		if err != nil {
			return err
		}
		doc.Current = current == doc.Name
	}
	return a.print(doc, func(w io.Writer) {
		fmt.Fprintf(w, "created vault %s as a fork of %s\n", doc.Name, doc.Parent)
		if doc.Current {
			fmt.Fprintln(w, "it is the current vault")
		}
	})
}

type vaultDeleteCmd struct {
	Name string `arg:"" help:"Name of the vault."`
	Yes  bool   `short:"y" help:"Do not ask."`
}

func (c *vaultDeleteCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	if _, _, err := w.Locate(c.Name); err != nil {
		return err
	}
	if !c.Yes && isTerminal(a.stdin) {
		if yes, err := a.ask("delete vault %s with all its files and checkpoints?", c.Name); err != nil || !yes {
			if err == nil {
				err = &ended{exitFailure}
			}
			return err
		}
	}
	res, err := w.DeleteVault(a.ctx, c.Name)
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { fmt.Fprintf(w, "deleted vault %s\n", res.Deleted) })
}

// ask puts a question to the person at the terminal.
func (a *app) ask(format string, args ...any) (bool, error) {
	fmt.Fprintf(a.stderr, format+" [y/N] ", args...)
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// parentText names the vault that another is a fork of. A deleted one may have its name
// in common with a newer vault.
func parentText(d workspace.VaultDoc) string {
	if d.ParentGone {
		return d.Parent + " (deleted)"
	}
	return d.Parent
}
