package transfer

import (
	"errors"
	"io/fs"

	"github.com/agentvfs/avfs/engine"
)

// hostStat is what transfer needs to know of an entry of the host. The mode has
// Linux's values on every system.
type hostStat struct {
	mode, uid, gid, rdev uint32
	nlink                uint64
	size                 int64
	allocated            int64 // bytes; -1 where the host does not tell
	atime, mtime         int64 // ns since 1970
	dev, ino             uint64
}

// sparse reports whether the file has holes.
func (s hostStat) sparse() bool { return s.allocated >= 0 && s.allocated < s.size }

// extent is a range of a file that is no hole.
type extent struct{ from, to int64 }

// join appends a name to a path relative to the source.
func join(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}

var errReplaced = &engine.Error{Kind: engine.NotFound, Err: message("was replaced by something else meanwhile")}

// bareCause is err without the path that package os put into it.
func bareCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
