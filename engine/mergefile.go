package engine

import (
	"bytes"
	"context"
	"maps"
	"slices"
)

// sameContent compares content and, for anything but a directory, target and device.
func (m *merger) sameContent(aw view, a located, bw view, b located) (bool, error) {
	d := differ{a: pathFinder{w: aw}, b: pathFinder{w: bw}}
	same, _, err := d.sameContent(m.ctx, a.side, b.side)
	return same, err
}

// fields plans what changes of something that has the same type on both sides.
func (m *merger) fields(st *mergeStep, v three) error {
	if v.base.n == nil {
		if v.ours.n.isDir() {
			return nil // both made the directory
		}
		return m.bothAdded(st, v)
	}
	if !v.ours.n.isDir() {
		if err := m.content(st, v); err != nil || st.remove {
			return err
		}
	}
	m.mode(st, v)
	m.owner(st, v)
	return m.attributes(st, v)
}

// bothAdded plans for what both sides added under one name.
func (m *merger) bothAdded(st *mergeStep, v three) error {
	same, err := m.sameContent(m.ours.w, v.ours, m.theirs.w, v.theirs)
	if err != nil {
		return err
	}
	ours, theirs, err := m.bothXattrs(v)
	if err != nil {
		return err
	}
	a, b := v.ours.n, v.theirs.n
	if same && a.mode == b.mode && a.uid == b.uid && a.gid == b.gid && maps.EqualFunc(ours, theirs, bytes.Equal) {
		return nil
	}
	switch m.clash(ConflictAddAdd, v, nil) {
	case pickTheirs:
		m.replace(st)
	case pickMarkers:
		return m.markText(st, v)
	}
	return nil
}

// content plans for the content of a file, the target of a link, the number of a device.
func (m *merger) content(st *mergeStep, v three) error {
	theirs, err := m.sameContent(m.base, v.base, m.theirs.w, v.theirs)
	if err != nil {
		return err
	}
	ours, err := m.sameContent(m.base, v.base, m.ours.w, v.ours)
	if err != nil {
		return err
	}
	if theirs {
		if ours && v.theirs.n.mtime != v.base.n.mtime && v.ours.n.mtime == v.base.n.mtime {
			st.mtime = &v.theirs.n.mtime
		}
		return nil
	}
	if !ours {
		agree, err := m.sameContent(m.ours.w, v.ours, m.theirs.w, v.theirs)
		if err != nil || agree {
			return err
		}
		if v.ours.n.isRegular() {
			return m.bothEdited(st, v)
		}
		if m.clash(ConflictContent, v, nil) != pickTheirs {
			return nil
		}
	}
	if v.ours.n.isRegular() {
		st.content = true
	} else {
		m.replace(st) // nobody keeps an old target
	}
	return nil
}

// bothEdited plans for a file that both sides edited.
func (m *merger) bothEdited(st *mergeStep, v three) error {
	merged, kind, err := m.mergeTexts(v, true)
	if err != nil {
		return err
	}
	if kind == "" {
		st.text = &merged.text
		m.texts++
		return nil
	}
	switch m.clash(kind, v, nil) {
	case pickTheirs:
		st.content = true
	case pickMarkers:
		if kind == ConflictContent && merged.hunks > 0 {
			st.text = &merged.text
		}
	}
	return nil
}

// mergeTexts merges the texts of a file line by line, without a base if it has none.
// kind says why that is not the result.
func (m *merger) mergeTexts(v three, based bool) (merged textMerge, kind ConflictKind, err error) {
	var texts [3][]byte
	for i, l := range []struct {
		w  view
		at located
	}{{m.base, v.base}, {m.ours.w, v.ours}, {m.theirs.w, v.theirs}} {
		if i == 0 && !based {
			continue
		}
		if l.at.n.size > maxMergeText {
			return merged, ConflictContent, nil
		}
		if texts[i], err = m.s.readInode(m.ctx, l.w, l.at.side); err != nil {
			return merged, "", err
		}
		if !isText(texts[i]) {
			return merged, ConflictBinary, nil
		}
	}
	merged = mergeText(texts[0], texts[1], texts[2], markers{ours: m.opts.dst, theirs: m.opts.src})
	if merged.hunks > 0 {
		kind = ConflictContent
	}
	return merged, kind, nil
}

// markText plans markers for a text that both sides added.
func (m *merger) markText(st *mergeStep, v three) error {
	if !v.ours.n.isRegular() {
		return nil
	}
	merged, kind, err := m.mergeTexts(v, false)
	if err == nil && kind == ConflictContent && merged.hunks > 0 {
		st.text = &merged.text
	}
	return err
}

// readInode reads a whole regular file.
func (s *Store) readInode(ctx context.Context, w view, at side) ([]byte, error) {
	f := &SnapshotFile{p: &Snapshot{s: s, w: w}, ino: at.ino, size: at.n.size}
	b := make([]byte, at.n.size)
	n, err := f.ReadAt(ctx, b, 0)
	return b[:n], err
}

