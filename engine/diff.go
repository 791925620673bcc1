package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/agentvfs/avfs/engine/internal/tree"
)

// ChangeKind says what happened at a path between two states.
type ChangeKind string

// The kinds of changes. A path that exists in both states is never added or
// deleted, whichever inode is behind it.
const (
	Added        ChangeKind = "added"
	Deleted      ChangeKind = "deleted"
	Modified     ChangeKind = "modified"      // content or link target
	Renamed      ChangeKind = "renamed"       // the content may have changed as well: compare the sizes
	TypeChanged  ChangeKind = "type_changed"  // such as a file that became a directory
	ModeChanged  ChangeKind = "mode_changed"  // permission bits only
	AttrChanged  ChangeKind = "attr_changed"  // owner or extended attributes only
	TimesChanged ChangeKind = "times_changed" // modification time only; listed on request
)

// FileChange is one difference between two states. Sizes are in bytes, modes are
// st_mode in octal.
type FileChange struct {
	Path       string     `json:"path"`               // without a leading slash; U+FFFD stands for bytes that are not UTF-8
	PathB64    string     `json:"path_b64,omitempty"` // the exact bytes where Path is not exact
	Kind       ChangeKind `json:"kind"`
	Type       string     `json:"type"` // file, dir, symlink, fifo, socket, char, block
	OldPath    string     `json:"old_path,omitempty"`
	OldPathB64 string     `json:"old_path_b64,omitempty"`
	SizeBefore *int64     `json:"size_before,omitempty"`
	SizeAfter  *int64     `json:"size_after,omitempty"`
	ModeBefore string     `json:"mode_before,omitempty"`
	ModeAfter  string     `json:"mode_after,omitempty"`
}

// DiffOptions narrows a diff. The zero value and nil mean everything.
type DiffOptions struct {
	// Paths leaves out everything but these and what is below them, before or after.
	// If none of them is a directory, and none came or went with one, what differs
	// elsewhere costs nothing.
	Paths []string
	Times bool // list changes of nothing but the modification time
	Limit int  // at most so many changes; 0 is no limit. The total is exact.
}

// Diff lists what differs from a to b, sorted by path, and counts it. Its cost is
// proportional to what differs. A hole and zeros that were written are different
// content. Both roots must be kept by something, as for a Snapshot.
func (s *Store) Diff(ctx context.Context, a, b Root, opts *DiffOptions) (changes []FileChange, total int, err error) {
	if opts == nil {
		opts = &DiffOptions{}
	}
	list, err := s.diff(ctx, a, b, opts.Paths, opts.Times)
	if err != nil {
		return nil, 0, wrap(err, "diff", "")
	}
	total = len(list)
	if opts.Limit > 0 && total > opts.Limit {
		list = list[:opts.Limit]
	}
	return publicChanges(list), total, nil
}

func publicChanges(list []change) []FileChange {
	changes := make([]FileChange, 0, len(list))
	for _, c := range list {
		changes = append(changes, c.public())
	}
	return changes
}

// change is one difference with the inodes behind it.
type change struct {
	kind          ChangeKind
	path, oldPath string // oldPath is empty where it is path
	before, after side
}

// side is what a path was in one state; n is nil where there was nothing.
type side struct {
	ino Ino
	n   *inode
}

func (c *change) public() FileChange {
	f := FileChange{Kind: c.kind}
	f.Path, f.PathB64 = printable(c.path)
	f.OldPath, f.OldPathB64 = printable(c.oldPath)
	if n := c.before.n; n != nil {
		f.ModeBefore = fmt.Sprintf("%06o", n.mode)
		f.Type = typeName(n.mode)
		if !n.isDir() {
			f.SizeBefore = &n.size
		}
	}
	if n := c.after.n; n != nil {
		f.ModeAfter = fmt.Sprintf("%06o", n.mode)
		f.Type = typeName(n.mode)
		if !n.isDir() {
			f.SizeAfter = &n.size
		}
	}
	return f
}

// printable returns p as UTF-8 and, where that loses bytes, as base64 too.
func printable(p string) (text, b64 string) {
	if utf8.ValidString(p) {
		return p, ""
	}
	return strings.ToValidUTF8(p, "\uFFFD"), base64.StdEncoding.EncodeToString([]byte(p))
}

func typeName(mode uint32) string {
	switch mode & TypeMask {
	case TypeDir:
		return "dir"
	case TypeSymlink:
		return "symlink"
	case TypeFIFO:
		return "fifo"
	case TypeSocket:
		return "socket"
	case TypeChar:
		return "char"
	case TypeBlock:
		return "block"
	}
	return "file"
}

