package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ConflictKind says what both sides of a merge did to one thing.
type ConflictKind string

// The kinds of conflicts. Ours is the vault that is merged into.
const (
	ConflictContent       ConflictKind = "content"        // both edited the same lines, or a file too large to merge
	ConflictBinary        ConflictKind = "binary"         // both edited what is no text
	ConflictEditDelete    ConflictKind = "edit_delete"    // ours edited, or added below, what theirs deleted
	ConflictDeleteEdit    ConflictKind = "delete_edit"    // ours deleted what theirs edited, or added below
	ConflictAddAdd        ConflictKind = "add_add"        // both added different things under one name
	ConflictType          ConflictKind = "type"           // it is of another type on each side
	ConflictDirectoryFile ConflictKind = "directory_file" // it is a directory on one side only
	ConflictMode          ConflictKind = "mode"
	ConflictOwner         ConflictKind = "owner"
	ConflictXattr         ConflictKind = "xattr"
	ConflictLinks         ConflictKind = "links"         // theirs made or broke hard links of what ours edited
	ConflictRenameRename  ConflictKind = "rename_rename" // each moved it to another place
	ConflictRenameDelete  ConflictKind = "rename_delete" // one moved it, the other deleted it
	ConflictRenameAdd     ConflictKind = "rename_add"    // what one moved has the name of something on the other side
)

// MergeVersion is what one side has at a conflict. Sizes are in bytes.
type MergeVersion struct {
	Path    string `json:"path"` // where that side has it
	PathB64 string `json:"path_b64,omitempty"`
	Type    string `json:"type"`
	Mode    string `json:"mode"` // st_mode in octal
	Size    *int64 `json:"size,omitempty"`
}

// MergeConflict is one thing that a merge cannot decide. A side that does not have it
// is nil.
type MergeConflict struct {
	Path     string        `json:"path"` // by which it can be resolved; that of any side does as well
	PathB64  string        `json:"path_b64,omitempty"`
	Kind     ConflictKind  `json:"kind"`
	Base     *MergeVersion `json:"base,omitempty"`
	Ours     *MergeVersion `json:"ours,omitempty"`
	Theirs   *MergeVersion `json:"theirs,omitempty"`
	Names    []string      `json:"names,omitempty"`    // what ours added below a deleted directory; attributes
	Resolved string        `json:"resolved,omitempty"` // ours, theirs or markers; empty is not
}

// MergeOptions says what to merge and how to resolve conflicts. The zero value and nil
// merge everything and resolve nothing.
type MergeOptions struct {
	// Paths limits the merge to these and what is below them. The rest stays for a
	// later merge, which begins where this one did.
	Paths []string
	// Ours and Theirs resolve the conflicts at these paths, and below them, for one
	// side; "." is all. Of several that fit the longest counts.
	Ours, Theirs []string
	// Markers writes both sides of conflicting lines of text into the file, between
	// markers, where nothing else resolves the conflict.
	Markers bool
	DryRun  bool   // say what would happen and change nothing
	ID      string // names what asked for it, for the timeline; may be empty

	src, dst string // the names of the vaults
}

// MergeResult says what a merge did, or would do.
type MergeResult struct {
	Source         string          `json:"source"`
	Into           string          `json:"into"`
	Base           Root            `json:"base"`        // the state that both come from
	SourceRoot     Root            `json:"source_root"` // the state that was merged
	Changed        int             `json:"changed"`
	Changes        []FileChange    `json:"changes"`
	MergedTexts    int             `json:"merged_texts"` // files that both edited and that were merged line by line
	Conflicts      []MergeConflict `json:"conflicts"`    // with any of them nothing is applied
	Resolved       []MergeConflict `json:"resolved"`
	UndoCheckpoint string          `json:"undo_checkpoint,omitempty"` // the state before; empty if nothing changed
	Root           Root            `json:"root"`                      // the state after
	Event          uint64          `json:"event,omitempty"`           // its entry in the timeline
	DryRun         bool            `json:"dry_run,omitempty"`
}

