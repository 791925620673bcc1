package conformance

import (
	"bytes"
	"context"
	"slices"

	"github.com/agentvfs/avfs/engine"
)

const modelMaxSize = 5 * engine.ChunkSize

var modelNames = []string{"a", "b", "c", "d", "e", "f\xff", "g h"}

func (r *modelRun) anyName() string { return modelNames[r.rng.IntN(len(modelNames))] }

func (r *modelRun) pick(list []engine.Ino) (engine.Ino, bool) {
	if len(list) == 0 {
		return 0, false
	}
	return list[r.rng.IntN(len(list))], true
}

func (r *modelRun) anyDir(p *played) engine.Ino {
	ino, _ := r.pick(p.w.inos((*thing).isDir))
	return ino
}

// anyOffset prefers the borders of chunks.
func (r *modelRun) anyOffset(limit int64) int64 {
	off := r.rng.Int64N(limit)
	if r.rng.IntN(2) == 0 {
		off = off/engine.ChunkSize*engine.ChunkSize + r.rng.Int64N(5) - 2
	}
	return min(max(off, 0), limit)
}

// anyBytes is content that is sometimes all zeros, repetitive, or equal to what
// was written before.
func (r *modelRun) anyBytes(n int) []byte {
	p := make([]byte, n)
	switch r.rng.IntN(4) {
	case 0:
	case 1:
		for i := range p {
			p[i] = byte(i / 100)
		}
	default:
		for i := range p {
			p[i] = byte(r.rng.Uint32())
		}
	}
	return p
}

var modelOwner = engine.Owner{UID: 7, GID: 8}

func (r *modelRun) opCreate(ctx context.Context, p *played) {
	dir, name, excl := r.anyDir(p), r.anyName(), r.rng.IntN(3) == 0
	r.note("%s create %d/%q excl=%v", p.name, dir, name, excl)
	mode := engine.OpenRead | engine.OpenWrite
	trunc := r.rng.IntN(3) == 0
	if trunc {
		mode |= engine.OpenTruncate
	}
	ino, there := p.w.nodes[dir].kids[name]
	var kind engine.Kind
	switch {
	case there && excl:
		kind = engine.Exists
	case there && p.w.nodes[ino].isDir():
		kind = engine.IsDirectory
	case there && !p.w.nodes[ino].isRegular():
		kind = engine.Unsupported
	}
	f, a, err := p.v.Create(ctx, dir, name, 0o640, modelOwner, mode, excl)
	if !r.want(err, kind) {
		return
	}
	if !there {
		if p.w.nodes[a.Ino] != nil || p.apart[a.Ino] != nil {
			r.fatalf("inode %d is used twice", a.Ino)
		}
		p.w.nodes[a.Ino] = &thing{mode: engine.TypeRegular | 0o640, uid: 7, gid: 8}
		p.w.nodes[dir].kids[name] = a.Ino
	} else if a.Ino != ino {
		r.fatalf("create opened inode %d, not %d", a.Ino, ino)
	} else if trunc {
		p.w.nodes[ino].data = nil
	}
	p.handles = append(p.handles, &handle{f: f, ino: a.Ino})
	h := p.handles[len(p.handles)-1]
	if r.rng.IntN(2) == 0 {
		r.writeTo(ctx, p, h)
	}
	if len(p.handles) > 6 || r.rng.IntN(2) == 0 {
		r.closeHandle(p, r.rng.IntN(len(p.handles)))
	}
}

// someHandle is an open handle, or a new one of a random file.
func (r *modelRun) someHandle(ctx context.Context, p *played) *handle {
	if len(p.handles) > 0 && r.rng.IntN(3) > 0 {
		return p.handles[r.rng.IntN(len(p.handles))]
	}
	r.opOpen(ctx, p)
	if len(p.handles) == 0 {
		return nil
	}
	return p.handles[len(p.handles)-1]
}

func (r *modelRun) opOpen(ctx context.Context, p *played) {
	ino, ok := r.pick(p.w.inos((*thing).isRegular))
	if !ok {
		return
	}
	mode := engine.OpenRead | engine.OpenWrite
	h := &handle{ino: ino, appnd: r.rng.IntN(4) == 0}
	if h.appnd {
		mode |= engine.OpenAppend
	}
	r.note("%s open %d append=%v", p.name, ino, h.appnd)
	var err error
	h.f, err = p.v.Open(ctx, ino, mode)
	r.ok(err)
	if len(p.handles) > 6 {
		r.closeHandle(p, 0)
	}
	p.handles = append(p.handles, h)
}

