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
	ReadData bool `help:"Read all content and compare its digests."`
}

func (c *fsckCmd) run(a *app) error {
	rep, err := call(a, workspace.OpCheck, func(v string) workspace.CheckRequest {
		return workspace.CheckRequest{Vault: v, ReadData: c.ReadData}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	if err := a.print(rep, func(w io.Writer) { describeCheck(w, rep) }); err != nil {
		return err
	}
	if len(rep.Findings) > 0 {
		return &ended{exitDamaged}
	}
	return nil
}

func describeCheck(w io.Writer, rep engine.CheckReport) {
	for _, f := range rep.Findings {
		fmt.Fprintf(w, "%s\n  in %s\n", safe(f.Problem), safe(strings.Join(f.Owners, ", ")))
		for _, p := range f.Paths {
			fmt.Fprintf(w, "  %s\n", safe(p))
		}
	}
	verdict := "sound"
	if n := len(rep.Findings); n > 0 {
		verdict = fmt.Sprintf("%d findings", n)
	}
	fmt.Fprintf(w, "%s: %d states, %d nodes, %d chunks, %d inodes\n", verdict, rep.Roots, rep.Nodes, rep.Chunks, rep.Inodes)
}
