package workspace_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

// open opens the workspace at home as a process of its own would.
func open(t *testing.T, home string) *workspace.Workspace {
	t.Helper()
	w, err := workspace.Open(workspace.Config{Home: home, Drivers: backends.All(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// served makes a vault v and an owner that serves it, and returns the workspace as
// another process sees it, with the store's path.
func served(t *testing.T, linger time.Duration) (w *workspace.Workspace, store string, ended <-chan error) {
	t.Helper()
	home := t.TempDir()
	owner := open(t, home)
	doc, err := owner.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	ended = serve(t, owner, doc.Store, linger)
	return open(t, home), doc.Store, ended
}

// serve has a workspace serve a store until the end of t or the linger, and returns
// once it does. What it returns gets the outcome, which must be no error.
func serve(t *testing.T, owner *workspace.Workspace, store string, linger time.Duration) (ended <-chan error) {
	t.Helper()
	ready, over, told := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var outcome error // written before over is closed
	go func() {       // ends with ctx or the linger
		outcome = owner.Serve(ctx, store, workspace.ServeOptions{Linger: linger, Ready: func() { close(ready) }})
		told <- outcome
		close(over)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
		if outcome != nil {
			t.Errorf("the owner ended: %v", outcome)
		}
	})
	select {
	case <-ready:
	case <-over:
		t.FailNow()
	}
	return told
}

func inV[Req, Res any](t *testing.T, w *workspace.Workspace, op workspace.Op[Req, Res], req Req, s workspace.Streams) Res {
	t.Helper()
	res, err := workspace.CallVault(t.Context(), w, "v", op, func(string) Req { return req }, s)
	if err != nil {
		t.Fatalf("%s: %v", op.Name, err)
	}
	return res
}

// TestLongGoesElsewhere holds that what takes long never becomes part of an operation
// of this process that has the store open for a moment: the mount of a command would
// end with this process.
func TestLongGoesElsewhere(t *testing.T) {
	home := t.TempDir()
	owner := open(t, home)
	doc, err := owner.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	held, hold := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(hold) })
	defer letGo()
	w, err := workspace.Open(workspace.Config{Home: home, Drivers: backends.All(), Version: "test", Spawn: func(_ context.Context, store string) error {
		letGo()
		serve(t, owner, store, -1)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	moment := workspace.Op[workspace.InVault, bool]{Name: "moment", Run: func(context.Context, *workspace.Owner, workspace.InVault, workspace.Streams) (bool, error) {
		close(held)
		<-hold
		return true, nil
	}}
	over := make(chan error, 1)
	go func() { // ends when it is let go
		_, err := workspace.Call(t.Context(), w, doc.Store, moment, workspace.InVault{Vault: "v"}, workspace.Streams{})
		over <- err
	}()
	<-held
	long := workspace.OpLog
	long.Long = true
	long.Run = func(context.Context, *workspace.Owner, workspace.LogRequest, workspace.Streams) ([]engine.LogEntry, error) {
		t.Error("it ran in this process")
		return nil, nil
	}
	if _, err := workspace.Call(t.Context(), w, doc.Store, long, workspace.LogRequest{Vault: "v"}, workspace.Streams{}); err != nil {
		t.Error(err)
	}
	letGo()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestAwayGoesElsewhere holds that a process which has many operations at a time opens no
// store for them, except for a look at all of them.
func TestAwayGoesElsewhere(t *testing.T) {
	home := t.TempDir()
	owner := open(t, home)
	doc, err := owner.CreateVault(t.Context(), "v", "")
	if err != nil {
		t.Fatal(err)
	}
	spawned := false
	w, err := workspace.Open(workspace.Config{Home: home, Drivers: backends.All(), Version: "test", Away: true, Spawn: func(_ context.Context, store string) error {
		spawned = true
		serve(t, owner, store, -1)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if docs, _, err := w.List(t.Context()); err != nil || len(docs) != 1 || spawned {
		t.Errorf("the list has %d vaults, %v; an owner was started for it: %v", len(docs), err, spawned)
	}
	if _, err := workspace.Call(t.Context(), w, doc.Store, workspace.OpLog, workspace.LogRequest{Vault: "v"}, workspace.Streams{}); err != nil || !spawned {
		t.Errorf("a short operation: %v; an owner was started for it: %v", err, spawned)
	}
}

// TestThroughOwner does everything that a command does through an owner, streams
// included.
func TestThroughOwner(t *testing.T) {
	w, _, _ := served(t, -1)
	text := strings.Repeat("content\n", 100_000)
	res := inV(t, w, workspace.OpWrite, workspace.WriteRequest{Vault: "v", Path: "/d/caf\xe9", Parents: true}, workspace.Streams{In: strings.NewReader(text)})
	if res.Bytes != int64(len(text)) {
		t.Errorf("wrote %d bytes, want %d", res.Bytes, len(text))
	}
	var out strings.Builder
	inV(t, w, workspace.OpRead, workspace.PathRequest{Vault: "v", Paths: []workspace.Path{"/d/caf\xe9"}}, workspace.Streams{Out: &out})
	if out.String() != text {
		t.Errorf("read %d bytes, want %d", out.Len(), len(text))
	}
	_, err := workspace.CallVault(t.Context(), w, "v", workspace.OpStat,
		func(v string) workspace.PathRequest {
			return workspace.PathRequest{Vault: v, Paths: []workspace.Path{"/none"}}
		}, workspace.Streams{})
	if engine.KindOf(err) != engine.NotFound {
		t.Errorf("stat of nothing: %v, want NotFound", err)
	}
}

// TestAnswerBeforeInput holds that an error is told although the caller would
// still have much to send.
func TestAnswerBeforeInput(t *testing.T) {
	w, _, _ := served(t, -1)
	for range 20 {
		endless := &repeat{left: 64 << 20}
		_, err := workspace.CallVault(t.Context(), w, "v", workspace.OpWrite,
			func(v string) workspace.WriteRequest { return workspace.WriteRequest{Vault: v, Path: "/none/f"} }, workspace.Streams{In: endless})
		if engine.KindOf(err) != engine.NotFound {
			t.Fatalf("%v, want NotFound", err)
		}
	}
}

// repeat is a long input.
type repeat struct{ left int }

func (r *repeat) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, os.ErrClosed
	}
	r.left -= len(p)
	return len(p), nil
}

// TestIdleOwnerEnds holds that an owner waits for its first request, also with no
// linger, and ends after it.
func TestIdleOwnerEnds(t *testing.T) {
	w, _, ended := served(t, 0)
	select {
	case err := <-ended:
		t.Fatalf("it ended before anybody came: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	inV(t, w, workspace.OpCheckpointList, workspace.InVault{Vault: "v"}, workspace.Streams{})
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	inV(t, w, workspace.OpCheckpointList, workspace.InVault{Vault: "v"}, workspace.Streams{}) // opens the store itself
}

// TestStopOwner holds that a stopped owner has let go of the store.
func TestStopOwner(t *testing.T) {
	w, store, ended := served(t, -1)
	if stopped, err := w.StopOwner(t.Context(), store, false); err != nil || !stopped {
		t.Fatalf("StopOwner = %v, %v", stopped, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if stopped, err := w.StopOwner(t.Context(), store, false); err != nil || stopped {
		t.Errorf("without an owner StopOwner = %v, %v", stopped, err)
	}
	if _, err := os.Lstat(strings.TrimSuffix(store, ".avfs") + ".sock"); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

// TestVersionSkew holds that an owner of another version answers no operation, but
// says who it is and ends on request, so that one can get rid of it.
func TestVersionSkew(t *testing.T) {
	w, store, ended := served(t, -1)
	socket := strings.TrimSuffix(store, ".avfs") + ".sock"
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://owner/v1/op/log", strings.NewReader("{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Avfs-Protocol", "999")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 1000)
	n, _ := resp.Body.Read(body)
	if resp.StatusCode != http.StatusConflict || !strings.Contains(string(body[:n]), string(workspace.VersionSkew)) {
		t.Errorf("%s: %s", resp.Status, body[:n])
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	owners, err := w.Owners(t.Context())
	if err != nil || len(owners) != 1 || owners[0].PID != os.Getpid() {
		t.Errorf("Owners = %+v, %v", owners, err)
	}
	if _, err := w.StopOwner(t.Context(), store, false); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestStaleRefs holds that what a process left that died while it made or deleted
// a fork blocks no name.
func TestStaleRefs(t *testing.T) {
	home := t.TempDir()
	w := open(t, home)
	if _, err := w.CreateVault(t.Context(), "v", ""); err != nil {
		t.Fatal(err)
	}
	ref := func(name, store string) string {
		path := filepath.Join(home, "vaults", name+".ref")
		if err := os.WriteFile(path, []byte(store+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("fork again", func(t *testing.T) {
		ref("w", "v.avfs")
		if _, err := w.Fork(t.Context(), workspace.ForkRequest{Vault: "v", Name: "w"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Fork(t.Context(), workspace.ForkRequest{Vault: "v", Name: "w"}); engine.KindOf(err) != engine.VaultExists {
			t.Errorf("a live fork: %v, want VaultExists", err)
		}
	})
	t.Run("create", func(t *testing.T) {
		ref("x", "v.avfs")
		if _, err := w.CreateVault(t.Context(), "x", ""); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("delete", func(t *testing.T) {
		path := ref("y", "v.avfs")
		if _, err := w.DeleteVault(t.Context(), "y"); engine.KindOf(err) != engine.VaultNotFound {
			t.Errorf("%v, want VaultNotFound", err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the ref is left: %v", err)
		}
	})
	t.Run("store never made", func(t *testing.T) {
		path := ref("z", "z.avfs")
		if _, err := w.CreateVault(t.Context(), "z", ""); engine.KindOf(err) != engine.VaultExists {
			t.Errorf("while it may be in the making: %v, want VaultExists", err)
		}
		old := time.Now().Add(-time.Minute)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if _, err := w.CreateVault(t.Context(), "z", ""); err != nil {
			t.Error(err)
		}
	})
}

// TestCurrent holds which vault is meant when none is named.
func TestCurrent(t *testing.T) {
	w := open(t, t.TempDir())
	if _, err := w.Current(); engine.KindOf(err) != engine.VaultNotFound {
		t.Errorf("without vaults: %v, want VaultNotFound", err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := w.CreateVault(t.Context(), name, ""); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		if got, err := w.Current(); err != nil || got != want {
			t.Errorf("Current = %q, %v, want %q", got, err, want)
		}
	}
	check("a") // the first
	if err := w.Use("b"); err != nil {
		t.Fatal(err)
	}
	check("b")
	t.Setenv("AVFS_VAULT", "a")
	check("a")
	t.Setenv("AVFS_VAULT", "")
	if _, err := w.DeleteVault(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	check("a") // the only one
}
