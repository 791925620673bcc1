package main

import (
	"io"

	"github.com/agentvfs/avfs/workspace"
)

// diffFlags are what every command that compares states takes.
type diffFlags struct {
	Times bool `help:"List files of which only the time changed, too."`
	Limit int  `short:"n" help:"List at most so many; 0 is no limit." placeholder:"N"`
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
	res, err := a.diff(c.diffFlags, from, c.Rest)
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { changeLines(w, res.Changes, 0, res.Total) })
}

type checkpointDiffCmd struct {
	diffFlags
	ID   string           `arg:"" help:"Id or name of the checkpoint, or another state."`
	Rest []workspace.Path `arg:"" optional:"" name:"to-or-path" help:"A second state, by default the present one, and paths to look at."`
}

func (c *checkpointDiffCmd) run(a *app) error {
	res, err := a.diff(c.diffFlags, c.ID, c.Rest)
	if err != nil {
		return err
	}
	return a.print(res.Changes, func(w io.Writer) { changeLines(w, res.Changes, 0, res.Total) })
}

func (a *app) diff(f diffFlags, from string, rest []workspace.Path) (workspace.DiffResult, error) {
	req := workspace.DiffRequest{From: from, Rest: rest, Times: f.Times, Limit: f.Limit}
	return call(a, workspace.OpDiff, func(v string) workspace.DiffRequest { req.Vault = v; return req }, workspace.Streams{})
}
