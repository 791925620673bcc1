package main

import (
	"fmt"
	"io"

	"github.com/agentvfs/avfs/workspace"
)

type applyCmd struct {
	To     string           `required:"" help:"The directory of the host that was imported into the vault, or into the one that it is a fork of." placeholder:"DIR"`
	Paths  []workspace.Path `arg:"" optional:"" name:"path" help:"Bring back only what changed at these paths of the vault and below them."`
	DryRun bool             `help:"Check everything and only tell what would happen."`
	Force  bool             `short:"f" help:"Overwrite what changed on the host since."`
}

func (c *applyCmd) run(a *app) error {
	to, err := a.hostPath(c.To)
	if err != nil {
		return err
	}
	req := workspace.ApplyRequest{To: workspace.Path(to), Paths: c.Paths, DryRun: c.DryRun, Force: c.Force}
	res, err := call(a, workspace.OpApply, func(v string) workspace.ApplyRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) {
		verb := "applied"
		if res.DryRun {
			verb = "would apply"
		}
		fmt.Fprintf(w, "%s %d changes to %s\n", verb, len(res.Changes), safe(to))
		for i, ch := range res.Changes {
			if i == shownChanges {
				fmt.Fprintf(w, "\u2026 and %d more\n", len(res.Changes)-i)
				break
			}
			fmt.Fprintf(w, "  %s %s\n", ch.Action, safe(ch.Path))
		}
		for _, k := range res.Kept {
			fmt.Fprintf(w, "  kept %s: the host has something in it\n", safe(k.Path))
		}
		for _, s := range res.Skipped {
			fmt.Fprintf(w, "  left out %s: %s\n", safe(s.Path), s.Message)
		}
	})
}
