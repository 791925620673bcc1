package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentvfs/avfs/engine"
)

// TestFanoutSchemaIsPublished compares the published schema with the types, and a
// result with the schema.
func TestFanoutSchemaIsPublished(t *testing.T) {
	made, err := generateFanoutSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema/fanout.v1.json", made, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(made, FanoutResultSchema()) {
		t.Errorf("schema/fanout.v1.json does not fit the types; run go test ./proxy -run Schema -update and look at the change")
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(FanoutResultSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, true)
	one := 1
	for name, req := range map[string]FanoutRequest{
		"all":    {Request: Request{Shell: "echo $AVFS_FANOUT_INDEX > a"}, Count: 2, Name: "all"},
		"kept":   {Request: Request{Argv: []string{"true"}}, Count: 2, Name: "kept", KeepIndex: &one},
		"denied": {Request: Request{Argv: []string{"rm", "x"}}, Count: 2},
		"wrong":  {Request: Request{Argv: []string{"true"}}, Count: -1},
	} {
		b, err := json.Marshal(d.Fanout(d.ctx, req))
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(doc); err != nil {
			t.Errorf("%s: %v in %s", name, err, b)
		}
	}
}

// TestFanoutIsBounded makes sure that no more commands run at a time than are allowed,
// that all of them run, and that one that fails stops none.
func TestFanoutIsBounded(t *testing.T) {
	d := newDesk(t, true)
	dir := t.TempDir()
	out := d.Fanout(d.ctx, FanoutRequest{Count: 6, Parallel: 2, Name: "f", Drop: true, Request: Request{
		Shell: "touch " + dir + "/$AVFS_FANOUT_INDEX; ls " + dir + " | wc -l; sleep 0.2; unlink " + dir + "/$AVFS_FANOUT_INDEX; exit $((AVFS_FANOUT_INDEX % 2))",
	}})
	if out.Refused != nil || len(out.Runs) != 6 || len(out.Problems) > 0 {
		t.Fatalf("%+v, refused: %+v", out, out.Refused)
	}
	for i, r := range out.Runs {
		if r.ExitCode == nil || *r.ExitCode != i%2 || !r.Dropped || r.Group != 0 {
			t.Errorf("run %d: %+v", i, r)
		}
		if seen := r.Envelope.Stdout; !slices.Contains([]string{"1\n", "2\n"}, seen) {
			t.Errorf("run %d saw %q at work", i, seen)
		}
	}
}

// TestFanoutCancelled ends a fan-out and looks for forks and commands.
func TestFanoutCancelled(t *testing.T) {
	d := newDesk(t, true)
	ctx, cancel := context.WithCancel(d.ctx)
	ran := make(chan struct{}, 9)
	time.AfterFunc(700*time.Millisecond, cancel)
	start := time.Now()
	out := d.Fanout(ctx, FanoutRequest{Count: 5, Parallel: 2, Name: "f", Request: Request{Argv: []string{"sleep", "100"}}, Ran: func(FanoutRun) { ran <- struct{}{} }})
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if !out.Stopped || len(out.Runs) != 5 || len(ran) != 5 || len(out.Problems) > 0 {
		t.Errorf("%+v", out)
	}
	for _, r := range out.Runs {
		if _, _, err := d.Workspace.Locate(r.Vault); engine.KindOf(err) != engine.VaultNotFound || !r.Dropped || r.Succeeded() {
			t.Errorf("%s is there: %v, %+v", r.Vault, err, r)
		}
	}
}
