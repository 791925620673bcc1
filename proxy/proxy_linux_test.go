package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/gofusefs"
	"github.com/agentvfs/avfs/policy"
	"github.com/agentvfs/avfs/workspace"
)

var update = flag.Bool("update", false, "write the published schema anew")

// mounter mounts for real and counts.
type mounter struct{ mounts int }

func (m *mounter) Mount(ctx context.Context, v *engine.Vault, point string, how workspace.MountHow) (workspace.Mounted, error) {
	m.mounts++
	return gofusefs.Mount(ctx, v, point, &gofusefs.Options{ReadOnly: how.ReadOnly})
}

func (m *mounter) Recover(point string) error { return gofusefs.Recover(point) }

func (m *mounter) FreeKilled(pid int) (bool, error) { return gofusefs.FreeKilled(pid) }

const testPolicy = `
version: 1
default: allow
opaque: require_approval
rules:
  - {id: no-rm, prog: [rm], action: deny, reason: removal is for people}
  - {id: ask-curl, prog: [curl], action: require_approval, reason: the network asks}
  - {id: cautious-sh, prog: [sh, bash], action: allow_with_checkpoint}
`

type desk struct {
	*Proxy
	m      *mounter
	states []State
	ctx    context.Context
}

// newDesk is a workspace with the vault v, whose owner is this process, and a
// proxy on it. With mounting it skips where there is no FUSE.
func newDesk(t *testing.T, mounting bool) *desk {
	t.Helper()
	if mounting {
		if err := gofusefs.Available(); err != nil {
			t.Skipf("SKIPPED, NOT PROVEN: running in a mounted vault: %v", err)
		}
		if _, err := os.Stat("/dev/fuse"); err != nil {
			t.Skipf("SKIPPED, NOT PROVEN: running in a mounted vault: %v", err)
		}
	}
	t.Setenv("AVFS_VAULT", "")
	d := &desk{m: &mounter{}, ctx: context.Background()}
	w, err := workspace.Open(workspace.Config{Home: t.TempDir(), Drivers: backends.All(), Mounter: d.m, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateVault(d.ctx, "v", ""); err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Parse([]byte(testPolicy))
	if err != nil {
		t.Fatal(err)
	}
	d.Proxy = &Proxy{Workspace: w, Policy: pol, Observe: func(s State) { d.states = append(d.states, s) }}
	if !mounting {
		return d
	}
	_, store, err := w.Locate("v")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(d.ctx)
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- w.Serve(ctx, store, workspace.ServeOptions{Linger: -1, Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-served:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return d
}

func (d *desk) sh(script string) *Envelope {
	return d.Exec(d.ctx, Request{Argv: []string{"sh", "-c", script}})
}

func changes(e *Envelope) string {
	var b strings.Builder
	for _, c := range e.ChangedFiles {
		b.WriteString(string(c.Kind) + " " + c.Path)
		if c.OldPath != "" {
			b.WriteString(" from " + c.OldPath)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func wantStatus(t *testing.T, e *Envelope, s Status, code int) {
	t.Helper()
	got := -1
	if e.ExitCode != nil {
		got = *e.ExitCode
	}
	if e.Status != s || got != code {
		t.Fatalf("status %s, exit code %d, want %s and %d; error %+v, stderr %q", e.Status, got, s, code, e.Error, e.Stderr)
	}
}

// A no stays a no when the store is damaged, and the vault is not even mounted.
func TestDeniedTouchesNothing(t *testing.T) {
	d := newDesk(t, false)
	store := filepath.Join(d.Workspace.Home(), "vaults", "v.avfs")
	before, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := d.sh("ls && rm x")
	wantStatus(t, e, StatusDenied, -1)
	if e.Decision.Rule != "no-rm" || e.Decision.Reason != "removal is for people" {
		t.Errorf("decision %+v", e.Decision)
	}
	if e.Error == nil || e.Error.Kind != engine.NotStore {
		t.Errorf("the audit could not be written, and the envelope says %+v", e.Error)
	}
	if want := []State{Validating, Deciding, Denied}; !slices.Equal(d.states, want) {
		t.Errorf("states %v, want %v", d.states, want)
	}
	e = d.Exec(d.ctx, Request{Argv: []string{"curl", "x"}})
	wantStatus(t, e, StatusApprovalRequired, -1)
	if d.m.mounts != 0 {
		t.Errorf("%d mounts", d.m.mounts)
	}
	if err := os.WriteFile(store, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := d.sh("rm x"); e.Status != StatusDenied || e.Error != nil {
		t.Errorf("status %s, error %+v", e.Status, e.Error)
	}
	e = d.Exec(d.ctx, Request{Argv: []string{"true"}, DryRun: true})
	wantStatus(t, e, StatusCompleted, -1)
	if !e.DryRun {
		t.Error("the envelope does not say that nothing ran")
	}
	if d.m.mounts != 0 {
		t.Errorf("a dry run mounted")
	}
}

func TestInvalidRequests(t *testing.T) {
	d := newDesk(t, false)
	for name, req := range map[string]Request{
		"nothing":          {},
		"both":             {Argv: []string{"ls"}, Shell: "ls"},
		"empty program":    {Argv: []string{""}},
		"NUL":              {Argv: []string{"a\x00b"}},
		"checkpoint":       {Argv: []string{"ls"}, Checkpoint: "sometimes"},
		"vault is a path":  {Argv: []string{"ls"}, Vault: "../v"},
		"no such vault":    {Argv: []string{"ls"}, Vault: "nope"},
		"fork has no name": {Argv: []string{"ls"}, Fork: "a/b"},
	} {
		e := d.Exec(d.ctx, req)
		if e.Status != StatusError || e.Error == nil || e.ExitCode != nil {
			t.Errorf("%s: status %s, error %+v, exit code %v", name, e.Status, e.Error, e.ExitCode)
		}
	}
	if e := d.Exec(d.ctx, Request{Argv: []string{"ls"}, Vault: "nope"}); e.Error.Kind != engine.VaultNotFound {
		t.Errorf("kind %s, want VaultNotFound", e.Error.Kind)
	}
}

// What changed comes from the trees, so it is exact whichever way a program
// writes.
func TestChangedFilesAreExact(t *testing.T) {
	d := newDesk(t, true)
	wantStatus(t, d.sh("mkdir d; echo 1 > a; echo 2 > b; echo 3 > d/c; ln -s a l"), StatusCompleted, 0)
	e := d.sh("echo more >> a; echo new > t; mv t b; mv d e; chmod 600 e/c; rm l; mkdir l; touch l/x; cat a > /dev/null")
	if e.Status != StatusDenied {
		t.Fatalf("status %s", e.Status)
	}
	e = d.sh("echo more >> a; echo new > t; mv t b; mv d e; chmod 600 e/c; unlink l; mkdir l; touch l/x; cat a > /dev/null")
	wantStatus(t, e, StatusCompleted, 0)
	want := "modified a\nmodified b\nrenamed e from d\nmode_changed e/c from d/c\ntype_changed l\nadded l/x\n"
	if got := changes(e); got != want || e.ChangedTotal != 6 {
		t.Errorf("changes\n%swant\n%s", got, want)
	}
	if e.RootBefore == e.RootAfter || e.Checkpoint == "" {
		t.Errorf("roots %s %s, checkpoint %q", e.RootBefore, e.RootAfter, e.Checkpoint)
	}
	e = d.Exec(d.ctx, Request{Argv: []string{"cat", "a"}})
	wantStatus(t, e, StatusCompleted, 0)
	if e.Stdout != "1\nmore\n" || e.ChangedTotal != 0 || e.RootBefore != e.RootAfter || e.Checkpoint != "" {
		t.Errorf("reading: %+v", e)
	}
	wantStates := []State{Validating, Deciding, Preparing, Executing, Reporting, Completed}
	if got := d.states[len(d.states)-len(wantStates):]; !slices.Equal(got, wantStates) {
		t.Errorf("states %v, want %v", got, wantStates)
	}
}

// Whoever looks at the audit sees every command, also those that did not run.
func TestAuditSeesEveryCommand(t *testing.T) {
	d := newDesk(t, true)
	wantStatus(t, d.sh("exit 3"), StatusCompleted, 3)
	wantStatus(t, d.sh("rm x"), StatusDenied, -1)
	wantStatus(t, d.Exec(d.ctx, Request{Argv: []string{"curl", "x"}}), StatusApprovalRequired, -1)
	wantStatus(t, d.Exec(d.ctx, Request{Argv: []string{"true"}, ReadOnly: true}), StatusCompleted, 0)
	impatient, giveUp := context.WithCancel(d.ctx)
	d.Ask = func(context.Context, workspace.Approval) Verdict { giveUp(); return Verdict{} }
	wantStatus(t, d.Exec(impatient, Request{Argv: []string{"curl", "y"}}), StatusApprovalRequired, -1)
	ran := d.Exec(d.ctx, Request{Shell: "echo 1 > a", Cwd: "/"})
	wantStatus(t, ran, StatusCompleted, 0)
	list, err := workspace.CallVault(d.ctx, d.Workspace, "v", workspace.OpAudit,
		func(v string) workspace.AuditRequest { return workspace.AuditRequest{Vault: v} }, workspace.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Entries) < 2 || list.Entries[0].Kind != engine.AuditVaultCreate || list.Entries[1].Kind != engine.AuditPolicyChange || list.Entries[1].Policy != d.Policy.Digest() {
		t.Fatalf("the audit begins with %+v", list.Entries)
	}
	entries := list.Entries[2:]
	want := []string{"completed 3", "denied", "approval_required", "completed 0", "approval_required", "completed 0"}
	var got []string
	for i, e := range entries {
		line := e.Status
		if e.ExitCode != nil {
			line += " " + strconv.Itoa(*e.ExitCode)
		}
		got = append(got, line)
		if e.Seq != uint64(i+3) || e.Kind != "exec" || e.Vault != "v" || e.ExecID == "" || e.PID != os.Getpid() || e.Policy != d.Policy.Digest() {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("audit %q, want %q", got, want)
	}
	last := entries[len(entries)-1]
	if last.Shell != "echo 1 > a" || last.RootBefore != ran.RootBefore || last.RootAfter != ran.RootAfter || last.Rule == "" {
		t.Errorf("last entry %+v, envelope %+v", last, ran)
	}
}

func TestForkLeavesTheParentAlone(t *testing.T) {
	d := newDesk(t, true)
	wantStatus(t, d.sh("echo 1 > a"), StatusCompleted, 0)
	e := d.Exec(d.ctx, Request{Argv: []string{"sh", "-c", "echo 2 > a; echo $AVFS_VAULT"}, Fork: "w"})
	wantStatus(t, e, StatusCompleted, 0)
	if e.Vault != "w" || e.Stdout != "w\n" || changes(e) != "modified a\n" {
		t.Errorf("vault %s, stdout %q, changes %s", e.Vault, e.Stdout, changes(e))
	}
	if e := d.Exec(d.ctx, Request{Argv: []string{"cat", "a"}}); e.Stdout != "1\n" {
		t.Errorf("the parent has %q", e.Stdout)
	}
}

// Partial work before a timeout is output and changes like any other.
func TestTimeoutKeepsOutputAndChanges(t *testing.T) {
	d := newDesk(t, true)
	e := d.Exec(d.ctx, Request{Argv: []string{"sh", "-c", "echo said; echo 1 > done; sleep 60"}, Timeout: 500 * time.Millisecond})
	wantStatus(t, e, StatusTimedOut, 124)
	if !e.TimedOut || e.Stdout != "said\n" || changes(e) != "added done\n" || !slices.Equal(e.LimitsHit, []string{"timeout"}) {
		t.Errorf("%+v", e)
	}
}

func TestReadOnlyHoldsForEveryWriter(t *testing.T) {
	d := newDesk(t, true)
	wantStatus(t, d.sh("echo 1 > a"), StatusCompleted, 0)
	e := d.Exec(d.ctx, Request{Argv: []string{"sh", "-c", "echo 2 > a"}, ReadOnly: true})
	if e.Status != StatusCompleted || *e.ExitCode == 0 || !strings.Contains(e.Stderr, "Read-only file system") || e.ChangedTotal != 0 {
		t.Errorf("%+v", e)
	}
}

// Two commands in one vault would claim each other's changes.
func TestOneCommandPerVault(t *testing.T) {
	d := newDesk(t, true)
	wantStatus(t, d.sh("true"), StatusCompleted, 0)
	other := &Proxy{Workspace: d.Workspace, Policy: d.Policy}
	started, first := make(chan struct{}), make(chan *Envelope, 1)
	go func() {
		first <- other.Exec(d.ctx, Request{
			Argv:   []string{"sh", "-c", "echo ready; sleep 1; echo a > ra"},
			Stdout: func([]byte) { close(started) },
		})
	}()
	<-started
	e := d.Exec(d.ctx, Request{Argv: []string{"true"}, NoWait: true})
	if e.Status != StatusError || e.Error.Kind != workspace.VaultBusy {
		t.Errorf("status %s, error %+v, want VaultBusy", e.Status, e.Error)
	}
	e = d.sh("echo b > rb") // waits
	if got := changes(e); got != "added rb\n" {
		t.Errorf("the second command claims %q", got)
	}
	if got := changes(<-first); got != "added ra\n" {
		t.Errorf("the first command claims %q", got)
	}
}

func TestWorkingDirectoryStaysInside(t *testing.T) {
	d := newDesk(t, true)
	wantStatus(t, d.sh("mkdir -p a/b; ln -s /etc out; echo 1 > f"), StatusCompleted, 0)
	e := d.Exec(d.ctx, Request{Argv: []string{"sh", "-c", "echo x > here"}, Cwd: "a/b"})
	if got := changes(e); got != "added a/b/here\n" {
		t.Errorf("changes %q", got)
	}
	for _, cwd := range []string{"out", "f", "missing"} {
		if e := d.Exec(d.ctx, Request{Argv: []string{"true"}, Cwd: cwd}); e.Status != StatusError || e.Error == nil {
			t.Errorf("cwd %s: status %s", cwd, e.Status)
		}
	}
}

// Programs are written against the published schema; it must not drift from the
// types, nor real output from it.
func TestSchemaIsPublished(t *testing.T) {
	made, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema/exec.v1.json", made, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(made, EnvelopeSchema()) {
		t.Errorf("schema/exec.v1.json does not fit the types; run go test ./proxy -run Schema -update and look at the change")
	}
	if made, err = generateEventSchema(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema/exec-event.v1.json", made, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(made, EventSchema()) {
		t.Errorf("schema/exec-event.v1.json does not fit the types; run go test ./proxy -run Schema -update and look at the change")
	}
}

func TestOutputFitsTheSchema(t *testing.T) {
	d := newDesk(t, true)
	var schema jsonschema.Schema
	if err := json.Unmarshal(EnvelopeSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, req := range map[string]Request{
		"completed":      {Argv: []string{"sh", "-c", "echo 1 > a; printf '\\377'"}},
		"signal":         {Argv: []string{"sh", "-c", "kill -9 $$"}},
		"denied":         {Argv: []string{"rm", "x"}},
		"approval":       {Argv: []string{"curl", "x"}},
		"failed":         {Argv: []string{"no-such-program"}},
		"error":          {},
		"combined":       {Shell: "echo 1; echo 2 >&2; echo 3", Combined: true},
		"left something": {Shell: "sleep 60 & true"},
	} {
		b, err := json.Marshal(d.Exec(d.ctx, req))
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(doc); err != nil {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
		if name == "combined" && doc["output"] != "1\n2\n3\n" {
			t.Errorf("combined output %q", doc["output"])
		}
	}
	var broken map[string]any
	if err := json.Unmarshal([]byte(`{"schema": "other"}`), &broken); err != nil {
		t.Fatal(err)
	}
	if resolved.Validate(broken) == nil {
		t.Error("the schema accepts anything")
	}
}
