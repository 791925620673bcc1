package engine

import (
	"slices"
	"strings"
)

// A file that both sides have, with the same content, is somewhere after a merge, however
// its conflicts are decided. The diffs know names: of a file that ours moved onto the name
// of another they say that the one went and the other changed. So a decision about either
// name may take the only place of the file. Inodes tell, for what is in both states and the
// base has one number.

// keepCommon looks for files that both sides have and that the steps leave no place. Where
// the conflict is decided for theirs they come to where theirs has them, else the step that
// takes them away is taken back. Without a decision nothing of the kind can happen.
func (m *merger) keepCommon() (changed bool, err error) {
	if len(m.resolved) == 0 {
		return false, nil
	}
	for _, st := range slices.Clone(m.steps) {
		if m.of[st.e] != st {
			continue
		}
		taken, err := m.takes(st)
		if err != nil {
			return changed, err
		}
		for _, at := range taken {
			kept, err := m.keepFile(st, at)
			if err != nil {
				return changed, err
			}
			changed = changed || kept
		}
	}
	return changed, nil
}

// takes lists the files of ours of which a step takes away the name or the content.
func (m *merger) takes(st *mergeStep) (list []located, err error) {
	if st.ours.n == nil || !st.remove && !st.content {
		return nil, nil
	}
	if !st.ours.n.isDir() {
		return []located{st.ours}, nil
	}
	if !st.tree {
		return nil, nil
	}
	err = m.ours.w.descend(m.ctx, st.ours.ino, st.ours.path, func(p string, entry DirEntry) error {
		switch other := m.of[m.entityAt(&m.ours, p)]; {
		case other != nil && other.move && entry.Type == TypeDir:
			return SkipDir
		case other != nil && other.move || entry.Type == TypeDir:
			return nil
		}
		n, err := m.ours.w.inode(m.ctx, entry.Ino)
		list = append(list, located{p, side{entry.Ino, n}})
		return err
	})
	return list, err
}

// keepFile sees to it that a file of ours which st takes away is somewhere afterwards, if
// theirs has it too. It reports whether it changed the plan.
func (m *merger) keepFile(st *mergeStep, at located) (changed bool, err error) {
	theirs, err := m.sameFile(at)
	if err != nil || theirs.n == nil {
		return false, err
	}
	if has, err := m.stillHas(at, theirs); err != nil || has {
		return false, err
	}
	e := m.entityAt(&m.theirs, theirs.path)
	v := three{e: st.e, ours: at, theirs: theirs}
	pick := m.pick(ConflictRenameAdd, v)
	if pick == pickTheirs && !m.forced[e] && !m.stays[e] {
		m.conflict(ConflictRenameAdd, v, nil, pick)
		return true, m.force(e, theirs)
	}
	if pick == pickTheirs || m.forced[st.e] {
		pick = pickNone // decided for both sides
	}
	m.conflict(ConflictRenameAdd, v, nil, pick)
	m.drop(st)
	return true, nil
}

// sameFile is where theirs has a file of ours with the same content, if it does.
func (m *merger) sameFile(at located) (located, error) {
	n, names, err := m.theirs.names.inode(m.ctx, at.ino)
	if err != nil || len(names) == 0 || n.mode&TypeMask != at.n.mode&TypeMask {
		return located{}, err
	}
	p, err := m.theirs.names.join(m.ctx, names[0])
	if err != nil {
		return located{}, err
	}
	theirs := located{p, side{at.ino, n}}
	same, err := m.sameContent(m.ours.w, at, m.theirs.w, theirs)
	if err != nil || !same {
		return located{}, err
	}
	return theirs, nil
}

// stillHas reports whether a file of ours that theirs has too is somewhere when the steps
// are done.
func (m *merger) stillHas(ours, theirs located) (bool, error) {
	for _, st := range m.steps {
		brings := st.create || st.content
		if brings && st.theirs.n != nil && st.theirs.ino == theirs.ino {
			return true, nil
		}
		if st.create && st.whole && topsOf([]string{st.theirs.path}).has(theirs.path) && m.alongWith(m.entityAt(&m.theirs, theirs.path)) {
			return true, nil
		}
	}
	still := false
	err := m.eachOther(&m.ours, ours, func(e *entity) (bool, error) {
		st := m.of[e]
		still = st == nil || st.move || !st.remove && !st.content
		return !still, nil
	})
	return still, err
}

