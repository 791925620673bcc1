package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/proxy/run"
)

// A test that needs a process in a special state runs this binary again with
// helperVar naming one of the helpers.
const helperVar = "RUN_TEST_HELPER"

func TestMain(m *testing.M) {
	err := run.CloseInherited()
	name := os.Getenv(helperVar)
	if name == "" && err == nil {
		os.Exit(m.Run())
	}
	if err == nil {
		err = helpers[name]()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var helpers = map[string]func() error{
	"fuse":    helperFUSE,
	"ignored": helperIgnored,
	"blocked": helperBlocked,
}

// modes runs fn with and without a cgroup of the run's own.
func modes(t *testing.T, fn func(t *testing.T, s func(script string) run.Spec)) {
	for _, no := range []bool{false, true} {
		want := run.TrackCgroup
		if no {
			want = run.TrackSubreaper
		}
		t.Run(string(want), func(t *testing.T) {
			s := sh("true")
			s.NoCgroup = no
			if r := must(t, s); r.Tracking != want {
				t.Skipf("this system has no writable cgroup v2 directory: %v", r.Tracking)
			}
			fn(t, func(script string) run.Spec {
				s := sh(script)
				s.NoCgroup = no
				return s
			})
			noChildren(t)
		})
	}
}

// noChildren fails if this process has a child, dead or alive.
func noChildren(t *testing.T) {
	t.Helper()
	self := strconv.Itoa(os.Getpid())
	files, err := filepath.Glob("/proc/" + self + "/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if len(text) != 0 {
			for _, pid := range strings.Fields(string(text)) {
				stat, _ := os.ReadFile("/proc/" + pid + "/stat")
				t.Errorf("child left: %s", stat)
			}
		}
	}
}

// mark returns a number that no process of another test has as an argument.
func mark(n int) string { return strconv.Itoa(n*10_000_000 + os.Getpid()) }

// running counts the processes, living or dead, whose command line has the mark.
func running(t *testing.T, mark string) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range dirs {
		text, err := os.ReadFile(f)
		if err == nil && bytes.Contains(text, []byte(mark)) {
			n++
		}
	}
	return n
}

// within fails if fn takes longer than d.
func within(t *testing.T, d time.Duration, fn func()) {
	t.Helper()
	start := time.Now()
	fn()
	if took := time.Since(start); took > d {
		t.Errorf("took %v, more than %v", took, d)
	}
}

// leaks fails if fn leaves goroutines or descriptors behind.
func leaks(t *testing.T, fn func()) {
	t.Helper()
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	must(t, sh("true")) // whatever is made once is made now
	g, f := runtime.NumGoroutine(), count()
	fn()
	for end := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > g && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > g {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, were %d\n%s", n, g, buf[:runtime.Stack(buf, true)])
	}
	if n := count(); n > f {
		t.Errorf("%d descriptors, were %d", n, f)
	}
}