// touched gathers what the key-level diff says of one inode.
type touched struct {
	content bool // chunks differ
	xattr   bool
}

// differ turns differences of keys into differences of paths.
type differ struct {
	a, b       pathFinder
	inos       map[Ino]*touched
	gone, come map[string]side // names that an inode lost, and gained, by path
	list       []change
	relinked   []change // paths that have another inode, of which nothing but its names differs
	times      bool
	movedDirs  bool // paths changed without being noted: below a directory that moved, or beyond a focus
}

func newDiffer(src tree.Source, a, b Root, times bool) *differ {
	return &differ{
		a: newPathFinder(view{src: src, root: a.ref}), b: newPathFinder(view{src: src, root: b.ref}),
		inos: map[Ino]*touched{}, gone: map[string]side{}, come: map[string]side{}, times: times,
	}
}

// diff lists the changes from a to b, sorted by path.
func (s *Store) diff(ctx context.Context, a, b Root, paths []string, times bool) ([]change, error) {
	return diffIn(ctx, s.nodes, a, b, paths, times)
}

// diffIn is diff for states of which src has the nodes.
func diffIn(ctx context.Context, src tree.Source, a, b Root, paths []string, times bool) ([]change, error) {
	list, _, err := diffLinks(ctx, src, a, b, paths, times)
	return list, err
}

// diffLinks is diffIn, and also lists the paths, in any order, of which only that has
// changed with which others they are names of one file.
func diffLinks(ctx context.Context, src tree.Source, a, b Root, paths []string, times bool) (list, relinked []change, err error) {
	d := newDiffer(src, a, b, times)
	if err := d.noteAll(ctx, paths); err != nil {
		return nil, nil, err
	}
	list, err = d.settle(ctx, paths)
	return list, d.relinked, err
}

// settle makes changes of what was noted, and drops those outside paths.
func (d *differ) settle(ctx context.Context, paths []string) ([]change, error) {
	inos := make([]Ino, 0, len(d.inos))
	for ino := range d.inos {
		inos = append(inos, ino)
	}
	sort.Slice(inos, func(i, j int) bool { return inos[i] < inos[j] })
	var renames []change
	for _, ino := range inos {
		r, err := d.compare(ctx, ino)
		if err != nil {
			return nil, err
		}
		renames = append(renames, r...)
	}
	if renames, err := d.settleMoved(ctx, renames); err != nil {
		return nil, err
	} else {
		d.settleRenames(renames)
	}
	if err := d.settlePaths(ctx); err != nil {
		return nil, err
	}
	return d.selected(paths), nil
}

// note sorts one changed key under its inode.
func (d *differ) note(k, old, new []byte) error {
	ino, kind, _, err := splitKey(k)
	if err != nil {
		return &Error{Kind: Corrupt, Err: err}
	}
	if kind == kindDirent {
		return nil // the child's record or link entries say it too
	}
	t := d.inos[ino]
	if t == nil {
		t = &touched{}
		d.inos[ino] = t
	}
	switch kind {
	case kindXattr:
		t.xattr = true
	case kindChunk:
		same, err := sameChunk(old, new)
		if err != nil {
			return err
		}
		t.content = t.content || !same
	}
	return nil
}

func sameChunk(old, new []byte) (bool, error) {
	if old == nil || new == nil {
		return false, nil
	}
	a, err := decodeChunkRef(old)
	if err != nil {
		return false, err
	}
	b, err := decodeChunkRef(new)
	return a.digest == b.digest && a.length == b.length, err
}

// compare looks at one inode in both states. Names that it kept become changes
// at once, lost and gained ones are noted; a pair of them may be a rename.
func (d *differ) compare(ctx context.Context, ino Ino) (renames []change, err error) {
	before, oldNames, err := d.a.inode(ctx, ino)
	if err != nil {
		return nil, err
	}
	after, newNames, err := d.b.inode(ctx, ino)
	if err != nil {
		return nil, err
	}
	kept := map[name]bool{}
	for _, nm := range newNames {
		kept[nm] = false
	}
	var lost, gained []string
	for _, nm := range oldNames {
		p, err := d.a.join(ctx, nm)
		if err != nil {
			return nil, err
		}
		if _, ok := kept[nm]; !ok {
			d.gone[p] = side{ino, before}
			lost = append(lost, p)
			continue
		}
		kept[nm] = true
		q, err := d.b.join(ctx, nm)
		if err != nil {
			return nil, err
		}
		d.keep(ino, p, q, before, after)
	}
	for _, nm := range newNames {
		if kept[nm] {
			continue
		}
		p, err := d.b.join(ctx, nm)
		if err != nil {
			return nil, err
		}
		d.come[p] = side{ino, after}
		gained = append(gained, p)
	}
	if ino == RootIno && before != nil && after != nil {
		d.keep(ino, ".", ".", before, after)
	}
	if len(lost) > 0 && len(gained) > 0 && before.isDir() {
		d.movedDirs = true
	}
	for i := range min(len(lost), len(gained)) {
		renames = append(renames, change{
			kind: Renamed, path: gained[i], oldPath: lost[i], before: side{ino, before}, after: side{ino, after},
		})
	}
	return renames, nil
}

