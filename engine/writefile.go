package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
)

// WriteOptions says how WriteFile treats the file.
type WriteOptions struct {
	Perm   uint32 // of a new file; 0 is 0644
	Owner  *Owner // of a new file; nil is the user of this process
	Append bool   // add to the end instead of replacing the content
	Create bool   // fail if the file exists
	Size   int64  // what r gives, in bytes, where that is known; 0: it is not
}

// WriteFile writes what r gives to the file at p, following a symbolic link, and
// returns how many bytes that were. The directory must exist.
//
// An error leaves the file as it was, or not there, whether r fails, a quota refuses
// the content or the disk is full; and so does a crash. Content beyond a
// megabyte lies beside the file until all of it is there. Where a quota has no room for
// both at once, and the size is known, the file is emptied first: then a crash, or a disk
// that others fill meanwhile, leaves a part of the new content.
func (v *Vault) WriteFile(ctx context.Context, p string, r io.Reader, opts *WriteOptions) (int64, error) {
	if opts == nil {
		opts = &WriteOptions{}
	}
	w := writing{v: v, r: r, opts: *opts}
	if w.opts.Perm == 0 {
		w.opts.Perm = 0o644
	}
	n, err := w.at(ctx, p, 0)
	return n, atPath(err, "write", p)
}

func (o *WriteOptions) owner() Owner {
	if o.Owner != nil {
		return *o.Owner
	}
	uid, gid := currentOwner()
	return Owner{uid, gid}
}

// writing is one WriteFile under way.
type writing struct {
	v    *Vault
	r    io.Reader
	opts WriteOptions
}

// at writes to the file at p, which hops symbolic links have led to.
func (w *writing) at(ctx context.Context, p string, hops int) (int64, error) {
	if hops > maxLinkHops {
		return 0, fail(Loop, "", "")
	}
	dir, name, err := w.v.place(ctx, p)
	if err != nil {
		return 0, err
	}
	a, err := w.v.Lookup(ctx, dir, name)
	switch {
	case KindOf(err) == NotFound:
		return w.fresh(ctx, dir, name)
	case err != nil:
		return 0, err
	case w.opts.Create:
		return 0, fail(Exists, "", "")
	case a.IsSymlink():
		target, err := w.v.Readlink(ctx, a.Ino)
		if err != nil {
			return 0, err
		}
		if !strings.HasPrefix(target, "/") {
			target = path.Join("/", path.Dir(strings.TrimRight(p, "/")), "/") + "/" + target
		}
		return w.at(ctx, target, hops+1)
	}
	h, err := w.v.Open(ctx, a.Ino, OpenRead|OpenWrite)
	if err != nil {
		return 0, err
	}
	var n int64
	if w.opts.Append {
		n, err = w.appended(ctx, h)
	} else {
		n, err = w.over(ctx, h)
	}
	return n, errors.Join(err, h.Close())
}

// fresh makes a file, which gets its name when all of its content is there.
func (w *writing) fresh(ctx context.Context, dir Ino, name string) (int64, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	head, whole, err := w.head()
	switch {
	case err != nil:
		return 0, err
	case whole:
		return int64(len(head)), w.add(ctx, dir, name, head)
	}
	h, a, err := w.v.CreateNameless(ctx, dir, w.opts.Perm, w.opts.owner(), OpenRead|OpenWrite)
	if err != nil {
		return 0, err
	}
	n, err := w.copyTo(ctx, h)
	if err == nil {
		_, err = w.v.Link(ctx, a.Ino, dir, name)
	}
	return n, errors.Join(err, h.Close())
}

// add makes a file with content, as one step.
func (w *writing) add(ctx context.Context, dir Ino, name string, content []byte) error {
	v := w.v
	if err := v.roomForContent(ctx); err != nil {
		return err
	}
	return v.change(ctx, "write", name, func() error {
		d, err := v.view().dir(ctx, dir)
		if err != nil {
			return err
		}
		n := &inode{mode: TypeRegular | w.opts.Perm&^TypeMask}
		v.settleOwner(n, d, w.opts.owner())
		now := v.s.now()
		e := &Entry{Name: name, Mode: n.mode, Owner: Owner{n.uid, n.gid}, Atime: now, Mtime: now, Size: int64(len(content))}
		for i := int64(0); len(content) > 0; i++ {
			part := content[:min(len(content), ChunkSize)]
			e.Content, content = append(e.Content, Chunk{Index: i, Data: part}), content[len(part):]
		}
		_, err = v.ingest(ctx, dir, e)
		return err
	})
}

