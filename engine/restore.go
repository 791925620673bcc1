package engine

import (
	"context"
	"errors"
	"slices"
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
	// Preview changes nothing: the result says what would change. Its Drift are those
	// of the paths that were changed since the newest event of the timeline.
	Preview bool
	// Bounded holds a limited restore to the quota: for a state that the vault never had.
	Bounded bool
}

// RestoreResult says what a restore did. Changed and Changes go from the state
// before the restore to the one after.
type RestoreResult struct {
	Changed        int          `json:"changed"`
	Changes        []FileChange `json:"changes"`
	UndoCheckpoint string       `json:"undo_checkpoint,omitempty"` // the state before; empty if nothing changed
	Root           Root         `json:"root"`
	Event          uint64       `json:"event,omitempty"`   // its entry in the timeline
	Preview        bool         `json:"preview,omitempty"` // nothing of it has happened
	Drift          []Path       `json:"drift,omitempty"`   // paths that were changed since, and are changed all the same
}

// Restore brings a kept state back: of a checkpoint, a timeline entry, a vault or a
// pin; NotFound says that nothing keeps it. The state before is kept under a new
// checkpoint. Open handles of files that the restore replaces or removes fail with
// Stale from then on. A restore that changes nothing does nothing. It applies
// whole or not at all.
func (v *Vault) Restore(ctx context.Context, to Root, opts *RestoreOptions) (RestoreResult, error) {
	if opts == nil {
		opts = &RestoreOptions{}
	}
	done, err := v.replacing(ctx)
	if err != nil {
		return RestoreResult{}, wrap(err, "restore", v.Name())
	}
	defer done()
	if err := v.s.pinKept(ctx, to); err != nil {
		return RestoreResult{}, wrap(err, "restore", v.Name())
	}
	defer v.s.unpin(to)
	a := aim{to: to, preview: opts.Preview, bounded: opts.Bounded}
	if len(opts.Paths) > 0 {
		a.inside = topsOf(opts.Paths).has
	}
	res, err := v.become(ctx, Event{Cause: CauseRestore, ID: opts.ID}, a)
	return res, wrap(err, "restore", v.Name())
}

// aim is what a vault is about to be made, all of it or some paths.
type aim struct {
	to     Root
	inside func(p string) bool // nil is everywhere
	// With checked it takes back what led from to to after. What has changed since then
	// elsewhere stays, and what has changed at the same paths is drift.
	checked bool
	after   Root
	force   bool // drift is no reason to stop
	preview bool // change nothing
	bounded bool // the quota holds
}

// plan is how an aim is reached from one state.
type plan struct {
	from    Root
	whole   bool
	foot    footprint // of the whole state
	changes []change  // likewise
	paths   []string  // to make what they are in the other state, if not the whole is
	drift   []string
}

func (p *plan) empty() bool { return len(p.foot.inos) == 0 && len(p.paths) == 0 }

// plan finds out what has to change in the committed state from.
func (v *Vault) plan(ctx context.Context, from Root, a aim) (p plan, err error) {
	p.from = from
	if !a.checked {
		if a.inside != nil {
			p.paths, err = v.s.touchedPaths(ctx, from, a.to, a.inside)
			return p, err
		}
		return p, v.planWhole(ctx, &p, a)
	}
	changes, err := v.s.undoable(ctx, a.to, a.after)
	if err != nil {
		return p, err
	}
	if a.inside == nil && from.Same(a.after) && len(changes) > 0 {
		return p, v.planWhole(ctx, &p, a)
	}
	some := slices.ContainsFunc(changes, func(c change) bool {
		// A directory that moved took along what is below.
		return a.inside == nil || c.kind == Renamed && c.after.n.isDir() || a.inside(c.path) || c.oldPath != "" && a.inside(c.oldPath)
	})
	if !some {
		return p, nil
	}
	mine := pathsOf(changes)
	p.paths, err = v.s.touchedPaths(ctx, from, a.to, func(path string) bool {
		return mine.has(path) && (a.inside == nil || a.inside(path))
	})
	if err != nil || from.Same(a.after) {
		return p, err
	}
	since, err := v.s.diff(ctx, a.after, from, nil, false)
	needed := pathSet{paths: map[string]bool{}}
	for _, path := range p.paths {
		needed.paths[path] = true
	}
	if err != nil {
		return p, err
	}
	p.drift, err = v.s.realDrift(ctx, from, a.to, needed.drift(since))
	return p, err
}

