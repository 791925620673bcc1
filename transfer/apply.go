package transfer

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// ApplyOptions tunes Apply. The zero value and nil are the defaults.
type ApplyOptions struct {
	DryRun bool // check everything and change nothing
	Force  bool // go on where the host has drifted
	// Applied are states some of whose content the host may have by now: where it
	// does, that is no drift.
	Applied []AppliedState
}

// AppliedState is a state of which some changes were brought back.
type AppliedState struct {
	State *engine.Snapshot
	Since []engine.FileChange // what changed after it
}

// ApplyChange is one thing that Apply did, or would do.
type ApplyChange struct {
	Path    string `json:"path"` // relative to the host's directory
	PathB64 string `json:"path_b64,omitempty"`
	Action  string `json:"action"` // write, mkdir, mode, delete, rmdir
}

// ApplyDrift is a path at which the host is not what it was.
type ApplyDrift struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"`
	Reason  string `json:"reason"`
}

// ApplyReport says what an Apply did, in the order in which it did it.
type ApplyReport struct {
	Changes []ApplyChange `json:"changes"`
	Kept    []ApplyChange `json:"kept"` // directories that went and still have something on the host
	Skipped []Skip        `json:"skipped,omitempty"`
	DryRun  bool          `json:"dry_run,omitempty"`
}

// Apply brings changes, which lead from the state base to the state now, from the
// directory src of a vault to the directory dst of the host.
//
// First it looks at every path that changed. Where the host has neither what base has
// nor what now has, it has drifted: then nothing is changed, and the error is a Drift
// with the list among its details. Then it makes the changes, one path after the other,
// each in one step as rename does it, and checks once more that the path is still what
// it was. If one fails, or the context ends, the report says what was done; it can
// be run again.
//
// Nothing on the host but these paths changes: a directory that is not empty stays. No
// symbolic link below dst is followed. Files that are replaced keep the host's owner,
// and its mode unless that changed in the vault.
func Apply(ctx context.Context, base, now *engine.Snapshot, changes []engine.FileChange, src, dst string, opts *ApplyOptions) (ApplyReport, error) {
	if opts == nil {
		opts = &ApplyOptions{}
	}
	a := &applier{ctx: ctx, base: base, now: now, opts: *opts, dirs: map[string]bool{}, replaced: map[string]bool{}, src: strings.Trim(filepath.ToSlash(filepath.Clean("/"+src)), "/")}
	a.rep = ApplyReport{Changes: []ApplyChange{}, Kept: []ApplyChange{}, DryRun: opts.DryRun}
	host, _, err := openTop(dst)
	if err != nil {
		return a.rep, failureAt("apply", dst, err)
	}
	err = a.run(host, changes)
	if cerr := host.close(); err == nil {
		err = cerr
	}
	return a.rep, err
}

// applier is one Apply.
type applier struct {
	ctx       context.Context // of the call
	base, now *engine.Snapshot
	opts      ApplyOptions
	src       string // the directory in the vault, without slashes around it
	ex        *exporter
	steps     []*applyStep
	dirs      map[string]bool // paths at which a step makes a directory
	replaced  map[string]bool // paths at which a step puts something else than a directory
	drift     []ApplyDrift
	barred    []ApplyDrift // what not even force can reach: it would lead out of the tree
	rep       ApplyReport
	made      []*applyStep // directories whose mode is still to be set
}

// applyStep is one path that changes. was and want are nil where there is nothing.
type applyStep struct {
	rel       string
	was, want *engine.Attr
	host      hostStat
	there     bool
	action    string
}

// The actions.
const (
	applyWrite  = "write"
	applyMkdir  = "mkdir"
	applyMode   = "mode"
	applyDelete = "delete"
	applyRmdir  = "rmdir"
)

func (a *applier) run(host *hostDir, changes []engine.FileChange) error {
	open, err := opener(a.now)
	if err != nil {
		return err
	}
	a.ex = &exporter{r: a.now, open: open, overwrite: true, keep: asRoot(), top: host}
	a.ex.run = newRun(a.ctx, "apply", 1, nil)
	err = a.plan(changes)
	if !a.opts.Force {
		a.barred = append(a.barred, a.drift...)
	}
	if err == nil && len(a.barred) > 0 {
		err = a.drifted(a.barred, ApplyForced, a.opts.Force)
	}
	if err == nil {
		err = a.perform()
	}
	rep, ferr := a.ex.run.finish()
	a.rep.Skipped = rep.Skipped
	if err == nil {
		err = ferr
	}
	return err
}

