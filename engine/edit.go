package engine

import (
	"bytes"
	"context"
	"fmt"
)

// MaxEdit is the size of the largest file that EditFile takes, in bytes: it reads and
// writes the file under the lock of the vault.
const MaxEdit = 16 << 20

// EditFile makes what fn returns the content of the regular file at p, following
// symbolic links, as one step: nobody writes to the vault between the reading and the
// writing, or sees a part of it. An error leaves the file as it was. The file stays the
// same inode, with its mode, links, attributes and handles. fn must not use the vault,
// nor keep or change what it is given; what it returns may share memory with that.
func (v *Vault) EditFile(ctx context.Context, p string, fn func(old []byte) ([]byte, error)) error {
	err := v.roomForContent(ctx)
	if err == nil {
		err = v.change(ctx, "edit", p, func() error { return v.editFile(ctx, p, fn) })
	}
	return atPath(err, "edit", p)
}

// editFile is EditFile for who holds mu.
func (v *Vault) editFile(ctx context.Context, p string, fn func(old []byte) ([]byte, error)) error {
	a, err := resolve(ctx, &Snapshot{s: v.s, w: v.view()}, p, true)
	switch {
	case err != nil:
		return err
	case a.IsDir():
		return fail(IsDirectory, "", "")
	case !a.IsRegular():
		return fail(Unsupported, "", "")
	case a.Size > MaxEdit:
		return &Error{Kind: Invalid, Err: fmt.Errorf("has %d bytes, and a file of at most %d can be edited in one step", a.Size, MaxEdit)}
	}
	f := v.fileOf(a.Ino)
	defer v.settle(a.Ino)
	old := make([]byte, a.Size)
	if _, err := v.readPart(ctx, f, old, 0); err != nil {
		return err
	}
	next, err := fn(old)
	if err != nil || bytes.Equal(old, next) {
		return err
	}
	return v.replaceContent(context.WithoutCancel(ctx), f, old, next)
}

// replaceContent writes the chunks in which next differs from old, the content of f.
// What can be refused is refused before anything changes: whole chunks are written, so
// that none has to be read.
func (v *Vault) replaceContent(ctx context.Context, f *file, old, next []byte) error {
	from, end := differing(old, next)
	n, err := v.inodeOf(ctx, f.ino)
	if err != nil {
		return err
	}
	if err := v.admitSize(n.size, int64(len(next))); err != nil {
		return err
	}
	more := int64(0)
	err = pieces(next[from:end], int64(from), func(index int64, _ int, part []byte) error {
		before, err := v.lengthOf(ctx, f, index)
		more += int64(max(len(part)-before, 0))
		return err
	})
	if err != nil {
		return err
	}
	if err := v.admitBytes(more); err != nil {
		return err
	}
	if size := int64(len(next)); size < n.size {
		if err := v.zero(ctx, f, n, size, n.size); err != nil {
			return err
		}
		n.size = size
	}
	err = pieces(next[from:end], int64(from), func(index int64, in int, part []byte) error {
		return v.writePiece(ctx, f, n, index, in, part)
	})
	n.mtime = v.s.now()
	n.ctime = n.mtime
	v.putInode(f.ino, n)
	return err
}

// differing is the range of next, in whole chunks, outside of which it is equal to old.
func differing(old, next []byte) (from, end int) {
	for from < min(len(old), len(next)) && old[from] == next[from] {
		from++
	}
	from = from / ChunkSize * ChunkSize
	end = len(next)
	if len(old) != len(next) {
		return from, end
	}
	for end > from && old[end-1] == next[end-1] {
		end--
	}
	return from, min((end+ChunkSize-1)/ChunkSize*ChunkSize, len(next))
}
