package engine

import (
	"context"
	"slices"
	"strings"
)

// entity is what is one thing in the three states of a merge, wherever it is in each:
// a name of the base, under which the diffs follow it, or a name that came since, which
// is the same for both sides where they gave it to the same directory.
type entity struct {
	key  string
	base string  // its path in the base; empty where it has none
	up   *entity // the directory of one that came since
	name string
}

// mergeSide is one of the two states, and what changed on the way to it.
type mergeSide struct {
	w     view
	names pathFinder
	list  []change
	links []change           // only the hard links of these paths changed
	old   map[string]*change // by path in the base
	new   map[string]*change // by path in this state
}

func (s *Store) mergeSide(ctx context.Context, base, root Root) (m mergeSide, err error) {
	m = mergeSide{w: view{src: s.nodes, root: root.ref}, old: map[string]*change{}, new: map[string]*change{}}
	m.names = newPathFinder(m.w)
	if m.list, m.links, err = diffLinks(ctx, s.nodes, base, root, nil, true); err != nil {
		return m, err
	}
	slices.SortFunc(m.links, func(a, b change) int { return strings.Compare(a.path, b.path) })
	for i := range m.list {
		c := &m.list[i]
		if c.before.n != nil {
			m.old[c.basePath()] = c
		}
		if c.after.n != nil {
			m.new[c.path] = c
		}
	}
	return m, nil
}

// basePath is the path before the change.
func (c *change) basePath() string {
	if c.oldPath != "" {
		return c.oldPath
	}
	return c.path
}

// topPath is the path of the top directory in a diff.
const topPath = "."

// upOf is the directory of a path.
func upOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return topPath
}

