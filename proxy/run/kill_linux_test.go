package run_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentvfs/avfs/proxy/run"
)

// X01: a background child that holds the pipe must not hold the call, even if it
// keeps writing, and is not left behind, wherever it hides.
func TestBackgroundChild(t *testing.T) {
	scripts := map[string]string{
		"silent":        "sleep 31336 & echo done",
		"chatty":        "(while :; do echo x >&2; sleep .05; done) & echo done",
		"flood":         "yes 31336 >&2 & echo done",
		"closed":        "sleep 31336 </dev/null >/dev/null 2>&1 & echo done",
		"session":       "setsid sleep 31336 & echo done",
		"double fork":   "(setsid sh -c 'sleep 31336 & sleep 31336' &); echo done",
		"deaf":          "trap '' TERM HUP; sleep 31336 & echo done",
		"stopped":       "sh -c 'kill -STOP $$; : 31336' & sleep .1; echo done",
		"clean env":     "env -i setsid sleep 31336 & sleep .3; echo done",
		"daemon in tmp": "(cd /; setsid sh -c '(exec >/dev/null 2>&1; sleep 31336) & exit') ; echo done",
	}
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) {
				s := spec(strings.ReplaceAll(script, "31336", mark(31336)))
				if name != "silent" && name != "chatty" {
					s.DrainWindow = 20 * time.Millisecond
				}
				within(t, 2*time.Second, func() {
					r := must(t, s)
					if r.Status != run.Completed || r.ExitCode != 0 || r.Stdout.Text != "done\n" {
						t.Errorf("%+v", r)
					}
					if len(r.Killed) == 0 || len(r.Leaked) != 0 || len(r.Limits) != 0 {
						t.Errorf("killed %v, leaked %v, limits %v", r.Killed, r.Leaked, r.Limits)
					}
				})
				if n := running(t, mark(31336)); n != 0 {
					t.Errorf("%d processes left", n)
				}
			})
		}
	})
}

// A daemon that left its session, lost its parent at once and has a clean
// environment is found by elimination, if the caller promises to be alone.
func TestSole(t *testing.T) {
	other := exec.Command("sleep", mark(31335)) // a detached child of the caller, from before
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	s := sh("(setsid env -i sleep " + mark(31334) + " &); sleep .01; echo done")
	s.NoCgroup, s.Sole = true, true
	r := must(t, s)
	if len(r.Killed) != 1 || !strings.Contains(r.Killed[0].Command, mark(31334)) || running(t, mark(31334)) != 0 {
		t.Errorf("%+v", r)
	}
	if running(t, mark(31335)) != 1 {
		t.Error("the caller's own child was ended")
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the caller's Wait: %v", err)
	}
	noChildren(t)
}

// A child that finishes within the window is not ended: bash's process
// substitutions outlive their shell.
func TestBackgroundFinishes(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		s := spec("(sleep .1; echo late) & echo early")
		s.DrainWindow = 5 * time.Second
		within(t, 3*time.Second, func() {
			if r := must(t, s); r.Stdout.Text != "early\nlate\n" || r.Killed != nil {
				t.Errorf("%+v", r)
			}
		})
	})
}

// X03: the leader obeys SIGTERM, its grandchild does not.
func TestDeafGrandchild(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		s := spec(strings.ReplaceAll("(trap '' TERM; sleep 31338; sleep 31338) & wait", "31338", mark(31338)))
		s.Timeout, s.Grace = 100*time.Millisecond, 400*time.Millisecond
		r := must(t, s)
		if r.ExitCode != 124 || r.Signal != "SIGTERM" || r.Duration < 500*time.Millisecond || r.Duration > 3*time.Second {
			t.Errorf("%+v", r)
		}
		if n := running(t, mark(31338)); n != 0 || len(r.Killed) != 2 {
			t.Errorf("%d left, killed %v", n, r.Killed)
		}
	})
}