// over replaces the content of h.
func (w *writing) over(ctx context.Context, h *File) (int64, error) {
	head, whole, err := w.head()
	switch {
	case err != nil:
		return 0, err
	case whole:
		w.opts.Size = int64(len(head))
		if err := w.space(ctx); err != nil {
			return 0, err
		}
		err := w.replace(ctx, h, true, func(n *inode) error {
			defer w.v.putInode(h.f.ino, n)
			return pieces(head, 0, func(index int64, in int, part []byte) error { return w.v.writePiece(ctx, h.f, n, index, in, part) })
		})
		return int64(len(head)), err
	case w.opts.Size > 0 && !w.roomForBoth():
		if err := w.admit(ctx, h, false); err != nil {
			return 0, err
		}
		if err := h.Truncate(ctx, 0); err != nil {
			return 0, err
		}
		return copyIn(ctx, h, w.r)
	}
	aside, _, err := w.v.CreateNameless(ctx, RootIno, w.opts.Perm, w.opts.owner(), OpenRead|OpenWrite)
	if err != nil {
		return 0, err
	}
	n, err := w.copyTo(ctx, aside)
	if err == nil {
		err = w.replace(ctx, h, false, func(*inode) error {
			src, err := w.v.inodeOf(ctx, aside.f.ino)
			if err != nil {
				return err
			}
			w.v.unlinked -= src.alloc // it was admitted already, and counts once
			defer func() { w.v.unlinked += src.alloc }()
			c := &cloning{v: w.v, from: aside, to: h}
			for done := int64(0); done < n; {
				m, err := c.step(ctx, done, done, n-done)
				if err != nil || m == 0 {
					return err
				}
				done += m
			}
			return nil
		})
	}
	return n, errors.Join(err, aside.Close())
}

// head reads the beginning of the content, and says whether that is all of it. If not, it
// comes again from w.r.
func (w *writing) head() (head []byte, whole bool, err error) {
	head, err = io.ReadAll(io.LimitReader(w.r, segment))
	if err != nil || len(head) < segment {
		return head, true, err
	}
	w.r = io.MultiReader(bytes.NewReader(head), w.r)
	return head, false, nil
}

// roomForBoth reports whether the quota has room for the old and the new content at once.
func (w *writing) roomForBoth() bool {
	w.v.mu.RLock()
	defer w.v.mu.RUnlock()
	limit := w.v.rec.Quota.MaxBytes
	return limit == 0 || w.v.bytes+w.v.unlinked+w.opts.Size <= limit
}

// replace empties h and has fill fill it, as one step. What the quota could refuse is
// refused before: here if it is to be admitted, or else by whoever calls.
func (w *writing) replace(ctx context.Context, h *File, admit bool, fill func(n *inode) error) error {
	v := w.v
	ctx = context.WithoutCancel(ctx)
	return v.change(ctx, "write", "", func() error {
		n, err := v.inodeOf(ctx, h.f.ino)
		if err != nil {
			return err
		}
		if admit {
			if err := w.fits(n, false); err != nil {
				return err
			}
		}
		if err := v.zero(ctx, h.f, n, 0, n.size); err != nil {
			return err
		}
		n.size = 0
		n.mtime = v.s.now()
		n.ctime = n.mtime
		v.putInode(h.f.ino, n)
		return fill(n)
	})
}

// appended adds to the end of h, and takes back what did not become whole.
func (w *writing) appended(ctx context.Context, h *File) (int64, error) {
	if w.opts.Size > 0 {
		if err := w.admit(ctx, h, true); err != nil {
			return 0, err
		}
	}
	a, err := h.Stat(ctx)
	if err != nil {
		return 0, err
	}
	end, err := w.v.Open(ctx, a.Ino, OpenWrite|OpenAppend)
	if err != nil {
		return 0, err
	}
	var n int64
	head, whole, err := w.head()
	switch {
	case err != nil:
	case whole: // one step
		var m int
		m, err = end.WriteAt(ctx, head, 0)
		n = int64(m)
	default:
		n, err = copyIn(ctx, end, w.r)
	}
	if err != nil && n > 0 {
		err = errors.Join(err, w.takeBack(context.WithoutCancel(ctx), h, a.Size, n))
	}
	return n, errors.Join(err, end.Close())
}

// copyTo writes the content to a file that nobody else sees.
func (w *writing) copyTo(ctx context.Context, h *File) (int64, error) {
	if w.opts.Size > 0 {
		if err := w.admit(ctx, h, false); err != nil {
			return 0, err
		}
	}
	return copyIn(ctx, h, w.r)
}

// takeBack cuts off the n bytes that were added to a file of a size, unless others have
// added to it as well.
func (w *writing) takeBack(ctx context.Context, h *File, size, n int64) error {
	return w.v.change(ctx, "write", "", func() error {
		now, err := w.v.inodeOf(ctx, h.f.ino)
		if err != nil || now.size != size+n {
			return err
		}
		_, err = w.v.setAttr(ctx, h.f.ino, SetAttr{Size: &size})
		return err
	})
}

// admit refuses content of known size that the quota or the disk has no room for, before
// what h holds is given up.
func (w *writing) admit(ctx context.Context, h *File, more bool) error {
	err := w.v.change(ctx, "write", "", func() error {
		n, err := w.v.inodeOf(ctx, h.f.ino)
		if err != nil {
			return err
		}
		return w.fits(n, more)
	})
	if err != nil {
		return err
	}
	return w.space(ctx)
}

// fits is what the quota says of the content in the place of that of n, or at its end. The
// caller holds mu.
func (w *writing) fits(n *inode, more bool) error {
	grows, end := w.opts.Size-n.alloc, w.opts.Size
	if more {
		grows, end = w.opts.Size, n.size+w.opts.Size
	}
	if err := w.v.admitSize(n.size, end); err != nil {
		return err
	}
	return w.v.admitBytes(grows)
}

// space refuses content of known size that the disk has no room for.
func (w *writing) space(ctx context.Context) error {
	s := w.v.s
	if s.space.check(s.dirty.Load()+w.opts.Size) == nil {
		return nil
	}
	if err := w.v.squeeze(ctx); err != nil {
		return err
	}
	return s.space.check(s.dirty.Load() + w.opts.Size)
}