// keep lists what changed of an inode that is at the same name in both states.
func (d *differ) keep(ino Ino, oldPath, newPath string, before, after *inode) {
	t := d.inos[ino]
	same := !t.content && before.size == after.size && before.target == after.target && before.rdev == after.rdev
	kind := d.kindOf(before, after, same || before.isDir(), t.xattr)
	if kind == "" {
		return
	}
	c := change{kind: kind, path: newPath, before: side{ino, before}, after: side{ino, after}}
	if oldPath != newPath {
		c.oldPath = oldPath
	}
	d.list = append(d.list, c)
}

// kindOf classifies a path that exists in both states; "" is no change.
func (d *differ) kindOf(before, after *inode, sameContent, xattr bool) ChangeKind {
	switch {
	case before.mode&TypeMask != after.mode&TypeMask:
		return TypeChanged
	case !sameContent:
		return Modified
	case before.mode != after.mode:
		return ModeChanged
	case before.uid != after.uid || before.gid != after.gid || xattr:
		return AttrChanged
	case d.times && before.mtime != after.mtime:
		return TimesChanged
	}
	return ""
}

// settleMoved deals with what moved directories carried along without being
// noted. At a path that something else lost or gained it makes the path one that
// exists in both states. Where the move of a directory cannot be listed as a
// rename, what is in it speaks for itself. It returns the renames to consider.
func (d *differ) settleMoved(ctx context.Context, renames []change) ([]change, error) {
	if !d.movedDirs {
		return renames, nil
	}
	for {
		if err := d.meet(ctx, d.gone, d.come, d.b.w); err != nil {
			return nil, err
		}
		if err := d.meet(ctx, d.come, d.gone, d.a.w); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(renames, func(r change) bool { return r.before.n.isDir() && !d.plain(r) })
		if i < 0 {
			return renames, nil
		}
		more, err := d.unfold(ctx, renames[i])
		if err != nil {
			return nil, err
		}
		renames = append(slices.Delete(renames, i, i+1), more...)
	}
}

// meet adds to to what is in the state w at the paths of from.
func (d *differ) meet(ctx context.Context, from, to map[string]side, w view) error {
	for p := range from {
		if _, ok := to[p]; ok {
			continue
		}
		at, err := w.spot(ctx, p)
		if err != nil {
			return err
		}
		if at.n != nil {
			to[p] = at.side
		}
	}
	return nil
}

// unfold notes what a moved directory kept as moved on its own.
func (d *differ) unfold(ctx context.Context, r change) ([]change, error) {
	var moved []change
	own := map[string]bool{}
	err := d.a.w.readDir(ctx, r.before.ino, "", func(e DirEntry) error {
		now, ok, err := d.b.w.dirent(ctx, r.after.ino, e.Name)
		if err != nil || !ok || now.ino != e.Ino {
			return err // noted under its own name
		}
		c := change{kind: Renamed, path: r.path + "/" + e.Name, oldPath: r.oldPath + "/" + e.Name}
		c.before.ino, c.after.ino = e.Ino, e.Ino
		if c.before.n, err = d.a.w.inode(ctx, e.Ino); err != nil {
			return err
		}
		if c.after.n, err = d.b.w.inode(ctx, e.Ino); err != nil {
			return err
		}
		d.gone[c.oldPath], d.come[c.path] = c.before, c.after
		own[c.path] = true
		moved = append(moved, c)
		return nil
	})
	d.list = slices.DeleteFunc(d.list, func(c change) bool { return own[c.path] })
	return moved, err
}

// plain reports whether the old path is free afterwards and the new one was free
// before, so that a rename says it all.
func (d *differ) plain(r change) bool {
	_, reused := d.come[r.oldPath]
	_, replaced := d.gone[r.path]
	return !reused && !replaced
}

