package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/agentvfs/avfs/search"
	"github.com/agentvfs/avfs/workspace"
)

type searchCmd struct {
	Query string           `arg:"" help:"Words that must all be in a file, also as parts of identifiers; \"a phrase\"; the beginning of a word with * behind it; with - before it what must not be there."`
	Paths []workspace.Path `arg:"" optional:"" name:"path" help:"Where to search; by default everywhere."`
	Glob  []string         `short:"g" help:"Search only files with such names, such as *.go; with ! leave them out, directories too." placeholder:"GLOB" sep:"none"`
	Limit int              `short:"n" help:"List at most so many files." default:"10" placeholder:"N"`
	Lines int              `help:"Show at most so many lines of each file." default:"3" placeholder:"N"`
	Files bool             `short:"l" help:"Print only the names of files."`
}

// indexAtOnce is how much text is indexed while this process has the store open. More
// goes through an owner in the background, so that others can work meanwhile.
const indexAtOnce = 4 << 20

func (c *searchCmd) run(a *app) error {
	if c.Limit < 1 || c.Lines < 0 {
		return usageError("--limit is 1 or more, and --lines 0 or more")
	}
	req := workspace.SearchRequest{
		Past: true, Query: c.Query, Paths: orTop(c.Paths), Globs: c.Glob, Limit: c.Limit, Lines: c.Lines, IndexBytes: indexAtOnce,
	}
	if c.Files {
		req.Lines = 0
	}
	op := workspace.OpSearch
	bind := func(v string) workspace.SearchRequest { req.Vault = v; return req }
	res, err := call(a, op, bind, workspace.Streams{})
	if err == nil && res.Behind {
		req.IndexBytes, op.Long = 0, true
		progress, done := a.progress("indexing")
		res, err = call(a, op, bind, workspace.Streams{Progress: progress})
		done()
	}
	if err != nil {
		return err
	}
	if res.Note != "" && !a.flags.Quiet && !a.flags.JSON {
		fmt.Fprintf(a.stderr, "avfs: %s\n", safe(res.Note))
	}
	return foundAny(len(res.Files), a.print(res.SearchResult, func(w io.Writer) {
		for _, f := range res.Files {
			c.show(w, f, a.paint())
		}
		if res.More && !c.Files && !a.flags.Quiet {
			fmt.Fprintf(w, "there are more; see --limit\n")
		}
	}))
}

// show prints a file with its lines.
func (c *searchCmd) show(w io.Writer, f workspace.SearchHit, p paint) {
	if c.Files {
		fmt.Fprintln(w, safe(f.Path))
		return
	}
	fmt.Fprintf(w, "%s  %.2f\n", p.as(colourPath, safe(f.Path)), f.Score)
	for _, l := range f.Lines {
		fmt.Fprintf(w, "  %s: %s\n", p.as(colourNumber, fmt.Sprint(l.Line)), marked(l.Text, l.Spans, p))
	}
}

// marked colours what matches in a line, which may come from anywhere.
func marked(text string, spans []search.Span, p paint) string {
	plain := func(r rune) rune {
		if unprintable(r) && r != '\uFFFD' {
			return ' '
		}
		return r
	}
	var b strings.Builder
	at := len(text) - len(strings.TrimLeft(text, " \t"))
	for _, s := range spans {
		b.WriteString(strings.Map(plain, text[at:s.From]))
		b.WriteString(p.as(colourMatch, strings.Map(plain, text[s.From:s.To])))
		at = s.To
	}
	b.WriteString(strings.Map(plain, text[at:]))
	return strings.TrimRight(b.String(), " ")
}
