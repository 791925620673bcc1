package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
	"github.com/agentvfs/avfs/workspace"
)

// Kinds of errors that only the command line has.
const (
	kindUsage   engine.Kind = "Usage"
	kindDamaged engine.Kind = "Damaged" // a check found damage
)

// usageError says that the command line makes no sense.
func usageError(format string, args ...any) error {
	return &engine.Error{Kind: kindUsage, Err: fmt.Errorf(format, args...)}
}

// noMeta says that nothing is noted under a key.
func noMeta(path, key string) error {
	return &engine.Error{Kind: engine.NoAttribute, Op: "meta", Path: path, Err: fmt.Errorf("nothing is noted under %q", key)}
}

// ended is a command that has printed its result and ends with a code of its own.
type ended struct{ code int }

func (e *ended) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// finish reports a failure, if there is one, and gives the exit code.
func (a *app) finish(err error) int {
	var e *ended
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	}
	fault := workspace.NewFault(err)
	if fault.Kind == engine.Interrupted {
		fault.Message = "interrupted"
	}
	a.fault = fault
	hint := a.hint(fault, err)
	if hint != "" {
		fault.Details["hint"] = hint
	}
	if a.flags.JSON || a.flags.JSONErrors {
		if perr := a.printFault(fault); perr != nil {
			a.warn("%v", perr)
		}
		return exitOf(fault.Kind)
	}
	a.warn("%s", fault.Message)
	if hint != "" {
		fmt.Fprintln(a.stderr, "hint:", hint)
	}
	return exitOf(fault.Kind)
}

// printFault prints a failure as a document: where a result would be, or on standard
// error where the result is no document.
func (a *app) printFault(fault *workspace.Fault) error {
	if a.flags.JSON {
		return a.printJSON(fault)
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(fault); err != nil {
		return err
	}
	_, err := a.stderr.Write(line.Bytes())
	return err
}

// hint says what to do about a failure, where something can be done.
func (a *app) hint(f *workspace.Fault, err error) string {
	switch f.Kind {
	case engine.VaultNotFound:
		return a.vaultHint(f, err)
	case engine.CheckpointNotFound:
		return "list them with: avfs checkpoint list"
	case engine.EventNotFound:
		return "list the events with: avfs log"
	case workspace.NoMounter:
		return "what is missing, and what to do about it, tells: avfs doctor"
	case engine.Locked:
		return "wait for the other process, or end it; an owner in the background ends with: avfs serve --stop"
	case engine.Corrupt:
		if _, ok := f.Details["audit_entry"]; ok { // which nothing can mend
			return "every damaged entry is named by: avfs audit verify; entries after them are listed by: avfs audit --all-vaults -n COUNT"
		}
		return "mend what can be mended with: avfs fsck --repair; a backup comes back with: avfs vault restore FILE"
	case engine.NoSpace:
		if _, ok := f.Details["free_bytes"]; ok { // it is the store's disk that is full
			return "removed files stay in the history: drop it with: avfs prune --keep-last 0, then run: avfs gc"
		}
	case engine.Conflict:
		return "decide with --ours PATH or --theirs PATH, '.' is everything; --conflict-markers writes both sides of texts"
	case engine.Drift:
		return driftHint(f.Details)
	case engine.Interrupted:
		if _, ok := f.Details["event"]; ok {
			return "take back what was done until now with: avfs undo"
		}
	case workspace.VersionSkew:
		return "end the owner with: avfs serve --stop"
	case workspace.TextNotFound:
		return "read the file again: its text has to be given exactly, with its white space"
	case workspace.TextNotUnique:
		return "give more of the text around it, or replace all with --all"
	case engine.NotEmpty, engine.Busy:
		if _, ok := f.Details["pids"]; ok {
			return "end these processes, or use: avfs unmount --force"
		}
	}
	return ""
}

// driftHint says what to do where the host is not what it was.
func driftHint(details map[string]any) string {
	has := func(key string) bool { _, ok := details[key]; return ok }
	switch {
	case has(transfer.ApplyMoved):
		return "end what changes files there, and run it again"
	case has(transfer.ApplyForced):
		return "not even --force overwrites that: move away what is there, or bring back only other paths"
	case has("drift"):
		return "overwrite what changed there with --force, or bring back only other paths"
	}
	return "look with --preview, and go on all the same with --force"
}

// vaultHint names vaults that may have been meant.
func (a *app) vaultHint(f *workspace.Fault, err error) string {
	var e *engine.Error
	w, werr := a.workspace()
	if werr != nil || !errors.As(err, &e) || e.Path == "" {
		return ""
	}
	names, werr := w.Names()
	if werr != nil || len(names) == 0 {
		return "create one with: avfs vault create NAME"
	}
	// The file of a store has the name of the vault that it began with, also when that is gone.
	names = slices.DeleteFunc(names, func(n string) bool { return n == e.Path })
	near := similar(e.Path, names)
	if len(near) == 0 {
		return "list the vaults with: avfs vault list"
	}
	f.Details["similar"] = near
	return "did you mean " + strings.Join(near, ", ") + "?"
}

// similar returns the names that a typing mistake may have turned into name.
func similar(name string, names []string) []string {
	var near []string
	for _, n := range names {
		lower, want := strings.ToLower(n), strings.ToLower(name)
		if distance(lower, want) <= max(1, len(name)/3) || len(name) > 2 && strings.HasPrefix(lower, want) {
			near = append(near, n)
		}
	}
	slices.Sort(near)
	return near[:min(len(near), 5)]
}

// distance counts the insertions, deletions and replacements of bytes between two
// names (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
