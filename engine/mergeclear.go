package engine

// Where a conflict is resolved for theirs, something of ours has to make room. What
// theirs has too, at another place, goes there: a resolution never takes away what both
// sides have.

// clear plans that what is in the way goes home, or else away.
func (m *merger) clear(e *entity, at located) error {
	if home, err := m.sendHome(e, at); err != nil || home {
		return err
	}
	st := m.of[e]
	if st == nil {
		st = &mergeStep{e: e, ours: at, remove: true}
		m.add(st)
	}
	*st = mergeStep{
		e: e, ours: st.ours, theirs: st.theirs, remove: true, tree: true,
		create: st.create, whole: st.whole, parents: st.parents, to: st.to,
	}
	return nil
}

// sendHome plans that what ours has of e moves to where theirs has it, and reports
// whether it can. A file with several names cannot: it goes, and keepCommon brings it.
func (m *merger) sendHome(e *entity, at located) (bool, error) {
	st := m.of[e]
	if e.base == "" || m.stays[e] || st != nil && (st.remove || st.move || st.create) {
		return false, nil
	}
	theirs, err := m.find(&m.theirs, e)
	if err != nil || theirs.n == nil {
		return false, err
	}
	to := m.placeIn(&m.theirs, e)
	if to == m.placeIn(&m.ours, e) || at.n.isDir() && !theirs.n.isDir() || !at.n.isDir() && (at.n.nlink > 1 || theirs.n.nlink > 1) {
		return false, nil
	}
	step := &mergeStep{e: e, ours: at, theirs: theirs}
	if st != nil {
		step = st
	}
	step.move, step.parents, step.to = true, true, to
	if st == nil {
		m.add(step)
	}
	m.unsettled = true
	return true, nil
}

// saveFromTrees looks at what is below directories that go whole: what theirs has too
// moves there, and what is left goes with the tree.
func (m *merger) saveFromTrees() (changed bool, err error) {
	for _, st := range append([]*mergeStep(nil), m.steps...) {
		if m.of[st.e] != st || !st.remove || !st.tree || !st.ours.n.isDir() {
			continue
		}
		err := m.ours.w.descend(m.ctx, st.ours.ino, st.ours.path, func(p string, entry DirEntry) error {
			saved, err := m.saveFromTree(p)
			changed = changed || saved
			if err == nil && saved && entry.Type == TypeDir {
				return SkipDir
			}
			return err
		})
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// saveFromTree decides about what ours has at p, where a whole tree goes.
func (m *merger) saveFromTree(p string) (saved bool, err error) {
	e := m.entityAt(&m.ours, p)
	st := m.of[e]
	if st != nil && st.remove && st.create && st.to == m.placeIn(&m.ours, e) {
		return m.replaceAtHome(st), nil
	}
	at, err := m.ours.w.spot(m.ctx, p)
	if err != nil {
		return false, err
	}
	if saved, err = m.sendHome(e, located{p, at.side}); err != nil || saved {
		return saved, err
	}
	if st != nil && !st.remove && !st.move && !st.create {
		m.drop(st) // nothing is left that it could change
	}
	return false, nil
}

// replaceAtHome puts what comes in the place of ours to where theirs has it instead, and
// reports whether that is elsewhere.
func (m *merger) replaceAtHome(st *mergeStep) bool {
	to := m.placeIn(&m.theirs, st.e)
	if to == st.to || to == (place{}) {
		return false
	}
	st.to, st.parents, m.unsettled = to, true, true
	return true
}

// rival is another step that puts something at the place of st, in exchange for what
// ours has there; nil if there is none.
func (m *merger) rival(st *mergeStep) *mergeStep {
	at, err := m.find(&m.ours, st.to.up)
	if err != nil || at.n == nil {
		return nil
	}
	other := m.of[m.entityAt(&m.ours, joinPath(at.path, st.to.name))]
	if other == nil || other == st || !other.remove || !other.create || other.to != st.to {
		return nil
	}
	return other
}

// yield reports whether what comes, described by v, may have the place of other, which
// then goes where theirs has it.
func (m *merger) yield(other *mergeStep, v three) bool {
	v.ours = other.ours
	return m.clash(ConflictRenameAdd, v, nil) == pickTheirs && m.replaceAtHome(other)
}
