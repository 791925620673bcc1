package engine

import (
	"context"
	"errors"
	"maps"
	"sort"
	"strings"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// graft makes some paths what they are in the state that a aims at, and keeps the rest, as
// rewrite does.
func (v *Vault) graft(ctx context.Context, a aim, paths []string, h *history) error {
	g := newGrafter(v, a.to)
	return v.rewrite(ctx, rewriting{
		edit: func() error {
			if !a.bounded {
				return g.run(ctx, paths)
			}
			return g.within(func() error { return g.run(ctx, paths) })
		}, history: h,
		note: func(rec *vaultRecord) {
			if a.checked && !h.ev.limited() {
				rec.Lineage = rec.Lineage.reversed(a.to, a.after, rec.Root)
			}
		},
	})
}

func newGrafter(v *Vault, from Root) *grafter {
	return &grafter{v: v, from: view{src: v.s.nodes, root: from.ref}, now: v.s.now(), made: map[Ino]Ino{}}
}

// rewriting is a change of the live tree that is a commit of its own.
type rewriting struct {
	edit    func() error
	history *history
	note    func(rec *vaultRecord) // what else changes in the record; nil is nothing
	// keeps says which of the inodes that changed keep their handles; nil says none.
	keeps func(Ino) bool
}

// rewrite makes the change and commits it with its history, if there was anything to
// change. After an error the vault is as it was. The caller holds all locks and
// nothing is pending.
func (v *Vault) rewrite(ctx context.Context, r rewriting) error {
	was := v.setAside()
	err := r.edit()
	changed := v.active.Len() > 0
	touched := map[Ino]bool{}
	var changes []Change
	v.active.Scan(func(k string, _ []byte) bool {
		if c, ok := changeOf([]byte(k)); ok {
			changes = append(changes, c)
		}
		touched[Ino(kv.ParseID([]byte(k[:8])))] = true
		return true
	})
	if err == nil && changed {
		err = v.commitGraft(ctx, r)
	}
	if err != nil {
		v.putBack(was)
		return err
	}
	v.files = was.files
	v.replaced = append(v.replaced, changes...)
	for ino := range touched {
		if f := v.files[ino]; f != nil && (r.keeps == nil || !r.keeps(ino)) {
			v.cutOff(f)
		}
	}
	r.history.written = changed
	return nil
}

// setAside is what a graft moves and has to put back after an error.
type setAside struct {
	files        map[Ino]*file
	nextIno      uint64
	count, bytes int64
	generation   uint64
}

// setAside prepares a graft: the entries of unlinked files are not in its way.
func (v *Vault) setAside() setAside {
	was := setAside{v.files, v.nextIno, v.count, v.bytes, v.generation}
	v.files = map[Ino]*file{}
	return was
}

// putBack drops what a graft has left pending.
func (v *Vault) putBack(was setAside) {
	for _, f := range v.files {
		v.dropDirty(f)
	}
	v.active = &overlay{}
	v.files, v.nextIno, v.count, v.bytes, v.generation = was.files, was.nextIno, was.count, was.bytes, was.generation
}

// tryGraft lists what a graft would change. Nothing is written: the nodes of the state
// that it would lead to are in memory only.
func (v *Vault) tryGraft(ctx context.Context, to Root, paths []string) ([]change, error) {
	was := v.setAside()
	defer v.putBack(was)
	if err := newGrafter(v, to).run(ctx, paths); err != nil {
		return nil, err
	}
	var changes []tree.Change
	v.active.Scan(func(k string, value []byte) bool {
		changes = append(changes, tree.Change{Key: []byte(k), Value: value, Delete: value == nil})
		return true
	})
	sink := &memorySink{s: v.s, nodes: map[uint64]*tree.Node{}}
	root, err := tree.Apply(ctx, sink, v.rec.Root.ref, tree.Slice(changes), sink)
	if err != nil {
		return nil, err
	}
	return diffIn(ctx, sink, v.rec.Root, Root{root}, nil, false)
}

// memorySink takes the nodes of a tree that is not to be stored, and reads them.
type memorySink struct {
	s     *Store
	nodes map[uint64]*tree.Node
}

func (m *memorySink) NewID() uint64 { return m.s.lastNode.Add(1) }

func (m *memorySink) Dead(tree.Ref) {}

func (m *memorySink) Put(ref tree.Ref, data []byte) error {
	n, err := tree.Decode(data, ref)
	m.nodes[ref.ID] = n
	return err
}

// Node implements tree.Source.
func (m *memorySink) Node(ctx context.Context, ref tree.Ref) (*tree.Node, error) {
	if n := m.nodes[ref.ID]; n != nil {
		return n, nil
	}
	return m.s.nodes.Node(ctx, ref)
}

// commitGraft commits what an edit left pending, with its history. The state
// before stays whole: it is the undo checkpoint's.
func (v *Vault) commitGraft(ctx context.Context, r rewriting) error {
	put := r.history.put(ctx)
	c := v.freeze(commitRequest{durable: true, pin: true, more: func(tx kv.Writer, rec *vaultRecord) error {
		if r.note != nil {
			r.note(rec)
		}
		return put(tx, rec)
	}})
	pinned := v.pinned()
	c.old.NodeMark, c.old.ChunkMark = pinned.NodeMark, pinned.ChunkMark
	err := c.persist(ctx)
	if err == nil {
		c.finish()
		return nil
	}
	v.frozen = nil
	v.doomed.nodes = append(v.doomed.nodes, c.drop.nodes...)
	v.doomed.chunks = append(v.doomed.chunks, c.drop.chunks...)
	maps.Copy(v.shared, c.shared)
	return err
}

// grafter copies entries of another state into the live tree.
type grafter struct {
	v    *Vault
	from view
	now  int64
	made map[Ino]Ino // inode of the other state -> inode in this one
	anew bool        // what it makes is a copy: no other name of what is here, and with its times
}

// spot is what a path leads to in one state; n is nil where nothing is.
type spot struct {
	dir  Ino
	name string
	side
}

// step is what has to happen at a path.
type step struct {
	path       string
	live, want spot
	remove     bool // what is there goes first
	content    bool // the content differs, in place
}

// run removes what has to go, deepest first, and then makes what has to come,
// parents first.
func (g *grafter) run(ctx context.Context, paths []string) error {
	var steps []step
	for _, p := range paths {
		st, needed, err := g.plan(ctx, p)
		if err != nil {
			return atPath(err, "restore", p)
		}
		if needed {
			steps = append(steps, st)
		}
	}
	depth := func(i int) int { return strings.Count(steps[i].path, "/") }
	sort.SliceStable(steps, func(i, j int) bool { return depth(i) > depth(j) })
	for _, st := range steps {
		if st.remove {
			if err := g.remove(ctx, st.path); err != nil {
				return atPath(err, "restore", st.path)
			}
		}
	}
	sort.Slice(steps, func(i, j int) bool { return steps[i].path < steps[j].path })
	for _, st := range steps {
		if st.want.n == nil {
			continue
		}
		if err := g.bring(ctx, st); err != nil {
			return atPath(err, "restore", st.path)
		}
	}
	return nil
}

// plan compares the two states at p.
func (g *grafter) plan(ctx context.Context, p string) (st step, needed bool, err error) {
	st.path = p
	if st.live, err = g.v.view().spot(ctx, p); err != nil {
		return st, false, err
	}
	if st.want, err = g.from.spot(ctx, p); err != nil {
		return st, false, err
	}
	live, want := st.live.n, st.want.n
	switch {
	case live == nil || want == nil:
		st.remove = live != nil
		return st, live != nil || want != nil, nil
	case live.mode&TypeMask != want.mode&TypeMask:
		st.remove = true
		return st, true, nil
	}
	same, meta, err := g.compare(ctx, st.live.side, st.want.side)
	if err != nil {
		return st, false, err
	}
	// What has several names, or a new target, is made anew: what the other
	// names lead to stays what it is.
	inPlace := live.isDir() || live.nlink == 1 && want.nlink == 1 && (same || live.isRegular())
	st.remove, st.content = !inPlace, !same
	relink := st.live.ino != st.want.ino && (live.nlink > 1 || want.nlink > 1) && !live.isDir()
	return st, !same || !meta || relink, nil
}

// compare reports whether two inodes have the same content, and whether they have
// the same mode, owner and extended attributes.
func (g *grafter) compare(ctx context.Context, live, want side) (content, meta bool, err error) {
	d := differ{a: pathFinder{w: g.v.view()}, b: pathFinder{w: g.from}}
	content, xattr, err := d.sameContent(ctx, live, want)
	meta = !xattr && live.n.mode == want.n.mode && live.n.uid == want.n.uid && live.n.gid == want.n.gid
	return content, meta, err
}

// spot resolves a path without following links.
func (w view) spot(ctx context.Context, p string) (at spot, err error) {
	if at.ino = RootIno; p == "." {
		at.n, err = w.inode(ctx, RootIno)
		return at, err
	}
	for part := range strings.SplitSeq(p, "/") {
		at.dir, at.name = at.ino, part
		if at.ino, at.n, err = w.lookup(ctx, at.dir, part); err != nil {
			if k := KindOf(err); k == NotFound || k == NotDirectory {
				err = nil
			}
			return spot{dir: at.dir, name: at.name}, err
		}
	}
	return at, nil
}

func (g *grafter) remove(ctx context.Context, p string) error {
	v := g.v
	at, err := v.view().spot(ctx, p)
	if err != nil || at.n == nil {
		return err
	}
	if at.n.isDir() && at.n.size > 0 {
		return fail(NotEmpty, "", "")
	}
	d, err := v.view().dir(ctx, at.dir)
	if err != nil {
		return err
	}
	if err := v.forget(ctx, at.ino, at.n, at.dir, at.name, g.now); err != nil {
		return err
	}
	v.unlink(at.dir, d, at.name, dirent{ino: at.ino, typ: at.n.mode & TypeMask}, g.now)
	return nil
}

// bring makes the path of st what it is in the other state.
func (g *grafter) bring(ctx context.Context, st step) error {
	if err := g.parents(ctx, st.path); err != nil {
		return err
	}
	at, err := g.v.view().spot(ctx, st.path)
	switch {
	case err != nil:
		return err
	case at.n == nil:
		return g.create(ctx, st.want, at.dir, at.name)
	case st.content:
		return g.copyContent(ctx, st.want.side, at.ino, at.n)
	}
	return g.copyMeta(ctx, st.want.side, at.ino, at.n)
}

// parents makes missing directories above p as they are in the other state.
func (g *grafter) parents(ctx context.Context, p string) error {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		return nil
	}
	up := p[:i]
	at, err := g.v.view().spot(ctx, up)
	switch {
	case err != nil:
		return err
	case at.n != nil && at.n.isDir():
		return nil
	case at.n != nil:
		return fail(NotDirectory, "", "")
	}
	if err := g.parents(ctx, up); err != nil {
		return err
	}
	want, err := g.from.spot(ctx, up)
	if err != nil {
		return err
	}
	if at, err = g.v.view().spot(ctx, up); err != nil {
		return err
	}
	return g.create(ctx, want, at.dir, at.name)
}