func (r *modelRun) opClose(_ context.Context, p *played) {
	if len(p.handles) > 0 {
		i := r.rng.IntN(len(p.handles))
		r.note("%s close %d", p.name, p.handles[i].ino)
		r.closeHandle(p, i)
	}
}

func (r *modelRun) opWrite(ctx context.Context, p *played) {
	if h := r.someHandle(ctx, p); h != nil {
		r.writeTo(ctx, p, h)
	}
}

func (r *modelRun) writeTo(ctx context.Context, p *played, h *handle) {
	th := p.thing(h)
	off := r.anyOffset(modelMaxSize - 1)
	if h.appnd {
		off = int64(len(th.data))
	}
	size := 1 + r.rng.IntN(2000)
	if r.rng.IntN(4) == 0 {
		size = 1 + r.rng.IntN(2*engine.ChunkSize)
	}
	if off+int64(size) > modelMaxSize {
		return
	}
	data := r.anyBytes(size)
	r.note("%s write %d off=%d len=%d append=%v", p.name, h.ino, off, size, h.appnd)
	n, err := h.f.WriteAt(ctx, data, off)
	r.ok(err)
	if n != size {
		r.fatalf("wrote %d of %d bytes", n, size)
	}
	th.data = write(th.data, data, off)
	clear(data) // the vault has its own copy
}

func (r *modelRun) opTruncate(ctx context.Context, p *played) {
	h := r.someHandle(ctx, p)
	if h == nil {
		return
	}
	th := p.thing(h)
	size := r.anyOffset(modelMaxSize)
	if r.rng.IntN(3) == 0 {
		size = r.anyOffset(int64(len(th.data)) + 1)
	}
	r.note("%s truncate %d to %d", p.name, h.ino, size)
	if h.th == nil && r.rng.IntN(2) == 0 {
		_, err := p.v.SetAttr(ctx, h.ino, engine.SetAttr{Size: &size})
		r.ok(err)
	} else {
		r.ok(h.f.Truncate(ctx, size))
	}
	th.data = resize(th.data[:min(size, int64(len(th.data)))], size)
}

func (r *modelRun) opAllocate(ctx context.Context, p *played) {
	h := r.someHandle(ctx, p)
	if h == nil {
		return
	}
	th := p.thing(h)
	off := r.anyOffset(modelMaxSize - 1)
	length := 1 + r.anyOffset(min(modelMaxSize-off, 3*engine.ChunkSize))
	length = min(length, modelMaxSize-off)
	mode := []uint32{
		0, engine.AllocKeepSize, engine.AllocKeepSize | engine.AllocPunchHole,
		engine.AllocZeroRange, engine.AllocZeroRange | engine.AllocKeepSize,
	}[r.rng.IntN(5)]
	r.note("%s allocate %d off=%d len=%d mode=%d", p.name, h.ino, off, length, mode)
	r.ok(h.f.Allocate(ctx, off, length, mode))
	if mode&^engine.AllocKeepSize != 0 {
		th.data = zeroed(th.data, off, off+length)
	}
	if mode&engine.AllocKeepSize == 0 && off+length > int64(len(th.data)) {
		th.data = resize(th.data, off+length)
	}
}

