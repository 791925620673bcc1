package kv

import (
	"context"
	"sync"
	"time"
)

// OpenWait is how long Open waits for a store that is in use when its context
// has no deadline.
const OpenWait = 5 * time.Second

// lockPoll is how often a wait for a store that is in use looks again.
const lockPoll = 5 * time.Millisecond

// AwaitLock calls try until it takes the lock, within the rules of Driver.Open.
// When time is up it returns nil and false; the caller then names the holder.
func AwaitLock(ctx context.Context, try func() (bool, error)) (bool, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, OpenWait)
		defer cancel()
	}
	for {
		ok, err := try()
		if ok || err != nil {
			return ok, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(lockPoll):
		}
	}
}

// Gate counts the transactions of a store so that Close can wait for them, and
// turns new ones away once it has begun. The zero value is not ready: use NewGate.
type Gate struct {
	closing chan struct{} // closed when Close begins

	mu     sync.Mutex // guards the rest
	active int
	closed bool
	idle   chan struct{} // closed when active reaches zero after Close began
}

// NewGate returns an open gate.
func NewGate() *Gate {
	return &Gate{closing: make(chan struct{}), idle: make(chan struct{})}
}

// Enter lets a transaction in, or returns ErrClosed or the error of ctx. When it
// returns nil, Leave must follow.
func (g *Gate) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil && !g.isClosed() {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	g.active++
	return nil
}

// isClosed reports whether Close has begun.
func (g *Gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Leave notes the end of a transaction that Enter let in.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	if g.closed && g.active == 0 {
		close(g.idle)
	}
}

// Closing is closed when Close begins, so that whoever waits for a connection
// inside the gate can give up with ErrClosed.
func (g *Gate) Closing() <-chan struct{} { return g.closing }

// Close shuts the gate and waits until everyone has left. It reports whether this
// call was the first: only that one may release the database.
func (g *Gate) Close() (first bool) {
	g.mu.Lock()
	first = !g.closed
	if first {
		g.closed = true
		close(g.closing)
		if g.active == 0 {
			close(g.idle)
		}
	}
	g.mu.Unlock()
	<-g.idle
	return first
}

// Acquire takes one of the places that the capacity of slot offers, or returns
// ErrClosed or the error of ctx. Whoever holds a place gives it back by receiving
// from slot.
func (g *Gate) Acquire(ctx context.Context, slot chan struct{}) error {
	select {
	case <-g.closing:
		return ErrClosed
	default:
	}
	select {
	case slot <- struct{}{}:
		return nil
	case <-g.closing:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
