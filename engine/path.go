package engine

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/agentvfs/avfs/engine/kv"
)

// Paths are slash-separated and counted from the vault's top directory, with or
// without a leading slash. Symbolic links are resolved inside the vault: neither
// an absolute target nor ".." leads out of it.

// cleanPath is p without leading, trailing and double slashes, "." and "..";
// the top directory is "".
func cleanPath(p string) string {
	return strings.TrimPrefix(path.Clean("/"+p), "/")
}

// maxLinkHops is how many symbolic links one resolution follows.
const maxLinkHops = 40

// dirReader is what path resolution needs; a Vault and a Snapshot are one.
type dirReader interface {
	Lookup(ctx context.Context, dir Ino, name string) (Attr, error)
	Stat(ctx context.Context, ino Ino) (Attr, error)
	Readlink(ctx context.Context, ino Ino) (string, error)
}

// resolve walks p. With follow a link at the end is followed as well.
func resolve(ctx context.Context, r dirReader, p string, follow bool) (Attr, error) {
	top, err := r.Stat(ctx, RootIno)
	if err != nil {
		return Attr{}, err
	}
	stack := []Attr{top} // directories from the top down to the present one
	rest := strings.Split(p, "/")
	hops := 0
	at := top
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		last := stack[len(stack)-1]
		switch part {
		case "", ".":
			at = last
			continue
		case "..":
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			at = stack[len(stack)-1]
			continue
		}
		if at, err = r.Lookup(ctx, last.Ino, part); err != nil {
			return Attr{}, err
		}
		switch {
		case at.IsSymlink() && (len(rest) > 0 || follow):
			if hops++; hops > maxLinkHops {
				return Attr{}, fail(Loop, "", "")
			}
			target, err := r.Readlink(ctx, at.Ino)
			if err != nil {
				return Attr{}, err
			}
			if strings.HasPrefix(target, "/") {
				stack = stack[:1]
			}
			rest = append(strings.Split(target, "/"), rest...)
			at = stack[len(stack)-1]
		case at.IsDir():
			stack = append(stack, at)
		case len(rest) > 0:
			return Attr{}, fail(NotDirectory, "", "")
		}
	}
	return at, nil
}

// Resolve finds what p names. With follow a symbolic link at the end is followed.
func (v *Vault) Resolve(ctx context.Context, p string, follow bool) (Attr, error) {
	a, err := resolve(ctx, v, p, follow)
	return a, atPath(err, "open", p)
}

// Resolve finds what p names. With follow a symbolic link at the end is followed.
func (s *Snapshot) Resolve(ctx context.Context, p string, follow bool) (Attr, error) {
	a, err := resolve(ctx, s, p, follow)
	return a, atPath(err, "open", p)
}

// atPath gives err the path that the caller asked for instead of a mere name.
func atPath(err error, op, p string) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return &Error{Kind: e.Kind, Op: op, Path: p, Err: e.Err, Details: e.Details}
	}
	return wrap(err, op, p)
}

// place finds the directory that holds the last part of p, and that part.
func (v *Vault) place(ctx context.Context, p string) (dir Ino, name string, err error) {
	trimmed := strings.TrimRight(p, "/")
	dirPart, name := path.Split(trimmed)
	if name == "" || name == "." || name == ".." {
		return 0, "", fail(Invalid, "", "")
	}
	a, err := resolve(ctx, v, dirPart, true)
	if err != nil {
		return 0, "", err
	}
	if !a.IsDir() {
		return 0, "", fail(NotDirectory, "", "")
	}
	return a.Ino, name, nil
}

// copyBytes is how much copyIn reads at a time.
const copyBytes = 2 * ChunkSize

// copyIn writes all of r from the start of the file on, or to its end for a
// handle with OpenAppend.
func copyIn(ctx context.Context, h *File, r io.Reader) (int64, error) {
	p, ok := h.v.s.buffers.Get().(*[]byte)
	if !ok {
		b := make([]byte, copyBytes)
		p = &b
	}
	defer h.v.s.buffers.Put(p)
	buf := *p
	var off int64
	for {
		n, rerr := io.ReadFull(r, buf)
		if n > 0 {
			w, err := h.WriteAt(ctx, buf[:n], off)
			off += int64(w)
			if err != nil {
				return off, err
			}
		}
		if rerr == io.EOF || rerr == io.ErrUnexpectedEOF {
			return off, nil
		}
		if rerr != nil {
			return off, rerr
		}
		if err := ctx.Err(); err != nil {
			return off, err
		}
	}
}

// MkdirAll makes the directory p and those above it where they are missing.
func (v *Vault) MkdirAll(ctx context.Context, p string, perm uint32, o Owner) (Attr, error) {
	a, err := v.mkdirAll(ctx, cleanPath(p), perm, o)
	return a, atPath(err, "make directory", p)
}