func nameOf(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

func joinPath(dir, name string) string {
	if dir == topPath || dir == "" {
		return name
	}
	return dir + "/" + name
}

// now is where the path p of the base is in this state.
func (m *mergeSide) now(p string) (string, bool) {
	for k := p; k != topPath; k = upOf(k) {
		c := m.old[k]
		switch {
		case c == nil:
		case c.kind == Deleted:
			return "", false
		case c.oldPath != "":
			return c.path + p[len(k):], true
		default: // what is above it has not moved either
			return p, true
		}
	}
	return p, true
}

// was is the path in the base of what is at q in this state.
func (m *mergeSide) was(q string) (string, bool) {
	for k := q; k != topPath; k = upOf(k) {
		c := m.new[k]
		switch {
		case c == nil:
		case c.before.n == nil:
			return "", false
		case c.oldPath != "":
			return c.oldPath + q[len(k):], true
		default:
			return q, true
		}
	}
	return q, true
}

// located is what is at a path of one state; n is nil where nothing is.
type located struct {
	path string
	side
}

// place is a name in a directory.
type place struct {
	up   *entity
	name string
}

// merger plans what of the changes of theirs has to be done to ours.
type merger struct {
	s            *Store
	ctx          context.Context // of the call that plans
	opts         MergeOptions
	chosen       tops // opts.Paths
	base         view
	ours, theirs mergeSide
	fast         bool // ours has not changed since the base
	entities     map[string]*entity
	steps        []*mergeStep
	of           map[*entity]*mergeStep
	kept         []string         // directories of the base that theirs deleted and that stay, with what is below
	stays        map[*entity]bool // what a conflict keeps as it is
	forced       map[*entity]bool // what becomes as theirs has it, so that nothing is lost
	unsettled    bool             // a step got a place that is still to be looked at
	conflicts    []MergeConflict
	resolved     []MergeConflict
	texts        int // files merged line by line
}

// mergeStep is what has to happen to one entity.
type mergeStep struct {
	e            *entity
	ours, theirs located
	remove       bool    // what ours has goes
	tree         bool    // with whatever is below it
	create       bool    // theirs comes, at to
	whole        bool    // with everything below it
	parents      bool    // with directories above it that ours has not
	move         bool    // ours goes to to
	fresh        bool    // what is at this name becomes a file of its own first
	content      bool    // takes the content of theirs
	text         *[]byte // takes this content
	mode         *uint32
	uid, gid     *uint32
	xattrs       map[string][]byte // nil removes
	mtime        *int64
	link         *entity // becomes another name of this
	to           place
}

// idle reports whether the step does nothing.
func (st *mergeStep) idle() bool {
	return !st.remove && !st.create && !st.move && !st.edits()
}

// edits reports whether the step changes what ours has in place.
func (st *mergeStep) edits() bool {
	return st.content || st.text != nil || st.mode != nil || st.uid != nil || st.gid != nil || len(st.xattrs) > 0 || st.mtime != nil
}

// planMerge compares two states with the one that they have in common.
func (s *Store) planMerge(ctx context.Context, base, src, dst Root, opts MergeOptions) (*merger, error) {
	m := &merger{
		s: s, ctx: ctx, opts: opts, chosen: topsOf(opts.Paths), base: view{src: s.nodes, root: base.ref},
		entities: map[string]*entity{}, of: map[*entity]*mergeStep{}, stays: map[*entity]bool{}, forced: map[*entity]bool{},
	}
	var err error
	if m.theirs, err = s.mergeSide(ctx, base, src); err != nil {
		return nil, err
	}
	if m.ours, err = s.mergeSide(ctx, base, dst); err != nil {
		return nil, err
	}
	m.fast = len(m.ours.list) == 0
	if err := m.knowPaths(slices.Concat(opts.Ours, opts.Theirs)); err != nil {
		return nil, err
	}
	for i := range m.theirs.list {
		c := &m.theirs.list[i]
		if len(opts.Paths) > 0 && !m.chosen.has(c.path) && !m.chosen.has(c.basePath()) {
			continue
		}
		if err := m.consider(c); err != nil {
			return nil, atPath(err, "merge", c.path)
		}
	}
	if err := m.relink(); err != nil {
		return nil, err
	}
	if err := m.settle(); err != nil {
		return nil, err
	}
	return m, nil
}

// intern makes sure that there is one entity for a key.
func (m *merger) intern(e entity) *entity {
	if known := m.entities[e.key]; known != nil {
		return known
	}
	m.entities[e.key] = &e
	return &e
}

func (m *merger) baseEntity(p string) *entity { return m.intern(entity{key: "=" + p, base: p}) }

// entityAt is what is, or could be, at the path q of a side.
func (m *merger) entityAt(s *mergeSide, q string) *entity {
	if p, ok := s.was(q); ok {
		return m.baseEntity(p)
	}
	up, name := m.entityAt(s, upOf(q)), nameOf(q)
	return m.intern(entity{key: up.key + "\x00" + name, up: up, name: name})
}

// pathIn is where an entity is, or could be, on a side.
func (m *merger) pathIn(s *mergeSide, e *entity) (string, bool) {
	if e.base != "" {
		return s.now(e.base)
	}
	up, ok := m.pathIn(s, e.up)
	if !ok {
		return "", false
	}
	p := joinPath(up, e.name)
	_, other := s.was(p)
	return p, !other
}

// find is the entity on a side.
func (m *merger) find(s *mergeSide, e *entity) (located, error) {
	p, ok := m.pathIn(s, e)
	if !ok {
		return located{}, nil
	}
	at, err := s.w.spot(m.ctx, p)
	return located{p, at.side}, err
}

// placeIn is the directory and the name of an entity on a side.
func (m *merger) placeIn(s *mergeSide, e *entity) place {
	p, ok := m.pathIn(s, e)
	if !ok || p == topPath {
		return place{}
	}
	return place{m.entityAt(s, upOf(p)), nameOf(p)}
}

func (m *merger) basePlace(e *entity) place {
	if e.base == topPath {
		return place{}
	}
	return place{m.baseEntity(upOf(e.base)), nameOf(e.base)}
}

func (m *merger) add(st *mergeStep) {
	if !st.idle() {
		m.steps = append(m.steps, st)
		m.of[st.e] = st
	}
}

// drop takes a step back.
func (m *merger) drop(st *mergeStep) {
	m.steps = slices.DeleteFunc(m.steps, func(o *mergeStep) bool { return o == st })
	delete(m.of, st.e)
}

// three is an entity in the three states.
type three struct {
	e                  *entity
	base, ours, theirs located
}

// consider plans what one change of theirs means.
func (m *merger) consider(c *change) error {
	v := three{theirs: located{c.path, c.after}}
	if c.before.n == nil {
		v.e = m.entityAt(&m.theirs, c.path)
	} else {
		v.base = located{c.basePath(), c.before}
		v.e = m.baseEntity(v.base.path)
	}
	var err error
	if v.ours, err = m.find(&m.ours, v.e); err != nil {
		return err
	}
	switch {
	case c.after.n == nil:
		v.theirs = located{}
		return m.deleted(v)
	case c.kind == TimesChanged && c.after.n.isDir():
		return nil // they say that something came or went, which is merged itself
	case c.before.n == nil && v.ours.n == nil:
		m.add(&mergeStep{e: v.e, theirs: v.theirs, create: true, to: m.placeIn(&m.theirs, v.e)})
		return nil
	case v.ours.n == nil:
		m.lost(v, c)
		return nil
	}
	return m.both(v, c)
}

// deleted plans for what theirs has no more.
func (m *merger) deleted(v three) error {
	if slices.ContainsFunc(m.kept, func(p string) bool { return strings.HasPrefix(v.base.path, p+"/") }) {
		return nil
	}
	if v.ours.n == nil {
		return m.deletedUnderOther(v)
	}
	kind := ConflictKind("")
	switch {
	case m.placeIn(&m.ours, v.e) != m.basePlace(v.e):
		kind = ConflictRenameDelete
	case v.base.n.isDir() != v.ours.n.isDir():
		kind = ConflictDirectoryFile
	case !v.ours.n.isDir() && m.ours.edited(v.base.path):
		kind = ConflictEditDelete
	}
	st := &mergeStep{e: v.e, ours: v.ours, remove: true}
	if kind != "" {
		if m.clash(kind, v, nil) != pickTheirs {
			if v.base.n.isDir() {
				m.kept = append(m.kept, v.base.path)
			}
			return nil
		}
		st.tree = !v.base.n.isDir()
	}
	m.add(st)
	return nil
}

// edited reports whether more than times changed of a path of the base.
func (m *mergeSide) edited(p string) bool {
	c := m.old[p]
	return c != nil && c.kind != TimesChanged
}

// lost plans for what ours has no more, and theirs changed.
func (m *merger) lost(v three, c *change) {
	kind := ConflictDeleteEdit
	switch {
	case m.placeIn(&m.theirs, v.e) != m.basePlace(v.e):
		kind = ConflictRenameDelete
	case c.kind == TimesChanged, v.base.n.isDir() && v.theirs.n.isDir():
		return // what is below it speaks for itself
	}
	if m.clash(kind, v, nil) == pickTheirs {
		m.add(&mergeStep{
			e: v.e, theirs: v.theirs, create: true, whole: v.theirs.n.isDir(), parents: true, to: m.placeIn(&m.theirs, v.e),
		})
	}
}

// both plans for what is on both sides.
func (m *merger) both(v three, c *change) error {
	st := &mergeStep{e: v.e, ours: v.ours, theirs: v.theirs}
	if v.base.n != nil {
		to, is, was := m.placeIn(&m.theirs, v.e), m.placeIn(&m.ours, v.e), m.basePlace(v.e)
		if to != was && is != to && (is == was || m.clash(ConflictRenameRename, v, nil) == pickTheirs) {
			st.move, st.to = true, to
		}
	}
	if v.ours.n.mode&TypeMask != v.theirs.n.mode&TypeMask {
		if err := m.retype(st, v, c); err != nil {
			return err
		}
		m.add(st)
		return nil
	}
	if err := m.fields(st, v); err != nil {
		return err
	}
	if err := m.keepApart(st, v); err != nil {
		return err
	}
	m.add(st)
	return nil
}

// retype plans for what is of another type on the two sides.
func (m *merger) retype(st *mergeStep, v three, c *change) error {
	kind := ConflictType
	if v.ours.n.isDir() || v.theirs.n.isDir() {
		kind = ConflictDirectoryFile
	}
	if v.base.n != nil && v.base.n.mode&TypeMask == v.theirs.n.mode&TypeMask && (c.kind == TimesChanged || v.base.n.isDir()) {
		return nil // ours changed the type, and theirs nothing that is left
	}
	replaces := v.base.n != nil && v.base.n.mode&TypeMask == v.ours.n.mode&TypeMask
	if replaces && !v.ours.n.isDir() {
		same, err := m.sameContent(m.base, v.base, m.ours.w, v.ours)
		if err != nil {
			return err
		}
		replaces = same
	}
	if !replaces {
		if m.clash(kind, v, nil) != pickTheirs {
			return nil
		}
		st.tree = true
	}
	m.replace(st)
	return nil
}

// replace has theirs come in the place of ours.
func (m *merger) replace(st *mergeStep) {
	if !st.move {
		st.to = m.placeIn(&m.ours, st.e)
	}
	st.remove, st.create, st.move = true, true, false
}

// settle makes the steps fit together: directories for what comes, free names, and no
// directory that goes with something in it.
func (m *merger) settle() error {
	for changed := true; changed; {
		changed, m.unsettled = false, false
		for _, st := range slices.Clone(m.steps) {
			if m.of[st.e] != st || !st.create && !st.move {
				continue
			}
			ok, err := m.admitPlace(st)
			if err != nil {
				return err
			}
			if !ok {
				m.refuse(st)
				changed = true
			}
		}
		more, err := m.settleRemoved()
		if err != nil {
			return err
		}
		saved, err := m.saveFromTrees()
		if err != nil {
			return err
		}
		kept, err := m.keepCommon()
		if err != nil {
			return err
		}
		changed = changed || more || saved || kept || m.unsettled
	}
	return m.joinLinks()
}

// refuse takes back what a step was to put at a place.
func (m *merger) refuse(st *mergeStep) {
	m.stays[st.e] = true
	if st.move = false; st.create || st.idle() {
		m.drop(st)
	}
}

// admitPlace reports whether st can have its place.
func (m *merger) admitPlace(st *mergeStep) (bool, error) {
	if st.move && m.inItself(st) {
		return m.untangle(st)
	}
	up, err := m.find(&m.ours, st.to.up)
	if err != nil {
		return false, err
	}
	v := three{e: st.e, ours: st.ours, theirs: st.theirs}
	if above := m.of[st.to.up]; above != nil && above.create {
		return true, nil
	}
	switch {
	case up.n == nil:
		if len(m.opts.Paths) > 0 && st.to.up.base == "" && !m.stays[st.to.up] {
			st.parents = true // they came with it, and were not asked for
		}
		if !st.parents && (st.to.up.base == "" || m.clash(ConflictDeleteEdit, v, nil) != pickTheirs) {
			return false, nil
		}
		st.parents = true
		return m.admitParents(st, v)
	case !up.n.isDir():
		if m.of[st.to.up] != nil && m.of[st.to.up].remove && st.parents {
			return true, nil
		}
		if m.stays[st.to.up] || m.clash(ConflictDirectoryFile, v, nil) != pickTheirs {
			return false, nil
		}
		st.parents = true
		return true, m.clear(st.to.up, up)
	}
	return m.admitName(st, up, v)
}

// admitParents reports whether the directories above the place of st, which ours has not,
// can come: no file of ours is in the way of them.
func (m *merger) admitParents(st *mergeStep, v three) (bool, error) {
	for e := m.placeIn(&m.theirs, st.to.up).up; e != nil; e = m.placeIn(&m.theirs, e).up {
		at, err := m.find(&m.ours, e)
		if err != nil {
			return false, err
		}
		above := m.of[e]
		switch {
		case above != nil && (above.create || above.remove) || at.n != nil && at.n.isDir():
			return true, nil
		case at.n == nil:
		case m.stays[e] || m.clash(ConflictDirectoryFile, v, nil) != pickTheirs:
			return false, nil
		default:
			return true, m.clear(e, at)
		}
	}
	return true, nil
}

// admitName reports whether the name in the directory up will be free.
func (m *merger) admitName(st *mergeStep, up located, v three) (bool, error) {
	if other := m.rival(st); other != nil {
		return m.yield(other, v), nil
	}
	p := joinPath(up.path, st.to.name)
	at, err := m.ours.w.spot(m.ctx, p)
	if err != nil || at.n == nil {
		return true, err
	}
	e := m.entityAt(&m.ours, p)
	if other := m.of[e]; e == st.e || other != nil && (other.remove || other.move) {
		return true, nil
	}
	v.ours = located{p, at.side}
	kind := ConflictAddAdd
	if st.move || e.base != "" {
		kind = ConflictRenameAdd
	}
	if m.stays[e] && m.pick(kind, v) == pickTheirs {
		m.conflict(kind, v, nil, pickNone) // decided for both sides
		return false, nil
	}
	if m.clash(kind, v, nil) != pickTheirs {
		return false, nil
	}
	return true, m.clear(e, v.ours)
}

// placeAfter is where an entity will be.
func (m *merger) placeAfter(e *entity) place {
	if st := m.of[e]; st != nil && (st.move || st.create) {
		return st.to
	}
	if _, ok := m.pathIn(&m.ours, e); !ok { // a directory that comes with what is below it
		return m.placeIn(&m.theirs, e)
	}
	return m.placeIn(&m.ours, e)
}

// inItself reports whether a directory is to move into itself, because each side moved
// one of two directories into the other.
func (m *merger) inItself(st *mergeStep) bool {
	seen := map[*entity]bool{}
	for e := st.to.up; e != nil && !seen[e]; e = m.placeAfter(e).up {
		if e == st.e {
			return true
		}
		seen[e] = true
	}
	return false
}

// pathAfter is where an entity will be.
func (m *merger) pathAfter(e *entity) string {
	if e == nil {
		return topPath
	}
	at := m.placeAfter(e)
	if at.up == nil && at.name == "" {
		return topPath
	}
	return joinPath(m.pathAfter(at.up), at.name)
}