// opClone copies between two files, or inside of one, mostly so that chunks meet
// chunks.
func (r *modelRun) opClone(ctx context.Context, p *played) {
	from := r.someHandle(ctx, p)
	to := from
	if r.rng.IntN(4) > 0 {
		to = r.someHandle(ctx, p)
	}
	if from == nil || to == nil || !slices.Contains(p.handles, from) {
		return // the first was closed to open the second
	}
	src, dst := p.thing(from), p.thing(to)
	fromOff, off := r.anyOffset(int64(len(src.data))+1), r.anyOffset(modelMaxSize-1)
	if r.rng.IntN(3) > 0 {
		off = off/engine.ChunkSize*engine.ChunkSize + fromOff%engine.ChunkSize
	}
	if r.rng.IntN(3) > 0 {
		off, fromOff = off/engine.ChunkSize*engine.ChunkSize, fromOff/engine.ChunkSize*engine.ChunkSize
	}
	length := min(1+r.anyOffset(4*engine.ChunkSize), modelMaxSize-off)
	there := max(min(length, int64(len(src.data))-fromOff), 0)
	var kind engine.Kind
	switch {
	case to.appnd:
		kind = engine.BadHandle
	case src == dst && off < fromOff+there && fromOff < off+there:
		kind = engine.Invalid
	}
	r.note("%s clone %d off=%d from %d off=%d len=%d", p.name, to.ino, off, from.ino, fromOff, length)
	n, err := to.f.CloneRange(ctx, off, from.f, fromOff, length)
	if !r.want(err, kind) {
		return
	}
	if n != there {
		r.fatalf("cloned %d bytes of %d", n, there)
	}
	if n > 0 {
		dst.data = write(dst.data, src.data[fromOff:fromOff+n], off)
	}
}

func (r *modelRun) opRead(ctx context.Context, p *played) {
	h := r.someHandle(ctx, p)
	if h == nil {
		return
	}
	want := p.thing(h).data
	off := r.anyOffset(modelMaxSize)
	got := make([]byte, 1+r.rng.IntN(2*engine.ChunkSize))
	n, err := h.f.ReadAt(ctx, got, off)
	r.ok(err)
	rest := want[min(off, int64(len(want))):]
	if wantN := min(len(got), len(rest)); n != wantN || !bytes.Equal(got[:n], rest[:n]) {
		r.fatalf("read %d at %d gave %d bytes, not %d, or others", h.ino, off, n, wantN)
	}
}

func (r *modelRun) opSeek(ctx context.Context, p *played) {
	h := r.someHandle(ctx, p)
	if h == nil {
		return
	}
	data := p.thing(h).data
	off := r.anyOffset(modelMaxSize)
	at, err := h.f.Seek(ctx, off, false)
	switch {
	case engine.KindOf(err) == engine.NoData:
		if off < int64(len(data)) && len(bytes.Trim(data[off:], "\x00")) > 0 {
			r.fatalf("seek data of %d at %d finds nothing", h.ino, off)
		}
	case err != nil || at < off || at >= int64(len(data)) || len(bytes.Trim(data[off:at], "\x00")) > 0:
		r.fatalf("seek data of %d at %d: %d, %v", h.ino, off, at, err)
	}
	at, err = h.f.Seek(ctx, off, true)
	if off >= int64(len(data)) {
		r.want(err, engine.NoData)
		return
	}
	r.ok(err)
	if at < off || at > int64(len(data)) {
		r.fatalf("seek hole of %d at %d: %d", h.ino, off, at)
	}
	if at < int64(len(data)) { // the rest of a chunk that is a hole
		end := min(int64(len(data)), (at/engine.ChunkSize+1)*engine.ChunkSize)
		if len(bytes.Trim(data[at:end], "\x00")) > 0 {
			r.fatalf("seek hole of %d at %d: there is data at %d", h.ino, off, at)
		}
	}
}

func (r *modelRun) opMkdir(ctx context.Context, p *played) {
	dir, name := r.anyDir(p), r.anyName()
	r.note("%s mkdir %d/%q", p.name, dir, name)
	var kind engine.Kind
	if _, there := p.w.nodes[dir].kids[name]; there {
		kind = engine.Exists
	}
	a, err := p.v.Mkdir(ctx, dir, name, 0o750, modelOwner)
	if r.want(err, kind) {
		p.w.nodes[dir].kids[name] = a.Ino
		p.w.nodes[a.Ino] = &thing{mode: engine.TypeDir | 0o750, uid: 7, gid: 8, kids: map[string]engine.Ino{}}
	}
}

