package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentvfs/avfs/proxy/run"
)

func itoa(n int) string { return strconv.Itoa(n) }

// X09: death by a signal is 128+n with a name; other codes are the child's own.
func TestExitCodes(t *testing.T) {
	for script, want := range map[string]struct {
		code   int
		signal string
	}{
		"kill -9 $$":               {137, "SIGKILL"},
		"kill -SEGV $$":            {139, "SIGSEGV"},
		"kill -TERM $$":            {143, "SIGTERM"},
		"kill -PIPE $$; sleep 1":   {141, "SIGPIPE"},
		"kill -HUP $$; sleep 1":    {129, "SIGHUP"},
		"exit 255":                 {255, ""},
		"exit 124":                 {124, ""},
		"exit 137":                 {137, ""},
		"yes | head -1 >/dev/null": {0, ""},
	} {
		r := must(t, sh(script))
		if r.Status != run.Completed || r.ExitCode != want.code || r.Signal != want.signal || r.TimedOut {
			t.Errorf("%s: %+v", script, r)
		}
	}
}

// X11: programs that cannot be started get a shell's codes and a status of their
// own; what avfs cannot do is an error, and no result of the child.
func TestStartFailures(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("plain", "x", 0o644)
	write("binary", "\x00\x01", 0o755)
	write("lost", "#!/no/such/interpreter\n", 0o755)
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		argv []string
		code int
	}{
		{[]string{"no-such-program"}, 127},
		{[]string{""}, 127},
		{[]string{"./missing"}, 127},
		{[]string{"./plain/x"}, 127},
		{[]string{"./lost"}, 127},
		{[]string{"./plain"}, 126},
		{[]string{"./binary"}, 126},
		{[]string{"./"}, 126},
		{[]string{"true", long}, 126},
	} {
		r := must(t, run.Spec{Argv: c.argv, Dir: dir})
		var e *run.Error
		if r.Status != run.FailedToStart || r.ExitCode != c.code || r.LeaderCode != -1 || !errors.As(r.StartError, &e) {
			t.Errorf("%.20q: %+v", c.argv, r)
		}
	}
	for _, s := range []run.Spec{
		{},
		{Argv: []string{"true\x00"}},
		{Argv: []string{"true"}, Env: []string{"A=\x00"}},
		{Argv: []string{"true"}, Dir: dir + "/missing"},
		{Argv: []string{"true"}, Dir: dir + "/plain"},
	} {
		r, err := run.Run(context.Background(), s)
		var e *run.Error
		if !errors.As(err, &e) || r.Status != "" {
			t.Errorf("%+v: %v", s, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := run.Run(ctx, sh("true")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	noChildren(t)
}

// The program is found by the child's PATH, relative to the child's directory.
func TestLookup(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b", "c/prog"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"a/prog": 0o644, "b/prog": 0o755, "here": 0o755, "a/only": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("echo $0 $1"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, prog, out string
		code            int
	}{
		{"c:a:b", "prog", "b/prog arg", 0},
		{dir + "/b", "prog", dir + "/b/prog arg", 0},
		{"/none:" + dir + "/a", "only", "", 126},
		{"/none:", "here", "./here arg", 0},
		{"/none", "here", "", 127},
		{"/none", "./here", "./here arg", 0},
		{"/none", "b/prog", "b/prog arg", 0},
	} {
		r := must(t, run.Spec{Argv: []string{c.prog, "arg"}, Dir: dir, Env: []string{"PATH=" + c.path}})
		if strings.TrimSpace(r.Stdout.Text) != c.out || r.ExitCode != c.code {
			t.Errorf("%+v: %q %d %v", c, r.Stdout.Text, r.ExitCode, r.StartError)
		}
	}
	if r := must(t, run.Spec{Argv: []string{"true"}, Env: []string{"A=1"}}); r.ExitCode != 0 {
		t.Errorf("no PATH: %+v", r)
	}
}

// The child has exactly the environment it was given, and the mark.
func TestEnvironment(t *testing.T) {
	t.Setenv("RUN_TEST_SECRET", "1")
	r := must(t, run.Spec{Argv: []string{"env"}, Env: []string{"A=1", "A=2", run.IDVar + "=id-1"}})
	if r.Stdout.Text != "A=2\n"+run.IDVar+"=id-1\n" {
		t.Errorf("%q", r.Stdout.Text)
	}
	r = must(t, run.Spec{Argv: []string{"env"}, Env: []string{"A=1"}})
	if !strings.HasPrefix(r.Stdout.Text, "A=1\n"+run.IDVar+"=") || strings.Count(r.Stdout.Text, "\n") != 2 {
		t.Errorf("%q", r.Stdout.Text)
	}
}

// The child leads a session and a group of its own, has no terminal, blocking standard
// files and no others (descriptor 3 is the one that ls reads with).
func TestSession(t *testing.T) {
	s := sh(`read -r pid comm state ppid pgid sid tty rest </proc/$$/stat; echo $((pid==pgid)) $((pid==sid)) $tty
		(: </dev/tty) 2>/dev/null || echo no tty; grep -h flags /proc/$$/fdinfo/[12]; ls /proc/self/fd`)
	s.Stdin = strings.NewReader("")
	want := "1 1 0\nno tty\nflags:\t01\nflags:\t01\n0\n1\n2\n3\n"
	if r := must(t, s); r.Stdout.Text != want {
		t.Errorf("%q", r.Stdout.Text)
	}
}

// Signals that the caller ignores or blocks are neither ignored nor blocked in the
// child, and stay as they are in the caller.
func TestDefaultSignals(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap '' HUP INT QUIT PIPE TERM TSTP TTIN TTOU USR2 CHLD
		"$0" grep -hE '^Sig(Blk|Ign)' /proc/self/status`, self)
	cmd.Env = append(os.Environ(), helperVar+"=blocked")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var blocked, ignored uint64
	if _, err := fmt.Sscanf(string(text), "SigBlk:\t%x\nSigIgn:\t%x\n", &blocked, &ignored); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	// Signals 32 and 33 are the C library's own: its posix_spawn, with which make
	// starts programs, leaves them ignored, and it sets them up where it needs them.
	if ignored &^= 1<<31 | 1<<32; blocked != 0 || ignored != 0 {
		t.Errorf("%s", text)
	}
}

// helperBlocked runs its arguments from a thread that blocks signals, in a process
// that ignores some.
func helperBlocked() error {
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if !signal.Ignored(s) {
			return fmt.Errorf("%v is not ignored", s)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, old unix.Sigset_t
	set.Val[0] = 1<<(unix.SIGUSR1-1) | 1<<(unix.SIGCHLD-1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		return err
	}
	r, err := run.Run(context.Background(), run.Spec{Argv: os.Args[1:], Env: env()})
	if err != nil {
		return err
	}
	fmt.Print(r.Stdout.Text)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, &set); err != nil {
		return err
	}
	if set.Val[0] != 1<<(unix.SIGUSR1-1)|1<<(unix.SIGCHLD-1) {
		return fmt.Errorf("the caller's mask is %x", set.Val[0])
	}
	return nil
}

// What withDefaultSignals changes for a moment is as before afterwards.
func TestSignalsRestored(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap '' HUP TTOU; exec "$0"`, self)
	cmd.Env = append(os.Environ(), helperVar+"=ignored")
	text, err := cmd.CombinedOutput()
	if err != nil || string(text) != "true true\n" {
		t.Errorf("%s %v", text, err)
	}
}

func helperIgnored() error {
	mask := func() (bool, error) {
		text, err := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(text), "SigIgn:\t")
		hex, _, _ := strings.Cut(rest, "\n")
		n, perr := strconv.ParseUint(hex, 16, 64)
		return n&(1<<(unix.SIGHUP-1)) != 0 && n&(1<<(unix.SIGTTOU-1)) != 0, errors.Join(err, perr)
	}
	before, err := mask()
	if err != nil {
		return err
	}
	for range 3 {
		if _, err := run.Run(context.Background(), sh("true")); err != nil {
			return err
		}
	}
	after, err := mask()
	fmt.Println(before, after)
	return err
}
