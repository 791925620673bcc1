package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// historyFiles is about how many paths a vault of the history test has at most.
const historyFiles = 40

// edit makes one random change of files in t.
func (r *historyRun) edit(ctx context.Context, t *told) {
	edits := []func(context.Context, *told, pathState) func() error{
		r.editWrite, r.editWrite, r.editWrite, r.editAppend, r.editOverwrite, r.editTruncate, r.editMkdir,
		r.editMove, r.editMove, r.editRemove, r.editRemoveTree, r.editLink, r.editSymlink, r.editMode, r.editXattr,
	}
	if len(t.cur) > historyFiles {
		edits = append(edits, r.editRemove, r.editRemoveTree, r.editRemoveTree)
	}
	next := t.cur.clone()
	do := edits[r.rng.IntN(len(edits))](ctx, t, next)
	if do == nil {
		return // there is nothing to do it to
	}
	r.may(t, next)
	r.ok(do())
	t.cur = next
}

func (r *historyRun) anyOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[r.rng.IntN(len(list))]
}

func (r *historyRun) anyFile(s pathState) string {
	return r.anyOf(s.sorted(func(_ string, th *thing) bool { return th.isRegular() }))
}

func (r *historyRun) anyDir(s pathState) string {
	list := s.sorted(func(p string, th *thing) bool { return th.isDir() && strings.Count(p, "/") < 3 })
	return r.anyOf(append(list, ".", "."))
}

// freePath is a name at which nothing is, in any directory; empty if it finds none.
func (r *historyRun) freePath(s pathState) string {
	p := joinPath(r.anyDir(s), string(rune('a'+r.rng.IntN(7))))
	if s[p] != nil {
		return ""
	}
	return p
}

