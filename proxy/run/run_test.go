package run_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/agentvfs/avfs/proxy/run"
)

// env is a complete small environment, with the PATH of the test.
func env(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}, more...)
}

func sh(script string) run.Spec {
	return run.Spec{Argv: []string{"sh", "-c", script}, Env: env()}
}

// must runs s, which avfs must not fail to do.
func must(t *testing.T, s run.Spec) run.Result {
	t.Helper()
	if s.Env == nil {
		s.Env = env()
	}
	r, err := run.Run(context.Background(), s)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return r
}

func TestOutputAndCode(t *testing.T) {
	r := must(t, sh("echo out; echo err >&2; exit 3"))
	if r.Status != run.Completed || r.ExitCode != 3 || r.Stdout.Text != "out\n" || r.Stderr.Text != "err\n" {
		t.Fatalf("%+v", r)
	}
	if r.Stdout.Bytes != 4 || r.Stdout.Truncated || r.Signal != "" || r.Killed != nil || r.Leaked != nil {
		t.Fatalf("%+v", r)
	}
}

func TestNotFound(t *testing.T) {
	r := must(t, run.Spec{Argv: []string{"no-such-program"}})
	var e *run.Error
	if r.Status != run.FailedToStart || r.ExitCode != 127 || !errors.As(r.StartError, &e) {
		t.Fatalf("%+v", r)
	}
}
