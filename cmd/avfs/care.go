package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type gcCmd struct{}

func (gcCmd) run(a *app) error {
	rep, err := call(a, workspace.OpGC, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(rep, func(w io.Writer) {
		fmt.Fprintf(w, "freed %d chunks and %d nodes, %s given back\n", rep.Chunks, rep.Nodes, size(rep.ReclaimedBytes))
	})
}

type fsckCmd struct {
	Name     string `arg:"" optional:"" name:"vault" help:"The vault whose store to check; by default the current one."`
	ReadData bool   `help:"Read all content and compare its digests."`
	Repair   bool   `help:"Read all content too, and mend what can be mended. What is lost stays an error, and is named."`
}

func (c *fsckCmd) run(a *app) error {
	name, err := a.oneVault(c.Name)
	if err != nil {
		return err
	}
	a.flags.Vault = name
	if c.Repair {
		return c.repair(a)
	}
	rep, err := call(a, workspace.OpCheck, func(v string) workspace.CheckRequest {
		return workspace.CheckRequest{Vault: v, ReadData: c.ReadData}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	return endCheck(a.print(rep, func(w io.Writer) { describeCheck(w, rep, "findings") }), rep)
}

func (c *fsckCmd) repair(a *app) error {
	w, err := a.workspace()
	if err != nil {
		return err
	}
	rep, err := w.Repair(a.ctx, a.flags.Vault, workspace.Streams{})
	if err != nil {
		return err
	}
	return endCheck(a.print(rep, func(w io.Writer) {
		for _, r := range rep.Repaired {
			fmt.Fprintf(w, "%s: %s\n", safe(r.Problem), safe(r.Action))
		}
		describeCheck(w, rep.CheckReport, "cannot be mended, for want of another copy")
		if rep.Collected == nil {
			fmt.Fprintln(w, "garbage was left alone: nothing is deleted while something is damaged")
		}
	}), rep.CheckReport)
}

// endCheck gives a check that found something its exit code.
func endCheck(err error, rep engine.CheckReport) error {
	if err == nil && len(rep.Findings) > 0 {
		return &ended{exitDamaged}
	}
	return err
}

// describeCheck lists what was found and says in one line what it comes to; found
// are the words for findings.
func describeCheck(w io.Writer, rep engine.CheckReport, found string) {
	for _, f := range rep.Findings {
		fmt.Fprintf(w, "%s\n  in %s\n", safe(f.Problem), safe(strings.Join(f.Owners, ", ")))
		for _, p := range f.Paths {
			fmt.Fprintf(w, "  %s\n", safe(p))
		}
	}
	verdict := "sound"
	if n := len(rep.Findings); n > 0 {
		verdict = fmt.Sprintf("%d %s", n, found)
	}
	fmt.Fprintf(w, "%s: %d states, %d nodes, %d chunks, %d inodes\n", verdict, rep.Roots, rep.Nodes, rep.Chunks, rep.Inodes)
}
