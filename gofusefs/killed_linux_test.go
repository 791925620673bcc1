package gofusefs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
	"github.com/agentvfs/avfs/internal/mountpoint"
)

// envStall makes this test binary serve a mount on the path in it, see serveStalled.
const envStall = "AVFS_TEST_STALL"

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// heldDB holds up the transactions that write, until it is let go.
type heldDB struct {
	kv.Store
	armed   sync.Mutex // held while nothing is held up
	held    chan struct{}
	letGo   chan struct{}
	waiting sync.Once
}

// Unwrap lets abilities through.
func (d *heldDB) Unwrap() kv.Store { return d.Store }

// Update implements kv.Store.
func (d *heldDB) Update(ctx context.Context, mode kv.Mode, fn func(kv.Writer) error) error {
	if d.armed.TryLock() {
		d.armed.Unlock()
		d.waiting.Do(func() { close(d.held) })
		<-d.letGo
	}
	return d.Store.Update(ctx, mode, fn)
}

// serveStalled mounts a vault and says so. Then, when a program makes the top directory
// durable, the answer waits until a line comes on standard input. The kernel holds the
// directory's lock meanwhile, and a name that is made in it from outside waits for that
// lock, inside the kernel. It says so, and says when the kernel has been told.
func serveStalled(point string) error {
	time.AfterFunc(3*patience, func() { os.Exit(3) })
	db := &heldDB{Store: memkv.New(engine.Tables()...), held: make(chan struct{}), letGo: make(chan struct{})}
	db.armed.Lock()
	store, err := engine.Create(context.Background(), db, nil)
	if err != nil {
		return err
	}
	v, err := store.CreateVault(context.Background(), "work")
	if err != nil {
		return err
	}
	w, err := Mount(context.Background(), v, point, nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(point, "f"), nil, 0o644); err != nil {
		return err
	}
	db.armed.Unlock()
	fmt.Println("mounted")
	<-db.held
	told := make(chan error, 1)
	go func() { // ends when the kernel has been told
		_, err := v.Mknod(context.Background(), engine.RootIno, "new", 0o644, 0, engine.Owner{})
		told <- err
	}()
	select {
	case err := <-told:
		return fmt.Errorf("the kernel did not wait: %w", errors.Join(err))
	case <-time.After(300 * time.Millisecond):
	}
	fmt.Println("stalled")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	close(db.letGo)
	if err := <-told; err != nil {
		return err
	}
	fmt.Println("told")
	<-w.Done()
	return w.Err()
}

// stalled is a server that serveStalled runs in, and a program that waits for it.
type stalled struct {
	point  string
	server *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	client *exec.Cmd
	ended  chan struct{} // closed when the client has ended
}

func newStalled(t *testing.T) *stalled {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("SKIP: %v", err)
	}
	s := &stalled{point: t.TempDir(), server: exec.Command(os.Args[0]), ended: make(chan struct{})}
	s.server.Env, s.server.Stderr = append(os.Environ(), envStall+"="+s.point), os.Stderr
	var err error
	if s.in, err = s.server.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := s.server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.in.Write([]byte("go\n")); err == nil && s.client != nil { // it was not killed
			s.clientEnds(t)
		}
		_ = s.server.Process.Kill()
		if err := mountpoint.Recover(s.point); err != nil {
			t.Error(err)
		}
		_ = s.server.Wait() // its status says nothing
	})
	s.wants(t, "mounted")
	s.client = exec.Command("sync", s.point)
	s.client.Dir = "/"
	if err := s.client.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the client
		_ = s.client.Wait() // its status says nothing
		close(s.ended)
	}()
	s.wants(t, "stalled")
	return s
}

// needsServers skips a test that needs the kernel to say which process serves a mount.
func (s *stalled) needsServers(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", s.server.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), "fuse_connection:") {
			return
		}
	}
	t.Skip("SKIP: this kernel does not say which process serves a mount; one that is killed at a bad moment needs a hand")
}

// wants fails unless the server says word next.
func (s *stalled) wants(t *testing.T, word string) {
	t.Helper()
	if line, err := s.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != word {
		t.Fatalf("the server said %q, %v, want %q", line, err, word)
	}
}

// clientEnds fails unless the client has ended or ends soon.
func (s *stalled) clientEnds(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Error("the program does not end")
	}
}

// TestClientKilledWhileTelling kills a program for whose request the kernel holds what
// we have to tell it of. It ends with the answer, and the mount goes on.
func TestClientKilledWhileTelling(t *testing.T) {
	s := newStalled(t)
	if err := s.client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	s.wants(t, "told")
	s.clientEnds(t)
	for _, name := range []string{"f", "new"} {
		if _, err := os.Stat(filepath.Join(s.point, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestServerKilledWhileTelling kills the server at such a moment: whoever waits for it
// gets an error, and the place is free for the next mount.
func TestServerKilledWhileTelling(t *testing.T) {
	s := newStalled(t)
	s.needsServers(t)
	if err := s.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := mountpoint.Recover(s.point); err != nil {
		t.Error(err)
	}
	s.clientEnds(t)
}

// TestFreeKilled does the same by the number of the process, and holds that one which
// lives is left alone.
func TestFreeKilled(t *testing.T) {
	s := newStalled(t)
	s.needsServers(t)
	if freed, err := mountpoint.FreeKilled(s.server.Process.Pid); freed || err != nil {
		t.Errorf("of a living server: %v, %v", freed, err)
	}
	if err := s.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		freed, err := mountpoint.FreeKilled(s.server.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if freed {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the killed server is not seen")
		}
	}
	s.clientEnds(t)
}
