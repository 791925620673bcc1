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
		if rep.NoRoom {
			fmt.Fprintln(w, "the disk has no room to make the store smaller; what was freed is used again inside it")
		}
		if rep.Chunks == 0 {
			fmt.Fprintln(w, "what was removed may be in checkpoints and in the history: avfs stats tells how much, avfs prune drops history")
		}
	})
}

type pruneCmd struct {
	Last   *int   `name:"keep-last" help:"Keep so many of the newest events, and of older ones only what the other flags say." placeholder:"N"`
	Hours  *int   `name:"keep-hourly" help:"Of older events keep one an hour, for so many hours back." placeholder:"N"`
	Days   *int   `name:"keep-daily" help:"Of older events keep one a day, for so many days back." placeholder:"N"`
	Bytes  string `name:"keep-bytes" help:"Then drop the oldest until history keeps no more than this beside what else is kept; none removes the bound." placeholder:"SIZE"`
	Save   bool   `help:"Use this rule for the vault from now on."`
	DryRun bool   `help:"Only tell what would go."`
}

func (c *pruneCmd) run(a *app) error {
	for _, n := range []*int{c.Last, c.Hours, c.Days} {
		if n != nil && *n < 0 {
			return usageError("--keep-last, --keep-hourly and --keep-daily are numbers, 0 or more")
		}
	}
	if c.Last != nil { // who says how many of the newest to keep means all that is kept
		none := 0
		for _, n := range []**int{&c.Hours, &c.Days} {
			if *n == nil {
				*n = &none
			}
		}
	}
	var bytes *int64
	if c.Bytes != "" {
		n, err := parseLimit(c.Bytes, sizeSuffixes)
		if err != nil {
			return usageError("--keep-bytes: %w", err)
		}
		bytes = &n
	}
	rep, err := call(a, workspace.OpPrune, func(v string) workspace.PruneRequest {
		return workspace.PruneRequest{Vault: v, Last: c.Last, Hours: c.Hours, Days: c.Days, Bytes: bytes, Save: c.Save, DryRun: c.DryRun}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(rep, func(w io.Writer) {
		did := "dropped"
		if rep.DryRun {
			did = "would drop"
		}
		fmt.Fprintf(w, "rule: the newest %d, one an hour for %d hours, one a day for %d days", rep.Rule.Last, rep.Rule.Hours, rep.Rule.Days)
		if rep.Rule.Bytes > 0 {
			fmt.Fprintf(w, "; no more than %s, of which at most %s are kept", size(rep.Rule.Bytes), size(rep.KeptBytes))
		}
		fmt.Fprintln(w)
		fmt.Fprintf(w, "%s %d events, %d automatic checkpoints and %d outputs; %d, %d and %d stay\n",
			did, rep.Events, rep.Checkpoints, rep.Outputs, rep.KeptEvents, rep.KeptCheckpoints, rep.KeptOutputs)
		if !rep.DryRun && rep.Events+rep.Checkpoints > 0 {
			fmt.Fprintln(w, "free what only they kept with: avfs gc")
		}
	})
}

type statsCmd struct{}

func (statsCmd) run(a *app) error {
	st, err := call(a, workspace.OpStats, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(st, func(w io.Writer) {
		table(w, [][]string{
			{"vaults", fmt.Sprintf("%d with %d files", st.Vaults, st.Files), size(st.LogicalBytes)},
			{"content", "of vaults, each chunk once", size(st.VaultBytes)},
			{"", "that only later merges and applies need: where forks began, what was merged or imported", size(st.LineageBytes)},
			{"", fmt.Sprintf("that only %d saved checkpoints keep", st.Checkpoints), size(st.CheckpointBytes)},
			{"", fmt.Sprintf("that only history keeps: %d events, %d automatic checkpoints", st.Events, st.AutoCheckpoints), size(st.HistoryBytes)},
			{"garbage", fmt.Sprintf("%d chunks and %d nodes, as stored", st.GarbageChunks, st.GarbageNodes), size(st.GarbageBytes)},
			{"store", "everything, compressed", size(st.StoredBytes)},
		})
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
