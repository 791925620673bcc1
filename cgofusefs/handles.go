//go:build cgo || windows

package cgofusefs

import (
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// noHandle is what the library passes where it has no handle.
const noHandle = ^uint64(0)

// handle is what an open file or directory is to us.
type handle struct {
	ino    engine.Ino
	file   *engine.File // nil for a directory
	append bool         // opened with O_APPEND
	writes bool         // opened for writing
	list   *listing     // of a directory
}

func handleOf(file *engine.File, mode engine.OpenMode) *handle {
	return &handle{ino: file.Ino(), file: file, append: mode&engine.OpenAppend != 0, writes: mode&engine.OpenWrite != 0}
}

// handleTable gives the library numbers for handles.
type handleTable struct {
	mu   sync.RWMutex // guards what follows
	last uint64
	all  map[uint64]*handle
	open map[engine.Ino]int // open files, by inode
}

func newHandleTable() handleTable {
	return handleTable{all: map[uint64]*handle{}, open: map[engine.Ino]int{}}
}

func (t *handleTable) add(h *handle) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.all[t.last] = h
	if h.file != nil {
		t.open[h.ino]++
	}
	return t.last
}

func (t *handleTable) get(fh uint64) *handle {
	if fh == noHandle {
		return nil
	}
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

// remove forgets a handle; last says that its inode has no other open one.
func (t *handleTable) remove(fh uint64) (h *handle, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h = t.all[fh]
	if h == nil {
		return nil, false
	}
	delete(t.all, fh)
	if h.file == nil {
		return h, false
	}
	if t.open[h.ino]--; t.open[h.ino] > 0 {
		return h, false
	}
	delete(t.open, h.ino)
	return h, true
}

func (t *handleTable) isOpen(ino engine.Ino) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.open[ino] > 0
}

// anyWritten reports whether a file is open for writing.
func (t *handleTable) anyWritten() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, h := range t.all {
		if h.writes {
			return true
		}
	}
	return false
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
	clear(t.open)
	return files
}
