package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signalContext returns a context that ends with SIGINT or SIGTERM. A second
// signal ends the program.
func signalContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // gives the signals back to the system's default
	return ctx, stop
}

// relay takes the signals of this process while it runs a command in a vault:
// before the command runs they end the wait for it, then they are the command's.
type relay struct {
	forward chan os.Signal // to the command
	signals chan os.Signal // to us
	quit    chan struct{}
	cancel  context.CancelFunc
	closed  sync.Once

	mu      sync.Mutex
	running bool // the command runs; guarded by mu
}

// newRelay takes the signals over; close gives them back. The context ends with a
// signal that comes before the command runs.
func newRelay(parent context.Context) (context.Context, *relay) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	r := &relay{
		forward: make(chan os.Signal, 4), signals: make(chan os.Signal, 4), quit: make(chan struct{}), cancel: cancel,
	}
	signal.Notify(r.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go r.loop() // ends with close
	return ctx, r
}

func (r *relay) loop() {
	for {
		select {
		case s := <-r.signals:
			r.take(s)
		case <-r.quit:
			return
		}
	}
}

func (r *relay) take(s os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		r.cancel()
		return
	}
	r.pass(s)
}

// pass gives the command a signal. One that it has no room for is one of many.
func (r *relay) pass(s os.Signal) {
	select {
	case r.forward <- s:
	default:
	}
}

// started says that the command runs from now on.
func (r *relay) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = true
}

// close gives the signals back, once: from then on they end this process, also where it
// waits for somebody to read what it prints.
func (r *relay) close() {
	r.closed.Do(func() {
		signal.Stop(r.signals)
		close(r.quit)
		r.cancel()
	})
}

// isBrokenPipe reports whether a write failed because nobody reads any more.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
