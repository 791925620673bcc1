package engine

import "context"

// CopyFrom makes at the new path to what is at from in a kept state, with everything below
// it, as the event of a write with that command: whole or not at all, in one transaction,
// times included. Content is shared, not stored again, and counts against the quota. The
// directory above to must be there, and nothing at to. The state before is kept under a
// new checkpoint.
func (v *Vault) CopyFrom(ctx context.Context, root Root, from, to string, command []string) (RestoreResult, error) {
	res, err := v.copyFrom(ctx, root, from, to, command)
	return res, atPath(err, "copy", to)
}

func (v *Vault) copyFrom(ctx context.Context, root Root, from, to string, command []string) (res RestoreResult, err error) {
	done, err := v.replacing(ctx)
	if err != nil {
		return res, err
	}
	defer done()
	if err := v.s.pinKept(ctx, root); err != nil {
		return res, err
	}
	defer v.s.unpin(root)
	a, err := v.s.Snapshot(root).Resolve(ctx, from, false)
	if err != nil {
		return res, atPath(err, "copy", from)
	}
	dir, name, err := v.place(ctx, to)
	if err != nil {
		return res, err
	}
	var before Root
	err = v.quiet(ctx, func() error {
		before = v.rec.Root
		h, err := v.newHistory(ctx, Event{Cause: CauseWrite, Command: command})
		if err != nil {
			return err
		}
		g := newGrafter(v, root)
		g.anew = true
		err = v.rewrite(ctx, rewriting{history: h, edit: func() error { return g.plantNew(ctx, a.Ino, dir, name) }})
		res.Root, res.UndoCheckpoint, res.Event = v.rec.Root, h.undo.ID, h.ev.Seq
		return err
	})
	if err != nil {
		return RestoreResult{}, err
	}
	res.Changes, res.Changed, err = v.s.Diff(ctx, before, res.Root, &DiffOptions{Paths: []string{to}})
	return res, err
}

// plantNew is plant, unless the quota has no room for all of it.
func (g *grafter) plantNew(ctx context.Context, ino Ino, dir Ino, name string) error {
	return g.within(func() error { return g.plant(ctx, ino, dir, name) })
}

// within runs an edit, which fails if it makes the vault grow beyond its quota.
func (g *grafter) within(edit func() error) error {
	v := g.v
	count, bytes := v.count, v.bytes
	if err := edit(); err != nil {
		return err
	}
	files, content := v.count-count, v.bytes-bytes
	v.count, v.bytes = count, bytes // the limits are for what is about to come
	err := v.admitFiles(files)
	if err == nil {
		err = v.admitBytes(content)
	}
	v.count, v.bytes = count+files, bytes+content
	return err
}

// plant makes an inode of the other state, with everything below it, at name in dir, with
// its times.
func (g *grafter) plant(ctx context.Context, ino Ino, dir Ino, name string) error {
	n, err := g.from.inode(ctx, ino)
	if err != nil {
		return err
	}
	if n.isRegular() {
		if err := g.v.admitSize(0, n.size); err != nil {
			return err
		}
	}
	if err := g.create(ctx, spot{side: side{ino, n}}, dir, name); err != nil || !n.isDir() {
		return err
	}
	e, _, err := g.v.view().dirent(ctx, dir, name)
	if err != nil {
		return err
	}
	err = g.from.readDir(ctx, ino, "", func(child DirEntry) error { return g.plant(ctx, child.Ino, e.ino, child.Name) })
	if err != nil {
		return err
	}
	made, err := g.v.view().inode(ctx, e.ino)
	if err != nil {
		return err
	}
	made.mtime = n.mtime
	g.v.putInode(e.ino, made)
	return nil
}
