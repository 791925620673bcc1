package engine

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// RestoreOptions says what to restore and how to record it.
type RestoreOptions struct {
	// Paths limits the restore to these and what is below them. Files that a
	// limited restore rewrites get a new modification time, so that builds
	// notice. Without paths the whole state is restored, times included.
	Paths []string
	// ID names what asked for it, for the timeline; may be empty.
	ID string
}

// RestoreResult says what a restore did. Changed and Changes go from the state
// before the restore to the one after.
type RestoreResult struct {
	Changed        int          `json:"changed"`
	Changes        []FileChange `json:"changes"`
	UndoCheckpoint string       `json:"undo_checkpoint,omitempty"` // the state before; empty if nothing changed
	Root           Root         `json:"root"`
	Event          uint64       `json:"event,omitempty"` // its entry in the timeline
}

// Restore brings a kept state back: of a checkpoint, or of a timeline entry. The
// state before is kept under a new checkpoint. Open handles of files that the
// restore replaces or removes fail with Stale from then on. A restore that
// changes nothing does nothing. It applies whole or not at all.
func (v *Vault) Restore(ctx context.Context, to Root, opts *RestoreOptions) (RestoreResult, error) {
	if opts == nil {
		opts = &RestoreOptions{}
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	ev := Event{Cause: CauseRestore, ID: opts.ID}
	res, err := v.restoreLocked(ctx, to, opts.Paths, ev)
	return res, wrap(err, "restore", v.Name())
}

func (v *Vault) restoreLocked(ctx context.Context, to Root, paths []string, ev Event) (RestoreResult, error) {
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return RestoreResult{}, err
	}
	if len(paths) == 0 {
		return v.switchTo(ctx, to, ev)
	}
	changes, err := v.s.diff(ctx, v.rec.Root, to, paths, false)
	if err != nil {
		return RestoreResult{}, err
	}
	inside := func(p string) bool { return within(p, paths) }
	return v.apply(ctx, to, changes, inside, ev)
}

// settleTries is how often a restore commits what others keep writing before it
// gives up.
const settleTries = 50

// quiet runs fn with both locks held and nothing pending. The caller holds
// commitMu.
func (v *Vault) quiet(ctx context.Context, fn func() error) error {
	for range settleTries {
		if err := v.commitLocked(ctx, commitRequest{}); err != nil {
			return err
		}
		v.mu.Lock()
		if v.generation == v.committed.Load() {
			defer v.mu.Unlock()
			return fn()
		}
		v.mu.Unlock()
	}
	return &Error{Kind: Busy, Err: fmt.Errorf("others keep writing to the vault")}
}

// switchTo makes the whole state to the vault's.
func (v *Vault) switchTo(ctx context.Context, to Root, ev Event) (res RestoreResult, err error) {
	err = v.quiet(ctx, func() error {
		from := v.rec.Root
		res = RestoreResult{Root: from, Changes: []FileChange{}}
		if from.Same(to) {
			return nil
		}
		foot, err := v.s.footprint(ctx, from, to)
		if err != nil {
			return err
		}
		if res.Changes, res.Changed, err = v.s.Diff(ctx, from, to, nil); err != nil {
			return err
		}
		rec := v.pinned()
		rec.Root = to
		rec.Count += foot.count
		rec.Bytes += foot.bytes
		undo := v.undoCheckpoint(from, ev)
		rec.Checkpoints++
		ev = v.stamp(ev)
		ev.Before, ev.After = from, to
		err = v.s.kv.Update(ctx, kv.Durable, func(tx kv.Writer) error { return v.putSwitch(tx, rec, undo, ev) })
		if err != nil {
			return err
		}
		v.adopt(rec, foot)
		res.Root, res.UndoCheckpoint, res.Event = to, undo.ID, ev.Seq
		return nil
	})
	return res, err
}

func (v *Vault) undoCheckpoint(from Root, ev Event) Checkpoint {
	return Checkpoint{
		ID: checkpointID(v.s.lastCheckpoint.Add(1)), VaultID: v.id, Message: "before " + ev.Cause, Auto: true,
		At: v.s.opts.Clock().UTC(), Root: from, Files: v.rec.Count, Bytes: v.rec.Bytes,
	}
}

func (v *Vault) putSwitch(tx kv.Writer, rec vaultRecord, undo Checkpoint, ev Event) error {
	seq, _ := parseCheckpointID(undo.ID)
	if err := putJSON(tx, tableCheckpoints, rowKey(v.id, seq), undo); err != nil {
		return err
	}
	if err := putJSON(tx, tableTimeline, rowKey(v.id, ev.Seq), ev); err != nil {
		return err
	}
	if err := putRecord(tx, rec); err != nil {
		return err
	}
	return v.s.putCounters(tx)
}

// adopt makes rec the vault's record and cuts off the handles of what changed.
// The caller holds both locks and nothing is pending.
func (v *Vault) adopt(rec vaultRecord, foot footprint) {
	v.rec = rec
	v.count, v.bytes = rec.Count, rec.Bytes
	for ino := range foot.inos {
		if f := v.files[ino]; f != nil && f.orphan == nil {
			f.stale = true
			delete(v.files, ino)
		}
	}
	v.generation++
	v.committed.Store(v.generation)
	v.durable.Store(v.generation)
}

