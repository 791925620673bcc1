package engine

import (
	"bytes"
	"context"
	"errors"

	"github.com/tidwall/btree"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// overlay holds pending changes by key, in order. A nil value is a deletion.
type overlay struct {
	btree.Map[string, []byte]
}

func (o *overlay) get(key []byte) (value []byte, ok bool) {
	if o == nil {
		return nil, false
	}
	return o.Get(string(key))
}

// view reads one state: up to two overlays, newest first, over a tree. All file
// system reads go through it, live, frozen or past.
type view struct {
	src  tree.Source
	over [2]*overlay
	root tree.Ref
}

// get returns the value of key, nil where there is none. The value is shared.
func (w view) get(ctx context.Context, key []byte) ([]byte, error) {
	for _, o := range w.over {
		if v, ok := o.get(key); ok {
			return v, nil
		}
	}
	v, ok, err := tree.Get(ctx, w.src, w.root, key)
	if err != nil || !ok {
		return nil, err
	}
	return v, nil
}

// source is one ordered input of a scan.
type source struct {
	key, value []byte
	ok         bool
	next       func() error
}

func overlaySource(o *overlay, start []byte) *source {
	it := o.Iter()
	s := &source{}
	first := true
	s.next = func() error {
		if first {
			s.ok, first = it.Seek(string(start)), false
		} else {
			s.ok = it.Next()
		}
		if s.ok {
			s.key, s.value = []byte(it.Key()), it.Value()
		}
		return nil
	}
	return s
}

func treeSource(ctx context.Context, w view, start []byte) *source {
	cur := tree.NewCursor(w.src, w.root)
	s := &source{}
	first := true
	s.next = func() error {
		if first {
			s.ok, first = cur.Seek(ctx, start), false
		} else {
			s.ok = cur.Next(ctx)
		}
		if s.ok {
			s.key, s.value = cur.Key(), cur.Value()
		}
		return cur.Err()
	}
	return s
}

// scan calls fn in key order for every entry that has prefix and is not below
// from (nil: no bound). kv.Stop from fn ends it without an error. The overlays
// must not change meanwhile.
func (w view) scan(ctx context.Context, prefix, from []byte, fn func(key, value []byte) error) error {
	start := prefix
	if bytes.Compare(from, start) > 0 {
		start = from
	}
	var in []*source
	for _, o := range w.over {
		if o != nil && o.Len() > 0 {
			in = append(in, overlaySource(o, start))
		}
	}
	if !w.root.IsZero() {
		in = append(in, treeSource(ctx, w, start))
	}
	for _, s := range in {
		if err := s.next(); err != nil {
			return err
		}
	}
	err := merge(in, prefix, fn)
	if errors.Is(err, kv.Stop) {
		return nil
	}
	return err
}

// merge walks the inputs together; where keys are equal the first input wins.
func merge(in []*source, prefix []byte, fn func(key, value []byte) error) error {
	for {
		var low *source
		for _, s := range in {
			if s.ok && bytes.HasPrefix(s.key, prefix) && (low == nil || bytes.Compare(s.key, low.key) < 0) {
				low = s
			}
		}
		if low == nil {
			return nil
		}
		key, value := low.key, low.value
		if value != nil {
			if err := fn(key, value); err != nil {
				return err
			}
		}
		for _, s := range in {
			if s.ok && bytes.Equal(s.key, key) {
				if err := s.next(); err != nil {
					return err
				}
			}
		}
	}
}

// inode returns the record of ino, which the caller may change.
func (w view) inode(ctx context.Context, ino Ino) (*inode, error) {
	b, err := w.get(ctx, inodeKey(ino))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fail(NotFound, "", "")
	}
	return decodeInode(b)
}

// dir returns the record of ino, which must be a directory.
func (w view) dir(ctx context.Context, ino Ino) (*inode, error) {
	n, err := w.inode(ctx, ino)
	if err != nil {
		return nil, err
	}
	if !n.isDir() {
		return nil, fail(NotDirectory, "", "")
	}
	return n, nil
}

// dirent returns the entry of name in dir, and whether there is one.
func (w view) dirent(ctx context.Context, dir Ino, name string) (dirent, bool, error) {
	b, err := w.get(ctx, direntKey(dir, name))
	if err != nil || b == nil {
		return dirent{}, false, err
	}
	d, err := decodeDirent(b)
	return d, err == nil, err
}

func (w view) lookup(ctx context.Context, dir Ino, name string) (Ino, *inode, error) {
	if err := checkName(name); err != nil {
		return 0, nil, err
	}
	d, ok, err := w.dirent(ctx, dir, name)
	if err != nil {
		return 0, nil, err
	}
	if !ok {
		if _, err := w.dir(ctx, dir); err != nil {
			return 0, nil, err
		}
		return 0, nil, fail(NotFound, "", "")
	}
	n, err := w.inode(ctx, d.ino)
	if KindOf(err) == NotFound {
		err = &Error{Kind: Corrupt, Op: "lookup", Path: name, Err: errMissing}
	}
	return d.ino, n, err
}

func (w view) readDir(ctx context.Context, dir Ino, after string, fn func(DirEntry) error) error {
	if _, err := w.dir(ctx, dir); err != nil {
		return err
	}
	var from []byte
	if after != "" {
		from = append(direntKey(dir, after), 0)
	}
	return w.scan(ctx, key(dir, kindDirent), from, func(k, value []byte) error {
		d, err := decodeDirent(value)
		if err != nil {
			return err
		}
		return fn(DirEntry{Name: string(k[keyHead:]), Ino: d.ino, Type: d.typ})
	})
}

func (w view) readlink(ctx context.Context, ino Ino) (string, error) {
	n, err := w.inode(ctx, ino)
	if err != nil {
		return "", err
	}
	if n.mode&TypeMask != TypeSymlink {
		return "", fail(Invalid, "", "")
	}
	return n.target, nil
}

func (w view) xattr(ctx context.Context, ino Ino, name string) ([]byte, error) {
	b, err := w.get(ctx, xattrKey(ino, name))
	if err != nil || b != nil {
		return b, err
	}
	n, err := w.get(ctx, inodeKey(ino))
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return nil, fail(NotFound, "", "")
	}
	return nil, fail(NoAttribute, "", "")
}

func (w view) xattrs(ctx context.Context, ino Ino) ([]string, error) {
	if _, err := w.inode(ctx, ino); err != nil {
		return nil, err
	}
	var names []string
	err := w.scan(ctx, key(ino, kindXattr), nil, func(k, _ []byte) error {
		names = append(names, string(k[keyHead:]))
		return nil
	})
	return names, err
}

// chunk returns where chunk index of ino is stored, and whether it is.
func (w view) chunk(ctx context.Context, ino Ino, index int64) (chunkRef, bool, error) {
	b, err := w.get(ctx, chunkKey(ino, index))
	if err != nil || b == nil {
		return chunkRef{}, false, err
	}
	c, err := decodeChunkRef(b)
	return c, err == nil, err
}

// checkName rejects what cannot be a name in a directory.
func checkName(name string) error {
	switch {
	case len(name) > MaxName:
		return fail(NameTooLong, "", "")
	case name == "" || name == "." || name == "..":
		return fail(Invalid, "", "")
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return fail(Invalid, "", "")
		}
	}
	return nil
}
