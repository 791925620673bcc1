package patch

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// entry is a file or symbolic link in one of the states.
type entry struct {
	path string
	attr engine.Attr
	mode string // as git writes it
}

// fileOp is what becomes of one file: old is nil for a new one, new for a deleted one.
type fileOp struct{ old, new *entry }

func (o fileOp) name() string {
	if o.new != nil {
		return o.new.path
	}
	return o.old.path
}

// planner makes what happens to files of the changes of paths.
type planner struct {
	ctx     context.Context
	a, b    Tree
	changes []engine.FileChange

	ops    []fileOp
	moved  map[string]bool // paths of a that a change of their own speaks for
	left   map[LeftOut]bool
	barren map[string]bool // directories that emptied has looked at
}

// plan lists the operations in the order of paths.
func (p *planner) plan() ([]fileOp, error) {
	p.moved, p.left, p.barren = map[string]bool{}, map[LeftOut]bool{}, map[string]bool{}
	for _, c := range p.changes {
		if c.Kind == engine.Added {
			continue
		}
		_, old, err := pathsOf(c)
		if err != nil {
			return nil, err
		}
		p.moved[old] = true
	}
	for _, c := range p.changes {
		if err := p.change(c); err != nil {
			return nil, err
		}
	}
	sort.SliceStable(p.ops, func(i, j int) bool { return p.ops[i].name() < p.ops[j].name() })
	for _, op := range p.ops {
		if err := p.emptied(op); err != nil {
			return nil, err
		}
	}
	return p.ops, nil
}

// pathsOf are the exact paths of a change, after and before.
func pathsOf(c engine.FileChange) (path, old string, err error) {
	path, err = exact(c.Path, c.PathB64)
	if err != nil || c.OldPath == "" {
		return path, path, err
	}
	old, err = exact(c.OldPath, c.OldPathB64)
	return path, old, err
}

func exact(text, b64 string) (string, error) {
	if b64 == "" {
		return text, nil
	}
	b, err := base64.StdEncoding.DecodeString(b64)
	return string(b), err
}

// change plans what one change means for files.
func (p *planner) change(c engine.FileChange) error {
	path, old, err := pathsOf(c)
	if err != nil {
		return err
	}
	var before, after engine.Attr // without a type where there is nothing
	if c.Kind != engine.Added {
		if before, err = p.a.Resolve(p.ctx, old, false); err != nil {
			return err
		}
	}
	if c.Kind != engine.Deleted {
		if after, err = p.b.Resolve(p.ctx, path, false); err != nil {
			return err
		}
	}
	return p.pair(old, path, before, after)
}

// pair plans what becomes of what is at old, and at path afterwards.
func (p *planner) pair(old, path string, before, after engine.Attr) error {
	if before.Ino != 0 && after.Ino != 0 {
		if err := p.compareAttrs(path, before, after); err != nil {
			return err
		}
	}
	if before.IsDir() && after.IsDir() {
		if old == path {
			return nil
		}
		return p.carried(old, path, before, after)
	}
	went, came := "deleted ", "new "
	if before.Ino != 0 && before.Mode&engine.TypeMask == after.Mode&engine.TypeMask {
		went, came = "changed ", "changed "
	}
	from, err := p.side(p.a, old, before, went)
	if err != nil {
		return err
	}
	to, err := p.side(p.b, path, after, came)
	if err != nil {
		return err
	}
	if from != nil && to == nil || from != nil && from.mode[:2] != to.mode[:2] {
		p.ops = append(p.ops, fileOp{old: from})
		from = nil
	}
	if from == nil && to == nil {
		return nil
	}
	if from == nil {
		if err := p.described(path, after); err != nil {
			return err
		}
	}
	p.ops = append(p.ops, fileOp{from, to})
	return nil
}

// side is what git can say of a path in one state; nil where that is nothing.
func (p *planner) side(t Tree, path string, a engine.Attr, what string) (*entry, error) {
	mode := ""
	switch a.Mode & engine.TypeMask {
	case 0:
		return nil, nil
	case engine.TypeDir:
		full, err := p.hasFiles(t, path, a.Ino, true)
		if err == nil && !full {
			p.leave(path, what+"directory without files")
		}
		return nil, err
	case engine.TypeRegular:
		mode = "100644"
		if a.Mode&0o100 != 0 {
			mode = "100755"
		}
	case engine.TypeSymlink:
		mode = "120000"
	case engine.TypeFIFO:
		p.leave(path, what+"FIFO")
		return nil, nil
	default:
		p.leave(path, what+"socket or device")
		return nil, nil
	}
	if refused(path, a.IsSymlink()) {
		p.leave(path, what+"file of a name that git refuses")
		return nil, nil
	}
	return &entry{path, a, mode}, nil
}

