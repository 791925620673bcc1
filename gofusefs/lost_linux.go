package gofusefs

import (
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// lose notes that the vault has not taken a page of a mapping, for example over a
// quota: no program is told unless it asks with msync(2). Nobody may go on seeing the
// page. What goes to a file that a restore has replaced or taken away is no loss.
func (b *vaultFS) lose(ino engine.Ino, err error) {
	if kind := engine.KindOf(err); kind != engine.Stale && kind != engine.NotFound {
		b.lost.note(err)
	}
	b.changes.Add(1)
	go b.notifier.inode(&b.nodes, ino) // ends when the kernel has our answer to this write
}

// firstError keeps the first error since it was last taken.
type firstError struct {
	mu  sync.Mutex // guards err
	err error
}

func (f *firstError) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	f.err = nil
	return err
}