// realDrift leaves out directories that are in both states alike: that one of them was
// made since, such as by an undo of what was in it, is in nobody's way.
func (s *Store) realDrift(ctx context.Context, from, to Root, paths []string) ([]string, error) {
	var list []string
	a, b := view{src: s.nodes, root: from.ref}, view{src: s.nodes, root: to.ref}
	for _, p := range paths {
		x, err := a.spot(ctx, p)
		if err != nil {
			return nil, err
		}
		y, err := b.spot(ctx, p)
		if err != nil {
			return nil, err
		}
		if x.n == nil || y.n == nil || !x.n.isDir() || x.n.mode != y.n.mode || x.n.uid != y.n.uid || x.n.gid != y.n.gid {
			list = append(list, p)
		}
	}
	return list, nil
}

// planWhole plans the switch to a whole state.
func (v *Vault) planWhole(ctx context.Context, p *plan, a aim) (err error) {
	p.whole = true
	if p.foot, err = v.s.footprint(ctx, p.from, a.to); err != nil {
		return err
	}
	p.changes, err = v.s.diff(ctx, p.from, a.to, nil, false)
	return err
}

// become makes the vault what a aims at, as the event ev, in one transaction while
// nobody else can see the vault. The caller holds commitMu.
func (v *Vault) become(ctx context.Context, ev Event, a aim) (res RestoreResult, err error) {
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return res, err
	}
	p, err := v.plan(ctx, v.rec.Root, a)
	if err != nil {
		return res, err
	}
	err = v.quiet(ctx, func() error {
		if v.rec.Root != p.from { // written to since
			if p, err = v.plan(ctx, v.rec.Root, a); err != nil {
				return err
			}
		}
		if len(p.drift) > 0 && !a.force && !a.preview {
			return driftError(p.drift)
		}
		res = RestoreResult{Root: p.from, Changes: []FileChange{}, Drift: exact(p.drift), Preview: a.preview}
		switch {
		case p.empty():
			return nil
		case a.preview:
			return v.foresee(ctx, a, p, &res)
		}
		h, err := v.newHistory(ctx, ev)
		if err != nil {
			return err
		}
		if p.whole {
			err = v.switchTo(ctx, a.to, &p, h)
			res.Changes = publicChanges(p.changes)
		} else {
			err = v.graft(ctx, a, p.paths, h)
		}
		res.Root = v.rec.Root
		if err == nil && h.written {
			res.UndoCheckpoint, res.Event = h.undo.ID, h.ev.Seq
		}
		return err
	})
	if err == nil && res.Event != 0 && !p.whole {
		res.Changes, _, err = v.s.Diff(ctx, p.from, res.Root, nil)
	}
	res.Changed = len(res.Changes)
	return res, err
}

// driftError refuses what would change files that changed since.
func driftError(paths []string) error {
	shown := make([]string, 0, 10)
	for _, p := range paths[:min(len(paths), cap(shown))] {
		text, _ := printable(p)
		shown = append(shown, text)
	}
	return &Error{
		Kind: Drift, Err: errors.New("changed since: " + strings.Join(shown, ", ")),
		Details: map[string]any{"paths": exact(paths)},
	}
}

// foresee fills in what the plan would change.
func (v *Vault) foresee(ctx context.Context, a aim, p plan, res *RestoreResult) (err error) {
	changes := p.changes
	if !p.whole {
		if changes, err = v.tryGraft(ctx, a.to, p.paths); err != nil {
			return err
		}
	}
	res.Changes = publicChanges(changes)
	if a.checked || v.rec.Noted.Same(p.from) {
		return nil
	}
	since, err := v.s.diff(ctx, v.rec.Noted, p.from, nil, false)
	res.Drift = exact(pathsOf(changes).drift(since))
	return err
}

