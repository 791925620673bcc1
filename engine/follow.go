package engine

import (
	"context"
	"slices"
)

// Trace is what happened to one path between two states.
type Trace struct {
	Changes []FileChange // at the path and below it, sorted by path
	Total   int          // of Changes, and of those beyond the limit
	// OldPath is where what is at the path came from. It is the path itself unless
	// it was renamed, or a directory above it.
	OldPath string
}

// Follow lists what happened at a path, as it is in b, and below it. Unlike Diff it
// knows the path of before where a directory above it was renamed, and lists that as a
// rename of the path. For a file it costs some node reads, whatever else differs; for a
// directory as much as a Diff. Both roots must be kept by something.
func (s *Store) Follow(ctx context.Context, a, b Root, path string, limit int) (Trace, error) {
	path = cleanPath(path)
	t := Trace{OldPath: path, Changes: []FileChange{}}
	if a.Same(b) {
		return t, nil
	}
	list, err := s.follow(ctx, a, b, path)
	if err != nil {
		return t, wrap(err, "follow", path)
	}
	for _, c := range list {
		if c.path == path && c.oldPath != "" {
			t.OldPath = c.oldPath
		}
		if limit <= 0 || t.Total < limit {
			t.Changes = append(t.Changes, c.public())
		}
		t.Total++
	}
	return t, nil
}

func (s *Store) follow(ctx context.Context, a, b Root, path string) ([]change, error) {
	var paths []string
	if path != "" {
		paths = []string{path}
	}
	in := [2]view{{src: s.nodes, root: a.ref}, {src: s.nodes, root: b.ref}}
	var at [2]spot
	for i, w := range in {
		var err error
		if path != "" {
			at[i], err = w.spot(ctx, path)
		}
		if err != nil {
			return nil, err
		}
	}
	list, err := s.followHere(ctx, a, b, at, paths)
	if err != nil || path == "" {
		return list, err
	}
	if at[0].n != nil && at[1].n != nil {
		// The path was there before, so what came to it replaced that.
		list = slices.DeleteFunc(list, func(c change) bool { return c.path == path && c.oldPath != "" })
	}
	for i, there := range at {
		if there.n == nil || at[1-i].n != nil || mentions(list, path) {
			continue
		}
		// It is on one side only and nothing says so: it moved with a directory above.
		other := newPathFinder(in[1-i])
		n, names, err := other.inode(ctx, there.ino)
		if err != nil || n == nil || len(names) == 0 {
			return list, err
		}
		at := name{dir: there.dir, name: there.name}
		if !slices.Contains(names, at) { // which it kept, in a directory that moved
			at = names[0]
		}
		p, err := other.join(ctx, at)
		if err != nil {
			return nil, err
		}
		moved := change{kind: Renamed, path: path, oldPath: p, before: side{there.ino, n}, after: there.side}
		if i == 0 {
			moved = change{kind: Renamed, path: p, oldPath: path, before: there.side, after: side{there.ino, n}}
		}
		list = append(list, moved)
	}
	return list, nil
}

// followHere lists the changes at a path that is at in the two states. What became of a
// file its inodes say, wherever else something differs.
func (s *Store) followHere(ctx context.Context, a, b Root, at [2]spot, paths []string) ([]change, error) {
	inos := map[Ino]bool{}
	for _, there := range at {
		if there.n == nil {
			continue
		}
		if there.n.isDir() {
			return s.diff(ctx, a, b, paths, false)
		}
		inos[there.ino] = true
	}
	if len(paths) == 0 {
		return s.diff(ctx, a, b, nil, false)
	}
	d := newDiffer(s.nodes, a, b, false)
	if err := d.noteOnly(ctx, inos); err != nil {
		return nil, err
	}
	return d.settle(ctx, paths)
}

// mentions reports whether a change is about the path itself, or brought it or took it
// away.
func mentions(list []change, path string) bool {
	for _, c := range list {
		if c.path == path || c.oldPath == path {
			return true
		}
	}
	return false
}
