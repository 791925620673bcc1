package engine

import (
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// spaceGuard refuses new content early on a nearly full disk, so that a write
// fails where the program can see it, and not a commit later.
type spaceGuard struct {
	free func() (int64, error) // nil: not known

	mu   sync.Mutex // guards what follows
	at   time.Time
	last int64
}

const spaceMaxAge = 100 * time.Millisecond

func (g *spaceGuard) init(db kv.Store) {
	if s, ok := kv.As[kv.FreeSpacer](db); ok {
		g.free = s.FreeSpace
	}
}

// refresh forgets what was measured.
func (g *spaceGuard) refresh() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = time.Time{}
}

// available is the free space in bytes, at most spaceMaxAge old, and whether it
// is known.
func (g *spaceGuard) available() (int64, bool) {
	if g.free == nil {
		return 0, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.at) > spaceMaxAge {
		free, err := g.free()
		if err != nil {
			return 0, false
		}
		g.at, g.last = now, free
	}
	return g.last, true
}

// admits reports whether pending bytes of content still fit above the reserve and
// what a commit needs beside its content.
func (g *spaceGuard) admits(pending int64) bool {
	free, known := g.available()
	return !known || free > kv.Reserve+kv.Reserve/2+pending
}