// Details of a Drift that say why force is no way out.
const (
	ApplyForced = "forced" // it was used: what is left is in the way, or leads out of the directory
	ApplyMoved  = "moved"  // the path changed while the apply was under way
)

// drifted is the error for paths that are not what they were, with the detail why if
// that is so.
func (a *applier) drifted(list []ApplyDrift, why string, is bool) error {
	names := make([]string, min(len(list), 10))
	for i := range names {
		names[i] = list[i].Path
	}
	details := map[string]any{"drift": list}
	if is {
		details[why] = true
	}
	return &engine.Error{
		Kind: engine.Drift, Op: "apply", Details: details,
		Err: fmt.Errorf("changed on the host since: %s", strings.Join(names, ", ")),
	}
}

// exact is a path of a change, byte for byte.
func exact(text, b64 string) (string, error) {
	if b64 == "" {
		return text, nil
	}
	b, err := base64.StdEncoding.DecodeString(b64)
	return string(b), err
}

// plan looks at every path that the changes touch.
func (a *applier) plan(changes []engine.FileChange) error {
	paths := map[string]bool{}
	if err := a.gather(paths, a.base, changes); err != nil {
		return err
	}
	for _, applied := range a.opts.Applied {
		if err := a.gather(paths, applied.State, applied.Since); err != nil {
			return err
		}
	}
	list := make([]string, 0, len(paths))
	for rel := range paths {
		list = append(list, rel)
	}
	sort.Strings(list)
	for _, rel := range list {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if err := a.look(rel); err != nil {
			return failure("apply", rel, err)
		}
	}
	return nil
}

