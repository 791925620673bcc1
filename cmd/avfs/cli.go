package main

import (
	"errors"

	"github.com/alecthomas/kong"
)

// globals are the flags of every command. They may stand anywhere before "--".
type globals struct {
	Vault   string `help:"The vault to work on; by default AVFS_VAULT, then what 'vault use' chose." placeholder:"NAME"`
	JSON    bool   `help:"Print exactly one JSON document on standard output."`
	Verbose bool   `short:"v" help:"Tell on standard error what is going on."`
	Quiet   bool   `short:"q" help:"Print no notes, summaries and progress."`
}

// grammar is the whole command line.
type grammar struct {
	globals

	VaultCmd vaultCmds `cmd:"" name:"vault" group:"vaults" help:"Create, list, fork and delete vaults."`

	Ls    lsCmd    `cmd:"" group:"files" help:"List directories."`
	Cat   catCmd   `cmd:"" group:"files" help:"Print files."`
	Write writeCmd `cmd:"" group:"files" help:"Write standard input to a file."`
	Mkdir mkdirCmd `cmd:"" group:"files" help:"Make directories."`
	Rm    rmCmd    `cmd:"" group:"files" help:"Remove files and directories."`
	Cp    cpCmd    `cmd:"" group:"files" help:"Copy within a vault."`
	Mv    mvCmd    `cmd:"" group:"files" help:"Move and rename within a vault."`
	Stat  statCmd  `cmd:"" group:"files" help:"Describe paths."`
	Tree  treeCmd  `cmd:"" group:"files" help:"List a directory with everything below it."`
	Grep  grepCmd  `cmd:"" group:"files" help:"Search the content of files."`

	Import importCmd `cmd:"" group:"move" help:"Copy a host directory or file into a vault."`
	Export exportCmd `cmd:"" group:"move" help:"Copy a tree of a vault to the host."`

	Checkpoint checkpointCmds `cmd:"" aliases:"snapshot" group:"history" help:"Keep states of a vault and bring them back."`
	Diff       diffCmd        `cmd:"" group:"history" help:"List what differs between two states."`
	Log        logCmd         `cmd:"" group:"history" help:"List what was done in a vault, newest first."`
	Undo       undoCmd        `cmd:"" group:"history" help:"Take back the newest exec, import, restore or undo."`

	Proxy   proxyCmds  `cmd:"" group:"run" help:"Run commands under policy, checkpoint and report."`
	Exec    execCmd    `cmd:"" group:"run" help:"Run a command in a vault: the short form of 'proxy exec'."`
	Mount   mountCmd   `cmd:"" group:"run" help:"Make a vault visible as a directory."`
	Unmount unmountCmd `cmd:"" aliases:"umount" group:"run" help:"End a mount."`
	Mounts  mountsCmd  `cmd:"" group:"run" help:"List the mounts."`
	Serve   serveCmd   `cmd:"" group:"run" help:"Hold a vault's store open in the foreground and serve it to other commands."`

	GC     gcCmd      `cmd:"" name:"gc" group:"care" help:"Free the space of what nothing refers to."`
	Fsck   fsckCmd    `cmd:"" group:"care" help:"Check a store for damage."`
	Policy policyCmds `cmd:"" group:"care" help:"Ask, check and write the policy for commands."`

	Version versionCmd `cmd:"" group:"care" help:"Tell the version and what this build can do."`
}

// command is a parsed command line, ready to run.
type command func(*app) error

// runner is what every leaf of the grammar implements.
type runner interface{ run(*app) error }

// parse turns arguments into a command; nil if help was asked for and printed.
func (a *app) parse(args []string) (command, error) {
	var g grammar
	helped := false
	k, err := kong.New(&g,
		kong.Name("avfs"),
		kong.Description("Versioned workspaces for coding agents.\n\n"+exitHelp()),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ExplicitGroups(groups()),
	)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, usageError("no command given; see avfs --help")
	}
	ctx, err := k.Parse(args)
	if helped {
		return nil, nil
	}
	if err != nil {
		return nil, parseError(err)
	}
	a.flags = g.globals
	target, ok := ctx.Selected().Target.Addr().Interface().(runner)
	if !ok {
		return nil, usageError("no command given; see avfs --help")
	}
	return target.run, nil
}

func groups() []kong.Group {
	return []kong.Group{
		{Key: "vaults", Title: "Vaults"},
		{Key: "files", Title: "Files (PATH@CHECKPOINT reads the past)"},
		{Key: "move", Title: "Moving"},
		{Key: "history", Title: "History"},
		{Key: "run", Title: "Running"},
		{Key: "care", Title: "Care"},
	}
}

// parseError makes a usage error of what kong says.
func parseError(err error) error {
	var p *kong.ParseError
	if !errors.As(err, &p) || p.Context == nil {
		return usageError("%w", err)
	}
	what := "avfs"
	if node := p.Context.Selected(); node != nil {
		what = node.FullPath()
	}
	return usageError("%w; see %s --help", err, what)
}

// wantsJSON looks for --json where the arguments cannot be parsed.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

