package workspace

import (
	"context"
	"errors"
	"path"

	"github.com/agentvfs/avfs/engine"
)

var errUnknownType = errors.New("a type is one of file, dir, symlink, fifo, socket, char and block")

// UsageRequest asks how much is below paths.
type UsageRequest struct {
	Vault      string `json:"vault"`
	Checkpoint string `json:"checkpoint,omitempty"` // a state; empty is the present one
	Past       bool   `json:"past,omitempty"`       // a path may be PATH@STATE, unless it exists as it is
	Paths      []Path `json:"paths"`
	All        bool   `json:"all,omitempty"`       // list what is no directory, too
	MaxDepth   *int   `json:"max_depth,omitempty"` // list nothing further below its path; all of it counts
}

// PathUsage is how much one path holds with everything below it, as a quota counts
// it: holes are nothing, and a file with several names counts once, for the first.
type PathUsage struct {
	Path    string `json:"path"`               // U+FFFD stands for bytes that are not UTF-8
	PathB64 string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Bytes   int64  `json:"bytes"`              // content
	Size    int64  `json:"size"`               // sizes of the files, holes included
	Files   int64  `json:"files"`              // inodes of every type, the path's own included
	Depth   int    `json:"depth"`              // how far below the path that was asked for
}

// OpUsage adds up directories, what is below before what it is in.
var OpUsage = Op[UsageRequest, []PathUsage]{Name: "fs.usage", Run: func(ctx context.Context, o *Owner, req UsageRequest, _ Streams) ([]PathUsage, error) {
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return nil, err
	}
	defer l.close()
	list := []PathUsage{}
	for _, top := range req.Paths {
		in, top, err := l.find(ctx, top)
		if err != nil {
			return nil, err
		}
		u := usage{req: &req, top: top, seen: map[engine.Ino]bool{}}
		if err := in.Walk(ctx, top, u.visit); err != nil {
			return nil, err
		}
		list = append(list, u.finish()...)
	}
	return list, nil
}}

// usage adds up one tree while it is walked.
type usage struct {
	req  *UsageRequest
	top  string
	seen map[engine.Ino]bool // files with several names
	open []openUsage         // the directories on the way to where the walk is
	list []PathUsage
}

type openUsage struct {
	path string
	PathUsage
}

// visit takes the next path of a walk.
func (u *usage) visit(p string, a engine.Attr) error {
	depth := depthBelow(u.top, p)
	u.close(depth)
	next := openUsage{path: p, PathUsage: PathUsage{Depth: depth}}
	if a.Nlink < 2 || a.IsDir() || !u.seen[a.Ino] {
		next.Files = 1
		if a.IsRegular() {
			next.Bytes, next.Size = a.Content, a.Size
		}
	}
	if a.Nlink > 1 && !a.IsDir() {
		u.seen[a.Ino] = true
	}
	if a.IsDir() {
		u.open = append(u.open, next)
		return nil
	}
	u.add(next, u.req.All || depth == 0)
	return nil
}

// close ends the directories at a depth and below.
func (u *usage) close(depth int) {
	for len(u.open) > depth {
		last := u.open[len(u.open)-1]
		u.open = u.open[:len(u.open)-1]
		u.add(last, true)
	}
}

// add counts what is complete into the directory above and, if it is to be seen,
// lists it.
func (u *usage) add(done openUsage, listed bool) {
	if n := len(u.open); n > 0 {
		up := &u.open[n-1]
		up.Bytes += done.Bytes
		up.Size += done.Size
		up.Files += done.Files
	}
	if listed && (u.req.MaxDepth == nil || done.Depth <= *u.req.MaxDepth) {
		done.Path, done.PathB64 = exactly(path.Clean("/" + done.path))
		u.list = append(u.list, done.PathUsage)
	}
}

func (u *usage) finish() []PathUsage {
	u.close(0)
	return u.list
}
