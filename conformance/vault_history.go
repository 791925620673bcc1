package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

func (r *modelRun) opCommit(ctx context.Context, p *played) {
	durable := r.rng.IntN(2) == 0
	r.note("%s commit durable=%v", p.name, durable)
	_, err := p.v.Commit(ctx, durable)
	r.ok(err)
}

func (r *modelRun) opCheckpoint(ctx context.Context, p *played) {
	cp, err := p.v.Checkpoint(ctx, engine.CheckpointOptions{Message: "m"})
	r.ok(err)
	r.note("%s checkpoint %s", p.name, cp.ID)
	r.kept = append(r.kept, keptWorld{p.name, cp, p.w.clone()})
	if len(r.kept) > 8 {
		i := r.rng.IntN(4)
		k := r.kept[i]
		r.note("%s delete checkpoint %s", k.vault, k.cp.ID)
		for _, q := range r.vaults {
			if q.name == k.vault {
				r.ok(q.v.DeleteCheckpoint(ctx, k.cp.ID))
			}
		}
		r.kept = slices.Delete(r.kept, i, i+1)
	}
}

func (r *modelRun) opFork(ctx context.Context, p *played) {
	if r.forks++; r.forks > 6 {
		return
	}
	q := &played{name: fmt.Sprintf("fork%d", r.forks), apart: map[engine.Ino]*thing{}, w: p.w.clone()}
	r.note("fork %s to %s", p.name, q.name)
	var err error
	mine := slices.IndexFunc(r.kept, func(k keptWorld) bool { return k.vault == p.name })
	if mine >= 0 && r.rng.IntN(2) == 0 {
		q.w = r.kept[mine].w.clone()
		q.v, err = r.store.ForkAt(ctx, p.name, r.kept[mine].cp, q.name)
	} else {
		q.v, err = r.store.Fork(ctx, p.name, q.name)
	}
	r.ok(err)
	r.vaults = append(r.vaults, q)
	if len(r.vaults) > 3 {
		r.deleteVault(ctx, 1+r.rng.IntN(2))
	}
}

func (r *modelRun) deleteVault(ctx context.Context, i int) {
	p := r.vaults[i]
	r.note("delete vault %s", p.name)
	if len(p.handles) > 0 {
		r.want(r.store.DeleteVault(ctx, p.name), engine.Busy)
	}
	for len(p.handles) > 0 {
		r.closeHandle(p, 0)
	}
	r.ok(r.store.DeleteVault(ctx, p.name))
	r.vaults = slices.Delete(r.vaults, i, i+1)
	r.kept = slices.DeleteFunc(r.kept, func(k keptWorld) bool { return k.vault == p.name })
}

func (r *modelRun) opGC(ctx context.Context, _ *played) {
	r.note("gc")
	_, err := r.store.GC(ctx)
	r.ok(err)
}

// dropStale takes away the handles that a restore cut off. It must not have cut off
// those for which keep holds.
func (r *modelRun) dropStale(ctx context.Context, p *played, keep func(h *handle) bool) {
	r.Helper()
	for i := 0; i < len(p.handles); {
		h := p.handles[i]
		_, err := h.f.Stat(ctx)
		if engine.KindOf(err) == engine.Stale {
			if keep(h) {
				r.fatalf("the handle of inode %d is stale for no reason", h.ino)
			}
			_, err := h.f.WriteAt(ctx, []byte("x"), 0)
			r.want(err, engine.Stale)
			r.closeHandle(p, i)
			continue
		}
		r.ok(err)
		if h.th == nil && p.w.nodes[h.ino] == nil {
			r.fatalf("the handle of inode %d outlived a restore that removed the file", h.ino)
		}
		i++
	}
}

func (r *modelRun) anyKept(p *played) (keptWorld, bool) {
	if len(r.kept) == 0 {
		return keptWorld{}, false
	}
	return r.kept[r.rng.IntN(len(r.kept))], true // of another vault of the family, too
}

