package viewtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"github.com/agentvfs/avfs/internal/mountpoint"
	"github.com/agentvfs/avfs/internal/view"
	"golang.org/x/sys/unix"
)

// envServe makes this test binary serve a mount on the path in it until it is
// killed.
const envServe = "AVFS_TEST_SERVE"

// envMap makes this test binary write to a shared mapping of the file in it, say so,
// and keep the mapping until its standard input ends.
const envMap = "AVFS_TEST_MAP"

// Main runs the tests of a binding, or the server that one of them asks this test
// binary for.
func Main(m *testing.M, b *Binding) {
	if p := os.Getenv(envServe); p != "" {
		if err := b.serveForTest(p); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if p := os.Getenv(envMap); p != "" {
		if err := mapForTest(p); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveForTest mounts a vault in memory, says so, and waits for the end of the
// mount. SIGUSR1 is the only signal that it handles.
func (b *Binding) serveForTest(p string) error {
	time.AfterFunc(3*patience, func() { os.Exit(3) })
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	store, err := engine.Create(context.Background(), memkv.New(engine.Tables()...), nil)
	if err != nil {
		return err
	}
	v, err := store.CreateVault(context.Background(), "work")
	if err != nil {
		return err
	}
	w, err := b.Mount(context.Background(), v, p, nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p, "f"), []byte("served"), 0o644); err != nil {
		return err
	}
	fmt.Println("mounted")
	select {
	case <-got:
		return w.Unmount(context.Background(), true)
	case <-w.Done():
		return fmt.Errorf("the mount ended by itself: %w", w.Err())
	}
}

// serve runs a server in a process of its own.
func (s *suite) serve(t *testing.T, p string) *exec.Cmd {
	t.Helper()
	s.needsFUSE(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envServe+"="+p)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end(cmd)
		if err := mountpoint.Recover(p); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "mounted" {
		t.Fatalf("the server said %q, %v", line, err)
	}
	wantFile(t, filepath.Join(p, "f"), "served")
	return cmd
}

// recover checks that the mount of a killed process is in nobody's way: the
// next mount clears it, and so does Recover.
func (s *suite) recover(t *testing.T) {
	p := point(t)
	for range 2 {
		cmd := s.serve(t, p)
		fd, err := unix.Open(filepath.Join(p, "f"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		end(cmd)
		if _, err := os.ReadDir(p); err == nil {
			t.Fatal("the mount of a dead process still answers")
		}
		w := s.mountAt(t, NewVault(t), p, nil)
		if exists(filepath.Join(p, "f")) {
			t.Error("the dead mount still shows")
		}
		if err := w.Unmount(within(t), false); err != nil {
			t.Error(err)
		}
		_ = unix.Close(fd)
	}
	end(s.serve(t, p))
	if err := mountpoint.Recover(p); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(p); err != nil || !info.IsDir() {
		t.Errorf("the mount point after a recovery: %v", err)
	}
}

// signalsAreTheCallers checks that the library does not detach the mount on
// SIGTERM: here nobody handles the signal, so it ends the process as usual.
func (s *suite) signalsAreTheCallers(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		p := point(t)
		cmd := s.serve(t, p)
		if ignores(t, cmd.Process.Pid, sig) {
			t.Logf("not tested: %v is ignored here, as a shell has it for what it starts in the background", sig)
			end(cmd)
			continue
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its status is looked at below
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !status.Signaled() || status.Signal() != sig {
			t.Errorf("after %v the server ended with %v", sig, cmd.ProcessState)
		}
	}
	p := point(t)
	cmd := s.serve(t, p)
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("a server that unmounts on its own signal: %v", err)
	}
	if exists(p) {
		t.Error("the mount point is still there")
	}
}

// ignores reports whether a process was started to ignore a signal.
func ignores(t *testing.T, pid int, sig syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return set&(1<<(sig-1)) != 0
		}
	}
	t.Fatalf("no SigIgn in %q", status)
	return false
}

// connectionStaysHere checks that programs which this process starts do not inherit
// the connection to the kernel: a mount lives as long as somebody has it.
func (s *suite) connectionStaysHere(t *testing.T) {
	s.mountAt(t, NewVault(t), point(t), nil)
	const dir = "/proc/self/fd"
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range list {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil || target != "/dev/fuse" {
			continue
		}
		found = true
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is inherited: flags %d, %v", fd, flags, err)
		}
	}
	if !found {
		t.Error("there is no connection")
	}
}