// footprint is what differs between two states at the level of inodes.
type footprint struct {
	inos         map[Ino]bool
	count, bytes int64 // what the second state has more
}

func (s *Store) footprint(ctx context.Context, a, b Root) (footprint, error) {
	f := footprint{inos: map[Ino]bool{}}
	err := tree.Diff(ctx, s.nodes, a.ref, b.ref, func(k, old, new []byte) error {
		ino, kind, _, err := splitKey(k)
		if err != nil {
			return err
		}
		f.inos[ino] = true
		if kind != kindInode {
			return nil
		}
		for _, side := range []struct {
			record []byte
			sign   int64
		}{{old, -1}, {new, 1}} {
			if side.record == nil {
				continue
			}
			n, err := decodeInode(side.record)
			if err != nil {
				return err
			}
			f.count += side.sign
			f.bytes += side.sign * n.alloc
		}
		return nil
	})
	return f, err
}

// apply makes the changes, which lead from the present state to the state to, at
// the paths for which inside holds. It changes the live tree entry by entry, in
// memory, and commits once.
func (v *Vault) apply(ctx context.Context, to Root, changes []change, inside func(string) bool, ev Event) (res RestoreResult, err error) {
	res = RestoreResult{Root: v.rec.Root, Changes: []FileChange{}}
	if len(changes) == 0 {
		return res, nil
	}
	undo, err := v.checkpointLocked(ctx, CheckpointOptions{Message: "before " + ev.Cause, Auto: true})
	if err != nil {
		return res, err
	}
	ev.Before = undo.Root
	err = v.quiet(ctx, func() error {
		if !v.rec.Root.Same(undo.Root) {
			return &Error{Kind: Busy, Err: fmt.Errorf("the vault was written to during the restore")}
		}
		g := &graft{v: v, from: v.s.Snapshot(to), now: v.s.now(), made: map[Ino]Ino{}, inside: inside}
		return g.run(ctx, changes)
	})
	if err != nil {
		return res, err
	}
	if ev, err = v.recordLocked(ctx, ev); err != nil {
		return res, err
	}
	res.Root, res.UndoCheckpoint, res.Event = ev.After, undo.ID, ev.Seq
	res.Changes, res.Changed, err = v.s.Diff(ctx, ev.Before, ev.After, nil)
	return res, err
}

// graft copies entries of another state into the live tree. Nothing is pending
// when it begins, so that it can be taken back by dropping the overlay.
type graft struct {
	v      *Vault
	from   *Snapshot
	now    int64
	made   map[Ino]Ino // inode of the other state → inode in this one
	inside func(string) bool
}

func (g *graft) run(ctx context.Context, changes []change) error {
	v := g.v
	nextIno, count, bytes, generation := v.nextIno, v.count, v.bytes, v.generation
	detached := map[Ino]*file{}
	for ino, f := range v.files {
		if f.orphan == nil {
			detached[ino] = f
			delete(v.files, ino)
		}
	}
	err := g.all(ctx, changes)
	if err != nil {
		v.active = &overlay{}
		v.nextIno, v.count, v.bytes, v.generation = nextIno, count, bytes, generation
	}
	touched := map[Ino]bool{}
	v.active.Scan(func(k string, _ []byte) bool {
		ino, _, _, _ := splitKey([]byte(k))
		touched[ino] = true
		return true
	})
	for ino, f := range detached {
		if touched[ino] {
			f.stale = true
		} else {
			v.files[ino] = f
		}
	}
	return err
}

// all removes what has to go, deepest first, and then makes what has to come,
// parents first.
func (g *graft) all(ctx context.Context, changes []change) error {
	var gone []string
	for _, c := range changes {
		switch c.kind {
		case Deleted, TypeChanged:
			gone = append(gone, c.path)
		case Renamed:
			gone = append(gone, c.oldPath)
		}
	}
	sort.Slice(gone, func(i, j int) bool { return strings.Count(gone[i], "/") > strings.Count(gone[j], "/") })
	for _, p := range gone {
		if !g.inside(p) {
			continue
		}
		if err := g.remove(ctx, p); err != nil {
			return atPath(err, "restore", p)
		}
	}
	for _, c := range changes { // sorted by path: parents come first
		if c.kind == Deleted || !g.inside(c.path) {
			continue
		}
		if err := g.bring(ctx, c); err != nil {
			return atPath(err, "restore", c.path)
		}
	}
	return nil
}

// find resolves a path of the live tree without following links.
func (g *graft) find(ctx context.Context, p string) (dir Ino, name string, ino Ino, n *inode, err error) {
	parts := strings.Split(p, "/")
	ino = RootIno
	for _, part := range parts {
		dir, name = ino, part
		if ino, n, err = g.v.view().lookup(ctx, dir, part); err != nil {
			return dir, name, 0, nil, err
		}
	}
	return dir, name, ino, n, nil
}

