package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentvfs/avfs/engine"
)

// create makes an empty vault.
func (r *historyRun) create(ctx context.Context) {
	r.made++
	name := fmt.Sprintf("v%d", r.made)
	r.note("create vault %s", name)
	r.newVault(name)
	v, err := r.store.CreateVault(ctx, name)
	r.ok(err)
	t := &told{name: name, v: v}
	t.cur = r.read(ctx, t)
	t.noted = t.cur
	r.vaults = append(r.vaults, t)
	r.at(t)
}

// newVault tells that a vault of the name may be there from now on.
func (r *historyRun) newVault(name string) {
	if r.say != nil {
		r.say("new %s", name)
	}
}

// fork forks a vault, or a checkpoint of it, into one that is made.
func (r *historyRun) fork(ctx context.Context, t *told) {
	if len(r.vaults) >= historyVaults {
		r.deleteVault(ctx, r.vaults[r.rng.IntN(len(r.vaults))])
		return
	}
	r.made++
	q := &told{name: fmt.Sprintf("v%d", r.made), cur: t.cur}
	mine := slices.DeleteFunc(slices.Clone(r.saved), func(k savedState) bool { return k.vault != t.name })
	r.newVault(q.name)
	var err error
	if len(mine) > 0 && r.rng.IntN(3) == 0 {
		k := mine[r.rng.IntN(len(mine))]
		r.note("fork %s at %s to %s", t.name, k.cp.ID, q.name)
		q.cur = k.state
		q.v, err = r.store.ForkAt(ctx, t.name, k.cp, q.name)
	} else {
		r.note("fork %s to %s", t.name, q.name)
		q.v, err = r.store.Fork(ctx, t.name, q.name)
		r.ok(err)
		r.tell(ctx, t, t.cur, "")
		r.at(t)
	}
	r.ok(err)
	q.noted = q.cur
	r.vaults = append(r.vaults, q)
	r.compareNow(ctx, q)
	r.at(q)
}

func (r *historyRun) deleteVault(ctx context.Context, t *told) {
	if len(r.vaults) == 1 {
		r.create(ctx)
	}
	r.note("delete vault %s", t.name)
	if r.say != nil {
		r.say("end %s", t.name)
	}
	r.ok(r.store.DeleteVault(ctx, t.name))
	if r.say != nil {
		r.say("gone %s", t.name)
	}
	r.vaults = slices.DeleteFunc(r.vaults, func(q *told) bool { return q == t })
	r.saved = slices.DeleteFunc(r.saved, func(k savedState) bool { return k.vault == t.name })
}

func (r *historyRun) commit(ctx context.Context, t *told) {
	durable := r.rng.IntN(2) == 0
	r.note("%s commit durable=%v", t.name, durable)
	_, err := t.v.Commit(ctx, durable)
	r.ok(err)
	r.tell(ctx, t, t.cur, "")
	r.at(t)
}

// recorded makes some edits one event of a write or an import.
func (r *historyRun) recorded(ctx context.Context, t *told) {
	cause := []string{engine.CauseWrite, engine.CauseImport}[r.rng.IntN(2)]
	r.note("%s begin %s", t.name, cause)
	o, err := t.v.BeginEvent(ctx, engine.Event{Cause: cause, ID: fmt.Sprintf("w%d", r.step)})
	r.ok(err)
	r.tell(ctx, t, t.cur, "")
	r.at(t)
	was := t.cur
	for range 1 + r.rng.IntN(4) {
		r.edit(ctx, t)
	}
	ev, err := o.EndIfChanged(ctx)
	r.ok(err)
	if ev.Seq == 0 {
		cause = ""
		if !was.equal(t.cur) {
			r.fatalf("vault %s: no event was added for %q", t.name, was.differing(t.cur))
		}
	}
	r.tell(ctx, t, was, cause)
	r.at(t)
}

// command makes some edits those of a command, with a checkpoint before, perhaps.
func (r *historyRun) command(ctx context.Context, t *told) {
	opts := engine.BeginOptions{ID: fmt.Sprintf("x%d-%d", r.made, r.step), Command: []string{"edit"}, Owner: 1}
	keep := r.rng.IntN(2) == 0
	if keep {
		opts.Checkpoint = &engine.CheckpointOptions{Auto: true}
	}
	r.note("%s command %s", t.name, opts.ID)
	u, err := t.v.Begin(ctx, opts)
	r.ok(err)
	was := t.cur
	r.tell(ctx, t, t.cur, "")
	r.at(t)
	for range 1 + r.rng.IntN(6) {
		r.edit(ctx, t)
		if r.rng.IntN(8) == 0 {
			r.commit(ctx, t)
		}
	}
	u.Output().Write(ctx, "stdout", r.content())
	if r.rng.IntN(4) == 0 {
		r.checkpoint(ctx, t)
	}
	ev, err := u.End(ctx, engine.AuditEntry{Kind: engine.AuditExec, Vault: t.name})
	r.ok(err)
	r.tell(ctx, t, was, engine.CauseExec)
	if ev.Seq != t.seen {
		r.fatalf("the command's event is %d, the newest of the timeline %d", ev.Seq, t.seen)
	}
	r.at(t)
	if keep {
		cp, err := t.v.FindCheckpoint(ctx, u.Checkpoint())
		r.ok(err)
		r.compareRoot(ctx, "checkpoint before a command", cp.Root, was)
	}
}