// content is text, mostly, in lines that make merges possible; what others wrote
// before; or much that is random.
func (r *historyRun) content() []byte {
	switch r.rng.IntN(10) {
	case 0:
		return nil
	case 1:
		b := make([]byte, 1+r.rng.IntN(2*engine.ChunkSize))
		for i := range b {
			b[i] = byte(r.rng.Uint32())
		}
		return b
	case 2, 3:
		return bytes.Repeat([]byte{byte('A' + r.rng.IntN(4)), '\n'}, 1+r.rng.IntN(3)*40_000)
	}
	var b bytes.Buffer
	for i := range 3 + r.rng.IntN(12) {
		if r.rng.IntN(4) == 0 {
			i = 100 + r.rng.IntN(1000)
		}
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.Bytes()
}

var historyOwner = engine.Owner{UID: 3, GID: 4}

func (r *historyRun) editWrite(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyFile(next)
	if r.rng.IntN(2) == 0 {
		p = r.freePath(next)
	}
	if p == "" {
		return nil
	}
	data := r.content()
	r.note("%s write %q %d bytes", t.name, p, len(data))
	if next[p] == nil {
		next[p] = &thing{mode: engine.TypeRegular | 0o640, uid: 3, gid: 4}
	}
	next[p].data = data
	return func() error {
		_, err := t.v.WriteFile(ctx, p, bytes.NewReader(data), &engine.WriteOptions{Perm: 0o640, Owner: &historyOwner})
		return err
	}
}

func (r *historyRun) editAppend(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyFile(next)
	if p == "" || len(next[p].data) > 4*engine.ChunkSize {
		return nil
	}
	data := r.content()
	r.note("%s append %q %d bytes", t.name, p, len(data))
	next[p].data = append(bytes.Clone(next[p].data), data...)
	return func() error {
		_, err := t.v.WriteFile(ctx, p, bytes.NewReader(data), &engine.WriteOptions{Append: true})
		return err
	}
}

func (r *historyRun) editOverwrite(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyFile(next)
	if p == "" {
		return nil
	}
	data := r.content()
	off := r.rng.IntN(len(next[p].data) + 1)
	r.note("%s overwrite %q at %d %d bytes", t.name, p, off, len(data))
	if len(data) > 0 {
		next[p].data = write(next[p].data, data, int64(off))
	}
	return func() error {
		a, err := t.v.Resolve(ctx, p, false)
		if err != nil {
			return err
		}
		h, err := t.v.Open(ctx, a.Ino, engine.OpenRead|engine.OpenWrite)
		if err != nil {
			return err
		}
		_, err = h.WriteAt(ctx, data, int64(off))
		if cerr := h.Close(); err == nil {
			err = cerr
		}
		return err
	}
}

func (r *historyRun) editTruncate(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyFile(next)
	if p == "" {
		return nil
	}
	size := int64(r.rng.IntN(len(next[p].data) + 1))
	if r.rng.IntN(4) == 0 {
		size = int64(len(next[p].data)) + r.rng.Int64N(engine.ChunkSize)
	}
	r.note("%s truncate %q to %d", t.name, p, size)
	next[p].data = resize(next[p].data[:min(size, int64(len(next[p].data)))], size)
	return func() error { return r.setAttr(ctx, t, p, engine.SetAttr{Size: &size}) }
}

func (r *historyRun) setAttr(ctx context.Context, t *told, p string, set engine.SetAttr) error {
	a, err := t.v.Resolve(ctx, p, false)
	if err == nil {
		_, err = t.v.SetAttr(ctx, a.Ino, set)
	}
	return err
}

func (r *historyRun) editMkdir(ctx context.Context, t *told, next pathState) func() error {
	p := r.freePath(next)
	if p == "" {
		return nil
	}
	r.note("%s mkdir %q", t.name, p)
	next[p] = &thing{mode: engine.TypeDir | 0o755, uid: 3, gid: 4}
	return func() error {
		_, err := t.v.MkdirAt(ctx, p, 0o755, historyOwner)
		return err
	}
}

func (r *historyRun) editMove(ctx context.Context, t *told, next pathState) func() error {
	from := r.anyOf(next.sorted(func(string, *thing) bool { return true }))
	to := r.freePath(next)
	if from != "" && !next[from].isDir() && r.rng.IntN(3) == 0 {
		to = r.anyFile(next) // which gives way
	}
	if from == "" || to == "" || from == to || below(to, from) || next[to] == next[from] {
		return nil
	}
	r.note("%s move %q to %q", t.name, from, to)
	next.move(from, to)
	return func() error { return t.v.Move(ctx, from, to) }
}

func (r *historyRun) editRemove(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyOf(next.sorted(func(_ string, th *thing) bool { return !th.isDir() }))
	if p == "" {
		return nil
	}
	r.note("%s remove %q", t.name, p)
	delete(next, p)
	return func() error { return t.v.Remove(ctx, p) }
}

func (r *historyRun) editRemoveTree(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyOf(next.sorted(func(_ string, th *thing) bool { return th.isDir() }))
	if p == "" {
		return nil
	}
	r.note("%s remove all of %q", t.name, p)
	next.removeTree(p)
	return func() error { return t.v.RemoveAll(ctx, p) }
}

func (r *historyRun) editLink(ctx context.Context, t *told, next pathState) func() error {
	from, p := r.anyFile(next), r.freePath(next)
	if from == "" || p == "" {
		return nil
	}
	r.note("%s link %q as %q", t.name, from, p)
	next[p] = next[from]
	return func() error {
		a, err := t.v.Resolve(ctx, from, false)
		if err == nil {
			err = t.v.LinkAt(ctx, a.Ino, p, false)
		}
		return err
	}
}

func (r *historyRun) editSymlink(ctx context.Context, t *told, next pathState) func() error {
	p := r.freePath(next)
	if p == "" {
		return nil
	}
	target := fmt.Sprintf("to/%d", r.rng.IntN(5))
	r.note("%s symlink %q %s", t.name, p, target)
	next[p] = &thing{mode: engine.TypeSymlink | 0o777, uid: 3, gid: 4, target: target}
	return func() error { return t.v.SymlinkAt(ctx, target, p, historyOwner, false) }
}

func (r *historyRun) editMode(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyOf(next.sorted(func(_ string, th *thing) bool { return !th.isRegular() || r.rng.IntN(2) == 0 }))
	if p == "" || next[p].typ() == engine.TypeSymlink {
		return nil
	}
	mode := uint32(0o700 + r.rng.IntN(0o100))
	r.note("%s mode %q %o", t.name, p, mode)
	next[p].mode = next[p].typ() | mode
	return func() error { return r.setAttr(ctx, t, p, engine.SetAttr{Mode: &mode}) }
}

func (r *historyRun) editXattr(ctx context.Context, t *told, next pathState) func() error {
	p := r.anyFile(next)
	if p == "" {
		return nil
	}
	name, value := fmt.Sprintf("user.%d", r.rng.IntN(3)), fmt.Sprint(r.rng.IntN(100))
	r.note("%s xattr %q %s=%s", t.name, p, name, value)
	if next[p].xattrs == nil {
		next[p].xattrs = map[string]string{}
	}
	next[p].xattrs[name] = value
	return func() error {
		a, err := t.v.Resolve(ctx, p, false)
		if err == nil {
			err = t.v.SetXattr(ctx, a.Ino, name, []byte(value), 0)
		}
		return err
	}
}