// Merge brings what changed in the vault src, since the state that it has in common
// with dst, into dst. What both changed in the same way, or in different lines of a
// text, is merged; what contradicts each other is a Conflict, whose list is in the
// result, and then nothing is applied. It applies whole or not at all, as one event of
// dst's timeline that an undo takes back. DESIGN.md says which state is the common one,
// and what becomes of names that one side moved.
//
// Open handles of files of which the merge replaces the content fail with Stale from
// then on. Files that get new content also get a new modification time, so that builds
// notice, unless dst had not changed at all.
func (s *Store) Merge(ctx context.Context, src, dst string, opts *MergeOptions) (MergeResult, error) {
	o := MergeOptions{}
	if opts != nil {
		o = *opts
	}
	o.src, o.dst = src, dst
	res, err := s.merge(ctx, o)
	return res, wrap(err, "merge", src)
}

func (s *Store) merge(ctx context.Context, opts MergeOptions) (MergeResult, error) {
	if opts.src == opts.dst {
		return MergeResult{}, &Error{Kind: Invalid, Err: errors.New("a vault cannot be merged into itself")}
	}
	from, err := s.Vault(ctx, opts.src)
	if err != nil {
		return MergeResult{}, err
	}
	into, err := s.Vault(ctx, opts.dst)
	if err != nil {
		return MergeResult{}, err
	}
	src, err := from.pinRecord(ctx)
	if err != nil {
		return MergeResult{}, err
	}
	defer s.unpin(src.Root)
	if !opts.DryRun {
		if err := into.roomForContent(ctx); err != nil {
			return MergeResult{}, err
		}
	}
	done, err := into.replacing(ctx)
	if err != nil {
		return MergeResult{}, err
	}
	defer done()
	return into.mergeLocked(ctx, src, opts)
}

// mergeLocked merges the pinned state of src. The caller holds commitMu.
func (v *Vault) mergeLocked(ctx context.Context, src vaultRecord, opts MergeOptions) (MergeResult, error) {
	if err := v.commitLocked(ctx, commitRequest{}); err != nil {
		return MergeResult{}, err
	}
	base, err := mergeBase(src, v.rec)
	if err != nil {
		return MergeResult{}, err
	}
	if err := v.s.pinKept(ctx, base); err != nil {
		return MergeResult{}, err
	}
	defer v.s.unpin(base)
	m, err := v.s.planMerge(ctx, base, src.Root, v.rec.Root, opts)
	if err != nil {
		return MergeResult{}, err
	}
	res, err := m.result(base, src.Root, v.rec.Root)
	switch {
	case err != nil || opts.DryRun:
		return res, err
	case len(m.steps) > 0:
		return v.applyMerge(ctx, m, res, src)
	case len(opts.Paths) == 0 && !src.Root.Same(base):
		err = v.noteMerge(ctx, src.ID, src.Root)
	}
	return res, err
}

// applyMerge does what m plans, or plans anew if the vault was written to since.
func (v *Vault) applyMerge(ctx context.Context, m *merger, res MergeResult, src vaultRecord) (MergeResult, error) {
	useful := family(v.s.records())
	planned := v.rec.Root
	err := v.quiet(ctx, func() error {
		if v.rec.Root != planned {
			var err error
			if m, err = v.s.planMerge(ctx, res.Base, src.Root, v.rec.Root, m.opts); err != nil {
				return err
			}
			if res, err = m.result(res.Base, src.Root, v.rec.Root); err != nil {
				return err
			}
		}
		h, err := v.newHistory(ctx, Event{Cause: CauseMerge, ID: m.opts.ID, Source: src.Name, SourceRoot: src.Root})
		if err != nil {
			return err
		}
		a := newMergeApply(v, m, src.Root)
		err = v.rewrite(ctx, rewriting{
			edit: func() error { return a.run(ctx) }, history: h, keeps: a.keeps,
			note: func(rec *vaultRecord) {
				if len(m.opts.Paths) == 0 {
					rec.Lineage = lineageOf(*rec).merged(mergeRecord{
						Vault: src.ID, Root: src.Root, At: h.ev.At, presence: presence{Seq: h.ev.Seq, Since: rec.Root.ref.ID},
					}, useful)
				}
			},
		})
		res.Root = v.rec.Root
		if err == nil && h.written {
			res.UndoCheckpoint, res.Event = h.undo.ID, h.ev.Seq
		}
		return err
	})
	return res, err
}

