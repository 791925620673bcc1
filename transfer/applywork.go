package transfer

import (
	"errors"
	"slices"

	"github.com/agentvfs/avfs/engine"
)

// perform makes the changes: first what has to go from directories that become
// something else, then what comes, directories first, and at last what goes.
func (a *applier) perform() error {
	var before, middle, after []*applyStep
	for _, st := range a.steps {
		if err := a.ctx.Err(); err != nil {
			return failure("apply", st.rel, err)
		}
		switch {
		case st.action != applyDelete && st.action != applyRmdir:
			middle = append(middle, st)
		case a.replacedAbove(st.rel):
			before = append(before, st)
		default:
			after = append(after, st)
		}
	}
	slices.Reverse(before) // what is in a directory before the directory
	slices.Reverse(after)
	for _, st := range slices.Concat(before, middle, after) {
		if err := a.ctx.Err(); err != nil {
			return failure("apply", st.rel, err)
		}
		if err := a.do(st); err != nil {
			return failure("apply", st.rel, err)
		}
	}
	for _, st := range slices.Backward(a.made) {
		if err := a.setDirMode(st); err != nil {
			return failure("apply", st.rel, err)
		}
	}
	return nil
}

// replacedAbove reports whether something above rel is no directory any more.
func (a *applier) replacedAbove(rel string) bool {
	for up := upOf(rel); up != ""; up = upOf(up) {
		if a.replaced[up] {
			return true
		}
	}
	return false
}

// do makes one change, if the path is still what it was.
func (a *applier) do(st *applyStep) error {
	if !a.opts.DryRun {
		dir, err := a.ex.reopen(upOf(st.rel))
		if err != nil {
			return err
		}
		kept, err := a.doIn(st, dir)
		if err = errors.Join(err, dir.close()); err != nil {
			return err
		}
		if kept {
			a.rep.Kept = append(a.rep.Kept, st.change())
			return nil
		}
	}
	a.rep.Changes = append(a.rep.Changes, st.change())
	return nil
}

func (st *applyStep) change() ApplyChange {
	s := newSkip(st.rel, "", "", false)
	return ApplyChange{Path: s.Path, PathB64: s.PathB64, Action: st.action}
}

// doIn is do in the open directory of the path. kept says that a directory stays,
// because the host has something in it.
func (a *applier) doIn(st *applyStep, dir *hostDir) (kept bool, err error) {
	name := nameOf(st.rel)
	now, err := dir.stat(name)
	there := err == nil
	if err != nil && kindOf(err) != engine.NotFound {
		return false, err
	}
	isDir := there && now.mode&engine.TypeMask == engine.TypeDir
	if there != st.there || there && (now.dev != st.host.dev || now.ino != st.host.ino) ||
		there && !isDir && (now.size != st.host.size || now.mtime != st.host.mtime) {
		return false, a.drifted([]ApplyDrift{drift(st.rel, "it changed just now")}, ApplyMoved, true)
	}
	switch st.action {
	case applyDelete:
		return false, dir.remove(name)
	case applyRmdir:
		err := dir.rmdir(name)
		if k := kindOf(err); k == engine.NotEmpty || k == engine.Exists {
			return true, nil
		}
		return false, err
	case applyMode:
		return false, a.setMode(st, dir, isDir)
	case applyMkdir:
		return false, a.makeDir(st, dir, there && !isDir)
	}
	return false, a.write(st, dir, isDir)
}

// makeDir makes a directory. Its mode comes last, since it may forbid entries.
func (a *applier) makeDir(st *applyStep, dir *hostDir, replaces bool) error {
	if replaces {
		if err := dir.remove(nameOf(st.rel)); err != nil {
			return err
		}
	}
	if err := dir.mkdir(nameOf(st.rel)); err != nil {
		return err
	}
	a.made = append(a.made, st)
	return nil
}

func (a *applier) setDirMode(st *applyStep) error {
	if a.opts.DryRun {
		return nil
	}
	dir, err := a.ex.reopen(st.rel)
	if err != nil {
		return err
	}
	return errors.Join(dir.file().setOwnerAndMode(a.ex.ownerOf(*st.want), a.ex.modeOf(*st.want)), dir.close())
}

func (a *applier) setMode(st *applyStep, dir *hostDir, isDir bool) error {
	if isDir {
		d, _, err := dir.openDir(nameOf(st.rel))
		if err != nil {
			return err
		}
		return errors.Join(d.file().setOwnerAndMode(nil, a.ex.modeOf(*st.want)), d.close())
	}
	f, _, err := dir.openFile(nameOf(st.rel))
	if err != nil {
		return err
	}
	return errors.Join(f.setOwnerAndMode(nil, a.ex.modeOf(*st.want)), f.close())
}

// write makes a new file beside the old one and renames it.
func (a *applier) write(st *applyStep, dir *hostDir, replacesDir bool) error {
	want := *st.want
	if want.Mode&engine.TypeMask == engine.TypeSocket {
		a.ex.run.note(st.rel, engine.Unsupported, "a socket")
		return nil
	}
	if st.there && !replacesDir {
		want.UID, want.GID = st.host.uid, st.host.gid
		if st.was != nil && st.was.Mode == want.Mode && st.host.mode&engine.TypeMask == want.Mode&engine.TypeMask {
			want.Mode = st.host.mode
		}
	}
	temp := tempName("apply")
	if err := a.ex.makeAs(&exportDir{ex: a.ex, host: dir}, temp, st.rel, want); err != nil {
		return err
	}
	var err error
	if replacesDir {
		err = dir.rmdir(nameOf(st.rel))
	}
	if err == nil {
		err = dir.rename(temp, nameOf(st.rel))
	}
	if err != nil {
		return errors.Join(err, dir.remove(temp))
	}
	return nil
}