// quiet runs fn while nothing is pending and nobody else can read or change the
// vault. The caller holds commitMu.
func (v *Vault) quiet(ctx context.Context, fn func() error) error {
	v.s.sweep.RLock()
	defer v.s.sweep.RUnlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return fail(Closed, "", "")
	}
	if v.generation != v.committed.Load() {
		c := v.freeze(commitRequest{})
		if err := c.end(ctx, c.persist(ctx)); err != nil {
			return err
		}
	}
	return fn()
}

// newHistory is what a replacement of the present state leaves in the vault's history.
func (v *Vault) newHistory(ctx context.Context, ev Event) (*history, error) {
	h := &history{v: v}
	gap, err := v.gap(ctx)
	if err != nil {
		return nil, err
	}
	h.gap = v.stampGap(gap)
	h.undo = Checkpoint{
		ID: checkpointID(v.s.lastCheckpoint.Add(1)), VaultID: v.id, Message: "before " + ev.Cause, Auto: true,
		At: v.s.opts.Clock().UTC(), Root: v.rec.Root, Files: v.rec.Count, Bytes: v.rec.Bytes, Seq: v.s.nextEvent(),
	}
	h.ev = v.stamp(ev)
	h.ev.Before = v.rec.Root
	if v.running > 0 { // what a command has done until now is laid to this event
		h.ev.Before = v.rec.Noted
	}
	return h, nil
}

// history is the event of a replacement, with the checkpoint of the state before and,
// where no event has told how that came about, one that does.
type history struct {
	v       *Vault
	gap     *Event
	undo    Checkpoint
	ev      Event
	written bool
}

// put writes the history, in the transaction of the new root, and completes the record
// that has it.
func (h *history) put(ctx context.Context) func(tx kv.Writer, rec *vaultRecord) error {
	return func(tx kv.Writer, rec *vaultRecord) error {
		h.ev.After, rec.Noted = rec.Root, rec.Root
		rec.Checkpoints++
		if err := h.v.putGap(tx, h.gap); err != nil {
			return err
		}
		seq, _ := parseCheckpointID(h.undo.ID)
		if err := putCheckpoint(tx, h.v.id, seq, h.undo); err != nil {
			return err
		}
		return h.v.putNoted(ctx, tx, h.ev)
	}
}

// switchTo makes the whole state to the vault's. The caller holds all locks and nothing
// is pending.
func (v *Vault) switchTo(ctx context.Context, to Root, p *plan, h *history) error {
	var rec vaultRecord
	err := v.s.kv.Update(ctx, kv.Durable, func(tx kv.Writer) error {
		rec = v.pinned()
		rec.Root = to
		rec.Lineage = rec.Lineage.switched(to, v.s.lastNode.Load()+1)
		rec.Count += p.foot.count
		rec.Bytes += p.foot.bytes
		if err := h.put(ctx)(tx, &rec); err != nil {
			return err
		}
		if err := putRecord(tx, rec); err != nil {
			return err
		}
		return v.s.putCounters(tx)
	})
	if err != nil {
		return err
	}
	v.adopt(rec, p.foot)
	h.written = true
	return nil
}

// adopt makes rec the vault's record and cuts off the handles of what changed.
// The caller holds both locks and nothing is pending.
func (v *Vault) adopt(rec vaultRecord, foot footprint) {
	v.rec = rec
	v.count, v.bytes = rec.Count, rec.Bytes
	v.replaced = append(v.replaced, foot.changes...)
	for ino := range foot.inos {
		if f := v.files[ino]; f != nil {
			v.cutOff(f)
		}
	}
	v.generation++
	v.committed.Store(v.generation)
	v.durable.Store(v.generation)
}

// cutOff makes the handles of f stale, also those of an unlinked file whose inode
// a restore brings back.
func (v *Vault) cutOff(f *file) {
	f.stale = true
	if f.orphan != nil {
		v.releaseOrphan(f)
		return
	}
	v.dropDirty(f)
	if v.files[f.ino] == f {
		delete(v.files, f.ino)
	}
}

// footprint is what differs between two states at the level of inodes.
type footprint struct {
	inos         map[Ino]bool
	changes      []Change
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
		if c, ok := changeOf(k); ok {
			f.changes = append(f.changes, c)
		}
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
