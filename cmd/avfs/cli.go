package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// globals are the flags of every command. They may stand anywhere before "--".
type globals struct {
	Vault   string `help:"The vault to work on; by default AVFS_VAULT, then what 'vault use' chose." placeholder:"NAME"`
	JSON    bool   `help:"Print exactly one JSON document on standard output."`
	Verbose bool   `short:"v" help:"Tell on standard error what is going on."`
	Quiet   bool   `short:"q" help:"Print no notes, summaries and progress."`

	JSONErrors bool `help:"Without --json, print a failure as one JSON document all the same, in the last line of standard error."`
}

// commandDef is one command at the top of the grammar.
type commandDef struct {
	name, alias, group, help string
	new                      func() any
}

// commands lists what avfs can do, in the order of the help.
func commands() []commandDef {
	return []commandDef{
		{"vault", "", groupVaults, "Create, list, fork and delete vaults.", func() any { return &vaultCmds{} }},

		{"ls", "", groupFiles, "List directories.", func() any { return &lsCmd{} }},
		{"cat", "", groupFiles, "Print files.", func() any { return &catCmd{} }},
		{"write", "", groupFiles, "Write standard input, or a text, to a file.", func() any { return &writeCmd{} }},
		{"edit", "", groupFiles, "Replace a text in a file.", func() any { return &editCmd{} }},
		{"mkdir", "", groupFiles, "Make directories.", func() any { return &mkdirCmd{} }},
		{"rm", "", groupFiles, "Remove files and directories.", func() any { return &rmCmd{} }},
		{"cp", "", groupFiles, "Copy within a vault.", func() any { return &cpCmd{} }},
		{"mv", "", groupFiles, "Move and rename within a vault.", func() any { return &mvCmd{} }},
		{"touch", "", groupFiles, "Set times, and make files that are missing.", func() any { return &touchCmd{} }},
		{"ln", "", groupFiles, "Make links within a vault.", func() any { return &lnCmd{} }},
		{"stat", "", groupFiles, "Describe paths.", func() any { return &statCmd{} }},
		{"tree", "", groupFiles, "List a directory with everything below it.", func() any { return &treeCmd{} }},
		{"find", "", groupFiles, "Find paths by name, type, size, time and tag.", func() any { return &findCmd{} }},
		{"grep", "", groupFiles, "Search the content of files.", func() any { return &grepCmd{} }},
		{"search", "", groupFiles, "Find the files that match a query best, with the help of an index.", func() any { return &searchCmd{} }},
		{"du", "", groupFiles, "Add up what directories hold, as a quota counts it.", func() any { return &duCmd{} }},
		{"tag", "", groupFiles, "Give paths a tag, and list what has one.", func() any { return &tagCmd{} }},
		{"untag", "", groupFiles, "Take a tag away from paths.", func() any { return &untagCmd{} }},
		{"meta", "", groupFiles, "Note keys and values about a path.", func() any { return &metaCmd{} }},

		{"import", "", groupMove, "Copy a host directory or file into a vault.", func() any { return &importCmd{} }},
		{"export", "", groupMove, "Copy a tree of a vault to the host.", func() any { return &exportCmd{} }},
		{"apply", "", groupMove, "Bring what changed since an import back to the host's directory.", func() any { return &applyCmd{} }},

		{"checkpoint", "snapshot", groupHistory, "Keep states of a vault and bring them back.", func() any { return &checkpointCmds{} }},
		{"diff", "", groupHistory, "List what differs between two states.", func() any { return &diffCmd{} }},
		{"log", "", groupHistory, "List what was done in a vault, or to one path, newest first.", func() any { return &logCmd{} }},
		{"checkout", "", groupHistory, "Bring one path back from another state.", func() any { return &checkoutCmd{} }},
		{"blame-exec", "", groupHistory, "Tell which command last touched a path.", func() any { return &blameCmd{} }},
		{"undo", "", groupHistory, "Take back the newest change that stands, or the event that a flag names.", func() any { return &undoCmd{} }},
		{"redo", "", groupHistory, "Take back the newest undo, if nothing came after it.", func() any { return &redoCmd{} }},
		{"revert", "", groupHistory, "Take back one event alone, whatever came after it.", func() any { return &revertCmd{} }},

		{"proxy", "", groupRun, "Run commands under policy, checkpoint and report.", func() any { return &proxyCmds{} }},
		{"exec", "", groupRun, "Run a command in a vault: short for 'proxy exec'.", func() any { return &execCmd{} }},
		{"fanout", "", groupRun, "Run a command in several forks of a vault side by side, and compare what comes of it.", func() any { return &fanoutCmd{} }},
		{"output", "", groupRun, "Print what a command has printed, in full.", func() any { return &outputCmd{} }},
		{"services", "", groupRun, "List, read and stop what exec --keep-running has started.", func() any { return &servicesCmds{} }},
		{"sessions", "", groupRun, "List, show and delete what commands of one session leave to the next.", func() any { return &sessionsCmds{} }},
		{"approvals", "", groupRun, "List and decide what the policy wants approval for.", func() any { return &approvalsCmds{} }},
		{"shell", "", groupRun, "Open a shell in a vault, with your terminal, as one execution.", func() any { return &shellCmd{} }},
		{"mount", "", groupRun, "Make a vault visible as a directory.", func() any { return &mountCmd{} }},
		{"unmount", "umount", groupRun, "End a mount.", func() any { return &unmountCmd{} }},
		{"mounts", "", groupRun, "List the mounts.", func() any { return &mountsCmd{} }},
		{"mcp", "", groupRun, "Offer vaults to agents as tools of the Model Context Protocol.", func() any { return &mcpCmd{} }},
		{"serve", "", groupRun, "Hold a vault's store open and serve it to other commands.", func() any { return &serveCmd{} }},

		{"audit", "", groupCare, "List every command that was asked for, run or not, and every change of vaults, history and limits.", func() any { return &auditCmds{} }},
		{"quota", "", groupCare, "Show and set what a vault may grow to.", func() any { return &quotaCmds{} }},
		{"stats", "", groupCare, "Tell what fills a vault's store, and what only its history keeps.", func() any { return &statsCmd{} }},
		{"prune", "", groupCare, "Drop old history; gc frees what only it kept.", func() any { return &pruneCmd{} }},
		{"gc", "", groupCare, "Free the space of what nothing refers to.", func() any { return &gcCmd{} }},
		{"compact", "", groupCare, "Give unused space of a store back.", func() any { return &compactCmd{} }},
		{"fsck", "", groupCare, "Check a store for damage.", func() any { return &fsckCmd{} }},
		{"policy", "", groupCare, "Ask, check and write the policy for commands.", func() any { return &policyCmds{} }},
		{"schema", "", groupCare, "Print the JSON Schema of what a command prints with --json.", func() any { return &schemaCmd{} }},
		{"doctor", "", groupCare, "Look at what avfs needs here, and say what to do about what is missing.", func() any { return &doctorCmd{} }},
		{"completions", "", groupCare, "Print the completions for a shell.", func() any { return &completionsCmd{} }},
		{"man", "", groupCare, "Print the manual page.", func() any { return &manCmd{} }},
		{"version", "", groupCare, "Tell the version and what this build can do.", func() any { return &versionCmd{} }},
	}
}