// busyByMapping checks that a process is found that only maps a file.
func (s *suite) busyByMapping(t *testing.T) {
	w := s.mountAt(t, NewVault(t), point(t), nil)
	program := filepath.Join(w.Point(), "sleep")
	body, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, body, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `"$1" 60 & echo $!; wait`, "sh", program)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	var busy *view.BusyError
	deadline := time.Now().Add(patience)
	for {
		err := w.Unmount(within(t), false)
		if err == nil {
			t.Fatal("unmounted under a running program")
		}
		if errors.As(err, &busy) && len(busy.PIDs) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if busy.PIDs[0] != pid {
		t.Errorf("holders %v, want %d", busy.PIDs, pid)
	}
	stop()
}

const mappedText = "written to a mapping"

// mapForTest leaves a page of a file written to and unsaved.
func mapForTest(p string) error {
	fd, err := unix.Open(p, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m, mappedText)
	fmt.Println("written")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, unix.Munmap(m), unix.Close(fd))
}

// mapping runs a program that has written to a mapping of a file until the returned
// function is called, which ends it.
func mapping(t *testing.T, file string) (end func() error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Env, cmd.Stderr = "/", append(os.Environ(), envMap+"="+file), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceValue(func() error { return errors.Join(in.Close(), cmd.Wait()) })
	t.Cleanup(func() { _ = end() }) // the test has looked at it
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the program said %q: %v", line, err)
	}
	return end
}

// flushMapped checks that a checkpoint has what a program that runs on has written to
// a mapping, once the view is flushed.
func (s *suite) flushMapped(t *testing.T) {
	v := NewVault(t)
	w := s.mountAt(t, v, point(t), nil)
	file := filepath.Join(w.Point(), "f")
	writeFile(t, file, strings.Repeat(".", 4096))
	end := mapping(t, file)
	err := w.Flush(within(t))
	var cp engine.Checkpoint
	if err == nil {
		cp, err = v.Checkpoint(t.Context(), engine.CheckpointOptions{})
	}
	if err := errors.Join(err, end()); err != nil {
		t.Fatal(err)
	}
	got, err := fs.ReadFile(v.Store().Snapshot(cp.Root).FS(t.Context()), "f")
	if err != nil || !strings.HasPrefix(string(got), mappedText) {
		t.Errorf("the checkpoint has %.30q, %v", got, err)
	}
}

// flushLost checks that a flush fails once, and an unmount is kept once, when the vault
// has not taken what a program has written to a mapping: no program is told.
func (s *suite) flushLost(t *testing.T) {
	v := NewVault(t)
	w := s.mountAt(t, v, point(t), nil)
	file := filepath.Join(w.Point(), "f")
	writeFile(t, file, "")
	if err := os.Truncate(file, 4096); err != nil { // a hole, which counts nothing yet
		t.Fatal(err)
	}
	most := int64(1)
	if _, err := v.SetQuota(t.Context(), engine.QuotaChange{MaxBytes: &most}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	for _, told := range []func() error{
		func() error { return w.Flush(within(t)) },
		func() error { return w.Unmount(within(t), false) },
	} {
		end := mapping(t, file)
		err := told()
		var busy *view.BusyError
		if err == nil || errors.As(err, &busy) {
			t.Errorf("the loss of a page is told as %v", err)
		}
		if err := w.Flush(within(t)); err != nil {
			t.Errorf("told a second time: %v", err)
		}
		_ = end() // its close may have been told of the loss
	}
}

// flushAbandoned checks that the loss which a flush has found after nobody waited for
// it is told by the next one.
func (s *suite) flushAbandoned(t *testing.T) {
	v := NewVault(t)
	w := s.mountAt(t, v, point(t), nil)
	file := filepath.Join(w.Point(), "f")
	writeFile(t, file, "")
	if err := os.Truncate(file, 4096); err != nil {
		t.Fatal(err)
	}
	most := int64(1)
	if _, err := v.SetQuota(t.Context(), engine.QuotaChange{MaxBytes: &most}, engine.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	end := mapping(t, file)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // one of them begins before it sees that it is over
		wantIs(t, "a flush without time", w.Flush(over), context.Canceled)
	}
	if err := w.Flush(within(t)); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the loss is told as %v", err)
	}
	_ = end() // its close may have been told of the loss
}