func (r *modelRun) opSymlink(ctx context.Context, p *played) {
	dir, name, target := r.anyDir(p), r.anyName(), "../"+r.anyName()
	r.note("%s symlink %d/%q", p.name, dir, name)
	var kind engine.Kind
	if _, there := p.w.nodes[dir].kids[name]; there {
		kind = engine.Exists
	}
	th := &thing{mode: engine.TypeSymlink | 0o777, uid: 7, gid: 8, target: target}
	make := func() (engine.Attr, error) { return p.v.Symlink(ctx, dir, name, target, modelOwner) }
	if r.rng.IntN(3) == 0 {
		th = &thing{mode: engine.TypeChar | 0o600, uid: 7, gid: 8, rdev: r.rng.Uint32N(1000)}
		make = func() (engine.Attr, error) { return p.v.Mknod(ctx, dir, name, th.mode, th.rdev, modelOwner) }
	}
	a, err := make()
	if r.want(err, kind) {
		p.w.nodes[dir].kids[name] = a.Ino
		p.w.nodes[a.Ino] = th
	}
}

func (r *modelRun) opRmdir(ctx context.Context, p *played) {
	dir, name := r.anyDir(p), r.anyName()
	r.note("%s rmdir %d/%q", p.name, dir, name)
	ino, there := p.w.nodes[dir].kids[name]
	var kind engine.Kind
	switch {
	case !there:
		kind = engine.NotFound
	case !p.w.nodes[ino].isDir():
		kind = engine.NotDirectory
	case len(p.w.nodes[ino].kids) > 0:
		kind = engine.NotEmpty
	}
	if r.want(p.v.Rmdir(ctx, dir, name), kind) {
		p.lose(dir, name)
	}
}

func (r *modelRun) opUnlink(ctx context.Context, p *played) {
	dir, name := r.anyDir(p), r.anyName()
	r.note("%s unlink %d/%q", p.name, dir, name)
	ino, there := p.w.nodes[dir].kids[name]
	var kind engine.Kind
	switch {
	case !there:
		kind = engine.NotFound
	case p.w.nodes[ino].isDir():
		kind = engine.IsDirectory
	}
	if r.want(p.v.Unlink(ctx, dir, name), kind) {
		p.lose(dir, name)
	}
}

func (r *modelRun) opLink(ctx context.Context, p *played) {
	ino, ok := r.pick(p.w.inos(func(*thing) bool { return true }))
	if !ok {
		return
	}
	dir, name := r.anyDir(p), r.anyName()
	r.note("%s link %d as %d/%q", p.name, ino, dir, name)
	var kind engine.Kind
	if p.w.nodes[ino].isDir() {
		kind = engine.Permission
	} else if _, there := p.w.nodes[dir].kids[name]; there {
		kind = engine.Exists
	}
	_, err := p.v.Link(ctx, ino, dir, name)
	if r.want(err, kind) {
		p.w.nodes[dir].kids[name] = ino
	}
}

func (r *modelRun) opNameless(ctx context.Context, p *played) {
	dir := r.anyDir(p)
	r.note("%s create nameless in %d", p.name, dir)
	f, a, err := p.v.CreateNameless(ctx, dir, 0o640, modelOwner, engine.OpenRead|engine.OpenWrite)
	r.ok(err)
	if p.w.nodes[a.Ino] != nil || p.apart[a.Ino] != nil {
		r.fatalf("inode %d is used twice", a.Ino)
	}
	th := &thing{mode: engine.TypeRegular | 0o640, uid: 7, gid: 8}
	p.apart[a.Ino] = th
	h := &handle{f: f, ino: a.Ino, th: th, never: true}
	if p.handles = append(p.handles, h); len(p.handles) > 6 {
		r.closeHandle(p, 0)
	}
	r.writeTo(ctx, p, h)
}

// opLinkNameless gives a name to a file that is apart: one that had a name before
// must not get one again.
func (r *modelRun) opLinkNameless(ctx context.Context, p *played) {
	var apart []*handle
	for _, h := range p.handles {
		if h.th != nil {
			apart = append(apart, h)
		}
	}
	if len(apart) == 0 {
		return
	}
	h := apart[r.rng.IntN(len(apart))]
	dir, name := r.anyDir(p), r.anyName()
	r.note("%s link nameless %d as %d/%q", p.name, h.ino, dir, name)
	var kind engine.Kind
	if !h.never {
		kind = engine.NotFound
	} else if _, there := p.w.nodes[dir].kids[name]; there {
		kind = engine.Exists
	}
	_, err := p.v.Link(ctx, h.ino, dir, name)
	if !r.want(err, kind) {
		return
	}
	p.w.nodes[dir].kids[name], p.w.nodes[h.ino] = h.ino, h.th
	delete(p.apart, h.ino)
	h.th, h.never = nil, false // it has no other handle
}

