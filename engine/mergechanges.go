package engine

import (
	"errors"
	"slices"
	"sort"
)

// changes lists what the steps change, sorted by path, as a diff does.
func (m *merger) changes() ([]FileChange, error) {
	var list []change
	made := map[*entity]bool{}
	for _, st := range m.steps {
		some, err := m.changesOf(st)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
		if !st.parents {
			continue
		}
		for e := st.to.up; e != nil && !made[e] && m.of[e] == nil; e = m.placeIn(&m.theirs, e).up {
			ours, oerr := m.find(&m.ours, e)
			theirs, terr := m.find(&m.theirs, e)
			if oerr != nil || terr != nil {
				return nil, errors.Join(oerr, terr)
			}
			if ours.n != nil {
				break
			}
			made[e] = true
			list = append(list, change{kind: Added, path: m.pathAfter(e), after: theirs.side})
		}
	}
	list = replaced(list)
	sort.Slice(list, func(i, j int) bool { return list[i].path < list[j].path })
	out := make([]FileChange, 0, len(list))
	for i := range list {
		out = append(out, list[i].public())
	}
	return out, nil
}

func (m *merger) changesOf(st *mergeStep) (list []change, err error) {
	c := change{path: m.pathAfter(st.e), before: st.ours.side, after: st.theirs.side}
	switch {
	case st.remove && st.create:
		c.kind = TypeChanged
		if c.before.n.mode&TypeMask == c.after.n.mode&TypeMask {
			c.kind = Modified
		}
	case st.create:
		c.kind = Added
	case st.remove:
		c.kind, c.path, c.after = Deleted, st.ours.path, side{}
	default:
		c.kind, c.after = m.kindOf(st), m.edited(st)
	}
	if c.before.n != nil && c.path != st.ours.path {
		c.oldPath = st.ours.path
	}
	if c.kind != "" {
		list = append(list, c)
	}
	if st.edits() && !st.fresh && c.kind != "" {
		err := m.eachOther(&m.ours, st.ours, func(e *entity) (bool, error) {
			if m.of[e] == nil {
				list = append(list, change{kind: m.kindOf(&mergeStep{content: st.content, text: st.text, mode: st.mode, uid: st.uid, gid: st.gid, xattrs: st.xattrs}), path: m.pathAfter(e), before: c.before, after: c.after})
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	if st.tree && st.ours.n.isDir() {
		err = m.ours.w.descend(m.ctx, st.ours.ino, st.ours.path, func(p string, e DirEntry) error {
			if other := m.of[m.entityAt(&m.ours, p)]; other != nil && (other.remove || other.move) {
				return nil
			}
			n, err := m.ours.w.inode(m.ctx, e.Ino)
			list = append(list, change{kind: Deleted, path: p, before: side{e.Ino, n}})
			return err
		})
	}
	if err == nil && st.whole {
		err = m.theirs.w.descend(m.ctx, st.theirs.ino, st.theirs.path, func(p string, e DirEntry) error {
			if !m.alongWith(m.entityAt(&m.theirs, p)) {
				return SkipDir
			}
			n, err := m.theirs.w.inode(m.ctx, e.Ino)
			list = append(list, change{kind: Added, path: c.path + p[len(st.theirs.path):], after: side{e.Ino, n}})
			return err
		})
	}
	return list, err
}

// alongWith reports whether e comes with its directory, and has no step of its own.
func (m *merger) alongWith(e *entity) bool { return m.of[e] == nil && !m.stays[e] }

// replaced makes changes of paths that exist before and after of what goes and what
// comes at one path.
func replaced(list []change) []change {
	gone := map[string]side{}
	for _, c := range list {
		if c.kind == Deleted {
			gone[c.path] = c.before
		}
	}
	back := map[string]bool{}
	var more []change
	for i, c := range list {
		before, ok := gone[c.path]
		if !ok || c.kind == Deleted || c.kind != Added && c.kind != Renamed {
			continue
		}
		back[c.path] = true
		if c.kind == Renamed {
			more = append(more, change{kind: Deleted, path: c.oldPath, before: c.before})
		}
		list[i].kind, list[i].oldPath, list[i].before = Modified, "", before
		if before.n.mode&TypeMask != c.after.n.mode&TypeMask {
			list[i].kind = TypeChanged
		}
	}
	list = slices.DeleteFunc(list, func(c change) bool { return c.kind == Deleted && back[c.path] })
	return append(list, more...)
}

// kindOf is the kind of the change to what ours keeps; "" where only times change.
func (m *merger) kindOf(st *mergeStep) ChangeKind {
	switch {
	case st.move:
		return Renamed
	case st.content || st.text != nil:
		return Modified
	case st.mode != nil:
		return ModeChanged
	case st.uid != nil || st.gid != nil || len(st.xattrs) > 0:
		return AttrChanged
	}
	return ""
}

// edited is what ours keeps as it will be.
func (m *merger) edited(st *mergeStep) side {
	n := *st.ours.n
	if st.content {
		n.size = st.theirs.n.size
	}
	if st.text != nil {
		n.size = int64(len(*st.text))
	}
	if st.mode != nil {
		n.mode = *st.mode
	}
	return side{st.ours.ino, &n}
}
