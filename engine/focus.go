package engine

import (
	"context"
	"strings"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// noteAll notes what differs between the two states: of everything, or only of the
// inodes at paths where they say it all.
func (d *differ) noteAll(ctx context.Context, paths []string) error {
	inos, ok, err := d.focus(ctx, paths)
	if err != nil {
		return err
	}
	if !ok {
		return tree.Diff(ctx, d.a.w.src, d.a.w.root, d.b.w.root, d.note)
	}
	return d.noteOnly(ctx, inos)
}

// noteOnly notes what differs of some inodes. What is at the paths that they lost or
// gained is looked up, since it is not noted.
func (d *differ) noteOnly(ctx context.Context, inos map[Ino]bool) error {
	d.movedDirs = true
	for ino := range inos {
		if err := tree.DiffRange(ctx, d.a.w.src, d.a.w.root, d.b.w.root, kv.ID(uint64(ino)), kv.ID(uint64(ino)+1), d.note); err != nil {
			return err
		}
	}
	return nil
}

// focus finds the inodes that decide about paths. ok is false where others may have a
// say: at directories, and below directories that moved or were replaced.
func (d *differ) focus(ctx context.Context, paths []string) (inos map[Ino]bool, ok bool, err error) {
	inos = map[Ino]bool{}
	for _, p := range paths {
		if p = cleanPath(p); p == "" {
			return nil, false, nil
		}
		for i := 0; i >= 0; {
			if i = nextSlash(p, i); i > 0 {
				if ok, err := d.steady(ctx, p[:i]); err != nil || !ok {
					return nil, false, err
				}
				i++
				continue
			}
			for _, w := range []view{d.a.w, d.b.w} {
				at, err := w.spot(ctx, p)
				if err != nil || at.n != nil && at.n.isDir() {
					return nil, false, err
				}
				if at.n != nil {
					inos[at.ino] = true
				}
			}
		}
	}
	return inos, len(paths) > 0, nil
}

// nextSlash is the index of the first slash at or after i, or -1.
func nextSlash(p string, i int) int {
	if j := strings.IndexByte(p[i:], '/'); j >= 0 {
		return i + j
	}
	return -1
}

// steady reports whether a directory is the same in both states, or in one of them only
// and nowhere in the other.
func (d *differ) steady(ctx context.Context, dir string) (bool, error) {
	x, err := d.a.w.spot(ctx, dir)
	if err != nil {
		return false, err
	}
	y, err := d.b.w.spot(ctx, dir)
	if err != nil {
		return false, err
	}
	if x.n != nil && y.n != nil {
		return x.ino == y.ino, nil
	}
	for _, other := range []struct {
		at spot
		w  view
	}{{x, d.b.w}, {y, d.a.w}} {
		if other.at.n == nil {
			continue
		}
		if _, err := other.w.inode(ctx, other.at.ino); KindOf(err) != NotFound {
			return false, err
		}
	}
	return true, nil
}
