package run_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

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

// X01: a background child that holds the pipe must not hold the call, even if it
// keeps writing.
func TestBackgroundChild(t *testing.T) {
	for _, script := range []string{
		"sleep 31336 & echo done",
		"(while :; do echo x; sleep .05; done) & echo done",
		"yes & echo done",
		"setsid sleep 31336 & echo done",
		"(setsid sh -c 'sleep 31336 & sleep 31336' &) ; echo done",
	} {
		start := time.Now()
		r := must(t, sh(script))
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s: took %v", script, d)
		}
		if r.ExitCode != 0 || r.Status != run.Completed || len(r.Killed) == 0 || len(r.Leaked) != 0 {
			t.Errorf("%s: %+v", script, r)
		}
		t.Log(script, r.Duration, r.Tracking, r.Limits, r.Killed)
	}
}

func TestNotFound(t *testing.T) {
	r := must(t, run.Spec{Argv: []string{"no-such-program"}})
	var e *run.Error
	if r.Status != run.FailedToStart || r.ExitCode != 127 || !errors.As(r.StartError, &e) {
		t.Fatalf("%+v", r)
	}
}

// X05: what was printed before the timeout is returned.
func TestTimeoutKeepsOutput(t *testing.T) {
	s := sh("echo CRIT; sleep 30")
	s.Timeout = 200 * time.Millisecond
	r := must(t, s)
	if r.Stdout.Text != "CRIT\n" || !r.TimedOut || r.ExitCode != 124 || r.Status != run.TimedOut || r.Signal != "SIGTERM" {
		t.Fatalf("%+v", r)
	}
}