func (r *historyRun) checkpoint(ctx context.Context, t *told) {
	cp, err := t.v.Checkpoint(ctx, engine.CheckpointOptions{Name: fmt.Sprintf("n%d-%d", r.made, r.step), Message: "m"})
	r.ok(err)
	r.note("%s checkpoint %s", t.name, cp.ID)
	r.tell(ctx, t, t.cur, "")
	r.saved = append(r.saved, savedState{t.name, cp, t.cur})
	r.at(t)
	if r.say != nil {
		r.say("keep %s %s %s", t.name, cp.ID, t.cur.digest())
	}
	if len(r.saved) > 12 {
		r.dropCheckpoint(ctx, nil)
	}
}

// dropCheckpoint deletes a checkpoint of any vault.
func (r *historyRun) dropCheckpoint(ctx context.Context, _ *told) {
	if len(r.saved) == 0 {
		return
	}
	i := r.rng.IntN(len(r.saved))
	k := r.saved[i]
	r.note("%s delete checkpoint %s", k.vault, k.cp.ID)
	if r.say != nil {
		r.say("drop %s %s", k.vault, k.cp.ID)
	}
	r.ok(r.vault(k.vault).v.DeleteCheckpoint(ctx, k.cp.ID))
	r.saved = slices.Delete(r.saved, i, i+1)
}

func (r *historyRun) vault(name string) *told {
	i := slices.IndexFunc(r.vaults, func(t *told) bool { return t.name == name })
	return r.vaults[i]
}

// anyKept is a state that something keeps: a checkpoint or an event of any vault.
func (r *historyRun) anyKept() (what string, root engine.Root, state pathState) {
	if t := r.vaults[r.rng.IntN(len(r.vaults))]; len(t.events) > 0 && (len(r.saved) == 0 || r.rng.IntN(2) == 0) {
		ev := t.events[max(0, len(t.events)-1-r.rng.IntN(10))]
		if r.rng.IntN(2) == 0 {
			return fmt.Sprintf("before event %d of %s", ev.Seq, t.name), ev.Before, ev.before
		}
		return fmt.Sprintf("after event %d of %s", ev.Seq, t.name), ev.After, ev.after
	}
	if len(r.saved) == 0 {
		return "", engine.Root{}, nil
	}
	k := r.saved[r.rng.IntN(len(r.saved))]
	return fmt.Sprintf("checkpoint %s of %s", k.cp.ID, k.vault), k.cp.Root, k.state
}

// settled is what follows every step that replaces a state: the events and the
// checkpoint of the state before.
func (r *historyRun) replaced(ctx context.Context, t *told, was pathState, cause string, res engine.RestoreResult) {
	if res.Event == 0 {
		cause = ""
		if !was.equal(t.cur) {
			r.fatalf("vault %s: a change without an event: %q", t.name, was.differing(t.cur))
		}
	}
	r.tell(ctx, t, was, cause)
	if res.Event != 0 && res.Event != t.seen {
		r.fatalf("vault %s: the result names event %d, the newest is %d", t.name, res.Event, t.seen)
	}
	if res.UndoCheckpoint != "" {
		cp, err := t.v.FindCheckpoint(ctx, res.UndoCheckpoint)
		r.ok(err)
		r.compareRoot(ctx, "the checkpoint before", cp.Root, was)
	}
	r.at(t)
}

// restore makes a kept state, whole, that of the vault.
func (r *historyRun) restore(ctx context.Context, t *told) {
	what, root, want := r.anyKept()
	if want == nil {
		return
	}
	r.note("%s restore %s", t.name, what)
	r.may(t, want)
	was := t.cur
	res, err := t.v.Restore(ctx, root, nil)
	r.ok(err)
	t.cur = want
	r.compareNow(ctx, t)
	r.replaced(ctx, t, was, engine.CauseRestore, res)
}

