package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountTests lists every group of tests.
func mountTests() [][]mountTest {
	return [][]mountTest{
		mountNameTests, mountRenameTests, mountOrphanTests, mountFileTests, mountOpenTests,
		mountAttrTests, mountXattrTests, mountListTests, mountCoherenceTests, mountProgramTests, mountParallelTests,
		mountRandomTests,
	}
}

var unsafeInName = regexp.MustCompile(`[^a-z0-9]+`)

// dir makes an empty directory in the mount, open to every user, for one test.
func (s *mountSuite) dir(t *testing.T) string {
	t.Helper()
	name := unsafeInName.ReplaceAllString(strings.ToLower(filepath.Base(t.Name())), "-")
	dir := filepath.Join(s.point, name)
	mustDo(t, os.Mkdir(dir, 0o777))
	mustDo(t, os.Chmod(dir, 0o777))
	return dir
}

// mustDo ends the test on an error.
func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErrno fails unless err is the error number want; 0 stands for success.
func wantErrno(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	var got syscall.Errno
	if err != nil && !errors.As(err, &got) || got != want {
		t.Errorf("%s: got %v, want %s", what, err, errnoName(want))
	}
}

func errnoName(e syscall.Errno) string {
	if e == 0 {
		return "success"
	}
	return unix.ErrnoName(e)
}

// equal fails unless got is want.
func equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// putFile makes or replaces a file.
func putFile(t *testing.T, path, content string) {
	t.Helper()
	mustDo(t, os.WriteFile(path, []byte(content), 0o644))
}

// wantFile fails unless the file holds exactly want.
func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	mustDo(t, err)
	if string(got) != want {
		t.Errorf("%s: got %s, want %s", filepath.Base(path), shortened(string(got)), shortened(want))
	}
}

func shortened(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q... (%d bytes)", s[:60], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// openFD opens a file until the end of the test. It does not use package os, which
// would add the file to the runtime's poller.
func openFD(t *testing.T, path string, flags int, perm uint32) int {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, perm)
	if err != nil {
		t.Fatalf("open %s: %v", filepath.Base(path), err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) }) // a test that closed it has checked the outcome
	return fd
}

// lstatOf is the whole stat of a path.
func lstatOf(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("lstat %s: %v", filepath.Base(path), err)
	}
	return st
}

// fstatOf is the whole stat of an open file.
func fstatOf(t *testing.T, fd int) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	mustDo(t, unix.Fstat(fd, &st))
	return st
}

// preadFD reads up to n bytes.
func preadFD(t *testing.T, fd, n int, off int64) string {
	t.Helper()
	p := make([]byte, n)
	got, err := unix.Pread(fd, p, off)
	mustDo(t, err)
	return string(p[:got])
}

// listNames lists a directory in byte order.
func listNames(t *testing.T, dir string) []string {
	t.Helper()
	f, err := os.Open(dir)
	mustDo(t, err)
	defer f.Close()
	list, err := f.Readdirnames(-1)
	mustDo(t, err)
	sort.Strings(list)
	return list
}

// wantListed fails unless dir holds exactly want, given in byte order.
func wantListed(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := strings.Join(listNames(t, dir), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("%s holds %q, want %q", filepath.Base(dir), listNames(t, dir), want)
	}
}

// programTime bounds every program that a test runs.
const programTime = 120 * time.Second

// shellIn runs a script in dir and returns what it printed. The shell changes into
// the directory by itself: a child of this process must not be between fork and
// exec inside a mount that this process serves.
func shellIn(t *testing.T, dir, script string) string {
	t.Helper()
	return shellInAs(t, nil, dir, script)
}

// nobody is the user of tests about permissions.
var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// shellInAs is shellIn as another user.
func shellInAs(t *testing.T, who *syscall.Credential, dir, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `cd "$1" || exit 9; eval "$2"`, "sh", dir, script)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	mustDo(t, cmd.Start())
	timer := time.AfterFunc(programTime, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	if err != nil {
		fmt.Fprintf(&out, "%v\n", err)
	}
	return out.String()
}

// wantOutput fails unless a script prints want.
func wantOutput(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// needsRoot skips a test that acts as other users.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIP: acting as other users needs root")
	}
}

// needsProgram skips a test without a program that it runs.
func needsProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIP: %s is not installed", name)
	}
}

// The environment by which a test tells a run of its own binary what to do.
const (
	envMountRole = "AVFS_MOUNT_ROLE"
	envMountArg  = "AVFS_MOUNT_ARG"
)

// mountRoles are what a second process can be told to do with a path.
func (s *mountSuite) mountRoles() map[string]func(path string) error {
	return map[string]func(string) error{
		"map shared": mapShared, "map append": mapAppend, "map shrunk": mapShrunk, "random": s.playRandom,
		"try locks": tryLocks, "hold locks": holdLocks, "read fifo": readFIFO,
	}
}

// runAsChild plays the role that the environment gives to this process. It reports
// whether there was one.
func (s *mountSuite) runAsChild() bool {
	role := os.Getenv(envMountRole)
	if role == "" {
		return false
	}
	time.AfterFunc(childLifetime, func() { os.Exit(3) })
	play := s.mountRoles()[role]
	if play == nil {
		fmt.Fprintf(os.Stderr, "no role %q\n", role)
		os.Exit(2)
	}
	if err := play(os.Getenv(envMountArg)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
	return true
}

// child runs this test binary again in a role, to its end.
func (s *mountSuite) child(t *testing.T, role, path string) {
	t.Helper()
	cmd := s.childCommand(role, path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", role, err, out)
	}
}

func (s *mountSuite) childCommand(role, path string) *exec.Cmd {
	cmd := rerun(context.Background(), s.self)
	cmd.Env = append(os.Environ(), envMountRole+"="+role, envMountArg+"="+path)
	cmd.Dir = "/"
	return cmd
}

// soon waits until ok holds; releases and the like reach the server late.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s: not within 10 s", what)
			return
		}
	}
}

// readFD reads an open file from its current position.
func readFD(t *testing.T, fd int) string {
	t.Helper()
	var out bytes.Buffer
	p := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, p)
		mustDo(t, err)
		if n == 0 {
			return out.String()
		}
		out.Write(p[:n])
	}
}
