package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// The environment by which a test tells a run of its own binary what to do.
const (
	envRole   = "AVFS_CONFORMANCE_ROLE" // roleHold or roleWrite
	envPath   = "AVFS_CONFORMANCE_PATH"
	envDriver = "AVFS_CONFORMANCE_DRIVER"

	roleHold  = "hold"  // open the store, say so, and close it at the end of input
	roleWrite = "write" // write until killed, saying each commit that is acknowledged

	childLifetime = 60 * time.Second // a child whose parent died ends by itself
)

// child is a second process with the store of a test.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// rerun is a run of this test binary for one test, outside every mount. It is killed
// when ctx ends.
func rerun(ctx context.Context, test string, args ...string) *exec.Cmd {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return exec.CommandContext(ctx, os.Args[0], append(args, "-test.run="+strings.Join(parts, "/"), "-test.count=1")...)
}

// startChild runs the test binary again in role.
func (s *storeSuite) startChild(t *testing.T, role, path string) *child {
	t.Helper()
	cmd := rerun(context.Background(), s.self)
	cmd.Env = append(os.Environ(), envRole+"="+role, envPath+"="+path, envDriver+"="+s.driver.Name())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, stdin, bufio.NewScanner(stdout)}
	t.Cleanup(c.kill)
	return c
}

// kill ends the child at once and waits until it is gone. Its exit status says
// nothing, and killing twice is harmless.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// line returns the next line that the child says, "" at the end.
func (c *child) line() string {
	if !c.lines.Scan() {
		return ""
	}
	return c.lines.Text()
}

// opening waits until the child is about to open its store.
func (c *child) opening(t *testing.T) {
	t.Helper()
	if got := c.line(); got != "opening" {
		t.Fatalf("the child says %q before it opens its store", got)
	}
}

// runAsChild plays the role that the environment gives to this process. It
// reports whether there was one.
func (s *storeSuite) runAsChild() bool {
	role := os.Getenv(envRole)
	if role == "" || os.Getenv(envDriver) != s.driver.Name() {
		return false
	}
	time.AfterFunc(childLifetime, func() { os.Exit(3) })
	if err := s.play(role, os.Getenv(envPath)); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(2)
	}
	os.Exit(0)
	return true
}

// play plays role on the store at path.
func (s *storeSuite) play(role, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	fmt.Println("opening")
	st, err := s.driver.Open(ctx, path, kv.Options{Tables: allTables})
	if errors.Is(err, fs.ErrNotExist) {
		st, err = s.driver.Open(ctx, path, kv.Options{Tables: allTables, Create: true})
	}
	if err != nil {
		return err
	}
	if role == roleWrite {
		return writeForEver(st)
	}
	fmt.Println("holding")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return st.Close()
}

func (s *storeSuite) testSecondProcess(t *testing.T) {
	s.needsFile(t)
	st, path := s.createAt(t, t.TempDir())
	mustClose(t, st)
	c := s.startChild(t, roleHold, path)
	c.opening(t)
	if got := c.line(); got != "holding" {
		t.Fatalf("the child says %q", got)
	}
	s.wantLocked(t, path, c.cmd.Process.Pid)
	c.kill()
	s.reopen(t, path) // the death of the holder frees the store
}

func (s *storeSuite) testWaitForProcess(t *testing.T) {
	s.needsFile(t)
	st, path := s.createAt(t, t.TempDir())
	mustClose(t, st)
	c := s.startChild(t, roleHold, path)
	c.opening(t)
	if got := c.line(); got != "holding" {
		t.Fatalf("the child says %q", got)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = c.stdin.Close() })
	start := time.Now()
	s.reopen(t, path)
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("the store opened after %v while the child held it", d)
	}
}
