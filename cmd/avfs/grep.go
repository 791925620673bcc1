package main

import (
	"fmt"
	"io"

	"github.com/agentvfs/avfs/workspace"
)

type grepCmd struct {
	Pattern    string           `arg:"" help:"Regular expression (RE2)."`
	Paths      []workspace.Path `arg:"" optional:"" name:"path" help:"Where to search; by default everywhere."`
	IgnoreCase bool             `short:"i" help:"Upper and lower case are the same."`
	Fixed      bool             `short:"F" help:"The pattern is plain text."`
	Word       bool             `short:"w" help:"What matches is no part of a longer word."`
	Glob       []string         `short:"g" help:"Search only files with such names, such as *.go; with ! leave them out, directories too." placeholder:"GLOB" sep:"none"`
	After      int              `short:"A" help:"Print so many lines after each match." placeholder:"N"`
	Before     int              `short:"B" help:"Print so many lines before each match." placeholder:"N"`
	Context    int              `short:"C" help:"Print so many lines before and after each match." placeholder:"N"`
	Files      bool             `short:"l" help:"Print only the names of files."`
	Count      bool             `short:"c" help:"Print only how many lines match in each file."`
}

func (c *grepCmd) run(a *app) error {
	if c.After < 0 || c.Before < 0 || c.Context < 0 {
		return usageError("a number of lines is 0 or more")
	}
	req := workspace.GrepRequest{
		Pattern: c.Pattern, Paths: orTop(c.Paths), Fixed: c.Fixed, IgnoreCase: c.IgnoreCase, Word: c.Word, Globs: c.Glob,
		Before: max(c.Before, c.Context), After: max(c.After, c.Context), Past: true,
	}
	bind := func(v string) workspace.GrepRequest { req.Vault = v; return req }
	if c.Files || c.Count {
		files, err := call(a, workspace.OpGrepFiles, bind, workspace.Streams{})
		if err != nil {
			return err
		}
		return foundAny(len(files), a.print(files, func(w io.Writer) {
			for _, f := range files {
				if c.Files {
					fmt.Fprintln(w, safe(f.Path))
				} else {
					fmt.Fprintf(w, "%s:%d\n", safe(f.Path), f.Lines)
				}
			}
		}))
	}
	found, err := call(a, workspace.OpGrep, bind, workspace.Streams{})
	if err != nil {
		return err
	}
	return foundAny(len(found), a.print(found, func(w io.Writer) { grepLines(w, found, req.Before+req.After > 0, a.paint()) }))
}

// foundAny ends a search as grep ends.
func foundAny(n int, err error) error {
	if err == nil && n == 0 {
		err = &ended{exitFailure}
	}
	return err
}

// grepLines writes lines as grep does: a colon behind the number of one that matches,
// a dash behind that of one near it, and a line between what is not together.
func grepLines(w io.Writer, found []workspace.GrepMatch, context bool, p paint) {
	for i, m := range found {
		if last := i - 1; context && i > 0 && (found[last].Path != m.Path || found[last].Line+1 != m.Line) {
			fmt.Fprintln(w, "--")
		}
		mark := ':'
		if m.Context {
			mark = '-'
		}
		fmt.Fprintf(w, "%s%s\n", p.match(m.Path, m.Line, mark), m.Text)
	}
}
