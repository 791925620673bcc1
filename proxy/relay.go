package proxy

import (
	"bytes"
	"context"
	"os"
	"sync"
	"time"
)

// relayBytes is how much output may wait for whoever follows a command, before the
// command waits too.
const relayBytes = 1 << 20

// relay hands what happens during a command to whoever follows it, in order, on a
// goroutine of its own. A follower that is slow holds the command back, as a pipe does,
// but not its end: after release nobody waits for the follower any more.
type relay struct {
	mu      sync.Mutex // guards what follows
	changed sync.Cond
	queue   []relayed
	bytes   int  // in queue
	free    bool // nobody waits
	running bool // the goroutine is there; it ends when the queue is empty
}

type relayed struct {
	size int
	tell func()
}

func newRelay() *relay {
	r := &relay{}
	r.changed.L = &r.mu
	return r
}

// put has tell called, after all that was put before. size is what it holds in memory,
// in bytes.
func (r *relay) put(size int, tell func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.bytes >= relayBytes && !r.free {
		r.changed.Wait()
	}
	r.queue = append(r.queue, relayed{size, tell})
	r.bytes += size
	if !r.running {
		r.running = true
		go r.run()
	}
}

func (r *relay) run() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		next.tell()
		r.mu.Lock()
		r.bytes -= next.size
		r.changed.Broadcast()
	}
	r.running = false
	r.changed.Broadcast()
}

// writer is a function that passes output on to live through the relay; nil if live is.
func (r *relay) writer(live func([]byte)) func([]byte) {
	if live == nil {
		return nil
	}
	return func(p []byte) {
		p = bytes.Clone(p)
		r.put(len(p), func() { live(p) })
	}
}

// release is for the end of the command: from now on put does not wait.
func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = true
	r.changed.Broadcast()
}

// lastWords is how long a follower has for what waits for it once the caller has given up.
const lastWords = time.Second

// drained waits until everything is handed over, and reports whether it is. Once ctx has
// ended, or an interruption has come, it waits no longer than lastWords, and drops the rest.
func (r *relay) drained(ctx context.Context, interrupt <-chan os.Signal) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.mu.Lock()
		defer r.mu.Unlock()
		for r.running {
			r.changed.Wait()
		}
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-interrupt:
	}
	select {
	case <-done:
		return true
	case <-time.After(lastWords):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue = nil
		return false
	}
}
