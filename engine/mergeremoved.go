package engine

import (
	"sort"
	"strings"
)

// settleRemoved keeps directories that would not be empty, the deepest first.
func (m *merger) settleRemoved() (changed bool, err error) {
	var dirs []*mergeStep
	for _, st := range m.steps {
		if st.remove && !st.tree && st.ours.n.isDir() {
			dirs = append(dirs, st)
		}
	}
	sort.Slice(dirs, func(i, j int) bool {
		return strings.Count(dirs[i].ours.path, "/") > strings.Count(dirs[j].ours.path, "/")
	})
	for _, st := range dirs {
		left, added, err := m.leftIn(st)
		if err != nil {
			return changed, err
		}
		if left == 0 {
			continue
		}
		kind := ConflictEditDelete
		if st.create {
			kind = ConflictDirectoryFile
		}
		if len(added) > 0 || st.create {
			if m.clash(kind, three{e: st.e, ours: st.ours, theirs: st.theirs}, added) == pickTheirs {
				st.tree = true
				continue
			}
			m.keepWhole(st.ours.path)
		}
		m.stays[st.e] = true
		m.drop(st)
		changed = true
	}
	return changed, nil
}

// leftIn counts the entries that a directory will still have, and lists those that
// nothing but ours explains.
func (m *merger) leftIn(dir *mergeStep) (left int, added []string, err error) {
	err = m.ours.w.readDir(m.ctx, dir.ours.ino, "", func(entry DirEntry) error {
		p := joinPath(dir.ours.path, entry.Name)
		e := m.entityAt(&m.ours, p)
		if st := m.of[e]; st != nil && (st.remove && !st.create || st.move) {
			return nil
		}
		left++
		if m.stays[e] || m.unselected(e) {
			return nil
		}
		added = append(added, p)
		return nil
	})
	return left, added, err
}

// unselected reports whether theirs deleted e and the merge leaves that out.
func (m *merger) unselected(e *entity) bool {
	if len(m.opts.Paths) == 0 || e.base == "" || m.chosen.has(e.base) {
		return false
	}
	_, there := m.theirs.now(e.base)
	return !there
}
