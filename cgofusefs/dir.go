//go:build cgo || windows

package cgofusefs

import (
	"context"
	"sync"

	"github.com/agentvfs/avfs/engine"
	"github.com/winfsp/cgofuse/fuse"
)

// listing is what one open directory lists. It is read as a whole when a program
// starts from the beginning, so that removing entries while listing skips none,
// and offsets are positions in it.
type listing struct {
	mu      sync.Mutex // guards entries
	entries []engine.DirEntry
}

// Opendir opens a directory.
func (b *vaultFS) Opendir(path string) (errc int, fh uint64) {
	fh = noHandle
	errc = b.do("opendir", func(ctx context.Context) error {
		a, err := b.walk(ctx, path)
		if err != nil {
			return err
		}
		if !a.IsDir() {
			return &engine.Error{Kind: engine.NotDirectory, Op: "opendir", Path: path}
		}
		fh = b.handles.add(&handle{ino: a.Ino, list: &listing{}})
		return nil
	})
	return errc, fh
}

// Readdir lists entries from position off on, until fill has no more room. Each
// comes with its inode number and type, and with the position of the next.
func (b *vaultFS) Readdir(_ string, fill func(string, *fuse.Stat_t, int64) bool, off int64, fh uint64) int {
	return b.do("readdir", func(ctx context.Context) error {
		h := b.handles.get(fh)
		if h == nil || h.list == nil {
			return &engine.Error{Kind: engine.BadHandle, Op: "readdir"}
		}
		h.list.mu.Lock()
		defer h.list.mu.Unlock()
		if off == 0 {
			entries, err := b.list(ctx, h.ino)
			if err != nil {
				return err
			}
			h.list.entries = entries
		}
		for at := off; at < int64(len(h.list.entries)); at++ {
			e := h.list.entries[at]
			if !fill(e.Name, &fuse.Stat_t{Ino: uint64(e.Ino), Mode: e.Type}, at+1) {
				return nil
			}
		}
		return nil
	})
}

// list reads a whole directory, "." and ".." first.
func (b *vaultFS) list(ctx context.Context, dir engine.Ino) ([]engine.DirEntry, error) {
	parent, err := b.v.Parent(ctx, dir)
	if err != nil {
		return nil, err
	}
	entries := []engine.DirEntry{
		{Name: ".", Ino: dir, Type: engine.TypeDir},
		{Name: "..", Ino: parent, Type: engine.TypeDir},
	}
	err = b.v.ReadDir(ctx, dir, "", func(e engine.DirEntry) error {
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// Releasedir gives a handle back.
func (b *vaultFS) Releasedir(_ string, fh uint64) int {
	return b.do("releasedir", func(context.Context) error {
		b.handles.remove(fh)
		return nil
	})
}

// Fsyncdir makes the names in a directory survive power loss.
func (b *vaultFS) Fsyncdir(string, bool, uint64) int {
	return b.do("fsyncdir", func(ctx context.Context) error {
		return b.v.Sync(ctx)
	})
}