func (g *graft) remove(ctx context.Context, p string) error {
	v := g.v
	dir, name, ino, n, err := g.find(ctx, p)
	if KindOf(err) == NotFound || KindOf(err) == NotDirectory {
		return nil
	}
	if err != nil {
		return err
	}
	if n.isDir() && n.size > 0 {
		return fail(NotEmpty, "", "")
	}
	d, err := v.view().dir(ctx, dir)
	if err != nil {
		return err
	}
	if err := v.forget(ctx, ino, n, dir, name, g.now); err != nil {
		return err
	}
	v.unlink(dir, d, name, dirent{ino: ino, typ: n.mode & TypeMask}, g.now)
	return nil
}

// bring makes the path of c what it is in the other state.
func (g *graft) bring(ctx context.Context, c change) error {
	v := g.v
	if err := g.parents(ctx, c.path); err != nil {
		return err
	}
	if c.path == "." {
		n, err := v.view().inode(ctx, RootIno)
		if err != nil {
			return err
		}
		return g.copyMeta(ctx, c.after, RootIno, n)
	}
	dir, name, ino, n, err := g.find(ctx, c.path)
	switch {
	case err == nil && (c.after.n.isDir() || c.kind == ModeChanged || c.kind == AttrChanged):
		return g.copyMeta(ctx, c.after, ino, n)
	case err == nil && c.kind == Modified && n.isRegular() && c.after.n.isRegular():
		return g.copyContent(ctx, c.after, ino, n)
	case err == nil:
		if err := g.remove(ctx, c.path); err != nil {
			return err
		}
	case KindOf(err) != NotFound:
		return err
	}
	return g.create(ctx, c.after, dir, name)
}

// parents makes missing directories above p as they are in the other state.
func (g *graft) parents(ctx context.Context, p string) error {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		return nil
	}
	up := p[:i]
	_, _, _, n, err := g.find(ctx, up)
	if err == nil && n.isDir() {
		return nil
	}
	if err == nil {
		return fail(NotDirectory, "", "")
	}
	if KindOf(err) != NotFound {
		return err
	}
	if err := g.parents(ctx, up); err != nil {
		return err
	}
	a, err := resolve(ctx, g.from, up, false)
	if err != nil {
		return err
	}
	rec, err := g.from.w.inode(ctx, a.Ino)
	if err != nil {
		return err
	}
	dir, name, _, _, _ := g.find(ctx, up)
	return g.create(ctx, side{a.Ino, rec}, dir, name)
}

// create adds src at name in dir: as another name of an inode that was brought
// before, under its old number where that is free, else under a new one.
func (g *graft) create(ctx context.Context, src side, dir Ino, name string) error {
	v := g.v
	d, err := v.freeName(ctx, dir, name)
	if err != nil {
		return err
	}
	entry := dirent{ino: src.ino, typ: src.n.mode & TypeMask}
	if ino, ok := g.made[src.ino]; ok {
		n, err := v.view().inode(ctx, ino)
		if err != nil {
			return err
		}
		v.addName(ino, n, dir, name)
		n.ctime = g.now
		v.putInode(ino, n)
		entry.ino = ino
		v.link(dir, d, name, entry, g.now)
		return nil
	}
	if _, err := v.view().inode(ctx, src.ino); err == nil {
		entry.ino = Ino(v.nextIno)
		v.nextIno++
	} else if KindOf(err) != NotFound {
		return err
	}
	n := *src.n
	n.nlink, n.parent, n.name = 1, dir, name
	if n.isDir() {
		n.nlink, n.size = 2, 0
	} else {
		g.made[src.ino] = entry.ino
	}
	n.ctime = g.now
	if n.isRegular() {
		n.mtime = g.now
	}
	v.count++
	v.bytes += n.alloc
	v.putInode(entry.ino, &n)
	v.link(dir, d, name, entry, g.now)
	return g.copyEntries(ctx, src.ino, entry.ino, kindXattr, kindChunk)
}

// copyEntries makes the entries of some kinds of ino those of the other state's src.
func (g *graft) copyEntries(ctx context.Context, src, ino Ino, kinds ...byte) error {
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
		err := g.from.w.scan(ctx, key(src, kind), nil, func(k, value []byte) error {
			g.v.put(ino, append(key(ino, kind), k[keyHead:]...), value)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *graft) copyMeta(ctx context.Context, src side, ino Ino, n *inode) error {
	n.mode, n.uid, n.gid, n.ctime = src.n.mode, src.n.uid, src.n.gid, g.now
	g.v.putInode(ino, n)
	return g.copyEntries(ctx, src.ino, ino, kindXattr)
}

func (g *graft) copyContent(ctx context.Context, src side, ino Ino, n *inode) error {
	g.v.bytes += src.n.alloc - n.alloc
	n.size, n.alloc, n.mtime = src.n.size, src.n.alloc, g.now
	if err := g.copyEntries(ctx, src.ino, ino, kindChunk); err != nil {
		return err
	}
	return g.copyMeta(ctx, src, ino, n)
}
