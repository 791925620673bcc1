package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/proxy"
)

// innerHome gives the test a workspace of its own, whose owners end with it.
func innerHome(t *testing.T) {
	t.Helper()
	t.Setenv("AVFS_HOME", t.TempDir())
	t.Setenv("AVFS_VAULT", "")
	inner(t, exitOK, "", "vault", "create", "main")
	t.Cleanup(func() { inner(t, exitOK, "", "serve", "--stop", "--force", "main") })
}

// inner runs a command line in this process, which has to end with a code, and returns
// what it prints.
func inner(t *testing.T, code int, stdin string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	call := innerCall{args: args, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs}
	if got := call.do(context.Background()); got != code {
		t.Errorf("%q ended with %d, want %d: %s%s", args, got, code, out.Bytes(), errs.Bytes())
	}
	return out.String()
}

// TestInnerCalls runs commands side by side in this process.
func TestInnerCalls(t *testing.T) {
	innerHome(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			path, text := fmt.Sprintf("/f%d", i), fmt.Sprintf("text %d", i)
			inner(t, exitOK, text, "write", path)
			if got := inner(t, exitOK, "", "cat", path); got != text {
				t.Errorf("%s holds %q, want %q", path, got, text)
			}
		})
	}
	all.Wait()
	inner(t, exitOK, "", "fsck", "--read-data")
}

// TestInnerHostPaths holds that a caller who does not know the working directory has to
// name whole paths.
func TestInnerHostPaths(t *testing.T) {
	innerHome(t)
	for _, line := range []string{
		"import testdata", "import --tar x.tar", "import --git .", "export / out", "export / out.tar --tar", "apply --to .", "vault backup b.avfs",
		"vault restore b.avfs", "policy lint call.go", "policy test call.go", "mount here", "unmount ./here", "exec -f call.go",
		"exec --env-file call.go -- true", "exec --secret A=file:call.go -- true",
	} {
		out := inner(t, exitUsage, "", append([]string{"--json"}, strings.Fields(line)...)...)
		if !strings.Contains(out, "has to be absolute") {
			t.Errorf("%s: %s", line, out)
		}
	}
	inner(t, exitOK, "", "export", "/", t.TempDir(), "--overwrite")
}

// TestInnerCancel holds that the end of a call's context interrupts its command, and
// none beside it.
func TestInnerCancel(t *testing.T) {
	if err := drivers()[0].available(); err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: that a cancelled call interrupts its command: %v", err)
	}
	innerHome(t)
	inner(t, exitOK, "", "vault", "fork", "main", "other")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var beside sync.WaitGroup
	beside.Go(func() { inner(t, exitOK, "", "--vault", "other", "exec", "--", "sleep", "1") })
	var out bytes.Buffer
	started := time.AfterFunc(300*time.Millisecond, cancel)
	defer started.Stop()
	code := innerCall{args: []string{"--json", "exec", "--", "sleep", "100"}, stdout: &out}.do(ctx)
	var env proxy.Envelope
	if err := json.Unmarshal(out.Bytes(), &env); err != nil || code != exitOf(engine.Interrupted) {
		t.Fatalf("ended with %d, %v: %s", code, err, out.Bytes())
	}
	if env.Status != proxy.StatusInterrupted && (env.Error == nil || env.Error.Kind != engine.Interrupted) {
		t.Errorf("the envelope says %s", out.Bytes())
	}
	beside.Wait()
}
