package engine

import (
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
// the content or the disk is full. Content of known size is refused before anything is
// changed; other content lies beside the file until all of it is there, so that for a
// moment a quota counts both. Only a disk that others fill while content of known size is
// written leaves a part of it, and of an existing file nothing else.
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

// over replaces the content of h.
func (w *writing) over(ctx context.Context, h *File) (int64, error) {
	if w.opts.Size > 0 {
		if err := w.admit(ctx, h, false); err != nil {
			return 0, err
		}
		return w.replace(ctx, h, func() (int64, error) { return copyIn(ctx, h, w.r) })
	}
	aside, _, err := w.v.CreateNameless(ctx, RootIno, w.opts.Perm, w.opts.owner(), OpenRead|OpenWrite)
	if err != nil {
		return 0, err
	}
	n, err := w.copyTo(ctx, aside)
	if err == nil {
		_, err = w.replace(ctx, h, func() (int64, error) { return h.CloneRange(ctx, 0, aside, 0, n) })
	}
	return n, errors.Join(err, aside.Close())
}

// replace empties h and has fill fill it.
func (w *writing) replace(ctx context.Context, h *File, fill func() (int64, error)) (int64, error) {
	if err := h.Truncate(ctx, 0); err != nil {
		return 0, err
	}
	return fill()
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
	n, err := copyIn(ctx, end, w.r)
	if err != nil {
		err = errors.Join(err, h.Truncate(context.WithoutCancel(ctx), a.Size))
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

// admit refuses content of known size that the quota or the disk has no room for, before
// what h holds is given up.
func (w *writing) admit(ctx context.Context, h *File, more bool) error {
	v, size := w.v, w.opts.Size
	err := v.change(ctx, "", "", func() error {
		n, err := v.inodeOf(ctx, h.f.ino)
		if err != nil {
			return err
		}
		grows, end := size-n.alloc, size
		if more {
			grows, end = size, n.size+size
		}
		if err := v.admitSize(n.size, end); err != nil {
			return err
		}
		return v.admitBytes(grows)
	})
	if err != nil {
		return err
	}
	if v.s.space.check(v.s.dirty.Load()+size) == nil {
		return nil
	}
	if err := v.squeeze(ctx); err != nil {
		return err
	}
	return v.s.space.check(v.s.dirty.Load() + size)
}
