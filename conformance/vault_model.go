package conformance

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/agentvfs/avfs/engine"
)

// world is the plain model of a vault: inodes by number, directories as maps.
type world struct {
	nodes map[engine.Ino]*thing
}

// thing is one inode of a world.
type thing struct {
	mode, uid, gid, rdev uint32
	data                 []byte // never changed in place: worlds share it
	target               string
	kids                 map[string]engine.Ino // of a directory
	xattrs               map[string]string
}

func newWorld(top engine.Attr) *world {
	return &world{nodes: map[engine.Ino]*thing{
		engine.RootIno: {mode: top.Mode, uid: top.UID, gid: top.GID, kids: map[string]engine.Ino{}},
	}}
}

func (th *thing) typ() uint32     { return th.mode & engine.TypeMask }
func (th *thing) isDir() bool     { return th.typ() == engine.TypeDir }
func (th *thing) isRegular() bool { return th.typ() == engine.TypeRegular }

func (th *thing) clone() *thing {
	c := *th
	c.kids = maps.Clone(th.kids)
	c.xattrs = maps.Clone(th.xattrs)
	return &c
}

func (w *world) clone() *world {
	c := &world{nodes: make(map[engine.Ino]*thing, len(w.nodes))}
	for ino, th := range w.nodes {
		c.nodes[ino] = th.clone()
	}
	return c
}

// nlinks counts the names of every inode.
func (w *world) nlinks() map[engine.Ino]uint32 {
	n := map[engine.Ino]uint32{}
	for ino, th := range w.nodes {
		if th.isDir() {
			n[ino] += 2
		}
		for _, kid := range th.kids {
			if w.nodes[kid].isDir() {
				n[ino]++
			} else {
				n[kid]++
			}
		}
	}
	return n
}

// inos lists, in order, the inodes for which keep holds.
func (w *world) inos(keep func(*thing) bool) []engine.Ino {
	var list []engine.Ino
	for ino, th := range w.nodes {
		if keep(th) {
			list = append(list, ino)
		}
	}
	slices.Sort(list)
	return list
}

// below reports whether dir is ino or under it.
func (w *world) below(dir, ino engine.Ino) bool {
	if dir == ino {
		return true
	}
	for _, kid := range w.nodes[ino].kids {
		if w.nodes[kid].isDir() && w.below(dir, kid) {
			return true
		}
	}
	return false
}

// paths lists every path but the top, with its inode.
func (w *world) paths() map[string]engine.Ino {
	all := map[string]engine.Ino{}
	var walk func(prefix string, dir engine.Ino)
	walk = func(prefix string, dir engine.Ino) {
		for name, kid := range w.nodes[dir].kids {
			all[prefix+name] = kid
			if w.nodes[kid].isDir() {
				walk(prefix+name+"/", kid)
			}
		}
	}
	walk("", engine.RootIno)
	return all
}

// drop takes a name away and returns the inode if that was its last one, which
// is then no longer part of the world.
func (w *world) drop(dir engine.Ino, name string) (engine.Ino, *thing) {
	ino := w.nodes[dir].kids[name]
	delete(w.nodes[dir].kids, name)
	for _, th := range w.nodes {
		for _, kid := range th.kids {
			if kid == ino {
				return 0, nil
			}
		}
	}
	th := w.nodes[ino]
	delete(w.nodes, ino)
	return ino, th
}

// write returns data with p at off.
func write(data []byte, p []byte, off int64) []byte {
	out := make([]byte, max(int64(len(data)), off+int64(len(p))))
	copy(out, data)
	copy(out[off:], p)
	return out
}

// resize returns data with another length.
func resize(data []byte, size int64) []byte {
	out := make([]byte, size)
	copy(out, data)
	return out
}

// zeroed returns data with zeros from off to end, no longer than it was.
func zeroed(data []byte, off, end int64) []byte {
	out := bytes.Clone(data)
	if off < int64(len(out)) {
		clear(out[off:min(end, int64(len(out)))])
	}
	return out
}

// reader is what a Vault and a Snapshot offer alike.
type reader interface {
	Stat(ctx context.Context, ino engine.Ino) (engine.Attr, error)
	ReadDir(ctx context.Context, dir engine.Ino, after string, fn func(engine.DirEntry) error) error
	Readlink(ctx context.Context, ino engine.Ino) (string, error)
	GetXattr(ctx context.Context, ino engine.Ino, name string) ([]byte, error)
	ListXattr(ctx context.Context, ino engine.Ino) ([]string, error)
}