func (r *modelRun) opRename(ctx context.Context, p *played) {
	d1, n1, d2, n2 := r.anyDir(p), r.anyName(), r.anyDir(p), r.anyName()
	flags := []engine.RenameFlags{0, 0, 0, engine.RenameNoReplace, engine.RenameExchange}[r.rng.IntN(5)]
	from, ok := p.w.nodes[d1].kids[n1]
	to, taken := p.w.nodes[d2].kids[n2]
	r.note("%s rename %d/%q (%d) to %d/%q (%d) flags=%d", p.name, d1, n1, from, d2, n2, to, flags)
	kind := p.renameKind(d1, d2, from, to, ok, taken, flags)
	if !r.want(p.v.Rename(ctx, d1, n1, d2, n2, flags), kind) || taken && from == to {
		return
	}
	if flags == engine.RenameExchange {
		p.w.nodes[d1].kids[n1], p.w.nodes[d2].kids[n2] = to, from
		return
	}
	if taken {
		p.lose(d2, n2)
	}
	delete(p.w.nodes[d1].kids, n1)
	p.w.nodes[d2].kids[n2] = from
}

func (p *played) renameKind(d1, d2, from, to engine.Ino, ok, taken bool, flags engine.RenameFlags) engine.Kind {
	isDir := func(ino engine.Ino) bool { return p.w.nodes[ino].isDir() }
	switch {
	case !ok:
		return engine.NotFound
	case flags == engine.RenameNoReplace && taken:
		return engine.Exists
	case flags == engine.RenameExchange && !taken:
		return engine.NotFound
	case taken && from == to:
		return ""
	case isDir(from) && d1 != d2 && p.w.below(d2, from):
		return engine.Invalid
	case flags == engine.RenameExchange:
		if isDir(to) && d1 != d2 && p.w.below(d1, to) {
			return engine.Invalid
		}
	case taken && isDir(to) && !isDir(from):
		return engine.IsDirectory
	case taken && !isDir(to) && isDir(from):
		return engine.NotDirectory
	case taken && isDir(to) && len(p.w.nodes[to].kids) > 0:
		return engine.NotEmpty
	}
	return ""
}

func (r *modelRun) opSetAttr(ctx context.Context, p *played) {
	ino, _ := r.pick(p.w.inos(func(*thing) bool { return true }))
	mode, uid := uint32(r.rng.IntN(0o1000)), uint32(r.rng.IntN(3))
	set := engine.SetAttr{Mode: &mode}
	th := p.w.nodes[ino]
	if r.rng.IntN(2) == 0 {
		set.UID = &uid
		th.uid = uid
	}
	r.note("%s setattr %d mode=%o", p.name, ino, mode)
	_, err := p.v.SetAttr(ctx, ino, set)
	r.ok(err)
	th.mode = th.typ() | mode
}

func (r *modelRun) opXattr(ctx context.Context, p *played) {
	ino, _ := r.pick(p.w.inos(func(*thing) bool { return true }))
	name, value := "user."+r.anyName(), string(r.anyBytes(r.rng.IntN(300)))
	th := p.w.nodes[ino]
	_, there := th.xattrs[name]
	r.note("%s xattr %d %q", p.name, ino, name)
	if r.rng.IntN(3) == 0 {
		var kind engine.Kind
		if !there {
			kind = engine.NoAttribute
		}
		if r.want(p.v.RemoveXattr(ctx, ino, name), kind) {
			delete(th.xattrs, name)
		}
		return
	}
	flags := engine.XattrFlags(r.rng.IntN(3))
	var kind engine.Kind
	switch {
	case flags == engine.XattrCreate && there:
		kind = engine.Exists
	case flags == engine.XattrReplace && !there:
		kind = engine.NoAttribute
	}
	if r.want(p.v.SetXattr(ctx, ino, name, []byte(value), flags), kind) {
		if th.xattrs == nil {
			th.xattrs = map[string]string{}
		}
		th.xattrs[name] = value
	}
}