func (v *Vault) mkdirAll(ctx context.Context, p string, perm uint32, o Owner) (Attr, error) {
	a, err := resolve(ctx, v, p, true)
	switch {
	case err == nil && a.IsDir():
		return a, nil
	case err == nil:
		return Attr{}, fail(NotDirectory, "", "")
	case KindOf(err) != NotFound:
		return Attr{}, err
	}
	dirPart, name := path.Split(p)
	up, err := v.mkdirAll(ctx, strings.TrimRight(dirPart, "/"), perm, o)
	if err != nil {
		return Attr{}, err
	}
	a, err = v.Mkdir(ctx, up.Ino, name, perm, o)
	if KindOf(err) == Exists { // somebody was quicker, or a dangling link is there
		if a, err = v.Lookup(ctx, up.Ino, name); err == nil && !a.IsDir() {
			err = fail(NotDirectory, "", "")
		}
	}
	return a, err
}

// Remove removes the file or empty directory at p. A symbolic link is removed,
// not followed.
func (v *Vault) Remove(ctx context.Context, p string) error {
	dir, name, err := v.place(ctx, p)
	if err == nil {
		err = v.removeOne(ctx, dir, name)
	}
	return atPath(err, "remove", p)
}

func (v *Vault) removeOne(ctx context.Context, dir Ino, name string) error {
	err := v.Unlink(ctx, dir, name)
	if KindOf(err) == IsDirectory {
		err = v.Rmdir(ctx, dir, name)
	}
	return err
}

// RemoveAll removes p and everything below it. What does not exist is no error.
// Symbolic links are removed, not followed. The top directory is emptied.
func (v *Vault) RemoveAll(ctx context.Context, p string) error {
	if cleanPath(p) == "" {
		return atPath(v.empty(ctx, RootIno), "remove", p)
	}
	dir, name, err := v.place(ctx, p)
	if err == nil {
		err = v.removeTree(ctx, dir, name)
	}
	if KindOf(err) == NotFound {
		return nil
	}
	return atPath(err, "remove", p)
}

func (v *Vault) removeTree(ctx context.Context, dir Ino, name string) error {
	a, err := v.Lookup(ctx, dir, name)
	if err != nil {
		return err
	}
	if a.IsDir() {
		if err := v.empty(ctx, a.Ino); err != nil {
			return err
		}
		return v.Rmdir(ctx, dir, name)
	}
	return v.Unlink(ctx, dir, name)
}

func (v *Vault) empty(ctx context.Context, dir Ino) error {
	return v.ReadDir(ctx, dir, "", func(e DirEntry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := v.removeTree(ctx, dir, e.Name)
		if KindOf(err) == NotFound {
			err = nil
		}
		return err
	})
}

// Move renames from to the path to, replacing what is there as rename does.
func (v *Vault) Move(ctx context.Context, from, to string) error {
	fromDir, fromName, err := v.place(ctx, from)
	if err != nil {
		return atPath(err, "move", from)
	}
	toDir, toName, err := v.place(ctx, to)
	if err != nil {
		return atPath(err, "move", to)
	}
	return atPath(v.Rename(ctx, fromDir, fromName, toDir, toName, 0), "move", from)
}

// Walk calls fn for p and everything below it, a directory before its entries, in
// name order. Paths have no leading slash; links are not followed. An error from
// fn ends it and is returned; kv.Stop ends it without one, and SkipDir from fn
// for a directory leaves out what is below.
func (v *Vault) Walk(ctx context.Context, p string, fn func(path string, a Attr) error) error {
	return walkTree(ctx, v, p, fn)
}

// Walk is Vault.Walk for a snapshot.
func (s *Snapshot) Walk(ctx context.Context, p string, fn func(path string, a Attr) error) error {
	return walkTree(ctx, s, p, fn)
}

// SkipDir makes Walk leave out what is below a directory.
var SkipDir = errors.New("skip this directory")

type treeReader interface {
	dirReader
	ReadDir(ctx context.Context, dir Ino, after string, fn func(DirEntry) error) error
}

func walkTree(ctx context.Context, r treeReader, p string, fn func(string, Attr) error) error {
	a, err := resolve(ctx, r, p, false)
	if err != nil {
		return atPath(err, "walk", p)
	}
	err = walkBelow(ctx, r, cleanPath(p), a, fn)
	if errors.Is(err, errWalked) {
		return nil
	}
	return err
}

// errWalked carries kv.Stop from fn past the directories above.
var errWalked = errors.New("walk ended early")

func walkBelow(ctx context.Context, r treeReader, p string, a Attr, fn func(string, Attr) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := fn(p, a)
	switch {
	case errors.Is(err, SkipDir):
		return nil
	case errors.Is(err, kv.Stop):
		return errWalked
	case err != nil || !a.IsDir():
		return err
	}
	return r.ReadDir(ctx, a.Ino, "", func(e DirEntry) error {
		child, err := r.Stat(ctx, e.Ino)
		if KindOf(err) == NotFound {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		below := e.Name
		if p != "" {
			below = p + "/" + e.Name
		}
		return walkBelow(ctx, r, below, child, fn)
	})
}