// gather notes the paths that changes touch, which begin at the state from.
func (a *applier) gather(paths map[string]bool, from *engine.Snapshot, changes []engine.FileChange) error {
	for _, c := range changes {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		p, err := exact(c.Path, c.PathB64)
		old, oerr := exact(c.OldPath, c.OldPathB64)
		if err := errors.Join(err, oerr); err != nil {
			return err
		}
		for _, t := range []struct {
			snap *engine.Snapshot
			path string
		}{{a.now, p}, {from, old}} {
			if t.path == "" {
				continue
			}
			a.touch(paths, t.path)
			if old != "" && c.Type == "dir" {
				if err := a.below(t.snap, t.path, paths); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// touch notes a path of the vault that is below src.
func (a *applier) touch(paths map[string]bool, p string) {
	rel, ok := strings.CutPrefix(p, a.src+"/")
	if a.src == "" {
		rel, ok = p, true
	}
	if ok && rel != "." {
		paths[rel] = true
	}
}

// below notes everything below a directory.
func (a *applier) below(snap *engine.Snapshot, p string, paths map[string]bool) error {
	return snap.Walk(a.ctx, p, func(q string, _ engine.Attr) error {
		a.touch(paths, strings.Trim(q, "/"))
		return nil
	})
}

// find is what a state has at a path, without following a link on the way.
func (a *applier) find(snap *engine.Snapshot, rel string) (*engine.Attr, error) {
	at := engine.Attr{Ino: engine.RootIno}
	for name := range strings.SplitSeq(strings.Trim(a.src+"/"+rel, "/"), "/") {
		var err error
		at, err = snap.Lookup(a.ctx, at.Ino, name)
		if k := engine.KindOf(err); k == engine.NotFound || k == engine.NotDirectory {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return &at, nil
}

// look decides what has to happen at a path.
func (a *applier) look(rel string) (err error) {
	st := &applyStep{rel: rel}
	if st.was, err = a.find(a.base, rel); err != nil {
		return err
	}
	if st.want, err = a.find(a.now, rel); err != nil {
		return err
	}
	dir, err := a.ex.reopen(upOf(rel))
	if k := kindOf(err); k == engine.NotFound || k == engine.NotDirectory || k == engine.Loop {
		return a.lookBelow(st, k)
	}
	if err != nil {
		return err
	}
	defer dir.close() // nothing was written through it
	st.host, err = dir.stat(nameOf(rel))
	st.there = err == nil
	if err != nil && kindOf(err) != engine.NotFound {
		return err
	}
	reason, err := a.judge(st, dir)
	if err != nil {
		return err
	}
	a.settle(st, reason)
	return nil
}

// lookBelow is for a path whose directory the host does not have.
func (a *applier) lookBelow(st *applyStep, kind engine.Kind) error {
	if st.want == nil {
		return nil
	}
	switch {
	case a.comes(upOf(st.rel)):
	case kind != engine.NotFound:
		a.barred = append(a.barred, drift(st.rel, "what is above it is no directory"))
		return nil
	default:
		a.drift = append(a.drift, drift(st.rel, "its directory is missing"))
		if err := a.parents(upOf(st.rel)); err != nil {
			return err
		}
	}
	st.action = applyWrite
	if st.want.IsDir() {
		st.action = applyMkdir
	}
	a.add(st)
	return nil
}

// add adds a step.
func (a *applier) add(st *applyStep) {
	a.steps = append(a.steps, st)
	a.dirs[st.rel] = a.dirs[st.rel] || st.action == applyMkdir
	a.replaced[st.rel] = a.replaced[st.rel] || st.want != nil && !st.want.IsDir()
}

// comes reports whether a step makes the directory rel.
func (a *applier) comes(rel string) bool { return a.dirs[rel] }

// parents adds steps for directories that the host has lost.
func (a *applier) parents(rel string) error {
	if rel == "" || a.comes(rel) {
		return nil
	}
	dir, err := a.ex.reopen(rel)
	if err == nil {
		return dir.close()
	}
	if err := a.parents(upOf(rel)); err != nil {
		return err
	}
	st := &applyStep{rel: rel, action: applyMkdir}
	if st.want, err = a.find(a.now, rel); err == nil && st.want == nil {
		err = &engine.Error{Kind: engine.NotFound}
	}
	a.add(st)
	return err
}

func drift(rel, reason string) ApplyDrift {
	d := ApplyDrift{Reason: reason}
	s := newSkip(rel, "", "", false)
	d.Path, d.PathB64 = s.Path, s.PathB64
	return d
}

func upOf(rel string) string {
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		return rel[:i]
	}
	return ""
}

func nameOf(rel string) string { return rel[strings.LastIndexByte(rel, '/')+1:] }

// settle adds the step if it does something.
func (a *applier) settle(st *applyStep, reason string) {
	if reason != "" {
		a.drift = append(a.drift, drift(st.rel, reason))
	}
	if st.action != "" {
		a.add(st)
	}
}

// judge chooses the action of a step, and says why the host has drifted if it has.
func (a *applier) judge(st *applyStep, dir *hostDir) (reason string, err error) {
	if st.want == nil {
		return a.judgeGone(st, dir)
	}
	same, err := a.equal(dir, st, a.now, st.want)
	if err != nil {
		return "", err
	}
	if same {
		return a.judgeMode(st), nil
	}
	st.action = applyWrite
	if st.want.IsDir() {
		st.action = applyMkdir
	}
	switch {
	case !st.there && st.was == nil:
		return "", nil
	case !st.there:
		return "it is gone", nil
	}
	if st.action == applyWrite && st.host.mode&engine.TypeMask == engine.TypeDir {
		if own, err := a.hasOwn(dir, st.rel); own || err != nil {
			a.barred = append(a.barred, drift(st.rel, "the host has something in it"))
			return "", err
		}
	}
	return a.unchanged(st, dir)
}

// hasOwn reports whether the host has something in the directory rel that did not come from
// the vault. It is never removed, so nothing else can take the directory's place.
func (a *applier) hasOwn(up *hostDir, rel string) (own bool, err error) {
	dir, _, err := up.openDir(nameOf(rel))
	if err != nil {
		return false, err
	}
	defer dir.close() // nothing was written through it
	names, err := dir.names()
	for i := 0; i < len(names) && err == nil && !own; i++ {
		below := rel + "/" + names[i]
		if own, err = a.isOwn(below); own || err != nil {
			break
		}
		st, serr := dir.stat(names[i])
		if err = serr; err == nil && st.mode&engine.TypeMask == engine.TypeDir {
			own, err = a.hasOwn(dir, below)
		}
	}
	return own, err
}

// isOwn reports whether the vault never had the path, as far as the host knows.
func (a *applier) isOwn(rel string) (bool, error) {
	snaps := []*engine.Snapshot{a.base}
	for _, applied := range a.opts.Applied {
		snaps = append(snaps, applied.State)
	}
	for _, snap := range snaps {
		if at, err := a.find(snap, rel); at != nil || err != nil {
			return false, err
		}
	}
	return true, nil
}

// judgeGone is judge for what the vault has no more.
func (a *applier) judgeGone(st *applyStep, dir *hostDir) (reason string, err error) {
	if !st.there {
		return "", nil
	}
	st.action = applyDelete
	if st.host.mode&engine.TypeMask == engine.TypeDir {
		st.action = applyRmdir
	}
	return a.unchanged(st, dir)
}

// unchanged says why the host does not have what it had.
func (a *applier) unchanged(st *applyStep, dir *hostDir) (reason string, err error) {
	same, err := a.equal(dir, st, a.base, st.was)
	for i := 0; i < len(a.opts.Applied) && err == nil && !same; i++ {
		state := a.opts.Applied[i].State
		applied, ferr := a.find(state, st.rel)
		if ferr != nil {
			return "", ferr
		}
		same, err = a.equal(dir, st, state, applied)
	}
	switch {
	case err != nil || same:
		return "", err
	case st.was == nil:
		return "the host has something else there", nil
	}
	return "it changed", nil
}

// judgeMode chooses what to do about the mode of what is right otherwise.
func (a *applier) judgeMode(st *applyStep) (reason string) {
	mode := a.ex.modeOf(*st.want) & 0o7777
	if st.want.IsSymlink() || st.was != nil && st.was.Mode == st.want.Mode || st.host.mode&0o7777 == mode {
		return ""
	}
	st.action = applyMode
	if st.was != nil && st.host.mode&0o7777 != st.was.Mode&0o7777 {
		return "its mode changed"
	}
	return ""
}

// equal reports whether the host has at a path what a state has: the same type, and the
// same content, target or device.
func (a *applier) equal(dir *hostDir, st *applyStep, snap *engine.Snapshot, want *engine.Attr) (bool, error) {
	if want == nil || !st.there {
		return want == nil && !st.there, nil
	}
	if st.host.mode&engine.TypeMask != want.Mode&engine.TypeMask {
		return false, nil
	}
	switch want.Mode & engine.TypeMask {
	case engine.TypeRegular:
		return a.equalContent(dir, st, snap, want)
	case engine.TypeSymlink:
		target, err := snap.Readlink(a.ctx, want.Ino)
		if err != nil {
			return false, err
		}
		there, err := dir.readlink(nameOf(st.rel))
		return there == target, err
	case engine.TypeChar, engine.TypeBlock:
		return st.host.rdev == want.Rdev, nil
	}
	return true, nil
}

func (a *applier) equalContent(dir *hostDir, st *applyStep, snap *engine.Snapshot, want *engine.Attr) (same bool, err error) {
	if st.host.size != want.Size {
		return false, nil
	}
	f, _, err := dir.openFile(nameOf(st.rel))
	if err != nil {
		return false, err
	}
	defer f.close() // nothing was written through it
	h, err := snap.Open(a.ctx, want.Ino)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	mine, theirs := make([]byte, min(max(want.Size, 1), pieceBytes)), make([]byte, min(max(want.Size, 1), pieceBytes))
	for off := int64(0); off < want.Size; off += int64(len(mine)) {
		n, err := f.readAt(mine[:min(int64(len(mine)), want.Size-off)], off)
		if err != nil {
			return false, err
		}
		m, err := h.ReadAt(a.ctx, theirs[:min(int64(len(theirs)), want.Size-off)], off)
		if err != nil || !bytes.Equal(mine[:n], theirs[:m]) {
			return false, err
		}
	}
	return true, nil
}
