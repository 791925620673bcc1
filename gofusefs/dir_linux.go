package gofusefs

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/agentvfs/avfs/engine"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Directories are listed without handles: once it is told that there is nothing to
// open, the kernel keeps whole listings and asks neither at the open nor at the
// close. So a position must mean the same in every listing of a directory, whatever
// came and went between. It is a hash of the name, and a listing is in the order of
// the hashes.

// Positions of the two entries that every directory has. Others come after them.
const (
	posSelf   = 1
	posParent = 2
)

// listed is an entry with its position.
type listed struct {
	engine.DirEntry
	pos uint64
}

// listings keeps what was read of directories until their readers have come to the
// end, so that a large one is read once and not again for each of its parts. A
// listing starts anew wherever somebody starts to read, and never changes.
type listings struct {
	mu    sync.Mutex // guards what follows
	dirs  map[engine.Ino][]listed
	total int // entries in dirs
}

func newListings() listings { return listings{dirs: map[engine.Ino][]listed{}} }

// maxListed bounds the entries that are kept of readers who never come to the end.
// Past it all but the newest listing is forgotten, and read again if need be.
const maxListed = 1 << 18

func (l *listings) get(dir engine.Ino) ([]listed, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, ok := l.dirs[dir]
	return list, ok
}

func (l *listings) put(dir engine.Ino, list []listed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total -= len(l.dirs[dir])
	if l.total+len(list) > maxListed {
		clear(l.dirs)
		l.total = 0
	}
	l.dirs[dir] = list
	l.total += len(list)
}

func (l *listings) drop(dir engine.Ino) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total -= len(l.dirs[dir])
	delete(l.dirs, dir)
}

// position is where a name is found: its FNV-1a hash, so that one directory has one
// order everywhere. Two names with one hash follow each other (order).
func position(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h>>2 | 4 // above posParent, and what an off_t holds
}

// order sorts entries by position.
func order(list []listed) {
	for i := range list {
		list[i].pos = position(list[i].Name)
	}
	slices.SortFunc(list, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.pos, b.pos), strings.Compare(a.Name, b.Name))
	})
	for i := 1; i < len(list); i++ {
		list[i].pos = max(list[i].pos, list[i-1].pos+1)
	}
}

// read reads a directory whole.
func (b *vaultFS) read(dir engine.Ino) ([]listed, error) {
	parent, err := b.v.Parent(b.own, dir)
	if err != nil {
		return nil, err
	}
	list := []listed{
		{engine.DirEntry{Name: ".", Ino: dir, Type: engine.TypeDir}, posSelf},
		{engine.DirEntry{Name: "..", Ino: parent, Type: engine.TypeDir}, posParent},
	}
	err = b.v.ReadDir(b.own, dir, "", func(e engine.DirEntry) error {
		list = append(list, listed{DirEntry: e})
		return nil
	})
	order(list[2:])
	return list, err
}

// list calls add for the entries behind the request's position, until it is false.
func (b *vaultFS) list(in *fuse.ReadIn, add func(dir engine.Ino, e listed) (bool, error)) fuse.Status {
	return b.do(func() error {
		dir := engine.Ino(in.NodeId)
		list, ok := b.lists.get(dir)
		if !ok || in.Offset == 0 {
			var err error
			if list, err = b.read(dir); err != nil {
				return ofNode(err)
			}
			b.lists.put(dir, list)
		}
		from, _ := slices.BinarySearchFunc(list, in.Offset+1, func(e listed, pos uint64) int { return cmp.Compare(e.pos, pos) })
		if from == len(list) {
			b.lists.drop(dir)
		}
		for _, e := range list[from:] {
			if more, err := add(dir, e); err != nil || !more {
				return err
			}
		}
		return nil
	})
}

// OpenDir says that directories need no handles. Kernels before 5.1 want one.
func (b *vaultFS) OpenDir(_ <-chan struct{}, _ *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if srv := b.notifier.srv.Load(); srv != nil && srv.KernelSettings().Flags&fuse.CAP_NO_OPENDIR_SUPPORT != 0 {
		return fuse.ENOSYS
	}
	return fuse.OK
}

// ReadDir lists names with inode numbers and types.
func (b *vaultFS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return b.list(in, func(_ engine.Ino, e listed) (bool, error) {
		return out.AddDirEntry(fuse.DirEntry{Name: e.Name, Ino: uint64(e.Ino), Mode: e.Type, Off: e.pos}), nil
	})
}

// ReadDirPlus lists with attributes, which the kernel keeps as if it had looked
// each name up. So each is looked up now, whatever the listing said of it. A failure
// ends the listing before its entry: the library sends an error without what was added,
// which is counted as told. The next request comes upon it first.
func (b *vaultFS) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	added := false
	return b.list(in, func(dir engine.Ino, e listed) (bool, error) {
		d := fuse.DirEntry{Name: e.Name, Ino: uint64(e.Ino), Mode: e.Type, Off: e.pos}
		if e.pos <= posParent { // the kernel takes no attributes of these
			if out.AddDirLookupEntry(d) == nil {
				return false, nil
			}
			added = true
			return true, nil
		}
		seen := b.changes.Load()
		a, err := b.v.Lookup(b.own, dir, e.Name)
		switch {
		case engine.KindOf(err) == engine.NotFound:
			return true, nil // removed meanwhile
		case err != nil && added:
			return false, nil
		case err != nil:
			return false, err
		}
		d.Ino, d.Mode = uint64(a.Ino), a.Mode
		entry := out.AddDirLookupEntry(d)
		if entry == nil {
			return false, nil
		}
		b.entry(entry, a, seen)
		added = true
		return true, nil
	})
}

// ReleaseDir has nothing to give back.
func (b *vaultFS) ReleaseDir(*fuse.ReleaseIn) {}

// FsyncDir makes the names in a directory survive power loss.
func (b *vaultFS) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	return b.do(func() error { return b.v.Sync(b.own) })
}
