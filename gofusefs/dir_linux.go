package gofusefs

import (
	"sync"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// listBatch is how many entries are read at a time.
const listBatch = 1024

// listing is what one open directory lists: entries in name order, read as far as
// a program has come. An offset is a position in it, so that entries which come and
// go meanwhile move none; whoever goes back to the start gets a new listing.
type listing struct {
	mu      sync.Mutex // guards what follows
	entries []engine.DirEntry
	whole   bool // nothing comes after entries
}

// restart forgets what was read and begins with "." and "..".
func (l *listing) restart(b *vaultFS, dir engine.Ino) error {
	parent, err := b.v.Parent(b.own, dir)
	if err != nil {
		return err
	}
	l.entries = append(l.entries[:0],
		engine.DirEntry{Name: ".", Ino: dir, Type: engine.TypeDir},
		engine.DirEntry{Name: "..", Ino: parent, Type: engine.TypeDir})
	l.whole = false
	return nil
}

// at returns the entry at position i, and whether there is one.
func (l *listing) at(b *vaultFS, dir engine.Ino, i int) (engine.DirEntry, bool, error) {
	for i >= len(l.entries) && !l.whole {
		if err := l.more(b, dir); err != nil {
			return engine.DirEntry{}, false, err
		}
	}
	if i >= len(l.entries) {
		return engine.DirEntry{}, false, nil
	}
	return l.entries[i], true, nil
}

func (l *listing) more(b *vaultFS, dir engine.Ino) error {
	after, n := "", 0
	if len(l.entries) > 2 {
		after = l.entries[len(l.entries)-1].Name
	}
	err := b.v.ReadDir(b.own, dir, after, func(e engine.DirEntry) error {
		l.entries = append(l.entries, e)
		if n++; n == listBatch {
			return kv.Stop
		}
		return nil
	})
	l.whole = n < listBatch
	return err
}

// OpenDir opens a directory.
func (b *vaultFS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return b.do(func() error {
		a, err := b.v.Stat(b.own, engine.Ino(in.NodeId))
		if err != nil {
			return ofNode(err)
		}
		if !a.IsDir() {
			return &engine.Error{Kind: engine.NotDirectory, Op: "opendir"}
		}
		out.Fh = b.handles.add(&handle{ino: a.Ino})
		return nil
	})
}

// list calls add for the entries from the request's offset on, until it is false.
func (b *vaultFS) list(in *fuse.ReadIn, add func(dir engine.Ino, e engine.DirEntry, next uint64) (bool, error)) fuse.Status {
	return b.do(func() error {
		h, err := b.handles.dir(in.Fh)
		if err != nil {
			return err
		}
		h.list.mu.Lock()
		defer h.list.mu.Unlock()
		if in.Offset == 0 {
			if err := h.list.restart(b, h.ino); err != nil {
				return err
			}
		}
		for i := int(in.Offset); ; i++ {
			e, ok, err := h.list.at(b, h.ino, i)
			if err != nil || !ok {
				return err
			}
			if more, err := add(h.ino, e, uint64(i+1)); err != nil || !more {
				return err
			}
		}
	})
}

// ReadDir lists names with inode numbers and types.
func (b *vaultFS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return b.list(in, func(_ engine.Ino, e engine.DirEntry, next uint64) (bool, error) {
		return out.AddDirEntry(fuse.DirEntry{Name: e.Name, Ino: uint64(e.Ino), Mode: e.Type, Off: next}), nil
	})
}

// ReadDirPlus lists with attributes, which the kernel keeps as if it had looked
// each name up. So each is looked up now, whatever the listing said of it.
func (b *vaultFS) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return b.list(in, func(dir engine.Ino, e engine.DirEntry, next uint64) (bool, error) {
		d := fuse.DirEntry{Name: e.Name, Ino: uint64(e.Ino), Mode: e.Type, Off: next}
		if next <= 2 { // the kernel takes no attributes of "." and ".."
			return out.AddDirLookupEntry(d) != nil, nil
		}
		seen := b.changes.Load()
		a, err := b.v.Lookup(b.own, dir, e.Name)
		switch {
		case engine.KindOf(err) == engine.NotFound:
			return true, nil // removed meanwhile
		case err != nil:
			return false, err
		}
		d.Ino, d.Mode = uint64(a.Ino), a.Mode
		entry := out.AddDirLookupEntry(d)
		if entry != nil {
			b.entry(entry, a, seen)
		}
		return entry != nil, nil
	})
}

// ReleaseDir gives a handle back.
func (b *vaultFS) ReleaseDir(in *fuse.ReleaseIn) { b.handles.remove(in.Fh) }

// FsyncDir makes the names in a directory survive power loss.
func (b *vaultFS) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	return b.do(func() error { return b.v.Sync(b.own) })
}