func (m *merger) mode(st *mergeStep, v three) {
	b, o, t := v.base.n.mode, v.ours.n.mode, v.theirs.n.mode
	if t != b && t != o && (o == b || m.clash(ConflictMode, v, nil) == pickTheirs) {
		st.mode = &v.theirs.n.mode
	}
}

func (m *merger) owner(st *mergeStep, v three) {
	b, o, t := v.base.n, v.ours.n, v.theirs.n
	uid, gid := t.uid != b.uid && t.uid != o.uid, t.gid != b.gid && t.gid != o.gid
	if (uid && o.uid != b.uid || gid && o.gid != b.gid) && m.clash(ConflictOwner, v, nil) != pickTheirs {
		return
	}
	if uid {
		st.uid = &t.uid
	}
	if gid {
		st.gid = &t.gid
	}
}

// xattrsOf reads all extended attributes of an inode.
func (w view) xattrsOf(ctx context.Context, ino Ino) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := w.scan(ctx, key(ino, kindXattr), nil, func(k, value []byte) error {
		all[string(k[keyHead:])] = append([]byte{}, value...)
		return nil
	})
	return all, err
}

func (m *merger) bothXattrs(v three) (ours, theirs map[string][]byte, err error) {
	if ours, err = m.ours.w.xattrsOf(m.ctx, v.ours.ino); err != nil {
		return nil, nil, err
	}
	theirs, err = m.theirs.w.xattrsOf(m.ctx, v.theirs.ino)
	return ours, theirs, err
}

// attributes plans for extended attributes, each by its name.
func (m *merger) attributes(st *mergeStep, v three) error {
	base, err := m.base.xattrsOf(m.ctx, v.base.ino)
	if err != nil {
		return err
	}
	ours, theirs, err := m.bothXattrs(v)
	if err != nil || maps.EqualFunc(base, theirs, bytes.Equal) {
		return err
	}
	names := slices.Concat(slices.Collect(maps.Keys(base)), slices.Collect(maps.Keys(theirs)))
	slices.Sort(names)
	st.xattrs = map[string][]byte{}
	disputed := map[string][]byte{}
	for _, name := range slices.Compact(names) {
		b, o, t := base[name], ours[name], theirs[name]
		switch {
		case sameValue(t, b) || sameValue(t, o):
		case sameValue(o, b):
			st.xattrs[name] = t
		default:
			disputed[name] = t
		}
	}
	if len(disputed) > 0 && m.clash(ConflictXattr, v, slices.Sorted(maps.Keys(disputed))) == pickTheirs {
		maps.Copy(st.xattrs, disputed)
	}
	return nil
}

// sameValue compares values of an attribute, of which nil is none.
func sameValue(a, b []byte) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}

// eachOther calls fn for the other names of an inode on a side.
func (m *merger) eachOther(s *mergeSide, at located, fn func(e *entity) (more bool, err error)) error {
	if at.n.isDir() || at.n.nlink < 2 {
		return nil
	}
	names, err := s.w.names(m.ctx, at.ino, at.n)
	if err != nil {
		return err
	}
	for _, nm := range names {
		p, err := s.names.join(m.ctx, nm)
		if err != nil {
			return err
		}
		if p == at.path {
			continue
		}
		if more, err := fn(m.entityAt(s, p)); err != nil || !more {
			return err
		}
	}
	return nil
}

// keepApart makes a file of its own of a name that theirs has taken out of a group of
// hard links, so that its edit leaves the other names alone. Otherwise an edit goes to
// all names that ours has.
func (m *merger) keepApart(st *mergeStep, v three) error {
	if !st.edits() {
		return nil
	}
	return m.eachOther(&m.ours, v.ours, func(e *entity) (bool, error) {
		other, err := m.find(&m.theirs, e)
		if err == nil && other.n != nil && other.ino != v.theirs.ino {
			st.fresh = true
		}
		return !st.fresh, err
	})
}

// joinLinks lets what theirs has as another name of a file be one in ours as well.
func (m *merger) joinLinks() error {
	for _, st := range slices.Clone(m.steps) {
		if !st.create && !st.content || st.theirs.n == nil || st.theirs.n.isDir() {
			continue
		}
		err := m.eachOther(&m.theirs, st.theirs, func(e *entity) (bool, error) {
			at, err := m.find(&m.ours, e)
			if err != nil || at.n == nil || m.stays[e] || at.n.mode&TypeMask != st.theirs.n.mode&TypeMask {
				return true, err
			}
			if o := m.of[e]; o != nil && (o.remove || o.create || o.fresh) {
				return true, nil
			}
			if st.create {
				st.link = e
			} else if at.ino != st.ours.ino && st.ours.n.nlink == 1 {
				m.replace(st)
				st.link, st.content = e, false
			}
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
