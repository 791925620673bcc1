package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type manCmd struct{}

// run prints the manual page, which is made of the same source as the help.
func (manCmd) run(a *app) error {
	return a.document(func(w io.Writer, k *kong.Kong) { manPage(w, k.Model.Node) })
}

// manPage writes avfs(1) in the macros of man(7).
func manPage(w io.Writer, top *kong.Node) {
	fmt.Fprintf(w, ".TH AVFS 1 \"\" \"avfs %s\" \"User Commands\"\n", roff(version()))
	fmt.Fprint(w, ".SH NAME\navfs \\- versioned workspaces for coding agents\n")
	fmt.Fprint(w, ".SH SYNOPSIS\n.B avfs\n[\\fB\\-\\-vault\\fR \\fINAME\\fR] [\\fB\\-\\-json\\fR] \\fICOMMAND\\fR ...\n")
	fmt.Fprint(w, ".SH DESCRIPTION\nA vault is a directory tree in a database file. avfs forks it at once, runs ordinary commands in it, and tells what each command changed.\n")
	fmt.Fprint(w, ".SH OPTIONS OF EVERY COMMAND\n")
	manFlags(w, top.Flags)
	for _, g := range groups() {
		fmt.Fprintf(w, ".SH %s\n", roff(strings.ToUpper(g.Title)))
		for _, n := range top.Leaves(true) {
			if groupOf(n) == g.Key {
				manCommand(w, n)
			}
		}
	}
	fmt.Fprint(w, ".SH EXIT STATUS\nexec ends with the exit code of the command. The rest means:\n")
	for _, row := range exitTable {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(row.code), roff(row.text))
	}
	fmt.Fprint(w, ".SH FILES\n.TP\n.I ~/.avfs\nVaults, policy and logs; the variable AVFS_HOME moves it.\n")
}

// groupOf is the key of the group that a command is in, which is that of the command
// at the top.
func groupOf(n *kong.Node) string {
	for n.Parent != nil && n.Parent.Type == kong.CommandNode {
		n = n.Parent
	}
	if n.Group == nil {
		return ""
	}
	return n.Group.Key
}

// manCommand writes a command with its arguments, flags and example.
func manCommand(w io.Writer, n *kong.Node) {
	fmt.Fprintf(w, ".SS avfs %s", roff(commandName(n)))
	for _, p := range n.Positional {
		fmt.Fprintf(w, " %s", roff(p.Summary()))
	}
	fmt.Fprintf(w, "\n%s\n", roff(n.Help))
	for _, p := range n.Positional {
		fmt.Fprintf(w, ".TP\n.I %s\n%s\n", roff(p.Summary()), roff(p.Help))
	}
	manFlags(w, n.Flags)
	if l, ok := leafOf(commandName(n)); ok {
		fmt.Fprintf(w, ".PP\nExample:\n.PP\n.RS\n.nf\n%s\n.fi\n.RE\n", roff(l.example))
	}
}

func manFlags(w io.Writer, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		fmt.Fprint(w, ".TP\n")
		if f.Short != 0 {
			fmt.Fprintf(w, "\\fB\\-%c\\fR, ", f.Short)
		}
		fmt.Fprintf(w, "\\fB\\-\\-%s\\fR", roff(f.Name))
		if !f.IsBool() {
			fmt.Fprintf(w, "=\\fI%s\\fR", roff(f.FormatPlaceHolder()))
		}
		fmt.Fprintf(w, "\n%s\n", roff(f.Help))
	}
}

// roff is text that the macros leave alone.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
