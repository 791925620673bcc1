package workspace

import (
	"context"
	"time"

	"github.com/agentvfs/avfs/engine"
)

const (
	// tendEvery is how often an owner looks whether there may be much garbage.
	tendEvery = 2 * time.Second
	// tendAfter is how long no operation must have been under way.
	tendAfter = time.Second
	// tendFull is how long an owner waits after it found no room to collect in.
	tendFull = time.Minute
)

// tend collects garbage in the background whenever there may be much of it and no
// operation is under way, until ctx ends or a collection fails for anything but a lack
// of room: what is wrong then is told by gc and fsck, to whoever runs them.
func (o *Owner) tend(ctx context.Context) {
	look := time.NewTicker(tendEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		switch engine.KindOf(o.collectIfIdle(ctx)) {
		case "", engine.Interrupted:
			look.Reset(tendEvery)
		case engine.NoSpace:
			look.Reset(tendFull)
		default:
			return
		}
	}
}

// collectIfIdle collects once, if that is due. Operations that begin meanwhile go
// on beside it, but for those that want the store for themselves: they end it.
func (o *Owner) collectIfIdle(ctx context.Context) error {
	due, err := o.store.GCDue()
	if err != nil || !due {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !o.beginTending(cancel) {
		return nil
	}
	defer o.endTending()
	_, err = o.store.Collect(ctx)
	return err
}

// beginTending notes that a collection runs, which cancel ends, unless the owner is
// in use. An owner that collects does not count as idle.
func (o *Owner) beginTending(cancel context.CancelFunc) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy > o.holding || o.closing || time.Since(o.since) < tendAfter {
		return false
	}
	o.tending = cancel
	return true
}

func (o *Owner) endTending() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tending = nil
	o.signal()
}

// interruptTending ends a collection in the background, for an operation that would
// wait for it.
func (o *Owner) interruptTending() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tending != nil {
		o.tending()
	}
}
