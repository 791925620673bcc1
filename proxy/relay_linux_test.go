package proxy

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentvfs/avfs/workspace"
)

// TestFollowerThatStops holds that whoever follows a command and reads no more holds up
// neither its end nor the next command, and gets all of the output once it reads on.
func TestFollowerThatStops(t *testing.T) {
	d := newDesk(t, true)
	reads := make(chan struct{})
	var got atomic.Int64
	ended := make(chan *Envelope, 1)
	go func() {
		ended <- d.Exec(d.ctx, Request{
			Argv: []string{"sh", "-c", "yes | head -c 50000000; touch late"}, Timeout: 500 * time.Millisecond,
			Stdout: func(p []byte) { <-reads; got.Add(int64(len(p))) },
		})
	}()
	second := Proxy{Workspace: d.Workspace, Policy: d.Policy}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		log, err := workspace.CallVault(d.ctx, d.Workspace, "v", workspace.OpLog, func(string) workspace.LogRequest { return workspace.LogRequest{Vault: "v"} }, workspace.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		if len(log) > 0 {
			break
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal("the command that nobody reads is not recorded")
		}
	}
	if env := second.Exec(d.ctx, Request{Argv: []string{"true"}, NoWait: true}); env.Status != StatusCompleted {
		t.Errorf("the next command: %s", env.Status)
	}
	select {
	case <-ended:
		t.Error("the execution ended before its output was read")
	default:
	}
	close(reads)
	env := <-ended
	if env.Status != StatusTimedOut || env.StdoutBytes == 0 || got.Load() != env.StdoutBytes {
		t.Errorf("%s: the follower got %d of %d bytes", env.Status, got.Load(), env.StdoutBytes)
	}
}

// TestFollowerIsGivenUp holds that an interruption ends the wait for a follower that reads
// no more.
func TestFollowerIsGivenUp(t *testing.T) {
	d := newDesk(t, true)
	reads, stop := make(chan struct{}), make(chan os.Signal, 1)
	defer close(reads)
	told := make(chan struct{}, 1)
	stop2 := time.AfterFunc(2*time.Second, func() { stop <- os.Interrupt })
	defer stop2.Stop()
	env := d.Exec(d.ctx, Request{
		Argv: []string{"sh", "-c", "echo out"}, Interrupt: stop,
		Stdout: func([]byte) { told <- struct{}{}; <-reads },
	})
	if env.Status != StatusCompleted || len(told) != 1 {
		t.Errorf("%s, told %d times", env.Status, len(told))
	}
}