// SIGKILL comes even if nothing listens to SIGTERM, and a grandchild that uses its
// grace gets all of it though the leader is gone.
func TestGrace(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		s := spec("trap '' TERM; sleep 31339; sleep 31339; sleep 31339")
		s.Timeout, s.Grace = 50*time.Millisecond, 100*time.Millisecond
		if r := must(t, s); r.Signal != "SIGKILL" || r.ExitCode != 124 || r.LeaderCode != 137 {
			t.Errorf("%+v", r)
		}
		s = spec("sh -c 'trap \"sleep .3; echo saved; exit\" TERM; echo up; while :; do sleep .02; done' & sleep .2; wait")
		s.Timeout, s.Grace = 500*time.Millisecond, 5*time.Second
		if r := must(t, s); r.Stdout.Text != "up\nsaved\n" || r.Duration > 4*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// X05: what was printed before the timeout is returned.
func TestTimeoutKeepsOutput(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		s := spec("echo CRIT; echo ERR >&2; sleep 30")
		s.Timeout = 300 * time.Millisecond
		r := must(t, s)
		if r.Stdout.Text != "CRIT\n" || r.Stderr.Text != "ERR\n" || !r.TimedOut || r.ExitCode != 124 {
			t.Errorf("%+v", r)
		}
		if r.Status != run.TimedOut || r.Signal != "SIGTERM" || r.LeaderCode != 143 || r.Duration > 2*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// X23: the first interruption reaches the child, the second kills.
func TestInterrupt(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		c := make(chan os.Signal, 2)
		s := spec(strings.ReplaceAll("sleep 31341 & echo up; wait", "31341", mark(31341)))
		s.Interrupt = c
		s.Stdout = func([]byte) { c <- syscall.SIGINT }
		within(t, 3*time.Second, func() {
			r := must(t, s)
			if r.Status != run.Interrupted || r.ExitCode != 130 || r.Signal != "SIGINT" || r.Stdout.Text != "up\n" {
				t.Errorf("%+v", r)
			}
		})
		s = spec(strings.ReplaceAll("trap 'echo not yet' INT; echo up; while :; do sleep .05; done; : 31341", "31341", mark(31341)))
		s.Interrupt = c
		s.Stdout = func([]byte) { c <- syscall.SIGINT }
		within(t, 3*time.Second, func() {
			r := must(t, s)
			if r.Status != run.Interrupted || r.ExitCode != 130 || r.Signal != "SIGKILL" || r.Stdout.Text != "up\nnot yet\n" {
				t.Errorf("%+v", r)
			}
		})
		if n := running(t, mark(31341)); n != 0 {
			t.Errorf("%d left", n)
		}
	})
}

// A child that handles the interruption may go on, and its own end is told.
func TestInterruptHandled(t *testing.T) {
	c := make(chan os.Signal, 1)
	s := sh("trap 'echo saved; exit 7' INT; echo up; while :; do sleep .02; done")
	s.Interrupt = c
	s.Stdout = func(p []byte) {
		if string(p) == "up\n" {
			c <- syscall.SIGINT
		}
	}
	r := must(t, s)
	if r.ExitCode != 130 || r.LeaderCode != 7 || r.Signal != "" || r.Stdout.Text != "up\nsaved\n" {
		t.Errorf("%+v", r)
	}
}

// SIGTERM to the caller means to end, so grace runs.
func TestTerminated(t *testing.T) {
	c := make(chan os.Signal, 1)
	s := sh("trap '' TERM; echo up; while :; do sleep .05; done")
	s.Interrupt, s.Grace = c, 200*time.Millisecond
	s.Stdout = func([]byte) { c <- syscall.SIGTERM }
	r := must(t, s)
	if r.Status != run.Interrupted || r.ExitCode != 143 || r.Signal != "SIGKILL" || r.Duration > 3*time.Second {
		t.Errorf("%+v", r)
	}
}

// A cancelled context interrupts, and ends what does not react.
func TestCancel(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		// With exec, because dash loses a SIGINT that comes while it forks.
		for script, sig := range map[string]string{
			"echo up; exec sleep 31342":                                "SIGINT",
			"trap '' INT; echo up; sleep 31342":                        "SIGTERM",
			"trap '' INT TERM; echo up; sleep 31342; sleep 31342; : x": "SIGKILL",
		} {
			ctx, cancel := context.WithCancel(context.Background())
			s := spec(script)
			s.Grace = 100 * time.Millisecond
			s.Stdout = func([]byte) { cancel() }
			r, err := run.Run(ctx, s)
			if err != nil || r.Status != run.Interrupted || r.ExitCode != 130 || r.Signal != sig || r.Stdout.Text != "up\n" {
				t.Errorf("%s: %v %+v", script, err, r)
			}
			cancel()
		}
	})
}

// Children that multiply as fast as they can are all ended.
func TestManyChildren(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		s := spec("i=0; while [ $i -lt 60 ]; do sleep $0 & setsid sleep $0 & i=$((i+1)); done; echo up; wait")
		s.Argv = append(s.Argv, mark(31343))
		s.Stdout = nil
		s.Timeout, s.Grace = 700*time.Millisecond, 200*time.Millisecond
		r := must(t, s)
		if n := running(t, mark(31343)); n != 0 || len(r.Leaked) != 0 {
			t.Errorf("%d left, leaked %v", n, r.Leaked)
		}
		// Each generation ignores SIGTERM, lives on after its parent and makes
		// two more in a new session, 30 at most at a time.
		s = spec(`cat >$0/f <<'E'
trap '' TERM
[ $(ls -d $1/p.* 2>/dev/null | wc -l) -lt 30 ] || exit
: >$1/p.$$; sleep .02
setsid sh $1/f $1 $2 & setsid sh $1/f $1 $2 &
sleep .2; rm $1/p.$$
E
sh $0/f $0 $1; sleep .1`)
		s.Argv = append(s.Argv, t.TempDir(), mark(31344))
		r = must(t, s)
		if n := running(t, mark(31344)); n != 0 || len(r.Leaked) != 0 {
			t.Errorf("%d left, leaked %v", n, r.Leaked)
		}
	})
}
