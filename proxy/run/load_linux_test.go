package run_test

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/proxy/run"
)

// X21: hundreds of runs leave no zombie, descriptor, goroutine or cgroup.
func TestManyRuns(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		leaks(t, func() {
			for i := range 100 { // in each mode
				s := spec("(sleep .002 &); (setsid true &); echo done")
				s.Stdin = strings.NewReader("unread")
				if r := must(t, s); r.Stdout.Text != "done\n" || r.ExitCode != 0 || len(r.Limits) != 0 {
					t.Fatalf("run %d: %+v", i, r)
				}
			}
		})
		if isSubreaper(t) {
			t.Error("this process still adopts orphans")
		}
	})
}

// Concurrent runs end their own descendants only, and os/exec beside them gets its
// own children's ends.
func TestParallelRuns(t *testing.T) {
	modes(t, func(t *testing.T, spec func(string) run.Spec) {
		leaks(t, func() {
			var wg sync.WaitGroup
			stop := make(chan struct{})
			for range 2 {
				wg.Go(func() { besides(t, stop) })
			}
			var runs sync.WaitGroup
			for i := range 50 {
				runs.Go(func() { oneOfMany(t, i, spec) })
			}
			runs.Wait()
			close(stop)
			wg.Wait()
		})
		if n := running(t, mark(31350)); n != 0 {
			t.Errorf("%d left", n)
		}
	})
}

// oneOfMany makes descendants of every kind, some of which must outlive other runs.
func oneOfMany(t *testing.T, i int, spec func(string) run.Spec) {
	script := "(setsid sleep $0 &); sleep $0 & (sleep .%d; echo late) & wait $!; echo %d; exit %d"
	s := spec(fmt.Sprintf(script, i%4, i, i))
	s.Argv = append(s.Argv, mark(31350))
	r, err := run.Run(context.Background(), s)
	if err != nil || r.ExitCode != i || r.Stdout.Text != fmt.Sprintf("late\n%d\n", i) || r.Status != run.Completed {
		t.Errorf("%d: %v %+v", i, err, r)
	}
	if len(r.Killed) != 2 || len(r.Leaked) != 0 || len(r.Limits) != 0 {
		t.Errorf("%d: killed %v, leaked %v, limits %v", i, r.Killed, r.Leaked, r.Limits)
	}
}

// besides uses os/exec, also with detached children, until stop is closed.
func besides(t *testing.T, stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		cmd := exec.Command("sh", "-c", "sleep .01; exit 5")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: n%2 == 0}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		if n%4 == 0 {
			time.Sleep(30 * time.Millisecond) // a zombie for a while
		}
		if err := cmd.Wait(); err == nil || err.Error() != "exit status 5" {
			t.Errorf("os/exec: %v", err)
			return
		}
	}
}

// Two runs with the same mark do not take each other's descendants.
func TestSameMark(t *testing.T) {
	s := sh("(setsid sleep " + mark(31351) + " &); sleep .6; echo done")
	s.Env = append(s.Env, run.IDVar+"=same")
	s.NoCgroup = true
	var wg sync.WaitGroup
	wg.Go(func() {
		if r := must(t, s); r.Stdout.Text != "done\n" || len(r.Killed) != 1 {
			t.Errorf("%+v", r)
		}
	})
	time.Sleep(200 * time.Millisecond)
	other := sh("echo done")
	other.Env, other.NoCgroup = s.Env, true
	r := must(t, other)
	if n := running(t, mark(31351)); len(r.Killed) != 0 || n != 2 { // the other run's shell and its sleep
		t.Errorf("%+v", r)
	}
	wg.Wait()
	noChildren(t)
}

// Orphans are reaped while the command runs, not only at its end.
func TestReapWhileRunning(t *testing.T) {
	s := sh(`i=0; while [ $i -lt 20 ]; do (setsid true &); i=$((i+1)); done
		while ps -o stat= --ppid $PPID | grep -q Z; do sleep .05; done; echo clean`)
	s.Timeout = 10 * time.Second
	if r := must(t, s); r.Stdout.Text != "clean\n" || r.Status != run.Completed {
		t.Errorf("%+v", r)
	}
}

// X13: memory does not grow with the output.
func TestFlatMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := must(t, sh("head -c 200000000 /dev/zero"))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 || r.Stdout.Bytes != 200000000 {
		t.Errorf("%d bytes allocated for %d bytes of output", n, r.Stdout.Bytes)
	}
}

func isSubreaper(t *testing.T) bool {
	var v int32
	_, _, no := unix.Syscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&v)), 0)
	if no != 0 {
		t.Fatal(no)
	}
	return v != 0
}

func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name     string
		noCgroup bool
	}{{"cgroup", false}, {"subreaper", true}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				r, err := run.Run(context.Background(), run.Spec{Argv: []string{"true"}, Env: env(), NoCgroup: c.noCgroup})
				if err != nil || r.ExitCode != 0 {
					b.Fatal(err, r)
				}
			}
		})
	}
	b.Run("os-exec", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("true")
			cmd.Env = env()
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOutput moves 1 GB through a pipe.
func BenchmarkOutput(b *testing.B) {
	const size = 1_000_000_000
	b.SetBytes(size)
	for b.Loop() {
		r, err := run.Run(context.Background(), sh("head -c 1000000000 /dev/zero"))
		if err != nil || r.Stdout.Bytes != size {
			b.Fatal(err, r)
		}
	}
	b.ReportMetric(float64(peakRSS(b))/1e6, "peak-MB")
}

func peakRSS(b *testing.B) int64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return ru.Maxrss << 10
}
