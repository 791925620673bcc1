package gofusefs

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine"
)

// handle is what an open file is to us.
type handle struct {
	ino    engine.Ino
	file   *engine.File
	append bool          // opened with O_APPEND
	writes bool          // opened for writing
	quiet  bool          // the kernel does not ask at its close; see opened
	told   atomic.Uint64 // the failure of a commit that a write has reported
	caps   atomic.Uint64 // what vaultFS.caps was, plus one, when there were none; see dropForWrite
}

// handleTable gives the kernel numbers for handles.
type handleTable struct {
	mu   sync.RWMutex // guards what follows
	last uint64
	all  map[uint64]*handle
}

func newHandleTable() handleTable { return handleTable{all: map[uint64]*handle{}} }

func (t *handleTable) add(h *handle) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.all[t.last] = h
	return t.last
}

// file is the handle of an open file, or an error for a number that means none.
func (t *handleTable) file(fh uint64) (*handle, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if h := t.all[fh]; h != nil {
		return h, nil
	}
	return nil, &engine.Error{Kind: engine.BadHandle}
}

// remove forgets a handle, nil if there is none.
func (t *handleTable) remove(fh uint64) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.all[fh]
	delete(t.all, fh)
	return h
}

// written lists the inodes that are open for writing.
func (t *handleTable) written() []engine.Ino {
	var list []engine.Ino
	t.mu.RLock()
	for _, h := range t.all {
		if h.writes {
			list = append(list, h.ino)
		}
	}
	t.mu.RUnlock()
	slices.Sort(list)
	return slices.Compact(list)
}

// drain empties the table and returns the files that were open.
func (t *handleTable) drain() []*engine.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	var files []*engine.File
	for _, h := range t.all {
		files = append(files, h.file)
	}
	clear(t.all)
	return files
}
