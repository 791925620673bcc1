//go:build cgo || windows

package cgofusefs

import (
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// maxKept bounds the memory of keptTable. Past it everything is forgotten, which
// costs one more read of each file.
const maxKept = 1 << 16

// keptTable decides whether the kernel may keep the pages it has of a file when
// the file is opened again. It may if nothing has changed the file since the last
// open, which the ctime tells, because every change moves it. The kernel checks
// size and mtime on top of that. A file with several names is read afresh: to the
// kernel each name has pages of its own, so the last open may have been of others.
type keptTable struct {
	mu     sync.Mutex // guards ctimes
	ctimes map[engine.Ino]int64
}

func newKeptTable() keptTable { return keptTable{ctimes: map[engine.Ino]int64{}} }

// opened notes that a file is opened and returns whether its pages may stay.
func (t *keptTable) opened(a engine.Attr, mode engine.OpenMode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mode&engine.OpenWrite != 0 || a.Nlink != 1 {
		delete(t.ctimes, a.Ino)
		return false
	}
	last, seen := t.ctimes[a.Ino]
	if !seen && len(t.ctimes) >= maxKept {
		clear(t.ctimes)
	}
	t.ctimes[a.Ino] = a.Ctime
	return seen && last == a.Ctime
}

// forget notes that a file changes through this mount.
func (t *keptTable) forget(ino engine.Ino) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ctimes, ino)
}
