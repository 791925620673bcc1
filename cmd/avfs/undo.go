package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type undoCmd struct {
	Paths   []workspace.Path `arg:"" optional:"" name:"path" help:"Take back only what was changed at these and below them: by the newest event that changed something there, or by those that a flag names."`
	To      *string          `help:"Take back everything since and including this event: an exec's id, or a number of the log." placeholder:"EXEC|SEQ"`
	Event   *string          `help:"Take back this event alone, whatever came after it." placeholder:"EXEC|SEQ"`
	Preview bool             `help:"Only tell what would change, and which of the files have changed since."`
	Force   bool             `short:"f" help:"Go on although the same files changed since."`
}

func (c *undoCmd) run(a *app) error {
	req := workspace.UndoRequest{Paths: c.Paths, Force: c.Force, Preview: c.Preview}
	switch {
	case c.To != nil && c.Event != nil:
		return usageError("--to takes back everything since an event, --event one alone: give one of them")
	case c.To != nil:
		req.To = *c.To
	case c.Event != nil:
		req.Event = *c.Event
	}
	if req.To == "" && req.Event == "" && (c.To != nil || c.Event != nil) { // which is no word for the newest
		return usageError("--to and --event need an exec's id or a number of the log")
	}
	return a.takeBack("undone", req)
}

// takeBack asks for an undo and prints what it did, in the words of done.
func (a *app) takeBack(done string, req workspace.UndoRequest) error {
	res, err := call(a, workspace.OpUndo, func(v string) workspace.UndoRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { describeUndo(w, done, res) })
}

type revertCmd struct {
	Event   string           `arg:"" name:"exec|seq" help:"The event to take back: an exec's id, or a number of the log."`
	Paths   []workspace.Path `arg:"" optional:"" name:"path" help:"Take back only what it changed at these and below them."`
	Preview bool             `help:"Only tell what would change, and which of the files have changed since."`
	Force   bool             `short:"f" help:"Go on although the same files changed since."`
}

func (c *revertCmd) run(a *app) error {
	if c.Event == "" { // which an undo would take for the newest
		return usageError("revert needs an exec's id or a number of the log")
	}
	return a.takeBack("reverted", workspace.UndoRequest{Event: c.Event, Paths: c.Paths, Force: c.Force, Preview: c.Preview})
}

type redoCmd struct {
	Preview bool `help:"Only tell what would change, and which of the files have changed since."`
	Force   bool `short:"f" help:"Go on although the same files changed since."`
}

func (c *redoCmd) run(a *app) error {
	res, err := call(a, workspace.OpRedo, func(v string) workspace.RedoRequest {
		return workspace.RedoRequest{Vault: v, Force: c.Force, Preview: c.Preview}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { describeUndo(w, "redone", res) })
}

func describeUndo(w io.Writer, done string, res engine.UndoResult) {
	what := fmt.Sprintf("%s %d", res.Undone.Cause, res.Undone.Seq)
	if len(res.Undone.Command) > 0 {
		what += " (" + safe(strings.Join(res.Undone.Command, " ")) + ")"
	}
	if n := res.Events - 1; n == 1 {
		what += " and the event after it"
	} else if n > 1 {
		what += fmt.Sprintf(" and the %d events after it", n)
	}
	describeRestore(w, done, what, res.RestoreResult)
}

// describeRestore tells what became of what, done in the words of done.
func describeRestore(w io.Writer, done, what string, res engine.RestoreResult) {
	if res.Preview {
		done = "would be " + done + ":"
	}
	if res.Changed == 0 {
		fmt.Fprintf(w, "%s %s: nothing differs\n", done, what)
		return
	}
	fmt.Fprintf(w, "%s %s: %d changed\n", done, what, res.Changed)
	changeLines(w, res.Changes, shownChanges, res.Changed)
	if n := len(res.Drift); n > 0 {
		fmt.Fprintf(w, "changed since, and replaced all the same: %s\n", safe(joinPaths(res.Drift[:min(n, shownChanges)])))
		if n > shownChanges {
			fmt.Fprintf(w, "... and %d more\n", n-shownChanges)
		}
	}
	if res.UndoCheckpoint != "" {
		fmt.Fprintf(w, "the state before is checkpoint %s\n", res.UndoCheckpoint)
	}
}

// shownChanges is how many changes a summary lists.
const shownChanges = 20

func joinPaths(paths []workspace.Path) string {
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = string(p)
	}
	return strings.Join(list, ", ")
}

// logLines prints events for people.
func logLines(w io.Writer, events []engine.LogEntry) {
	rows := [][]string{{"SEQ", "TIME", "CAUSE", "ID", "CHANGED", "WHAT"}}
	for _, ev := range events {
		changed := "no"
		switch {
		case ev.Undone:
			changed = "undone"
		case ev.Changed:
			changed = "yes"
		}
		rows = append(rows, []string{strconv.FormatUint(ev.Seq, 10), clock(ev.At), ev.Cause, safe(ev.ID), changed, safe(eventText(ev.Event))})
	}
	table(w, rows)
}

// eventText says in a few words what an event was about.
func eventText(ev engine.Event) string {
	switch {
	case ev.Undoes != 0:
		text := fmt.Sprintf("of %d", ev.Undoes)
		if ev.Through != 0 {
			text = fmt.Sprintf("of %d to %d", ev.Undoes, ev.Through)
		}
		if len(ev.Paths) > 0 {
			shown := ev.Paths[:min(len(ev.Paths), 5)]
			text += " at " + joinPaths(shown)
			if ev.Partly || len(shown) < len(ev.Paths) {
				text += " and others"
			}
		}
		return text
	case ev.Source != "":
		return "from " + ev.Source
	case ev.Mountpoint != "":
		return ev.Mountpoint
	}
	return strings.Join(ev.Command, " ")
}
