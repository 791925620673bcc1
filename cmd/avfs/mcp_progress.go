package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentvfs/avfs/proxy"
	"github.com/agentvfs/avfs/workspace"
)

// teller tells a client how a call goes on, if the client has asked for that. Progress
// is counted in seconds, so that it always grows; the message says what there is to say.
type teller struct {
	send    func(seconds float64, message string)
	started time.Time
	quit    chan struct{}
	ended   chan struct{}

	mu      sync.Mutex // guards what follows
	pending string     // what has been printed since the last message
	dropped int        // bytes of it that were too much
}

const (
	// tellEvery is the shortest time between two messages.
	tellEvery = 100 * time.Millisecond
	// tellAlive is the longest, so that a client does not give a silent command up.
	tellAlive = 10 * time.Second
	// tellBytes is the most that one message says.
	tellBytes = 4 << 10
)

// newTeller begins to tell; close ends it.
func newTeller(ctx context.Context, req *mcp.CallToolRequest) *teller {
	t := &teller{started: time.Now(), quit: make(chan struct{}), ended: make(chan struct{})}
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		close(t.ended)
		return t
	}
	t.send = func(seconds float64, message string) {
		// A client that cannot be told has gone; that ends the call by itself.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: seconds, Message: message})
	}
	go t.loop() // ends with close
	return t
}

// close tells what is left to tell.
func (t *teller) close() {
	close(t.quit)
	<-t.ended
}

func (t *teller) loop() {
	defer close(t.ended)
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	last := t.started
	for {
		select {
		case <-t.quit:
			t.tell(false)
			return
		case now := <-tick.C:
			if t.tell(now.Sub(last) >= tellAlive) {
				last = now
			}
		}
	}
}

// tell sends what is pending, if anything is or if it has to.
func (t *teller) tell(always bool) bool {
	t.mu.Lock()
	message, dropped := t.pending, t.dropped
	t.pending, t.dropped = "", 0
	t.mu.Unlock()
	if message == "" && !always {
		return false
	}
	if dropped > 0 {
		message = fmt.Sprintf("[... %d bytes left out ...]\n", dropped) + message
	}
	t.send(time.Since(t.started).Seconds(), message)
	return true
}

// event takes what a command prints.
func (t *teller) event(ev proxy.Event) {
	if t.send == nil || ev.Text == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending += ev.Text
	if more := len(t.pending) - tellBytes; more > 0 {
		t.dropped += more
		t.pending = strings.ToValidUTF8(t.pending[more:], "")
	}
}

// count takes how far an import is.
func (t *teller) count(p workspace.Progress) {
	if t.send == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = fmt.Sprintf("%d files, %s", p.Files, size(p.Bytes))
}