// carried plans what a moved directory takes along: what no change of its own speaks
// for, and is at the same place in it.
func (p *planner) carried(old, path string, before, after engine.Attr) error {
	full, err := p.hasFiles(p.b, path, after.Ino, true)
	if err != nil {
		return err
	}
	if !full {
		p.leave(path, "renamed directory without files")
	}
	return p.a.ReadDir(p.ctx, before.Ino, "", func(e engine.DirEntry) error {
		from, to := old+"/"+e.Name, path+"/"+e.Name
		if p.moved[from] {
			return nil
		}
		x, err := p.a.Resolve(p.ctx, from, false)
		if err != nil {
			return err
		}
		y, err := p.b.Resolve(p.ctx, to, false)
		if err != nil {
			return err
		}
		return p.pair(from, to, x, y)
	})
}

// hasFiles reports whether there is anything but directories below a directory; with
// sayable only what git can say counts.
func (p *planner) hasFiles(t Tree, path string, dir engine.Ino, sayable bool) (found bool, err error) {
	err = t.ReadDir(p.ctx, dir, "", func(e engine.DirEntry) error {
		below := path + "/" + e.Name
		switch {
		case e.Type == engine.TypeDir:
			found, err = p.hasFiles(t, below, e.Ino, sayable)
		case sayable:
			found = (e.Type == engine.TypeRegular || e.Type == engine.TypeSymlink) && !refused(below, e.Type == engine.TypeSymlink)
		default:
			found = true
		}
		if err == nil && found {
			err = kv.Stop
		}
		return err
	})
	if errors.Is(err, kv.Stop) {
		err = nil
	}
	return found, err
}

// emptied names the directories that git removes although they stay: with the last
// file forwards, and with the first backwards.
func (p *planner) emptied(op fileOp) error {
	if op.old != nil && (op.new == nil || op.new.path != op.old.path) {
		if err := p.barrenAbove(p.b, op.old.path, "directory that loses its last file"); err != nil {
			return err
		}
	}
	if op.new != nil && (op.old == nil || op.new.path != op.old.path) {
		return p.barrenAbove(p.a, op.new.path, "directory that gets its first file")
	}
	return nil
}

// barrenAbove names the directories above path that a state has and that hold no files.
func (p *planner) barrenAbove(t Tree, path, what string) error {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		// From the top down, so that no symbolic link is on the way.
		dir := path[:i]
		if p.barren[what+dir] {
			continue
		}
		a, err := t.Resolve(p.ctx, dir, false)
		if engine.KindOf(err) == engine.NotFound || err == nil && !a.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		p.barren[what+dir] = true
		full, err := p.hasFiles(t, dir, a.Ino, false)
		if err != nil {
			return err
		}
		if !full {
			p.leave(dir, what)
		}
	}
	return nil
}

// usual reports whether a mode is one that git gives to files.
func usual(mode uint32) bool { return mode&0o7777 == 0o644 || mode&0o7777 == 0o755 }

// compareAttrs names what differs between two inodes and is nothing to git.
func (p *planner) compareAttrs(path string, before, after engine.Attr) error {
	sameType := before.Mode&engine.TypeMask == after.Mode&engine.TypeMask
	if sameType && before.Mode != after.Mode && !after.IsSymlink() && (after.IsDir() || !usual(before.Mode) || !usual(after.Mode)) {
		p.leave(path, fmt.Sprintf("mode %04o, before %04o", after.Mode&0o7777, before.Mode&0o7777))
	}
	if before.UID != after.UID || before.GID != after.GID {
		p.leave(path, fmt.Sprintf("owner %d:%d, before %d:%d", after.UID, after.GID, before.UID, before.GID))
	}
	x, err := p.xattrs(p.a, before.Ino)
	if err != nil {
		return err
	}
	y, err := p.xattrs(p.b, after.Ino)
	if err == nil && !slices.Equal(x, y) {
		p.leave(path, "extended attributes")
	}
	return err
}

// described names what a new file has and git does not know.
func (p *planner) described(path string, a engine.Attr) error {
	if a.IsRegular() && !usual(a.Mode) {
		p.leave(path, fmt.Sprintf("mode %04o", a.Mode&0o7777))
	}
	if a.Nlink > 1 {
		p.leave(path, "hard link")
	}
	names, err := p.b.ListXattr(p.ctx, a.Ino)
	if err == nil && len(names) > 0 {
		p.leave(path, "extended attributes")
	}
	return err
}

func (p *planner) xattrs(t Tree, ino engine.Ino) ([]string, error) {
	names, err := t.ListXattr(p.ctx, ino)
	list := make([]string, 0, 2*len(names))
	for _, name := range names {
		if err != nil {
			break
		}
		var value []byte
		value, err = t.GetXattr(p.ctx, ino, name)
		list = append(list, name, string(value))
	}
	return list, err
}

func (p *planner) leave(path, what string) {
	l := LeftOut{What: what, exact: path}
	l.Path, l.PathB64 = printable(path)
	p.left[l] = true
}

// leftOut lists what was left out, by path.
func (p *planner) leftOut() []LeftOut {
	list := make([]LeftOut, 0, len(p.left))
	for l := range p.left {
		list = append(list, l)
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].exact != list[j].exact {
			return list[i].exact < list[j].exact
		}
		return list[i].What < list[j].What
	})
	return list
}