// restorePaths restores one or two paths of a kept state.
func (r *historyRun) restorePaths(ctx context.Context, t *told) {
	what, root, kept := r.anyKept()
	if kept == nil {
		return
	}
	paths := r.somePaths(kept, t.cur)
	if len(paths) == 0 {
		return
	}
	r.note("%s restore %q from %s", t.name, paths, what)
	r.any(t)
	was := t.cur
	res, err := t.v.Restore(ctx, root, &engine.RestoreOptions{Paths: paths})
	if engine.KindOf(err) == engine.NotDirectory && r.blocked(was, kept, paths) {
		r.compareNow(ctx, t) // a file is where a directory above has to be: nothing happened
		r.tell(ctx, t, was, "")
		return
	}
	r.ok(err)
	got := r.read(ctx, t)
	for p := range union(was, got, kept) {
		switch {
		case inAny(p, paths):
			if !got.same(kept, p) {
				r.fatalf("restored %q is %s, not %s", p, got.at(p), kept.at(p))
			}
		case got.same(was, p):
		case was[p] == nil && got.same(kept, p) && slices.ContainsFunc(paths, func(q string) bool { return below(q, p) }):
		default:
			r.fatalf("a restore of %q made %q %s, before it was %s", paths, p, got.at(p), was.at(p))
		}
	}
	t.cur = got
	r.replaced(ctx, t, was, engine.CauseRestore, res)
}

// somePaths are one or two paths of the states.
func (r *historyRun) somePaths(states ...pathState) []string {
	all := map[string]bool{}
	for p := range union(states...) {
		if p != "." {
			all[p] = true
		}
	}
	list := sortedKeys(all)
	if len(list) == 0 {
		return nil
	}
	paths := []string{r.anyOf(list)}
	if r.rng.IntN(3) == 0 {
		paths = append(paths, r.anyOf(list))
	}
	return paths
}

// blocked reports whether something that is no directory is above one of the paths
// which is in the other state.
func (r *historyRun) blocked(cur, other pathState, paths []string) bool {
	for p := range other {
		if !inAny(p, paths) {
			continue
		}
		for q, th := range cur {
			if below(p, q) && !th.isDir() {
				return true
			}
		}
	}
	return false
}

func union(states ...pathState) map[string]bool {
	all := map[string]bool{}
	for _, s := range states {
		for p := range s {
			all[p] = true
		}
	}
	return all
}

func sortedKeys(m map[string]bool) []string {
	var list []string
	for p := range m {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// merge merges another vault into t.
func (r *historyRun) merge(ctx context.Context, t *told) {
	src := r.vaults[r.rng.IntN(len(r.vaults))]
	if src == t {
		return
	}
	opts := &engine.MergeOptions{}
	switch r.rng.IntN(6) {
	case 0:
		opts.Theirs = []string{"."}
	case 1:
		opts.Ours = []string{"."}
	case 2:
		opts.Markers = true
	}
	r.note("merge %s into %s %+v", src.name, t.name, *opts)
	r.any(t)
	was := t.cur
	res, err := r.store.Merge(ctx, src.name, t.name, opts)
	switch engine.KindOf(err) {
	case "":
	case engine.Conflict, engine.NoAncestor:
		r.compareNow(ctx, t)
		r.tell(ctx, t, was, "")
		return
	default:
		r.ok(err)
	}
	got := r.read(ctx, t)
	if len(res.Resolved) == 0 {
		r.checkMerged(ctx, res, was, src.cur, got)
	}
	t.cur = got
	r.replaced(ctx, t, was, engine.CauseMerge, engine.RestoreResult{Event: res.Event, UndoCheckpoint: res.UndoCheckpoint})
	r.compareNow(ctx, src)
}

// checkMerged compares a merge without conflicts with the plain rule, path by path,
// where nothing was moved and no file has several names; otherwise it looks for what
// either side has written.
func (r *historyRun) checkMerged(ctx context.Context, res engine.MergeResult, ours, theirs, got pathState) {
	w, err := captureRoot(ctx, r.store, res.Base)
	r.ok(err)
	base := pathStateOf(w)
	plain := base.linked()+ours.linked()+theirs.linked() == "" && !moved(base, ours) && !moved(base, theirs)
	for p := range union(base, ours, theirs, got) {
		want := ours
		switch {
		case ours.same(theirs, p) || theirs.same(base, p):
		case ours.same(base, p):
			want = theirs
		default:
			continue
		}
		if plain && !got.same(want, p) {
			r.fatalf("the merge made %q %s, not %s; base %s, ours %s, theirs %s",
				p, got.at(p), want.at(p), base.at(p), ours.at(p), theirs.at(p))
		}
	}
	if res.MergedTexts > 0 {
		return
	}
	had, has := contents(base), contents(got)
	for _, side := range []pathState{ours, theirs} {
		for text := range contents(side) {
			if !had[text] && !has[text] {
				r.fatalf("%d bytes that one side has written are not in the merge", len(text))
			}
		}
	}
}

// moved reports whether a state may have come from another by a move: something came
// that went elsewhere.
func moved(from, to pathState) bool {
	gone := map[string]bool{}
	for p, th := range from {
		if to[p] == nil || to[p].typ() != th.typ() {
			gone[fmt.Sprint(th.typ())] = true
		}
	}
	for p, th := range to {
		if from[p] == nil && gone[fmt.Sprint(th.typ())] {
			return true
		}
	}
	return false
}

func contents(s pathState) map[string]bool {
	all := map[string]bool{}
	for _, th := range s {
		if th.isRegular() {
			all[string(th.data)] = true
		}
	}
	return all
}
