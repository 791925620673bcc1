package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/agentvfs/avfs/patch"
	"github.com/agentvfs/avfs/workspace"
)

// diffFlags are what every command that compares states takes.
type diffFlags struct {
	Text     bool `short:"u" help:"Print what changed in each file, as a unified diff."`
	Patch    bool `short:"p" help:"Print a patch in git's format that 'git apply' takes, binary files included. What git cannot express is named on standard error."`
	Context  *int `short:"U" help:"So many equal lines around what differs, by default 3; implies --text." placeholder:"N"`
	Stat     bool `help:"Count the lines that came and went in each file."`
	NameOnly bool `help:"Print only the paths."`
	Times    bool `help:"List files of which only the time changed, too."`
	Limit    int  `short:"n" help:"List at most so many; 0 is no limit." placeholder:"N"`
}

type diffCmd struct {
	diffFlags
	From string           `arg:"" optional:"" help:"A state: checkpoint, exec, event number, time, vault:NAME, now or base. Without it a fork is compared with the state it began with."`
	Rest []workspace.Path `arg:"" optional:"" name:"to-or-path" help:"A second state, by default the present one, and paths to look at."`
}

func (c *diffCmd) run(a *app) error {
	from := c.From
	if from == "" {
		from = "base"
	}
	return a.diff(c.diffFlags, from, c.Rest, false)
}

type checkpointDiffCmd struct {
	diffFlags
	ID   string           `arg:"" help:"Id or name of the checkpoint, or another state."`
	Rest []workspace.Path `arg:"" optional:"" name:"to-or-path" help:"A second state, by default the present one, and paths to look at."`
}

func (c *checkpointDiffCmd) run(a *app) error { return a.diff(c.diffFlags, c.ID, c.Rest, true) }

// text is what the flags want written.
func (f *diffFlags) text() (workspace.DiffText, error) {
	n := 0
	for _, on := range []bool{f.Text, f.Patch, f.Stat, f.NameOnly} {
		if on {
			n++
		}
	}
	switch {
	case n > 1:
		return "", usageError("--text, --patch, --stat and --name-only exclude each other")
	case f.Context != nil && (*f.Context < 0 || f.Stat || f.NameOnly):
		return "", usageError("-U is a number of lines, 0 or more, for --text or --patch")
	case f.Limit < 0:
		return "", usageError("-n is a number, 0 or more")
	case f.Patch:
		return workspace.TextGit, nil
	case f.Text || f.Context != nil:
		return workspace.TextUnified, nil
	case f.Stat:
		return workspace.TextStat, nil
	}
	return "", nil
}

// diffDoc is a diff as JSON: with its text if that was asked for.
type diffDoc struct {
	workspace.DiffResult
	Patch    *string `json:"patch,omitempty"`     // the text where it is UTF-8
	PatchB64 *string `json:"patch_b64,omitempty"` // its bytes where it is not
}

// diff compares two states and prints what was asked for. With list the JSON document
// is the list of changes alone, where nothing else was asked for.
func (a *app) diff(f diffFlags, from string, rest []workspace.Path, list bool) error {
	text, err := f.text()
	if err != nil {
		return err
	}
	req := workspace.DiffRequest{From: from, Rest: rest, Times: f.Times, Limit: f.Limit, Text: text}
	if f.Context != nil {
		if req.Context = *f.Context; req.Context == 0 {
			req.Context = -1
		}
	}
	var out bytes.Buffer
	w := a.stdout
	if a.flags.JSON {
		w = &out
	}
	res, err := callOut(a, workspace.OpDiff, func(v string) workspace.DiffRequest { req.Vault = v; return req }, w)
	if err != nil {
		return err
	}
	switch {
	case a.flags.JSON && text == "" && list:
		return a.printJSON(res.Changes)
	case a.flags.JSON:
		return a.printJSON(newDiffDoc(res, text, out.Bytes()))
	case text == "":
		return a.print(nil, func(w io.Writer) { f.list(w, res) })
	case text == workspace.TextStat:
		return a.print(nil, func(w io.Writer) { statLines(w, res) })
	}
	a.noteLeftOut(res)
	return nil
}

// writeDiff writes the text of a diff to w, and tells on standard error what is not in it.
func (a *app) writeDiff(req workspace.DiffRequest, w io.Writer) (workspace.DiffResult, error) {
	res, err := callOut(a, workspace.OpDiff, func(v string) workspace.DiffRequest { req.Vault = v; return req }, w)
	if err == nil {
		a.noteLeftOut(res)
	}
	return res, err
}

func newDiffDoc(res workspace.DiffResult, text workspace.DiffText, b []byte) diffDoc {
	doc := diffDoc{DiffResult: res}
	switch s := string(b); {
	case text == "" || text == workspace.TextStat:
	case utf8.Valid(b):
		doc.Patch = &s
	default:
		s = base64.StdEncoding.EncodeToString(b)
		doc.PatchB64 = &s
	}
	return doc
}

func (f *diffFlags) list(w io.Writer, res workspace.DiffResult) {
	if !f.NameOnly {
		changeLines(w, res.Changes, 0, res.Total)
		return
	}
	for _, c := range res.Changes {
		fmt.Fprintln(w, safe(c.Path))
	}
}

// statLines writes how many lines came and went in each file, and in all.
func statLines(w io.Writer, res workspace.DiffResult) {
	rows := make([][]string, 0, len(res.Files))
	added, deleted := 0, 0
	for _, f := range res.Files {
		counts := []string{fmt.Sprintf("+%d", f.Added), fmt.Sprintf("-%d", f.Deleted)}
		if f.Binary {
			counts = []string{"binary", ""}
		}
		added += f.Added
		deleted += f.Deleted
		rows = append(rows, append(counts, safe(f.Path)))
	}
	table(w, rows)
	fmt.Fprintf(w, "%d files, %d lines added, %d deleted\n", len(res.Files), added, deleted)
	for _, l := range leftOutLines(res.LeftOut) {
		fmt.Fprintln(w, l)
	}
}

// noteLeftOut tells on standard error what is not in a text, and what in it is not
// as fine as usual.
func (a *app) noteLeftOut(res workspace.DiffResult) {
	for _, f := range res.Files {
		if f.Coarse {
			a.note("%s: too many lines to compare: they are replaced as one block", safe(f.Path))
		}
	}
	for _, l := range leftOutLines(res.LeftOut) {
		a.note("%s", l)
	}
}

// leftOutLines are what was left out, for people.
func leftOutLines(list []patch.LeftOut) []string {
	lines := make([]string, 0, shownChanges+1)
	for i, l := range list {
		if i == shownChanges {
			lines = append(lines, fmt.Sprintf("\u2026 and %d more", len(list)-shownChanges))
			break
		}
		lines = append(lines, "left out: "+strings.TrimSpace(safe(l.Path)+": "+l.What))
	}
	return lines
}
