package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type vaultMergeCmd struct {
	Source          string           `arg:"" help:"The vault whose changes to bring."`
	Dest            string           `arg:"" optional:"" help:"The vault to bring them into; by default the current one."`
	Into            string           `help:"The same as a flag." placeholder:"VAULT"`
	Paths           []workspace.Path `help:"Bring only what is at this path or below it; may be repeated. The rest stays for a later merge." placeholder:"PATH" sep:"none"`
	Ours            []workspace.Path `help:"Where both changed this path, or something below it, keep what is there; may be repeated, '.' is everything." placeholder:"PATH" sep:"none"`
	Theirs          []workspace.Path `help:"Where both changed this path, or something below it, take it from the source; may be repeated." placeholder:"PATH" sep:"none"`
	ConflictMarkers bool             `help:"Write both sides of lines that both changed into the file, between markers."`
	DryRun          bool             `help:"Only tell what would happen."`
}

func (c *vaultMergeCmd) run(a *app) error {
	if c.Into != "" && c.Dest != "" && c.Into != c.Dest {
		return usageError("two vaults are named to merge into: %s and, by --into, %s", c.Dest, c.Into)
	}
	if c.Into == "" {
		c.Into = c.Dest
	}
	into, err := a.oneVault(c.Into)
	if err != nil {
		return err
	}
	w, err := a.workspace()
	if err != nil {
		return err
	}
	res, err := w.Merge(a.ctx, workspace.MergeRequest{
		Vault: into, Source: c.Source, Paths: c.Paths, Ours: c.Ours, Theirs: c.Theirs, Markers: c.ConflictMarkers, DryRun: c.DryRun,
	})
	if err != nil {
		if engine.KindOf(err) == engine.Conflict && !a.flags.JSON {
			a.showConflicts(err)
		}
		return err
	}
	return a.print(res, func(w io.Writer) { describeMerge(w, res) })
}

func describeMerge(w io.Writer, res engine.MergeResult) {
	verb := "merged"
	if res.DryRun {
		verb = "would merge"
	}
	if res.Changed == 0 {
		fmt.Fprintf(w, "%s %s into %s: nothing to bring\n", verb, res.Source, res.Into)
	} else {
		fmt.Fprintf(w, "%s %s into %s: %d changed", verb, res.Source, res.Into, res.Changed)
		if res.MergedTexts > 0 {
			fmt.Fprintf(w, ", %d of them merged by lines", res.MergedTexts)
		}
		fmt.Fprintln(w)
	}
	changeLines(w, res.Changes, shownChanges, res.Changed)
	for _, c := range res.Resolved {
		fmt.Fprintf(w, "decided for %s: %s (%s)\n", c.Resolved, safe(c.Path), c.Kind)
	}
	if res.UndoCheckpoint != "" {
		fmt.Fprintf(w, "the state before is checkpoint %s\n", res.UndoCheckpoint)
	}
}

// conflictTexts say what the kinds of conflicts mean.
var conflictTexts = map[engine.ConflictKind]string{
	engine.ConflictContent:       "both edited it",
	engine.ConflictBinary:        "both edited it, and it is no text",
	engine.ConflictEditDelete:    "edited here, deleted there",
	engine.ConflictDeleteEdit:    "deleted here, edited there",
	engine.ConflictAddAdd:        "both added it",
	engine.ConflictType:          "of another type on each side",
	engine.ConflictDirectoryFile: "a directory on one side only",
	engine.ConflictMode:          "both changed its mode",
	engine.ConflictOwner:         "both changed its owner",
	engine.ConflictXattr:         "both changed the same attributes",
	engine.ConflictRenameRename:  "each moved it to another place",
	engine.ConflictRenameDelete:  "moved on one side, deleted on the other",
	engine.ConflictRenameAdd:     "the name of something moved is taken",
}

// showConflicts lists the conflicts of a merge for people.
func (a *app) showConflicts(err error) {
	var e *engine.Error
	var doc struct {
		Conflicts []engine.MergeConflict `json:"conflicts"`
	}
	if !errors.As(err, &e) {
		return
	}
	if b, jerr := json.Marshal(e.Details); jerr != nil || json.Unmarshal(b, &doc) != nil {
		return // the message names the first of them
	}
	for i, c := range doc.Conflicts {
		if i == shownConflicts {
			fmt.Fprintf(a.stderr, "\u2026 and %d more\n", len(doc.Conflicts)-i)
			break
		}
		text := conflictTexts[c.Kind]
		if len(c.Names) > 0 {
			text += ": " + safe(strings.Join(c.Names[:min(len(c.Names), 3)], ", "))
		}
		fmt.Fprintf(a.stderr, "conflict %s: %s (%s)\n", safe(c.Path), text, c.Kind)
	}
}

// shownConflicts is how many conflicts are listed for people.
const shownConflicts = 100

type vaultDiscardCmd struct {
	Name   string `arg:"" help:"Name of the fork."`
	Yes    bool   `short:"y" help:"Do not ask."`
	DryRun bool   `help:"Only tell what would be thrown away."`
}

func (c *vaultDiscardCmd) run(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	if !c.Yes && !c.DryRun && isTerminal(a.stdin) {
		res, err := w.Discard(a.ctx, workspace.DiscardRequest{Vault: c.Name, DryRun: true})
		if err != nil {
			return err
		}
		if yes, err := a.ask("discard %s, with %d changes that no other vault has?", c.Name, res.Total); err != nil || !yes {
			if err == nil {
				err = &ended{exitFailure}
			}
			return err
		}
	}
	res, err := w.Discard(a.ctx, workspace.DiscardRequest{Vault: c.Name, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) {
		verb := "discarded"
		if res.DryRun {
			verb = "would discard"
		}
		since := "since it was forked"
		if res.Merged != "" {
			since = "since it was merged into " + res.Merged
		}
		fmt.Fprintf(w, "%s vault %s, with %d changes %s\n", verb, c.Name, res.Total, since)
		changeLines(w, res.Changes, shownChanges, res.Total)
	})
}
