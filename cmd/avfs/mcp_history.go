package main

import (
	"fmt"
	"io"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type diffArgs struct {
	inVault
	From    string   `json:"from,omitempty" jsonschema:"a state: a checkpoint, an exec's id (with ^ the state before it), a time such as 10m ago, or vault:NAME; by default the one that the fork began with"`
	To      string   `json:"to,omitempty" jsonschema:"a second state; by default the present one"`
	Paths   []string `json:"paths,omitempty" jsonschema:"look only at these and below them"`
	Text    bool     `json:"text,omitempty" jsonschema:"show the lines that changed, as a unified diff"`
	Context *int     `json:"context,omitempty" jsonschema:"so many equal lines around them; 3 by default"`
}

type saveArgs struct {
	inVault
	Name    string `json:"name,omitempty" jsonschema:"a name for it, unique in the vault"`
	Message string `json:"message,omitempty" jsonschema:"what it is for"`
}

type restoreArgs struct {
	inVault
	State   string   `json:"state" jsonschema:"the id or name of a checkpoint, or another state"`
	Paths   []string `json:"paths,omitempty" jsonschema:"bring back only these and what is below them"`
	Preview bool     `json:"preview,omitempty" jsonschema:"only tell what would change"`
}

type undoArgs struct {
	inVault
	Event   string   `json:"event,omitempty" jsonschema:"take back this event alone: an exec's id, or a number of the log"`
	To      string   `json:"to,omitempty" jsonschema:"take back everything since and including this event"`
	Paths   []string `json:"paths,omitempty" jsonschema:"take back only what was changed at these and below them"`
	Preview bool     `json:"preview,omitempty" jsonschema:"only tell what would change"`
	Force   bool     `json:"force,omitempty" jsonschema:"go on although the same files have changed since"`
}

type redoArgs struct {
	inVault
	Preview bool `json:"preview,omitempty" jsonschema:"only tell what would change"`
	Force   bool `json:"force,omitempty" jsonschema:"go on although the same files have changed since"`
}

type logArgs struct {
	inVault
	Limit int `json:"limit,omitempty" jsonschema:"list at most so many events; 20 by default"`
}

func (s *mcpServer) addHistoryTools() {
	addTool(s, mcpTool{"avfs_diff", "Compare states", "List what differs between two states of the vault; in a fork by default everything since it was made.", "diff", hints{reads: true}}, diffLine, sayDiff)
	addTool(s, mcpTool{"avfs_checkpoint_save", "Save a checkpoint", "Keep the present state of the vault under a name. It costs next to nothing.", "checkpoint save", hints{adds: true}}, saveLine,
		func(w io.Writer, _ saveArgs, cp engine.Checkpoint) {
			fmt.Fprintf(w, "saved checkpoint %s; avfs_restore brings it back", label(cp))
		})
	addTool(s, mcpTool{"avfs_checkpoint_list", "List checkpoints", "List the states that are kept, oldest first.", "checkpoint list", hints{reads: true}},
		func(inVault) (mcpLine, error) { return mcpLine{args: []string{"checkpoint", "list"}}, nil }, sayCheckpoints)
	addTool(s, mcpTool{"avfs_restore", "Restore a state", "Bring a kept state back, as a whole or some paths of it. The state before is kept too.", "checkpoint restore", hints{idempotent: true}}, restoreLine,
		func(w io.Writer, in restoreArgs, res engine.RestoreResult) {
			describeRestore(w, "restored", safe(in.State), res)
		})
	addTool(s, mcpTool{"avfs_undo", "Undo", "Take back the newest change of the vault that stands, or the event that is named.", "undo", hints{}}, undoLine,
		func(w io.Writer, _ undoArgs, res engine.UndoResult) { describeUndo(w, "undone", res) })
	addTool(s, mcpTool{"avfs_redo", "Redo", "Take back the newest undo, if nothing came after it.", "redo", hints{}},
		func(in redoArgs) (mcpLine, error) {
			return mcpLine{args: withFlags([]string{"redo"}, map[string]bool{"--preview": in.Preview, "--force": in.Force})}, nil
		}, func(w io.Writer, _ redoArgs, res engine.UndoResult) { describeUndo(w, "redone", res) })
	addTool(s, mcpTool{"avfs_log", "List events", "List what was done in the vault, newest first: commands, changes, restores, merges.", "log", hints{reads: true}}, logLine,
		func(w io.Writer, _ logArgs, events []engine.LogEntry) { logLines(w, events) })
}

func diffLine(in diffArgs) (mcpLine, error) {
	args := withFlags([]string{"diff"}, map[string]bool{"--text": in.Text && in.Context == nil})
	if in.Context != nil {
		args = append(args, fmt.Sprintf("--context=%d", *in.Context))
	}
	args = append(args, "--")
	if in.From == "" && (in.To != "" || len(in.Paths) > 0) {
		in.From = "base"
	}
	if in.To == "" && len(in.Paths) > 0 {
		in.To = "now"
	}
	for _, state := range []string{in.From, in.To} {
		if state != "" {
			args = append(args, state)
		}
	}
	return mcpLine{args: append(args, in.Paths...)}, nil
}

func sayDiff(w io.Writer, _ diffArgs, doc diffDoc) {
	if doc.Total == 0 {
		fmt.Fprintln(w, "nothing differs")
		return
	}
	changeLines(w, doc.Changes, shownFiles, doc.Total)
	if doc.Patch != nil {
		fmt.Fprint(w, "\n", *doc.Patch)
	}
	for _, l := range leftOutLines(doc.LeftOut) {
		fmt.Fprintln(w, l)
	}
}

func saveLine(in saveArgs) (mcpLine, error) {
	args := []string{"checkpoint", "save"}
	if in.Message != "" {
		args = append(args, "--message="+in.Message)
	}
	if in.Name != "" {
		args = append(args, "--", in.Name)
	}
	return mcpLine{args: args}, nil
}

func sayCheckpoints(w io.Writer, _ inVault, list []engine.Checkpoint) {
	rows := [][]string{}
	for _, cp := range list {
		rows = append(rows, []string{label(cp), clock(cp.At), safe(cp.Message)})
	}
	table(w, rows)
	if len(list) == 0 {
		fmt.Fprintln(w, "none")
	}
}

func restoreLine(in restoreArgs) (mcpLine, error) {
	args := withFlags([]string{"checkpoint", "restore"}, map[string]bool{"--preview": in.Preview})
	return mcpLine{args: append(append(args, "--", in.State), in.Paths...)}, nil
}

func undoLine(in undoArgs) (mcpLine, error) {
	args := withFlags([]string{"undo"}, map[string]bool{"--preview": in.Preview, "--force": in.Force})
	if in.Event != "" {
		args = append(args, "--event="+in.Event)
	}
	if in.To != "" {
		args = append(args, "--to="+in.To)
	}
	return mcpLine{args: append(append(args, "--"), in.Paths...)}, nil
}

// listedEvents is how many events a log has for a model that asks for no number.
const listedEvents = 20

func logLine(in logArgs) (mcpLine, error) {
	if in.Limit < 0 {
		return mcpLine{}, errArguments("limit is 1 or more")
	}
	if in.Limit == 0 {
		in.Limit = listedEvents
	}
	return mcpLine{args: []string{"log", fmt.Sprintf("--limit=%d", in.Limit)}}, nil
}

type noArgs struct{}

type forkArgs struct {
	Name   string `json:"name" jsonschema:"the name of the fork"`
	Source string `json:"source,omitempty" jsonschema:"the vault to fork; by default the one that the server was started for"`
	At     string `json:"at,omitempty" jsonschema:"fork this state instead of the present one"`
}

type mergeArgs struct {
	Source string   `json:"source" jsonschema:"the vault whose changes to bring, such as a fork"`
	Into   string   `json:"into,omitempty" jsonschema:"the vault to bring them into; by default the one that the server was started for"`
	Paths  []string `json:"paths,omitempty" jsonschema:"bring only what is at these and below them"`
	Ours   []string `json:"ours,omitempty" jsonschema:"where both changed these paths, keep what is there"`
	Theirs []string `json:"theirs,omitempty" jsonschema:"where both changed these paths, take it from the source"`
	DryRun bool     `json:"dry_run,omitempty" jsonschema:"only tell what would happen"`
}

func (s *mcpServer) addVaultTools() {
	addTool(s, mcpTool{"avfs_vault_list", "List vaults", "List the vaults, with what each was forked from.", "vault list", hints{reads: true}},
		func(noArgs) (mcpLine, error) { return mcpLine{args: []string{"vault", "list"}}, nil }, s.sayVaults)
	addTool(s, mcpTool{"avfs_fork", "Fork a vault", "Make a copy of a vault at once, to try something in it. It shares everything with it until one of them changes.", "vault fork", hints{adds: true}},
		s.forkLine, func(w io.Writer, _ forkArgs, d workspace.VaultDoc) {
			fmt.Fprintf(w, "made vault %s, a fork of %s; work in it with \"vault\": %q, and bring it home with avfs_merge", d.Name, d.Parent, d.Name)
		})
	addTool(s, mcpTool{"avfs_merge", "Merge a fork", "Bring what changed in a fork into another vault: all of it or, where both have changed the same, nothing, with a list of the conflicts.", "vault merge", hints{}},
		s.mergeLine, func(w io.Writer, _ mergeArgs, res engine.MergeResult) { describeMerge(w, res) })
}

// or is a vault, or the one that the server was started for.
func (s *mcpServer) or(vault string) string {
	if vault == "" {
		return s.vault
	}
	return vault
}

func (s *mcpServer) forkLine(in forkArgs) (mcpLine, error) {
	args := []string{"vault", "fork"}
	if in.At != "" {
		args = append(args, "--at="+in.At)
	}
	args = append(args, "--")
	if source := s.or(in.Source); source != "" {
		args = append(args, source)
	}
	return mcpLine{args: append(args, in.Name)}, nil
}

func (s *mcpServer) mergeLine(in mergeArgs) (mcpLine, error) {
	args := withFlags([]string{"vault", "merge"}, map[string]bool{"--dry-run": in.DryRun})
	for flag, paths := range map[string][]string{"--paths": in.Paths, "--ours": in.Ours, "--theirs": in.Theirs} {
		for _, p := range paths {
			args = append(args, flag+"="+p)
		}
	}
	args = append(args, "--", in.Source)
	if into := s.or(in.Into); into != "" {
		args = append(args, into)
	}
	return mcpLine{args: args}, nil
}

func (s *mcpServer) sayVaults(w io.Writer, _ noArgs, docs []workspace.VaultDoc) {
	rows := [][]string{}
	for _, d := range docs {
		mark, parent := "", ""
		if d.Name == s.vault {
			mark = "*"
		}
		if d.Parent != "" {
			parent = "fork of " + d.Parent
		}
		rows = append(rows, []string{mark, d.Name, fmt.Sprintf("%d files", d.Files), size(d.Bytes), parent})
	}
	table(w, rows)
}