// create adds want at name in dir: as another name of an inode that is here
// already, under its old number where that is free, else under a new one.
func (g *grafter) create(ctx context.Context, want spot, dir Ino, name string) error {
	v := g.v
	d, err := v.freeName(ctx, dir, name)
	if err != nil {
		return err
	}
	entry := dirent{ino: want.ino, typ: want.n.mode & TypeMask}
	if ino, n, err := g.sibling(ctx, want.side); err != nil {
		return err
	} else if n != nil {
		v.addName(ino, n, dir, name)
		n.ctime = g.now
		v.putInode(ino, n)
		entry.ino = ino
		v.link(dir, d, name, entry, g.now)
		return nil
	}
	ino, n, err := g.copyInode(ctx, want.side, dir, name)
	if err != nil {
		return err
	}
	if n.isRegular() && !g.anew {
		n.mtime = g.now
		v.putInode(ino, n)
	}
	entry.ino = ino
	v.link(dir, d, name, entry, g.now)
	return nil
}

// copyInode makes a copy of an inode of the other state without its entry in dir:
// under its old number where that is free, else under a new one.
func (g *grafter) copyInode(ctx context.Context, want side, dir Ino, name string) (Ino, *inode, error) {
	v, ino := g.v, want.ino
	if _, err := v.view().inode(ctx, ino); err == nil {
		ino = v.newIno()
	} else if KindOf(err) != NotFound {
		return 0, nil, err
	}
	n := *want.n
	n.nlink, n.parent, n.name = 1, dir, name
	if n.isDir() {
		n.nlink, n.size = 2, 0
	} else {
		g.made[want.ino] = ino
	}
	n.ctime = g.now
	v.count++
	v.bytes += n.alloc
	v.putInode(ino, &n)
	return ino, &n, g.copyEntries(ctx, want.ino, ino, kindXattr, kindChunk)
}

