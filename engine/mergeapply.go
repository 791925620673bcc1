package engine

import (
	"context"
	"sort"
	"strings"
)

// mergeApply does the steps of a plan to the live tree.
type mergeApply struct {
	v     *Vault
	m     *merger
	g     *grafter // copies from theirs
	own   *grafter // copies from ours
	stale map[Ino]bool
	made  map[*entity]Ino // what came, and files that became their own
	texts map[Ino][]byte
}

func newMergeApply(v *Vault, m *merger, src Root) *mergeApply {
	return &mergeApply{
		v: v, m: m, g: newGrafter(v, src), own: newGrafter(v, v.rec.Root),
		stale: map[Ino]bool{}, made: map[*entity]Ino{}, texts: map[Ino][]byte{},
	}
}

// keeps reports whether open handles of an inode stay good: its content is what it was.
func (a *mergeApply) keeps(ino Ino) bool { return !a.stale[ino] }

// run takes away what moves and what goes, the deepest first, puts everything in its
// place, directories first, and then changes what stayed.
func (a *mergeApply) run(ctx context.Context) error {
	count, bytes := a.v.count, a.v.bytes
	for _, st := range a.m.steps {
		if st.move {
			if err := a.detach(ctx, st); err != nil {
				return atPath(err, "merge", st.ours.path)
			}
		}
	}
	if err := a.removeAll(ctx); err != nil {
		return err
	}
	// What moves has its name before something else of the file can take its old one.
	for _, moves := range []bool{true, false} {
		for _, st := range a.m.steps {
			if st.move != moves {
				continue
			}
			if err := a.put(ctx, st); err != nil {
				return atPath(err, "merge", a.m.pathAfter(st.e))
			}
		}
	}
	for _, st := range a.m.steps {
		if !st.create && st.edits() {
			if err := a.edit(ctx, st); err != nil {
				return atPath(err, "merge", a.m.pathAfter(st.e))
			}
		}
	}
	if err := a.admit(count, bytes); err != nil {
		return err
	}
	a.putTexts()
	return nil
}

// admit refuses what has grown over the quota.
func (a *mergeApply) admit(count, bytes int64) error {
	v := a.v
	files, grown := v.count-count, v.bytes-bytes
	v.count, v.bytes = count, bytes
	err := v.admitFiles(files)
	if err == nil {
		err = v.admitBytes(grown)
	}
	v.count, v.bytes = count+files, bytes+grown
	return err
}

// detach takes the entry of what moves away; attach gives it another.
func (a *mergeApply) detach(ctx context.Context, st *mergeStep) error {
	at, d, err := a.spotOf(ctx, st.ours.path)
	if err == nil {
		a.v.unlink(at.dir, d, at.name, dirent{ino: at.ino, typ: at.n.mode & TypeMask}, a.g.now)
	}
	return err
}

// spotOf finds what ours has at a path of the plan, and the record of its directory.
// Directories above it may have been detached, but not moved yet.
func (a *mergeApply) spotOf(ctx context.Context, path string) (at spot, d *inode, err error) {
	if at, err = a.own.from.spot(ctx, path); err != nil {
		return at, nil, err
	}
	if at.n, err = a.v.view().inode(ctx, at.ino); err != nil {
		return at, nil, err
	}
	d, err = a.v.view().dir(ctx, at.dir)
	return at, d, err
}

func (a *mergeApply) removeAll(ctx context.Context) error {
	var list []*mergeStep
	for _, st := range a.m.steps {
		if st.remove {
			list = append(list, st)
		}
	}
	depth := func(st *mergeStep) int { return strings.Count(st.ours.path, "/") }
	sort.SliceStable(list, func(i, j int) bool { return depth(list[i]) > depth(list[j]) })
	for _, st := range list {
		if err := a.remove(ctx, st); err != nil {
			return atPath(err, "merge", st.ours.path)
		}
	}
	return nil
}

func (a *mergeApply) remove(ctx context.Context, st *mergeStep) error {
	at, err := a.own.from.spot(ctx, st.ours.path)
	if err != nil {
		return err
	}
	if now, ok, err := a.v.view().dirent(ctx, at.dir, at.name); err != nil || !ok || now.ino != at.ino {
		return err // a tree that went has taken it along
	}
	at, d, err := a.spotOf(ctx, st.ours.path)
	if err != nil {
		return err
	}
	if at.n.isDir() && at.n.size > 0 {
		if !st.tree {
			return fail(NotEmpty, "", "")
		}
		if err := a.empty(ctx, at.ino); err != nil {
			return err
		}
	}
	return a.forget(ctx, at, d)
}

// forget removes a name, and with the last one the inode.
func (a *mergeApply) forget(ctx context.Context, at spot, d *inode) error {
	if at.n.isDir() || at.n.nlink < 2 {
		a.stale[at.ino] = true
	}
	if err := a.v.forget(ctx, at.ino, at.n, at.dir, at.name, a.g.now); err != nil {
		return err
	}
	a.v.unlink(at.dir, d, at.name, dirent{ino: at.ino, typ: at.n.mode & TypeMask}, a.g.now)
	return nil
}

