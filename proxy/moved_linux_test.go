package proxy

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

// newRepository is a desk with the default policy and a repository in its vault.
func newRepository(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, true)
	d.Policy = policy.Default()
	if e := d.sh("git init -q . && echo x > f"); e.Status != StatusCompleted || *e.ExitCode != 0 {
		t.Fatalf("%s: %s%s", e.Status, e.Stderr, e.Decision.Reason)
	}
	return d
}

// write changes a file of the vault as another command does that is faster.
func (d *desk) write(t *testing.T, path, text string) {
	t.Helper()
	_, err := workspace.CallVault(d.ctx, d.Workspace, "v", workspace.OpWrite, func(v string) workspace.WriteRequest {
		return workspace.WriteRequest{Vault: v, Path: workspace.Path(path)}
	}, workspace.Streams{In: strings.NewReader(text)})
	if err != nil && err != io.EOF {
		t.Error(err)
	}
}

// meddle has fn called between the decision about a command and its turn, the nth time.
func (d *desk) meddle(fn func(n int)) {
	d.states = nil
	n := 0
	d.Observe = func(s State) {
		d.states = append(d.states, s)
		if s == Preparing {
			n++
			fn(n)
		}
	}
}

func (d *desk) decided() int {
	n := 0
	for _, s := range d.states {
		if s == Deciding {
			n++
		}
	}
	return n
}

const evilConfig = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ./evil\n"

// A command is judged by what it will find, and not by what was there before its turn.
func TestRepositoryThatMovesIsJudgedAgain(t *testing.T) {
	d := newRepository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	d.write(t, "/evil", "#!/bin/sh\ntouch "+ran+"\n")
	d.sh("chmod +x evil")
	d.meddle(func(n int) {
		if n == 1 {
			d.write(t, "/.git/config", evilConfig)
		}
	})
	e := d.Exec(d.ctx, Request{Argv: []string{"git", "status"}})
	if e.Status != StatusApprovalRequired || !strings.Contains(e.Decision.Reason, "core.fsmonitor") {
		t.Errorf("%s: %s", e.Status, e.Decision.Reason)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program of the configuration ran")
	}
	if d.decided() != 2 {
		t.Errorf("decided %d times", d.decided())
	}
}

// What was not looked at may change as it likes.
func TestOtherChangesDoNotMatter(t *testing.T) {
	d := newRepository(t)
	d.meddle(func(int) { d.write(t, "/f", "y") })
	e := d.Exec(d.ctx, Request{Argv: []string{"git", "status"}})
	if e.Status != StatusCompleted || d.decided() != 1 {
		t.Errorf("%s, decided %d times: %v", e.Status, d.decided(), e.Error)
	}
}

// Who changes it for ever does not keep a command deciding for ever.
func TestRepositoryThatKeepsMoving(t *testing.T) {
	d := newRepository(t)
	d.meddle(func(n int) { d.write(t, "/.git/config", "[user]\n\tname = "+strings.Repeat("x", n)+"\n") })
	e := d.Exec(d.ctx, Request{Argv: []string{"git", "status"}})
	if e.Status != StatusError || e.Error.Kind != workspace.StateMoved || e.ExitCode != nil {
		t.Errorf("%s: %v", e.Status, e.Error)
	}
	if d.decided() != maxMoves+1 {
		t.Errorf("decided %d times", d.decided())
	}
	entries, err := workspace.CallVault(d.ctx, d.Workspace, "v", workspace.OpAudit, func(v string) workspace.AuditRequest {
		return workspace.AuditRequest{Vault: v}
	}, workspace.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, a := range entries.Entries {
		if a.ExecID == e.ID {
			count++
		}
	}
	if count != 1 || !slices.ContainsFunc(entries.Entries, func(a engine.AuditEntry) bool { return a.Error == string(workspace.StateMoved) }) {
		t.Errorf("the audit has %d entries of it", count)
	}
}