// sibling finds the inode that want has to become another name of: one that this
// graft made from it, or one that has kept another of its names, and is the same.
func (g *grafter) sibling(ctx context.Context, want side) (Ino, *inode, error) {
	w := g.v.view()
	if ino, ok := g.made[want.ino]; ok {
		n, err := w.inode(ctx, ino)
		return ino, n, err
	}
	if want.n.isDir() || want.n.nlink < 2 || g.anew {
		return 0, nil, nil
	}
	n, err := w.inode(ctx, want.ino)
	if err != nil || n.isDir() {
		if KindOf(err) == NotFound {
			err = nil
		}
		return 0, nil, err
	}
	content, meta, err := g.compare(ctx, side{want.ino, n}, want)
	if err != nil || !content || !meta {
		return 0, nil, err
	}
	names, err := w.names(ctx, want.ino, n)
	if err != nil {
		return 0, nil, err
	}
	for _, nm := range names {
		if e, ok, err := g.from.dirent(ctx, nm.dir, nm.name); err != nil {
			return 0, nil, err
		} else if ok && e.ino == want.ino {
			return want.ino, n, nil
		}
	}
	return 0, nil, nil
}

// copyEntries makes the entries of some kinds of ino those of the other state's src.
func (g *grafter) copyEntries(ctx context.Context, src, ino Ino, kinds ...byte) error {
	for _, kind := range kinds {
		var old [][]byte
		if err := g.v.view().scan(ctx, key(ino, kind), nil, func(k, _ []byte) error {
			old = append(old, k)
			return nil
		}); err != nil {
			return err
		}
		for _, k := range old {
			g.v.put(ino, k, nil)
		}
		err := g.from.scan(ctx, key(src, kind), nil, func(k, value []byte) error {
			g.v.put(ino, append(key(ino, kind), k[keyHead:]...), value)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *grafter) copyMeta(ctx context.Context, src side, ino Ino, n *inode) error {
	n.mode, n.uid, n.gid, n.ctime = src.n.mode, src.n.uid, src.n.gid, g.now
	g.v.putInode(ino, n)
	return g.copyEntries(ctx, src.ino, ino, kindXattr)
}

// copyContent is copyMeta with the content.
func (g *grafter) copyContent(ctx context.Context, src side, ino Ino, n *inode) error {
	g.v.bytes += src.n.alloc - n.alloc
	n.size, n.alloc, n.mtime = src.n.size, src.n.alloc, g.now
	if err := g.copyEntries(ctx, src.ino, ino, kindChunk); err != nil {
		return err
	}
	return g.copyMeta(ctx, src, ino, n)
}

// touchedPaths lists the paths that differ from a to b and for which inside holds,
// before and after, with everything below a directory that was moved, and the other
// names that a file has in b.
func (s *Store) touchedPaths(ctx context.Context, a, b Root, inside func(string) bool) ([]string, error) {
	changes, err := s.diff(ctx, a, b, nil, true)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	add := func(p string) {
		if inside(p) {
			set[p] = true
		}
	}
	addBelow := func(p string, _ DirEntry) error {
		add(p)
		return nil
	}
	in := newPathFinder(view{src: s.nodes, root: b.ref})
	for _, c := range changes {
		add(c.path)
		if n := c.after.n; n != nil && n.nlink > 1 && !n.isDir() {
			names, err := in.w.names(ctx, c.after.ino, n)
			if err != nil {
				return nil, err
			}
			for _, nm := range names {
				p, err := in.join(ctx, nm)
				if err != nil {
					return nil, err
				}
				add(p)
			}
		}
		if c.oldPath == "" {
			continue
		}
		add(c.oldPath)
		if !c.before.n.isDir() {
			continue
		}
		for _, t := range []struct {
			root Root
			ino  Ino
			path string
		}{{a, c.before.ino, c.oldPath}, {b, c.after.ino, c.path}} {
			w := view{src: s.nodes, root: t.root.ref}
			if err := w.descend(ctx, t.ino, t.path, addBelow); err != nil {
				return nil, err
			}
		}
	}
	list := make([]string, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	sort.Strings(list)
	return list, nil
}

// descend calls fn for every path below the directory ino at path. SkipDir from fn
// leaves out what is below a directory.
func (w view) descend(ctx context.Context, ino Ino, path string, fn func(p string, e DirEntry) error) error {
	return w.readDir(ctx, ino, "", func(e DirEntry) error {
		below := path + "/" + e.Name
		if err := fn(below, e); errors.Is(err, SkipDir) {
			return nil
		} else if err != nil || e.Type != TypeDir {
			return err
		}
		return w.descend(ctx, e.Ino, below, fn)
	})
}