// force plans that what theirs has of e comes to where theirs has it.
func (m *merger) force(e *entity, theirs located) error {
	m.forced[e], m.unsettled = true, true
	to := m.placeIn(&m.theirs, e)
	ours, err := m.find(&m.ours, e)
	if err != nil {
		return err
	}
	st := m.of[e]
	if st == nil {
		st = &mergeStep{e: e, ours: ours}
	}
	st.theirs, st.to, st.parents, st.text = theirs, to, true, nil
	switch {
	case ours.n == nil:
		st.create = true
	case ours.n.isRegular() && theirs.n.isRegular() && !st.remove:
		st.content, st.move = true, to != m.placeIn(&m.ours, e)
	default:
		st.remove, st.tree, st.create, st.move, st.content = true, true, true, false, false
	}
	if m.of[e] == nil {
		m.add(st)
	}
	return nil
}

// untangle decides about a directory that is to move into itself, because each side moved
// one of two directories into the other. For theirs, what ours moved goes back.
func (m *merger) untangle(st *mergeStep) (bool, error) {
	v := three{e: st.e, ours: st.ours, theirs: st.theirs}
	pick := m.pick(ConflictRenameRename, v)
	if pick != pickTheirs {
		m.conflict(ConflictRenameRename, v, nil, pick)
		return false, nil
	}
	seen := map[*entity]bool{}
	for e := st.to.up; e != nil && e != st.e && !seen[e]; e = m.placeAfter(e).up {
		seen[e] = true
		ours, err := m.find(&m.ours, e)
		if err != nil {
			return false, err
		}
		if ours.n == nil {
			continue
		}
		if home, err := m.sendHome(e, ours); err != nil || home {
			m.conflict(ConflictRenameRename, v, nil, pick)
			return true, err
		}
	}
	m.conflict(ConflictRenameRename, v, nil, pickNone)
	return false, nil
}

// deletedUnderOther plans for a file that theirs deleted and that ours has moved onto the
// name of another: the diff says that ours deleted it too, and the other changed. For
// theirs, the other is again what theirs has.
func (m *merger) deletedUnderOther(v three) error {
	if v.base.n.isDir() || v.base.n.nlink > 1 {
		return nil
	}
	if n, _, err := m.theirs.names.inode(m.ctx, v.base.ino); err != nil || n != nil {
		return err // it is under another name there, too
	}
	n, names, err := m.ours.names.inode(m.ctx, v.base.ino)
	if err != nil || len(names) == 0 {
		return err
	}
	p, err := m.ours.names.join(m.ctx, names[0])
	if err != nil {
		return err
	}
	v.ours = located{p, side{v.base.ino, n}}
	same, err := m.sameContent(m.base, v.base, m.ours.w, v.ours)
	if err != nil || !same {
		return err // nothing of it is left
	}
	v.e = m.entityAt(&m.ours, p)
	theirs, err := m.find(&m.theirs, v.e)
	if err != nil || v.e.base == "" && theirs.n != nil || v.e.base != "" && m.theirs.edited(v.e.base) {
		return err // a change of the other one speaks for itself
	}
	if m.clash(ConflictRenameDelete, v, nil) != pickTheirs {
		return nil
	}
	switch {
	case theirs.n != nil:
		return m.force(v.e, theirs)
	case m.of[v.e] == nil:
		m.add(&mergeStep{e: v.e, ours: v.ours, remove: true})
	}
	return nil
}

// keepWhole takes back what is planned below a directory of ours that a decision keeps.
func (m *merger) keepWhole(dir string) {
	for _, st := range slices.Clone(m.steps) {
		if st.ours.n != nil && strings.HasPrefix(st.ours.path, dir+"/") {
			m.stays[st.e] = true
			m.drop(st)
		}
	}
}