// The groups of commands.
const (
	groupVaults  = "vaults"
	groupFiles   = "files"
	groupMove    = "move"
	groupHistory = "history"
	groupRun     = "run"
	groupCare    = "care"
)

func groups() []kong.Group {
	return []kong.Group{
		{Key: groupVaults, Title: "Vaults"},
		{Key: groupFiles, Title: "Files (PATH@STATE reads the past)"},
		{Key: groupMove, Title: "Moving"},
		{Key: groupHistory, Title: "History"},
		{Key: groupRun, Title: "Running"},
		{Key: groupCare, Title: "Care"},
	}
}

// needed are the commands that the arguments can mean: the one they name, or all
// of them. A grammar of one command is ready a millisecond earlier.
func needed(args []string) []commandDef {
	all := commands()
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--vault":
			i++ // its value
		case strings.HasPrefix(arg, "-"):
		default:
			for _, d := range all {
				if arg == d.name || arg == d.alias {
					return []commandDef{d}
				}
			}
			return all
		}
	}
	return all
}

// runner is what every leaf of the grammar implements.
type runner interface{ run(*app) error }

// parse turns arguments into a command; nil if help was asked for and printed.
func (a *app) parse(args []string) (runner, error) {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	args = findStyle(args)
	helped := false
	var flags globals
	k, err := a.parser(needed(args), &flags, &helped)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, usageError("no command given; see avfs --help")
	}
	ctx, err := k.Parse(args)
	switch {
	case helped:
		return nil, nil
	case err != nil:
		return nil, parseError(err)
	}
	if err := namesNothing(ctx); err != nil {
		return nil, err
	}
	a.flags = flags
	cmd, ok := ctx.Selected().Target.Addr().Interface().(runner)
	if !ok {
		return nil, usageError("no command given; see avfs --help")
	}
	a.command = commandName(ctx.Selected())
	return cmd, nil
}

