package gofusefs

import (
	"sync"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine"
)

// handle is what an open file or directory is to us.
type handle struct {
	ino    engine.Ino
	file   *engine.File // nil for a directory
	append bool         // opened with O_APPEND
	caps   atomic.Uint64
	list   listing // of a directory
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

func (t *handleTable) get(fh uint64) *handle {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[fh]
}

// file is the handle of an open file, or an error for a number that means none.
func (t *handleTable) file(fh uint64) (*handle, error) {
	if h := t.get(fh); h != nil && h.file != nil {
		return h, nil
	}
	return nil, &engine.Error{Kind: engine.BadHandle}
}

// dir is the handle of an open directory, likewise.
func (t *handleTable) dir(fh uint64) (*handle, error) {
	if h := t.get(fh); h != nil && h.file == nil {
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

// drain empties the table and returns the files that were open.
func (t *handleTable) drain() []*engine.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	var files []*engine.File
	for _, h := range t.all {
		if h.file != nil {
			files = append(files, h.file)
		}
	}
	clear(t.all)
	return files
}
