package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// outputFlags say which output of a command is meant.
type outputFlags struct {
	Stderr   bool   `help:"The error stream instead of standard output."`
	Combined bool   `help:"Both streams in their true order, of a command that ran with --combined."`
	Range    string `help:"Only these bytes, numbered from 0, the last one included; A- is from A to the end." placeholder:"A-B"`
	Tail     int64  `help:"Only so many of the last bytes." placeholder:"N" default:"-1"`
}

type outputCmd struct {
	outputFlags
	Exec string `arg:"" optional:"" default:"last" help:"The id of the exec, as its envelope, log and audit tell it; last is the newest of the vault."`
}

// outputDoc is the output of a command as JSON.
type outputDoc struct {
	workspace.OutputPart
	Text   *string `json:"text,omitempty"`   // where it is UTF-8
	Base64 *string `json:"base64,omitempty"` // where it is not
}

func (c *outputCmd) run(a *app) error {
	exec := c.Exec
	if exec == "last" {
		exec = ""
	}
	return c.print(a, exec)
}

// print prints what is kept of an exec, of the newest one if it is empty.
func (c *outputFlags) print(a *app, exec string) error {
	req, err := c.request(exec)
	if err != nil {
		return err
	}
	w, err := a.workspace()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	out := io.Writer(&text)
	if !a.flags.JSON {
		a.surviveBrokenPipe()
		out = a.stdout
	}
	part, err := workspace.CallVault(a.ctx, w, a.flags.Vault, workspace.OpOutput, func(v string) workspace.OutputRequest {
		req.Vault = v
		return req
	}, workspace.Streams{Out: out})
	if err != nil && isBrokenPipe(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !a.flags.JSON {
		if part.Kept < part.Bytes {
			a.note("avfs: kept are %d of %d bytes: %s", part.Kept, part.Bytes, part.Cut)
		}
		return nil
	}
	doc := outputDoc{OutputPart: part}
	if s := text.String(); utf8.ValidString(s) {
		doc.Text = &s
	} else {
		s = base64.StdEncoding.EncodeToString(text.Bytes())
		doc.Base64 = &s
	}
	return a.printJSON(doc)
}

// request turns flags into a request.
func (c *outputFlags) request(exec string) (workspace.OutputRequest, error) {
	req := workspace.OutputRequest{Exec: exec}
	switch {
	case c.Stderr && c.Combined:
		return req, usageError("--stderr and --combined exclude each other")
	case c.Stderr:
		req.Stream = workspace.StreamStderr
	case c.Combined:
		req.Stream = workspace.StreamCombined
	}
	if c.Tail >= 0 {
		req.Tail = &c.Tail
	}
	if c.Range == "" {
		return req, nil
	}
	from, to, ok := strings.Cut(c.Range, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	if !ok || err != nil || first < 0 {
		return req, usageError("a range is A-B or A-, in bytes from 0, not %q", c.Range)
	}
	req.From = first
	if to != "" {
		last, err := strconv.ParseInt(to, 10, 64)
		if err != nil || last < first {
			return req, usageError("a range is A-B or A-, in bytes from 0, not %q", c.Range)
		}
		last++
		req.To = &last
	}
	return req, nil
}

// eventLines writes events as lines of JSON, each at once.
type eventLines struct {
	w      io.Writer
	broken func() // called once, when nobody reads the events any more
	gone   bool
	fail   error // why events could not be written; a reader that has gone is no failure
}

func (l *eventLines) tell(ev proxy.Event) {
	if l.gone {
		return
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	err := e.Encode(ev)
	if err == nil {
		_, err = l.w.Write(line.Bytes())
	}
	if err != nil {
		l.gone = true
		if !isBrokenPipe(err) {
			l.fail = err
		}
		l.broken()
	}
}
