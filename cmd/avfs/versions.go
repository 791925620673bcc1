package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// listedChanges is how many changes a log of a path holds for each event.
const listedChanges = 1000

// pathHistory asks for the history of a path.
func (a *app) pathHistory(path workspace.Path, limit int) (workspace.PathLogResult, error) {
	if limit < 0 {
		return workspace.PathLogResult{}, usageError("-n is a number, 0 or more")
	}
	req := workspace.PathLogRequest{Path: path, Limit: limit, Changes: listedChanges}
	return call(a, workspace.OpPathLog, func(v string) workspace.PathLogRequest { req.Vault = v; return req }, workspace.Streams{})
}

// pathEventDoc is an event of a path's history as JSON.
type pathEventDoc struct {
	engine.PathEvent
	Changed bool `json:"changed"` // as in every log; here it always did
}

// pathLog prints the history of a path.
func (a *app) pathLog(path workspace.Path, limit int) error {
	res, err := a.pathHistory(path, limit)
	if err != nil {
		return err
	}
	docs := make([]pathEventDoc, len(res.Events))
	for i, ev := range res.Events {
		docs[i] = pathEventDoc{ev, true}
	}
	return a.print(docs, func(w io.Writer) {
		rows := [][]string{{"SEQ", "TIME", "CAUSE", "CHANGE", "COMMAND"}}
		for _, ev := range res.Events {
			seq, at := "-", "-"
			if ev.Seq != 0 {
				seq, at = strconv.FormatUint(ev.Seq, 10), clock(ev.At)
			}
			rows = append(rows, []string{seq, at, ev.Cause, changeOf(ev), commandOf(ev.Event)})
		}
		table(w, rows)
		if text := originText(res); text != "" {
			fmt.Fprintln(w, text)
		}
	})
}

// commandOf is what an event did, for people.
func commandOf(ev engine.Event) string {
	switch {
	case ev.Undoes != 0:
		return fmt.Sprintf("of %d", ev.Undoes)
	case len(ev.Command) > 0:
		return safe(strings.Join(ev.Command, " "))
	case ev.Source != "":
		return safe("from " + ev.Source)
	}
	return safe(ev.ID)
}

// changeOf is what an event did to a path, for people.
func changeOf(ev engine.PathEvent) string {
	if len(ev.Changes) != 1 || ev.Total != 1 {
		return fmt.Sprintf("%d changed", ev.Total)
	}
	c := ev.Changes[0]
	text := changeLine(c)
	if c.Path == ev.Path && c.OldPath == "" {
		text = string(c.Kind)
	}
	switch {
	case c.SizeBefore != nil && c.SizeAfter != nil && *c.SizeBefore != *c.SizeAfter:
		text += fmt.Sprintf(", %s \u2192 %s", size(*c.SizeBefore), size(*c.SizeAfter))
	case c.SizeAfter != nil && c.SizeBefore == nil:
		text += ", " + size(*c.SizeAfter)
	}
	return text
}

// originText says what was before the events, where that is worth a line.
func originText(res workspace.PathLogResult) string {
	switch res.Origin {
	case engine.OriginFork:
		if res.Parent != "" {
			return "before that: as it came with the fork from " + res.Parent
		}
		return "before that: as it came with the fork"
	case engine.OriginPruned:
		return "before that: as it was where the history begins; older history is pruned, or was never recorded"
	}
	return ""
}

type checkoutCmd struct {
	Path workspace.Path `arg:"" name:"path@state" help:"A path, and the state to take it from: checkpoint, exec, event number or time."`
	To   workspace.Path `help:"Put it here instead, where nothing is, or into this directory." placeholder:"PATH"`
}

func (c *checkoutCmd) run(a *app) error {
	req := workspace.CheckoutRequest{Path: c.Path, To: c.To}
	res, err := call(a, workspace.OpCheckout, func(v string) workspace.CheckoutRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { describeRestore(w, "checked out", safe(string(c.Path)), res) })
}

type blameCmd struct {
	Path workspace.Path `arg:"" help:"A file, or a directory with everything below it."`
}

// blameDoc tells which event last touched a path.
type blameDoc struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"`
	// Event is the newest event that changed the path; null if there is none.
	Event *engine.PathEvent `json:"event"`
	// Unrecorded says that something changed the path after that, and no event tells
	// what.
	Unrecorded bool `json:"unrecorded"`
	// Origin is where the path comes from if there is no event: fork, pruned or none.
	Origin engine.Origin `json:"origin,omitempty"`
	Parent string        `json:"parent,omitempty"` // of a fork
}

func (c *blameCmd) run(a *app) error {
	res, err := a.pathHistory(c.Path, 1)
	if err != nil {
		return err
	}
	doc := blameDoc{}
	doc.Path, doc.PathB64 = exactly(string(c.Path))
	for i, ev := range res.Events {
		if ev.Cause != engine.CauseUnrecorded {
			doc.Event = &res.Events[i]
			break
		}
		doc.Unrecorded = true
	}
	if doc.Event == nil {
		doc.Origin, doc.Parent = res.Origin, res.Parent
	}
	return a.print(doc, func(w io.Writer) {
		if doc.Unrecorded {
			fmt.Fprintln(w, "changed since, and no event of the timeline tells by what")
		}
		if ev := doc.Event; ev != nil {
			table(w, [][]string{
				{"event", strconv.FormatUint(ev.Seq, 10)}, {"cause", ev.Cause}, {"id", safe(ev.ID)}, {"time", clock(ev.At)},
				{"change", changeOf(*ev)}, {"command", commandOf(ev.Event)},
			})
			return
		}
		if text := originText(res); text != "" {
			fmt.Fprintln(w, "no event changed it")
			fmt.Fprintln(w, text)
		}
	})
}

// exactly is a path as UTF-8 and, where that loses bytes, as base64 too.
func exactly(p string) (text, b64 string) {
	if text = strings.ToValidUTF8(p, "\uFFFD"); text == p {
		return text, ""
	}
	return text, base64.StdEncoding.EncodeToString([]byte(p))
}