// capture reads a whole state into a world.
func capture(ctx context.Context, r reader, content func(engine.Ino, int64) ([]byte, error)) (*world, error) {
	w := &world{nodes: map[engine.Ino]*thing{}}
	var visit func(ino engine.Ino) error
	visit = func(ino engine.Ino) error {
		if w.nodes[ino] != nil {
			return nil
		}
		a, err := r.Stat(ctx, ino)
		if err != nil {
			return fmt.Errorf("stat of inode %d: %w", ino, err)
		}
		th := &thing{mode: a.Mode, uid: a.UID, gid: a.GID, rdev: a.Rdev}
		w.nodes[ino] = th
		names, err := r.ListXattr(ctx, ino)
		if err != nil {
			return err
		}
		for _, name := range names {
			value, err := r.GetXattr(ctx, ino, name)
			if err != nil {
				return err
			}
			if th.xattrs == nil {
				th.xattrs = map[string]string{}
			}
			th.xattrs[name] = string(value)
		}
		switch {
		case a.IsRegular():
			th.data, err = content(ino, a.Size)
			return err
		case a.IsSymlink():
			th.target, err = r.Readlink(ctx, ino)
			return err
		case !a.IsDir():
			return nil
		}
		th.kids = map[string]engine.Ino{}
		last := ""
		err = r.ReadDir(ctx, ino, "", func(e engine.DirEntry) error {
			if e.Name <= last {
				return fmt.Errorf("name %q comes after %q", e.Name, last)
			}
			last = e.Name
			th.kids[e.Name] = e.Ino
			if err := visit(e.Ino); err != nil {
				return err
			}
			if kid := w.nodes[e.Ino]; kid.typ() != e.Type {
				return fmt.Errorf("entry %q has type %o, its inode %o", e.Name, e.Type, kid.typ())
			}
			return nil
		})
		return err
	}
	if err := visit(engine.RootIno); err != nil {
		return nil, err
	}
	for ino, want := range w.nlinks() {
		if a, err := r.Stat(ctx, ino); err != nil || a.Nlink != want {
			return nil, fmt.Errorf("inode %d has %d links, not %d (%v)", ino, a.Nlink, want, err)
		}
	}
	return w, nil
}

// captureVault reads the live state.
func captureVault(ctx context.Context, v *engine.Vault) (*world, error) {
	return capture(ctx, v, func(ino engine.Ino, size int64) ([]byte, error) {
		h, err := v.Open(ctx, ino, engine.OpenRead)
		if err != nil {
			return nil, err
		}
		return readAll(ctx, h, size)
	})
}

// captureRoot reads a kept state.
func captureRoot(ctx context.Context, s *engine.Store, root engine.Root) (*world, error) {
	snap := s.Snapshot(root)
	return capture(ctx, snap, func(ino engine.Ino, size int64) ([]byte, error) {
		h, err := snap.Open(ctx, ino)
		if err != nil {
			return nil, err
		}
		return readAll(ctx, h, size)
	})
}

func readAll(ctx context.Context, h interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Close() error
}, size int64) ([]byte, error) {
	data := make([]byte, size)
	n, err := h.ReadAt(ctx, data, 0)
	if err == nil && int64(n) != size {
		err = fmt.Errorf("read %d of %d bytes", n, size)
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return data, err
}

// differs describes the first difference between two things, "" where they are
// equal. Inode numbers of children do not count.
func (th *thing) differs(other *thing) string {
	switch {
	case th.mode != other.mode:
		return fmt.Sprintf("mode %o and %o", th.mode, other.mode)
	case th.uid != other.uid || th.gid != other.gid || th.rdev != other.rdev:
		return fmt.Sprintf("owner or device %d:%d:%d and %d:%d:%d", th.uid, th.gid, th.rdev, other.uid, other.gid, other.rdev)
	case th.target != other.target:
		return fmt.Sprintf("target %q and %q", th.target, other.target)
	case !maps.Equal(th.xattrs, other.xattrs):
		return fmt.Sprintf("attributes %v and %v", th.xattrs, other.xattrs)
	case len(th.data) != len(other.data):
		return fmt.Sprintf("%d and %d bytes", len(th.data), len(other.data))
	case !bytes.Equal(th.data, other.data):
		i := 0
		for th.data[i] == other.data[i] {
			i++
		}
		return fmt.Sprintf("content from byte %d of %d on", i, len(th.data))
	}
	return ""
}

// compareWorlds describes the first difference at a path, and with exact one in
// inode numbers too.
func compareWorlds(got, want *world, exact bool) error {
	gotPaths, wantPaths := got.paths(), want.paths()
	gotPaths["."], wantPaths["."] = engine.RootIno, engine.RootIno
	all := slices.Concat(slices.Collect(maps.Keys(gotPaths)), slices.Collect(maps.Keys(wantPaths)))
	sort.Strings(all)
	for _, p := range slices.Compact(all) {
		g, there := gotPaths[p]
		w, expected := wantPaths[p]
		switch {
		case !there:
			return fmt.Errorf("%s is missing (inode %d)", p, w)
		case !expected:
			return fmt.Errorf("%s should not be there (inode %d)", p, g)
		case exact && g != w:
			return fmt.Errorf("%s is inode %d, not %d", p, g, w)
		}
		if d := got.nodes[g].differs(want.nodes[w]); d != "" {
			return fmt.Errorf("%s (inode %d): %s", p, g, d)
		}
	}
	return nil
}