// settleRenames lists the plain renames; of others both paths speak for themselves.
func (d *differ) settleRenames(renames []change) {
	for _, r := range renames {
		if d.plain(r) {
			delete(d.gone, r.oldPath)
			delete(d.come, r.path)
			d.list = append(d.list, r)
		}
	}
}

// settlePaths lists the paths that were lost or gained, or changed their inode.
func (d *differ) settlePaths(ctx context.Context) error {
	for p, before := range d.gone {
		after, ok := d.come[p]
		if !ok {
			d.list = append(d.list, change{kind: Deleted, path: p, before: before})
			continue
		}
		same, xattr, err := d.sameContent(ctx, before, after)
		if err != nil {
			return err
		}
		c := change{kind: d.kindOf(before.n, after.n, same, xattr), path: p, before: before, after: after}
		if c.kind != "" {
			d.list = append(d.list, c)
		}
		if (c.kind == "" || c.kind == TimesChanged) && before.ino != after.ino && !after.n.isDir() && (before.n.nlink > 1 || after.n.nlink > 1) {
			d.relinked = append(d.relinked, c)
		}
	}
	for p, after := range d.come {
		if _, ok := d.gone[p]; !ok {
			d.list = append(d.list, change{kind: Added, path: p, after: after})
		}
	}
	return nil
}

// sameContent compares two inodes of the two states, and their attributes.
func (d *differ) sameContent(ctx context.Context, before, after side) (same, xattr bool, err error) {
	for _, kind := range []byte{kindXattr, kindChunk} {
		old, err := d.a.w.entries(ctx, before.ino, kind)
		if err != nil {
			return false, false, err
		}
		new, err := d.b.w.entries(ctx, after.ino, kind)
		if err != nil {
			return false, false, err
		}
		if kind == kindXattr {
			xattr = !bytes.Equal(old, new)
		} else {
			same = bytes.Equal(old, new)
		}
	}
	a, b := before.n, after.n
	if a.isDir() && b.isDir() {
		return true, xattr, nil
	}
	return same && a.size == b.size && a.target == b.target && a.rdev == b.rdev, xattr, nil
}

// entries gathers the entries of one kind of an inode in a form that is equal
// where they are, whatever the inode and the chunk ids.
func (w view) entries(ctx context.Context, ino Ino, kind byte) ([]byte, error) {
	var all []byte
	err := w.scan(ctx, key(ino, kind), nil, func(k, value []byte) error {
		all = fmt.Appendf(all, "%q", k[keyHead:])
		if kind == kindChunk {
			c, err := decodeChunkRef(value)
			if err != nil {
				return err
			}
			c.id = 0
			value = c.encode()
		}
		all = fmt.Appendf(all, "%q", value)
		return nil
	})
	return all, err
}

// selected sorts the changes and drops those outside paths.
func (d *differ) selected(paths []string) []change {
	list := d.list
	if len(paths) > 0 {
		list = list[:0]
		at := topsOf(paths)
		for _, c := range d.list {
			if at.has(c.path) || c.oldPath != "" && at.has(c.oldPath) {
				list = append(list, c)
			}
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].path < list[j].path })
	return list
}

// pathFinder turns inode numbers into paths of one state.
type pathFinder struct {
	w    view
	dirs map[Ino]string
}

func newPathFinder(w view) pathFinder {
	return pathFinder{w: w, dirs: map[Ino]string{RootIno: ""}}
}

// inode returns the record of ino and its names; nil where there is none.
func (f *pathFinder) inode(ctx context.Context, ino Ino) (*inode, []name, error) {
	n, err := f.w.inode(ctx, ino)
	if KindOf(err) == NotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	names, err := f.w.names(ctx, ino, n)
	return n, names, err
}

// join is the path of a name, without a leading slash.
func (f *pathFinder) join(ctx context.Context, nm name) (string, error) {
	dir, err := f.dir(ctx, nm.dir, 0)
	if err != nil || dir == "" {
		return nm.name, err
	}
	return dir + "/" + nm.name, nil
}

func (f *pathFinder) dir(ctx context.Context, ino Ino, depth int) (string, error) {
	if p, ok := f.dirs[ino]; ok {
		return p, nil
	}
	n, err := f.w.dir(ctx, ino)
	if err == nil && depth > maxDepth {
		err = errDecode
	}
	if err != nil {
		return "", &Error{Kind: Corrupt, Op: "find path", Path: fmt.Sprint(ino), Err: err}
	}
	up, err := f.dir(ctx, n.parent, depth+1)
	if err != nil {
		return "", err
	}
	p := n.name
	if up != "" {
		p = up + "/" + n.name
	}
	f.dirs[ino] = p
	return p, nil
}
