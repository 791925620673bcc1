package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// TestExitTable holds the table that people read to the one that the program has.
func TestExitTable(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| code | meaning |\n|---|---|\n")
	for _, row := range exitTable {
		fmt.Fprintf(&want, "| %s | %s |\n", row.code, row.text)
	}
	if !strings.Contains(string(readme), want.String()) {
		t.Errorf("README.md does not have this table:\n%s", want.String())
	}
}

// TestExitCodes holds the codes that scripts depend on.
func TestExitCodes(t *testing.T) {
	for kind, want := range map[engine.Kind]int{
		kindUsage: 2, engine.VaultNotFound: 3, engine.Exists: 4, engine.Drift: 4, workspace.VaultBusy: 4,
		engine.QuotaExceeded: 5, engine.Corrupt: 6, engine.Locked: 7, engine.Interrupted: 130, engine.Internal: 1,
		workspace.NoMounter: 1, engine.IsDirectory: 1,
	} {
		if got := exitOf(kind); got != want {
			t.Errorf("%s: exit code %d, want %d", kind, got, want)
		}
	}
	three := 3
	for want, env := range map[int]*proxy.Envelope{
		3:   {Status: proxy.StatusCompleted, ExitCode: &three},
		77:  {Status: proxy.StatusDenied},
		78:  {Status: proxy.StatusApprovalRequired},
		124: {Status: proxy.StatusTimedOut, ExitCode: &three},
		125: {Status: proxy.StatusError, Error: &workspace.Fault{Kind: engine.Corrupt}},
		130: {Status: proxy.StatusError, Error: &workspace.Fault{Kind: engine.Interrupted}},
		0:   {Status: proxy.StatusCompleted}, // a dry run
	} {
		if got := exitOfExec(env); got != want {
			t.Errorf("%s: exit code %d, want %d", env.Status, got, want)
		}
	}
	for action, want := range map[policy.Action]int{policy.Allow: 0, policy.AllowWithCheckpoint: 0, policy.RequireApproval: 78, policy.Deny: 77, "": 77} {
		if got := exitOfDecision(action); got != want {
			t.Errorf("%q: exit code %d, want %d", action, got, want)
		}
	}
}

// TestNeeded holds that the grammar always has the command that is meant.
func TestNeeded(t *testing.T) {
	for line, want := range map[string]string{
		"ls": "ls", "--json ls": "ls", "--vault ls cat": "cat", "--vault=ls cat": "cat", "-v --json snapshot list": "checkpoint", "umount x": "unmount",
	} {
		defs := needed(strings.Fields(line))
		if len(defs) != 1 || defs[0].name != want {
			t.Errorf("%q needs %d commands, first %s; want %s", line, len(defs), defs[0].name, want)
		}
	}
	for _, line := range []string{"", "--help", "--vault", "nonsense ls"} {
		if n := len(needed(strings.Fields(line))); n != len(commands()) {
			t.Errorf("%q has a grammar of %d commands, want all", line, n)
		}
	}
}

// TestSimilar holds which vaults are offered for a name that does not exist.
func TestSimilar(t *testing.T) {
	names := []string{"main", "Task-1", "task-2", "other"}
	for name, want := range map[string][]string{
		"mian": nil, "maim": {"main"}, "main2": {"main"}, "task-1": {"Task-1", "task-2"}, "tas": {"Task-1", "task-2"}, "zzz": nil, "": nil,
	} {
		if got := similar(name, names); !slices.Equal(got, want) {
			t.Errorf("similar(%q) = %v, want %v", name, got, want)
		}
	}
}

// TestSafe holds that names cannot steer a terminal.
func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "caf\u00e9 \u3042": "caf\u00e9 \u3042", "a\x1b[31mb": `a\x1b[31mb`, "a\nb": `a\nb`, "a\u009bb": `a\u009bb`, "\x7f": `\x7f`,
	} {
		if got := safe(in); got != want {
			t.Errorf("safe(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestModeText holds modes to what ls -l shows.
func TestModeText(t *testing.T) {
	for in, want := range map[string]string{
		"0644": "rw-r--r--", "0755": "rwxr-xr-x", "4755": "rwsr-xr-x", "2745": "rwxr-Sr-x", "1777": "rwxrwxrwt", "1776": "rwxrwxrwT", "0000": "---------",
	} {
		if got := modeText(in); got != want {
			t.Errorf("modeText(%s) = %s, want %s", in, got, want)
		}
	}
}

// TestSize holds sizes for people.
func TestSize(t *testing.T) {
	for in, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 40: "3.0 TiB"} {
		if got := size(in); got != want {
			t.Errorf("size(%d) = %s, want %s", in, got, want)
		}
	}
}
