//go:build cgo || windows

package cgofusefs

import (
	"strconv"
	"strings"
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// hiddenPrefix begins the names that libfuse gives to removed open files. The low
// half of its number for the file and a counter follow, each as eight hexadecimal
// digits.
const hiddenPrefix = ".fuse_hidden"

// hiddenCount is the counter in a hidden name; ok is false for any other name.
func hiddenCount(name string) (count uint64, ok bool) {
	digits, found := strings.CutPrefix(name, hiddenPrefix)
	if !found || len(digits) != 16 || strings.ToLower(digits) != digits {
		return 0, false
	}
	if _, err := strconv.ParseUint(digits[:8], 16, 32); err != nil {
		return 0, false
	}
	count, err := strconv.ParseUint(digits[8:], 16, 32)
	return count, err == nil
}

// place is a name in a directory; it stays right when a directory above moves.
type place struct {
	dir  engine.Ino
	name string
}

// orphanTable knows which inode a hidden name stands for. To the engine these
// inodes have no name any more, so they are in no listing, no count, no diff and
// no checkpoint; but libfuse still says the hidden name where it has no handle.
type orphanTable struct {
	mu     sync.RWMutex // guards what follows
	inodes map[place]engine.Ino
	newest uint64 // the highest counter seen in a hidden name
}

func newOrphanTable() orphanTable { return orphanTable{inodes: map[place]engine.Ino{}} }

// hiddenSlack is by how much the counters of concurrent removals may be apart.
const hiddenSlack = 64

// expects reports whether a rename to name, of a file that is open, is libfuse
// hiding it. The counter tells it from a program that renames a file to such a
// name, as one that copies the leavings of another mount does: libfuse counts up
// by one.
func (t *orphanTable) expects(name string) bool {
	count, ok := hiddenCount(name)
	if !ok {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return count+hiddenSlack > t.newest && count <= t.newest+hiddenSlack
}

func (t *orphanTable) add(dir engine.Ino, name string, ino engine.Ino) {
	count, _ := hiddenCount(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inodes[place{dir, name}] = ino
	t.newest = max(t.newest, count)
}

func (t *orphanTable) find(dir engine.Ino, name string) (engine.Ino, bool) {
	if !strings.HasPrefix(name, hiddenPrefix) {
		return 0, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	ino, ok := t.inodes[place{dir, name}]
	return ino, ok
}

// remove forgets a hidden name and reports whether it was known.
func (t *orphanTable) remove(dir engine.Ino, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := place{dir, name}
	_, ok := t.inodes[at]
	delete(t.inodes, at)
	return ok
}

// closed forgets every hidden name of an inode that nobody has open any more.
// libfuse would remove them itself, but not where their directory is gone.
func (t *orphanTable) closed(ino engine.Ino) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, hidden := range t.inodes {
		if hidden == ino {
			delete(t.inodes, at)
		}
	}
}