// empty removes everything in a directory.
func (a *mergeApply) empty(ctx context.Context, dir Ino) error {
	var entries []DirEntry
	err := a.v.view().readDir(ctx, dir, "", func(e DirEntry) error {
		entries = append(entries, e)
		return nil
	})
	for _, e := range entries {
		if err != nil {
			return err
		}
		if e.Type == TypeDir {
			if err := a.empty(ctx, e.Ino); err != nil {
				return err
			}
		}
		at := spot{dir: dir, name: e.Name, side: side{ino: e.Ino}}
		if at.n, err = a.v.view().inode(ctx, e.Ino); err != nil {
			return err
		}
		var d *inode
		if d, err = a.v.view().dir(ctx, dir); err == nil {
			err = a.forget(ctx, at, d)
		}
	}
	return err
}

// put gives what moves or comes its name, after the directories above it.
func (a *mergeApply) put(ctx context.Context, st *mergeStep) error {
	if _, done := a.made[st.e]; done || !st.create && !st.move && !st.fresh {
		return nil
	}
	if st.fresh && !st.create {
		if err := a.single(ctx, st); err != nil || !st.move {
			return err
		}
	}
	dir, err := a.dir(ctx, st.to.up)
	if err != nil {
		return err
	}
	d, err := a.v.freeName(ctx, dir, st.to.name)
	if err != nil {
		return err
	}
	if st.move {
		return a.attach(ctx, st, dir, d)
	}
	return a.bring(ctx, st, dir, d)
}

// single makes a file of its own of one name of a file.
func (a *mergeApply) single(ctx context.Context, st *mergeStep) error {
	at, d, err := a.spotOf(ctx, st.ours.path)
	if err != nil {
		return err
	}
	old := at.n.mode & TypeMask
	if err := a.v.forget(ctx, at.ino, at.n, at.dir, at.name, a.g.now); err != nil {
		return err
	}
	ino, n, err := a.own.copyInode(ctx, st.ours.side, at.dir, at.name)
	if err != nil {
		return err
	}
	a.made[st.e] = ino
	if st.content {
		a.g.made[st.theirs.ino] = ino
	}
	if !st.move { // otherwise there is no entry
		a.v.unlink(at.dir, d, at.name, dirent{ino: at.ino, typ: old}, a.g.now)
		a.v.link(at.dir, d, at.name, dirent{ino: ino, typ: n.mode & TypeMask}, a.g.now)
	}
	return nil
}

// dir is the inode of a directory, made if it is still to come.
func (a *mergeApply) dir(ctx context.Context, e *entity) (Ino, error) {
	if ino, ok := a.made[e]; ok {
		return ino, nil
	}
	st := a.m.of[e]
	if st != nil && st.create {
		if err := a.put(ctx, st); err != nil {
			return 0, err
		}
		return a.made[e], nil
	}
	if st == nil || !st.remove {
		at, err := a.m.find(&a.m.ours, e)
		if err != nil || at.n != nil {
			return at.ino, err
		}
	}
	return a.parent(ctx, e)
}

// parent makes a directory that ours does not have as theirs has it.
func (a *mergeApply) parent(ctx context.Context, e *entity) (Ino, error) {
	want, err := a.m.find(&a.m.theirs, e)
	if err != nil {
		return 0, err
	}
	if want.n == nil || !want.n.isDir() {
		return 0, fail(NotDirectory, "", "")
	}
	to := a.m.placeIn(&a.m.theirs, e)
	dir, err := a.dir(ctx, to.up)
	if err != nil {
		return 0, err
	}
	d, err := a.v.freeName(ctx, dir, to.name)
	if err != nil {
		return 0, err
	}
	return a.come(ctx, e, want.side, dir, to.name, d)
}

// come makes a copy of an inode of theirs.
func (a *mergeApply) come(ctx context.Context, e *entity, want side, dir Ino, name string, d *inode) (Ino, error) {
	if want.n.isDir() && d.nlink >= MaxLinks {
		return 0, fail(TooManyLinks, "", "")
	}
	if err := a.v.admitSize(0, want.n.size); err != nil {
		return 0, err
	}
	ino, n, err := a.g.copyInode(ctx, want, dir, name)
	if err != nil {
		return 0, err
	}
	a.made[e], a.stale[ino] = ino, true
	a.v.link(dir, d, name, dirent{ino: ino, typ: n.mode & TypeMask}, a.g.now)
	return ino, nil
}

// attach gives what was detached its new name.
func (a *mergeApply) attach(ctx context.Context, st *mergeStep, dir Ino, d *inode) error {
	v, ino := a.v, st.ours.ino
	if own, ok := a.made[st.e]; ok {
		ino = own
	}
	n, err := v.view().inode(ctx, ino)
	if err != nil {
		return err
	}
	if n.isDir() && d.nlink >= MaxLinks {
		return fail(TooManyLinks, "", "")
	}
	old, err := a.own.from.spot(ctx, st.ours.path)
	if err != nil {
		return err
	}
	v.link(dir, d, st.to.name, dirent{ino: ino, typ: n.mode & TypeMask}, a.g.now)
	n.ctime = a.g.now
	v.rehang(&moved{dir: old.dir, name: old.name, ino: ino, n: n}, &moved{dir: dir, name: st.to.name})
	v.putInode(ino, n)
	return nil
}