// result is what the plan says, a Conflict if it leaves any.
func (m *merger) result(base, src, dst Root) (MergeResult, error) {
	res := MergeResult{
		Source: m.opts.src, Into: m.opts.dst, Base: base, SourceRoot: src, MergedTexts: m.texts, Root: dst, DryRun: m.opts.DryRun,
		Conflicts: append([]MergeConflict{}, m.conflicts...), Resolved: append([]MergeConflict{}, m.resolved...),
		Changes: []FileChange{},
	}
	if n := len(m.conflicts); n > 0 {
		paths := make([]string, min(n, 10))
		for i := range paths {
			paths[i] = m.conflicts[i].Path
		}
		err := fmt.Errorf("%d conflicts, nothing was changed: %s", n, strings.Join(paths, ", "))
		return res, &Error{Kind: Conflict, Err: err, Details: map[string]any{"conflicts": res.Conflicts}}
	}
	var err error
	res.Changes, err = m.changes()
	res.Changed = len(res.Changes)
	return res, err
}

// pick is how a conflict is resolved.
type pick string

const (
	pickNone    pick = ""
	pickOurs    pick = "ours"
	pickTheirs  pick = "theirs"
	pickMarkers pick = "markers"
)

// clash notes a conflict, and says how it is resolved.
func (m *merger) clash(kind ConflictKind, v three, names []string) pick {
	p := m.pick(kind, v)
	m.conflict(kind, v, names, p)
	return p
}

func (m *merger) conflict(kind ConflictKind, v three, names []string, p pick) {
	c := MergeConflict{
		Kind: kind, Base: versionOf(v.base), Ours: versionOf(v.ours), Theirs: versionOf(v.theirs), Resolved: string(p),
	}
	for _, l := range []located{v.ours, v.theirs, v.base} {
		if l.n != nil {
			c.Path, c.PathB64 = printable(l.path)
			break
		}
	}
	for _, name := range names {
		text, _ := printable(name)
		c.Names = append(c.Names, text)
	}
	if p == pickNone {
		m.conflicts = append(m.conflicts, c)
	} else {
		m.resolved = append(m.resolved, c)
	}
	if p != pickTheirs {
		m.stays[v.e] = true
	}
}

// pick finds the longest of the paths in the options that one of the paths is at, or
// below.
func (m *merger) pick(kind ConflictKind, v three) pick {
	best, length := pickNone, -1
	for _, l := range []located{v.base, v.ours, v.theirs} {
		if l.n == nil {
			continue
		}
		for _, side := range []struct {
			paths []string
			pick  pick
		}{{m.opts.Ours, pickOurs}, {m.opts.Theirs, pickTheirs}} {
			for _, p := range side.paths {
				if n := len(cleanPath(p)); n > length && topsOf([]string{p}).has(l.path) {
					best, length = side.pick, n
				}
			}
		}
	}
	if best == pickNone && m.opts.Markers && (kind == ConflictContent || kind == ConflictAddAdd) && m.markable(v) {
		best = pickMarkers
	}
	return best
}

// knowPaths fails with NotFound for a path of a decision that is in none of the states: it
// would decide nothing.
func (m *merger) knowPaths(paths []string) error {
	for _, p := range paths {
		clean := cleanPath(p)
		known := clean == ""
		for _, w := range []view{m.base, m.ours.w, m.theirs.w} {
			if known {
				break
			}
			at, err := w.spot(m.ctx, clean)
			if err != nil {
				return err
			}
			known = at.n != nil
		}
		if !known {
			return &Error{Kind: NotFound, Op: "merge", Path: p, Err: errors.New("it is in neither vault, nor in the state that both come from")}
		}
	}
	return nil
}

// markable reports whether markers can show both sides.
func (m *merger) markable(v three) bool {
	if v.ours.n == nil || v.theirs.n == nil || !v.ours.n.isRegular() || !v.theirs.n.isRegular() {
		return false
	}
	merged, kind, err := m.mergeTexts(v, v.base.n != nil)
	return err == nil && kind == ConflictContent && merged.hunks > 0
}

func versionOf(l located) *MergeVersion {
	if l.n == nil {
		return nil
	}
	v := &MergeVersion{Type: typeName(l.n.mode), Mode: fmt.Sprintf("%06o", l.n.mode)}
	v.Path, v.PathB64 = printable(l.path)
	if !l.n.isDir() {
		v.Size = &l.n.size
	}
	return v
}
