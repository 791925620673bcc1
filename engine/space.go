package engine

import (
	"context"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// spaceGuard refuses new content early on a nearly full disk, so that a write fails
// where the program can see it, and not a commit later. It stops at kv.Scarce, the
// back end at kv.Reserve: what lies between is for names, attributes and records, so
// that a vault which has no room for content still works.
type spaceGuard struct {
	db kv.Store // asked anew each time: it may be one that has opened another in its place

	mu   sync.Mutex // guards what follows
	at   time.Time
	last int64
	// busy is the content that commits are about to write, spent what they wrote
	// since the space was measured. Both are in bytes.
	busy, spent int64
}

const spaceMaxAge = 100 * time.Millisecond

// refresh forgets what was measured.
func (g *spaceGuard) refresh() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = time.Time{}
}

// begin notes that a commit is about to write content bytes, which are not pending
// any more; end that it is over.
func (g *spaceGuard) begin(content int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy += content
}

func (g *spaceGuard) end(content int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy -= content
	g.spent += content
}

// available is what is left in bytes, measured at most spaceMaxAge ago, and whether
// it is known.
func (g *spaceGuard) available() (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.at) > spaceMaxAge {
		db, ok := kv.As[kv.FreeSpacer](g.db)
		if !ok {
			return 0, false
		}
		free, err := db.FreeSpace()
		if err != nil {
			return 0, false
		}
		g.at, g.last, g.spent = now, free, 0
	}
	return g.last - g.spent - g.busy, true
}

// check returns kv.ErrNoSpace unless pending bytes of content fit above kv.Scarce,
// with what a database takes beside its values.
func (g *spaceGuard) check(pending int64) error {
	need := kv.Scarce + pending + pending/8
	if free, known := g.available(); known && free <= need {
		return &kv.SpaceError{Free: free, Need: need}
	}
	return nil
}

// admits reports whether check finds room.
func (g *spaceGuard) admits(pending int64) bool { return g.check(pending) == nil }

// roomForContent is room for an operation that adds content.
func (v *Vault) roomForContent(ctx context.Context) error {
	if err := v.room(ctx); err != nil {
		return err
	}
	return v.s.space.check(v.s.dirty.Load())
}

// squeeze looks for room on a nearly full disk: it commits, which also frees what
// was removed, and asks the back end, which may have free space of its own.
func (v *Vault) squeeze(ctx context.Context) error {
	if err := v.reclaim(ctx); err != nil {
		return err
	}
	v.s.space.refresh()
	if v.s.space.admits(v.s.dirty.Load()) {
		return nil
	}
	defer v.s.space.refresh()
	return v.s.kv.Update(ctx, kv.Relaxed, func(kv.Writer) error { return nil })
}

// reclaim commits until nothing is left that could be deleted.
func (v *Vault) reclaim(ctx context.Context) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	for {
		if err := v.commitLocked(ctx, commitRequest{spill: true}); err != nil {
			return err
		}
		v.mu.RLock()
		done := v.doomed.empty()
		v.mu.RUnlock()
		if done {
			return nil
		}
	}
}
