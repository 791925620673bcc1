package engine

import (
	"maps"
	"slices"
)

// relink plans for the paths of which theirs has changed nothing but with which others
// they are names of one file. Where ours has left those alone, the path is made anew, and
// so becomes a name of what theirs has it be one of, or a file of its own. Else it is a
// conflict: which content the names should have in common, nobody can tell.
func (m *merger) relink() error {
	for i := range m.theirs.links {
		c := &m.theirs.links[i]
		if len(m.opts.Paths) > 0 && !m.chosen.has(c.path) {
			continue
		}
		v := three{e: m.baseEntity(c.path), base: located{c.path, c.before}, theirs: located{c.path, c.after}}
		var err error
		if v.ours, err = m.find(&m.ours, v.e); err != nil {
			return atPath(err, "merge", c.path)
		}
		if v.ours.n == nil {
			continue
		}
		theirs, err := m.groupOf(&m.theirs, v.theirs)
		if err != nil {
			return atPath(err, "merge", c.path)
		}
		ours, err := m.groupOf(&m.ours, v.ours)
		if err != nil {
			return atPath(err, "merge", c.path)
		}
		if maps.Equal(ours, theirs) {
			continue
		}
		if m.linksEdited(theirs) || m.of[v.e] != nil && !m.of[v.e].timesOnly() {
			if m.clash(ConflictLinks, v, nil) != pickTheirs {
				continue
			}
		}
		if st := m.of[v.e]; st != nil {
			m.drop(st)
		}
		m.add(&mergeStep{e: v.e, ours: v.ours, theirs: v.theirs, remove: true, create: true, to: m.placeIn(&m.ours, v.e)})
	}
	return nil
}

// timesOnly reports whether a step sets a time and does nothing else.
func (st *mergeStep) timesOnly() bool {
	only := mergeStep{e: st.e, ours: st.ours, theirs: st.theirs, mtime: st.mtime}
	return !st.remove && !st.create && !st.move && !only.idle() && st.text == nil && !st.content && st.mode == nil && st.uid == nil && st.gid == nil && len(st.xattrs) == 0
}

// groupOf is the set of the names of the file at a path of one side.
func (m *merger) groupOf(s *mergeSide, at located) (map[*entity]bool, error) {
	group := map[*entity]bool{m.entityAt(s, at.path): true}
	err := m.eachOther(s, at, func(e *entity) (bool, error) {
		group[e] = true
		return true, nil
	})
	return group, err
}

// linksEdited reports whether ours has changed what one of the names leads to, or its
// links.
func (m *merger) linksEdited(group map[*entity]bool) bool {
	for e := range group {
		if e.base != "" && m.ours.edited(e.base) {
			return true
		}
		if slices.ContainsFunc(m.ours.links, func(c change) bool { return c.path == e.base }) {
			return true
		}
	}
	return false
}