// bring makes what theirs has, as another name of a file that is here already where
// theirs has it so.
func (a *mergeApply) bring(ctx context.Context, st *mergeStep, dir Ino, d *inode) error {
	ino, err := a.linked(ctx, st)
	if err != nil {
		return err
	}
	if ino == 0 {
		if ino, err = a.come(ctx, st.e, st.theirs.side, dir, st.to.name, d); err != nil || !st.whole {
			return err
		}
		return a.below(ctx, st.theirs, ino)
	}
	v := a.v
	n, err := v.view().inode(ctx, ino)
	if err != nil {
		return err
	}
	if n.nlink >= MaxLinks {
		return fail(TooManyLinks, "", "")
	}
	v.addName(ino, n, dir, st.to.name)
	n.ctime = a.g.now
	v.putInode(ino, n)
	v.link(dir, d, st.to.name, dirent{ino: ino, typ: n.mode & TypeMask}, a.g.now)
	a.made[st.e] = ino
	return nil
}

// linked is the inode that st becomes another name of, 0 for none.
func (a *mergeApply) linked(ctx context.Context, st *mergeStep) (Ino, error) {
	if st.link != nil {
		if ino, ok := a.made[st.link]; ok {
			return ino, nil
		}
		at, err := a.m.find(&a.m.ours, st.link)
		return at.ino, err
	}
	if st.theirs.n.isDir() || st.theirs.n.nlink < 2 {
		return 0, nil
	}
	return a.g.made[st.theirs.ino], nil
}

// below brings what is in a directory of theirs and has no step of its own.
func (a *mergeApply) below(ctx context.Context, from located, to Ino) error {
	return a.g.from.readDir(ctx, from.ino, "", func(e DirEntry) error {
		p := joinPath(from.path, e.Name)
		own := a.m.entityAt(&a.m.theirs, p)
		if !a.m.alongWith(own) {
			return nil
		}
		d, err := a.v.freeName(ctx, to, e.Name)
		if err != nil {
			return err
		}
		n, err := a.g.from.inode(ctx, e.Ino)
		if err != nil {
			return err
		}
		st := &mergeStep{e: own, theirs: located{p, side{e.Ino, n}}, create: true, whole: n.isDir(), to: place{name: e.Name}}
		return a.bring(ctx, st, to, d)
	})
}

// edit changes what ours has, where it is by now.
func (a *mergeApply) edit(ctx context.Context, st *mergeStep) error {
	v, ino := a.v, st.ours.ino
	if own, ok := a.made[st.e]; ok {
		ino = own
	}
	n, err := v.view().inode(ctx, ino)
	if err != nil {
		return err
	}
	if st.content || st.text != nil {
		if err := a.fill(ctx, st, ino, n); err != nil {
			return err
		}
	}
	if st.mode != nil {
		n.mode = *st.mode
	}
	if st.uid != nil {
		n.uid = *st.uid
	}
	if st.gid != nil {
		n.gid = *st.gid
	}
	if st.mtime != nil {
		n.mtime = *st.mtime
	}
	for name, value := range st.xattrs {
		v.put(ino, xattrKey(ino, name), value)
	}
	n.ctime = a.g.now
	v.putInode(ino, n)
	return nil
}

// fill gives the inode with the record n its new content.
func (a *mergeApply) fill(ctx context.Context, st *mergeStep, ino Ino, n *inode) error {
	v := a.v
	size, alloc := st.theirs.n.size, st.theirs.n.alloc
	if st.text != nil {
		size = int64(len(*st.text))
		alloc = size
	}
	if err := v.admitSize(n.size, size); err != nil {
		return err
	}
	a.stale[ino] = true
	v.bytes += alloc - n.alloc
	n.size, n.alloc, n.mtime = size, alloc, a.g.now
	if a.m.fast {
		n.mtime = st.theirs.n.mtime
	}
	if st.text == nil {
		return a.g.copyEntries(ctx, st.theirs.ino, ino, kindChunk)
	}
	var old [][]byte
	err := v.view().scan(ctx, key(ino, kindChunk), nil, func(k, _ []byte) error {
		old = append(old, k)
		return nil
	})
	for _, k := range old {
		v.put(ino, k, nil)
	}
	a.texts[ino] = *st.text
	return err
}

// putTexts makes the merged texts pages, which the commit stores.
func (a *mergeApply) putTexts() {
	for ino, text := range a.texts {
		f := a.v.fileOf(ino)
		for i := int64(0); i*ChunkSize < int64(len(text)); i++ {
			part := text[i*ChunkSize : min(int64(len(text)), (i+1)*ChunkSize)]
			f.dirty[i] = &page{data: part[:len(part):len(part)]}
			a.v.s.dirty.Add(int64(len(part)))
		}
	}
}
