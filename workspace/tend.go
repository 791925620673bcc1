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
	// tendShare bounds the share of its time that an owner looks at what history keeps:
	// it waits so many times as long as the last look took.
	tendShare = 20
	// tendFull is how long an owner waits after it found no room to collect in.
	tendFull = time.Minute
)

// tend collects garbage in the background whenever there may be much of it, and drops
// history that is beyond a bound in bytes, while no operation is under way, until ctx
// ends or either fails for anything but a lack of room: what is wrong then is told by
// prune, gc and fsck, to whoever runs them.
func (o *Owner) tend(ctx context.Context) {
	look := time.NewTicker(tendEvery)
	defer look.Stop()
	var nextTrim time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		err := error(nil)
		if began := time.Now(); !began.Before(nextTrim) {
			err = o.ifIdle(ctx, o.trim)
			nextTrim = time.Now().Add(tendShare * time.Since(began))
		}
		if err == nil {
			err = o.collectIfDue(ctx)
		}
		switch engine.KindOf(err) {
		case "", engine.Interrupted:
			look.Reset(tendEvery)
		case engine.NoSpace:
			look.Reset(tendFull)
		default:
			return
		}
	}
}

// trim drops what is beyond a bound in bytes, and collects what only that kept.
func (o *Owner) trim(ctx context.Context) error {
	dropped, err := o.store.Trim(ctx)
	if err == nil && dropped > 0 {
		err = o.collect(ctx)
	}
	return err
}

func (o *Owner) collect(ctx context.Context) error {
	_, err := o.store.Collect(ctx)
	return err
}

// collectIfDue collects once, if that is due and the owner is idle.
func (o *Owner) collectIfDue(ctx context.Context) error {
	due, err := o.store.GCDue()
	if err != nil || !due {
		return err
	}
	return o.ifIdle(ctx, o.collect)
}

// ifIdle does fn unless the owner is in use. Operations that begin meanwhile go
// on beside it, but for those that want the store for themselves: they end it.
func (o *Owner) ifIdle(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !o.beginTending(cancel) {
		return nil
	}
	defer o.endTending()
	return fn(ctx)
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
