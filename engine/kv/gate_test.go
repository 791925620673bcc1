package kv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestGateCloseEndsWaiting checks that whoever waits for a turn gives up when Close
// begins, while Close waits for whoever has one.
func TestGateCloseEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		slot := make(chan struct{}, 1)
		if err := errors.Join(g.Enter(t.Context()), g.Acquire(t.Context(), slot)); err != nil {
			t.Fatal(err)
		}
		waiter := make(chan error)
		go func() {
			if err := g.Enter(context.Background()); err != nil {
				waiter <- err
				return
			}
			defer g.Leave()
			waiter <- g.Acquire(context.Background(), slot)
		}()
		synctest.Wait()
		closed := make(chan bool, 2)
		go func() { closed <- g.Close() }()
		if err := <-waiter; !errors.Is(err, ErrClosed) {
			t.Errorf("a waiting transaction got %v, want ErrClosed", err)
		}
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close did not wait for the running transaction")
		}
		<-slot
		g.Leave()
		if !<-closed {
			t.Error("the first Close says that it was not the first")
		}
		if g.Close() {
			t.Error("the second Close says that it was the first")
		}
		if err := g.Enter(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Enter after Close: %v", err)
		}
	})
}

// TestAwaitLock checks how long Open waits: to the deadline, not at all under a
// cancelled context, and a bounded time where there is no deadline.
func TestAwaitLock(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tc := range map[string]struct {
		ctx  func() (context.Context, context.CancelFunc)
		want time.Duration
	}{
		"deadline": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), time.Second)
		}, time.Second},
		"cancelled":   {func() (context.Context, context.CancelFunc) { return cancelled, cancel }, 0},
		"no deadline": {func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }, OpenWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := tc.ctx()
				defer cancel()
				tries, start := 0, time.Now()
				ok, err := AwaitLock(ctx, func() (bool, error) { tries++; return false, nil })
				if took := time.Since(start); ok || err != nil || tries == 0 || took != tc.want {
					t.Errorf("%v, %v after %v and %d tries, want false after %v", ok, err, took, tries, tc.want)
				}
			})
		})
	}
	fails := errors.New("no such file")
	if _, err := AwaitLock(cancelled, func() (bool, error) { return false, fails }); !errors.Is(err, fails) {
		t.Errorf("a failing try: %v", err)
	}
	if ok, err := AwaitLock(cancelled, func() (bool, error) { return true, nil }); !ok || err != nil {
		t.Errorf("a free lock under a cancelled context: %v, %v", ok, err)
	}
}