// parser makes the grammar of some commands. It sets helped if it has printed help.
func (a *app) parser(defs []commandDef, flags *globals, helped *bool) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("avfs"),
		kong.Description("Versioned workspaces for coding agents.\n\n" + exitHelp()),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { *helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ExplicitGroups(groups()),
		kong.KindMapper(reflect.String, kong.MapperFunc(exactText)),
		kong.TypeMapper(reflect.TypeFor[workspace.Path](), kong.MapperFunc(pathText)),
	}
	if a.inner {
		options = append(options, kong.NamedMapper("path", kong.MapperFunc(a.hostPaths)))
	}
	for _, d := range defs {
		var tags []string
		if d.alias != "" {
			tags = append(tags, `aliases:"`+d.alias+`"`)
		}
		options = append(options, kong.DynamicCommand(d.name, d.help, d.group, d.new(), tags...))
	}
	k, err := kong.New(flags, options...)
	if err != nil {
		return nil, err
	}
	for _, n := range k.Model.Leaves(false) {
		if l, ok := leafOf(commandName(n)); ok {
			n.Detail = "Example: " + l.example
		}
	}
	return k, nil
}

// commandName is the name of a command with those above it, such as "vault create".
func commandName(n *kong.Node) string {
	name := n.Name
	for up := n.Parent; up != nil && up.Type == kong.CommandNode; up = up.Parent {
		name = up.Name + " " + name
	}
	return name
}

// exactText takes an argument as it is. What kong has for strings passes them
// through JSON, which spoils bytes that are not UTF-8.
func exactText(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	target.SetString(fmt.Sprint(t.Value))
	return nil
}

// pathText is exactText for a path: an empty one, of a variable that is not set, must not
// become the whole vault.
func pathText(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := exactText(ctx, target); err != nil {
		return err
	}
	if target.String() == "" {
		return errors.New("a path is empty; the top directory is /")
	}
	return nil
}

// namesNothing finds an argument that names a vault, a state or an event and is given, but
// empty: what a script made of a variable that is not set must not become the current one.
func namesNothing(ctx *kong.Context) error {
	named := map[string]bool{"vault": true, "name": true, "source": true, "from": true, "into": true, "fork": true, "to": true,
		"checkpoint": true, "event": true, "exec": true, "id": true, "state": true, "session": true, "approval": true}
	values := slices.Clone(ctx.Selected().Positional)
	for _, f := range ctx.Flags() {
		values = append(values, f.Value)
	}
	for _, v := range values {
		if v.Set && named[v.Name] && v.Target.Kind() == reflect.String && v.Target.String() == "" {
			return &engine.Error{Kind: engine.InvalidName, Op: v.Name, Err: errors.New("it is empty")}
		}
	}
	return nil
}

// parseError makes a usage error of what kong says.
func parseError(err error) error {
	what := "avfs"
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context != nil {
		if node := p.Context.Selected(); node != nil {
			what = node.FullPath()
		}
	}
	return usageError("%w; see %s --help", err, what)
}

// wantsJSON looks for --json where the arguments cannot be parsed.
func wantsJSON(args []string) bool { return wantsFlag(args, "--json") }

// wantsFlag looks for a flag that takes no value.
func wantsFlag(args []string, flag string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case flag, flag + "=true":
			return true
		}
	}
	return false
}
