package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type checkpointCmds struct {
	Save    checkpointSaveCmd    `cmd:"" aliases:"create" help:"Keep the present state."`
	List    checkpointListCmd    `cmd:"" aliases:"ls" help:"List the kept states, oldest first."`
	Restore checkpointRestoreCmd `cmd:"" help:"Bring a kept state back, as a whole or some paths of it."`
	Diff    checkpointDiffCmd    `cmd:"" help:"List what changed since a kept state, or between two."`
	Delete  checkpointDeleteCmd  `cmd:"" aliases:"rm" help:"Delete a kept state."`
	Info    checkpointInfoCmd    `cmd:"" help:"Describe a kept state."`
}

// onCheckpoint binds a request about checkpoints to a vault.
func onCheckpoint(req workspace.CheckpointRequest) func(string) workspace.CheckpointRequest {
	return func(v string) workspace.CheckpointRequest { req.Vault = v; return req }
}

type checkpointSaveCmd struct {
	Name    string `arg:"" optional:"" help:"A name for it, unique in the vault."`
	Message string `short:"m" help:"What it is for." placeholder:"TEXT"`
}

func (c *checkpointSaveCmd) run(a *app) error {
	cp, err := call(a, workspace.OpCheckpointSave, onCheckpoint(workspace.CheckpointRequest{Name: c.Name, Message: c.Message}), workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(cp, func(w io.Writer) { fmt.Fprintf(w, "saved checkpoint %s\n", label(cp)) })
}

// label is a checkpoint's id with its name.
func label(cp engine.Checkpoint) string {
	if cp.Name == "" {
		return cp.ID
	}
	return cp.ID + " (" + safe(cp.Name) + ")"
}

type checkpointListCmd struct{}

func (checkpointListCmd) run(a *app) error {
	list, err := call(a, workspace.OpCheckpointList, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		rows := [][]string{{"ID", "NAME", "SAVED", "FILES", "SIZE", "MESSAGE"}}
		for _, cp := range list {
			rows = append(rows, []string{cp.ID, safe(cp.Name), clock(cp.At), strconv.FormatInt(cp.Files, 10), size(cp.Bytes), safe(cp.Message)})
		}
		table(w, rows)
	})
}

type checkpointInfoCmd struct {
	ID string `arg:"" help:"Id or name of the checkpoint."`
}

func (c *checkpointInfoCmd) run(a *app) error {
	cp, err := call(a, workspace.OpCheckpointInfo, onCheckpoint(workspace.CheckpointRequest{ID: c.ID}), workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(cp, func(w io.Writer) {
		table(w, [][]string{
			{"id", cp.ID}, {"name", safe(cp.Name)}, {"saved", clock(cp.At)}, {"message", safe(cp.Message)},
			{"files", strconv.FormatInt(cp.Files, 10)}, {"size", size(cp.Bytes)}, {"root", cp.Root.String()},
		})
	})
}

type checkpointDeleteCmd struct {
	ID string `arg:"" help:"Id or name of the checkpoint."`
}

func (c *checkpointDeleteCmd) run(a *app) error {
	cp, err := call(a, workspace.OpCheckpointDelete, onCheckpoint(workspace.CheckpointRequest{ID: c.ID}), workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(cp, func(w io.Writer) { fmt.Fprintf(w, "deleted checkpoint %s\n", label(cp)) })
}

type checkpointRestoreCmd struct {
	ID      string           `arg:"" help:"Id or name of the checkpoint."`
	Paths   []workspace.Path `arg:"" optional:"" name:"path" help:"Restore only these and what is below them."`
	Preview bool             `help:"Only tell what would change, and what of it nothing has recorded yet."`
}

func (c *checkpointRestoreCmd) run(a *app) error {
	req := workspace.CheckpointRequest{ID: c.ID, Paths: c.Paths, Preview: c.Preview}
	res, err := call(a, workspace.OpCheckpointRestore, onCheckpoint(req), workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { describeRestore(w, "restored", safe(c.ID), res) })
}

type logCmd struct {
	Limit int            `short:"n" help:"List at most so many; 0 is no limit." placeholder:"N"`
	Path  workspace.Path `arg:"" optional:"" help:"Only what changed this path or something below it; renames are followed."`
}

func (c *logCmd) run(a *app) error {
	if c.Path != "" {
		return a.pathLog(c.Path, c.Limit)
	}
	events, err := call(a, workspace.OpLog, func(v string) workspace.LogRequest { return workspace.LogRequest{Vault: v, Limit: c.Limit} }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(events, func(w io.Writer) { logLines(w, events) })
}