func (r *modelRun) opRestore(ctx context.Context, p *played) {
	k, ok := r.anyKept(p)
	if !ok {
		return
	}
	r.note("%s restore %s of %s", p.name, k.cp.ID, k.vault)
	before := p.w
	want, vague := modelDiff(before, k.w)
	res, err := p.v.Restore(ctx, k.cp.Root, nil)
	r.ok(err)
	p.w = k.w.clone()
	r.sameList("the changes of a restore", res.Changes, want, vague)
	if res.Event == 0 && len(want) > 0 {
		r.fatalf("a restore that changed something left no event")
	}
	r.dropStale(ctx, p, func(h *handle) bool {
		return h.th != nil && p.w.nodes[h.ino] == nil
	})
	r.compareAll(ctx)
	if res.UndoCheckpoint != "" {
		cp, err := p.v.FindCheckpoint(ctx, res.UndoCheckpoint)
		r.ok(err)
		got, err := captureRoot(ctx, r.store, cp.Root)
		r.ok(err)
		r.ok(compareWorlds(got, before, true))
	}
}

// graftModel is what a restore of some paths must make of a world.
func graftModel(live, kept *world, p string) *world {
	w := live.clone()
	parts := strings.Split(p, "/")
	w.ensure(kept, parts[:len(parts)-1])
	dir := w.dirAt(parts[:len(parts)-1])
	if dir == nil {
		return w
	}
	name := parts[len(parts)-1]
	delete(dir.kids, name)
	if ino, ok := kept.paths()[p]; ok {
		dir.kids[name] = w.copyTree(kept, ino)
	}
	return w
}

// fresh is above every inode number that a vault hands out.
const fresh engine.Ino = 1 << 62

func (w *world) copyTree(from *world, ino engine.Ino) engine.Ino {
	th := from.nodes[ino].clone()
	own := fresh + engine.Ino(len(w.nodes))
	for w.nodes[own] != nil {
		own++
	}
	w.nodes[own] = th
	for name, kid := range th.kids {
		th.kids[name] = w.copyTree(from, kid)
	}
	return own
}

// dirAt is the directory at a path, nil where there is none.
func (w *world) dirAt(parts []string) *thing {
	at := w.nodes[engine.RootIno]
	for _, part := range parts {
		ino, ok := at.kids[part]
		if !ok || !w.nodes[ino].isDir() {
			return nil
		}
		at = w.nodes[ino]
	}
	return at
}

// ensure makes the directories that are missing as they are in kept.
func (w *world) ensure(kept *world, parts []string) {
	for i := range parts {
		dir := w.dirAt(parts[:i])
		if dir == nil {
			return
		}
		model := kept.dirAt(parts[:i+1])
		if _, there := dir.kids[parts[i]]; !there && model != nil {
			th := model.clone()
			th.kids = map[string]engine.Ino{}
			own := fresh + engine.Ino(len(w.nodes))
			w.nodes[own] = th
			dir.kids[parts[i]] = own
		}
	}
}

func (r *modelRun) opRestorePaths(ctx context.Context, p *played) {
	k, ok := r.anyKept(p)
	if !ok {
		return
	}
	var all []string
	for path := range k.w.paths() {
		all = append(all, path)
	}
	for path := range p.w.paths() {
		all = append(all, path)
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	path := all[r.rng.IntN(len(all))]
	r.note("%s restore %q from %s of %s", p.name, path, k.cp.ID, k.vault)
	want := p.w
	if _, inLive := p.w.paths()[path]; inLive || k.w.paths()[path] != 0 {
		want = graftModel(p.w, k.w, path)
	}
	_, err := p.v.Restore(ctx, k.cp.Root, &engine.RestoreOptions{Paths: []string{path}})
	if engine.KindOf(err) == engine.NotDirectory {
		r.compareAll(ctx) // a file is in the way of a directory above: nothing happened
		return
	}
	r.ok(err)
	got, err := captureVault(ctx, p.v)
	r.ok(err)
	if err := compareWorlds(got, want, false); err != nil {
		r.fatalf("restore of %q: %v", path, err)
	}
	r.sameLinks(got, k.w, path)
	p.w = got
	r.dropStale(ctx, p, func(h *handle) bool { return h.th != nil && got.nodes[h.ino] == nil })
	r.compareAll(ctx)
}

// sameLinks checks that hard links within the restored path are links again.
func (r *modelRun) sameLinks(got, kept *world, path string) {
	r.Helper()
	gotPaths, keptPaths := got.paths(), kept.paths()
	first := map[engine.Ino]string{}
	for p, ino := range keptPaths {
		if p != path && !strings.HasPrefix(p, path+"/") || kept.nodes[ino].isDir() {
			continue
		}
		if q, ok := first[ino]; ok && gotPaths[q] != gotPaths[p] {
			r.fatalf("%q and %q were one file and are two after the restore", p, q)
		}
		first[ino] = p
	}
}

func (r *modelRun) sameList(what string, got []engine.FileChange, want []string, vague map[string]bool) {
	r.Helper()
	if !sameChanges(got, want, vague) {
		r.fatalf("%s:\n got %q\nwant %q", what, describe(got), want)
	}
}

func (r *modelRun) opDiff(ctx context.Context, p *played) {
	k, ok := r.anyKept(p)
	if !ok {
		return
	}
	r.note("diff %s of %s to %s", k.cp.ID, k.vault, p.name)
	root, err := p.v.Pin(ctx)
	r.ok(err)
	defer p.v.Unpin(root)
	changes, total, err := r.store.Diff(ctx, k.cp.Root, root, nil)
	r.ok(err)
	if total != len(changes) {
		r.fatalf("diff says %d changes and lists %d", total, len(changes))
	}
	want, vague := modelDiff(k.w, p.w)
	r.sameList("diff", changes, want, vague)
}

// opUndo makes a few operations one event, undoes it, sometimes after a change
// elsewhere, and then redoes it.
func (r *modelRun) opUndo(ctx context.Context, p *played) {
	begun, err := p.v.BeginEvent(ctx, engine.Event{Cause: engine.CauseExec, Command: []string{"x"}})
	r.ok(err)
	before := p.w.clone()
	r.note("%s begin", p.name)
	for range 1 + r.rng.IntN(6) {
		r.edit(ctx, p)
	}
	ev, err := begun.End(ctx)
	r.ok(err)
	after := p.w.clone()
	r.note("%s recorded %d", p.name, ev.Seq)
	touched, _ := modelDiff(before, after)
	if len(touched) == 0 {
		return
	}
	if ev.Before.Same(ev.After) {
		r.fatalf("the event changed %q and its roots are equal", touched)
	}
	beside := r.rng.IntN(2) == 0
	if beside {
		a, err := p.v.Mkdir(ctx, engine.RootIno, fmt.Sprintf("beside%d", ev.Seq), 0o700, modelOwner)
		r.ok(err)
		th := &thing{mode: engine.TypeDir | 0o700, uid: 7, gid: 8, kids: map[string]engine.Ino{}}
		for _, w := range []*world{before, after} {
			w.nodes[a.Ino] = th.clone()
			w.nodes[engine.RootIno].kids[fmt.Sprintf("beside%d", ev.Seq)] = a.Ino
		}
		p.w = after
	}
	r.undoRedo(ctx, p, ev, beside, before, after)
	r.compareAll(ctx)
}

// undoRedo undoes ev, alone where something came after it, and redoes it. A preview of
// each must tell exactly what then happens.
func (r *modelRun) undoRedo(ctx context.Context, p *played, ev engine.Event, beside bool, before, after *world) {
	opts := &engine.UndoOptions{}
	if beside {
		opts.Event = fmt.Sprint(ev.Seq)
	}
	undo := func(preview bool) (engine.UndoResult, error) {
		opts.Preview = preview
		return p.v.Undo(ctx, opts)
	}
	redo := func(preview bool) (engine.UndoResult, error) {
		return p.v.Redo(ctx, &engine.RedoOptions{Preview: preview})
	}
	for i, run := range []func(bool) (engine.UndoResult, error){undo, redo} {
		want := []*world{before, after}[i]
		told, err := run(true)
		r.ok(err)
		res, err := run(false)
		r.ok(err)
		r.note("%s undone %d", p.name, res.Undone.Seq)
		if !slices.Equal(describe(told.Changes), describe(res.Changes)) || told.Event != 0 || told.UndoCheckpoint != "" {
			r.fatalf("foretold %q, happened %q", describe(told.Changes), describe(res.Changes))
		}
		got, err := captureVault(ctx, p.v)
		r.ok(err)
		if err := compareWorlds(got, want, !beside); err != nil {
			r.fatalf("undo (beside=%v): %v", beside, err)
		}
		p.w = got
		r.dropStale(ctx, p, func(h *handle) bool { return h.th != nil && got.nodes[h.ino] == nil })
	}
}
