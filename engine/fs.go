package engine

import (
	"context"
	"io"
	"io/fs"
	"path"
	"time"
)

// FS gives the live vault as a read-only fs.FS. Symbolic links are resolved
// inside the vault. ctx bounds every call.
func (v *Vault) FS(ctx context.Context) fs.FS {
	return &filesystem{ctx: ctx, r: v, open: func(ino Ino) (readCloserAt, error) { return v.Open(ctx, ino, OpenRead) }}
}

// FS gives the snapshot as a read-only fs.FS.
func (s *Snapshot) FS(ctx context.Context) fs.FS {
	return &filesystem{ctx: ctx, r: s, open: func(ino Ino) (readCloserAt, error) { return s.Open(ctx, ino) }}
}

type readCloserAt interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Close() error
}

// filesystem carries a context because the interfaces of package fs have no place
// for one; it lives as long as the caller of FS says.
type filesystem struct {
	ctx  context.Context
	r    treeReader
	open func(Ino) (readCloserAt, error)
}

func (f *filesystem) stat(op, name string, follow bool) (*info, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	a, err := resolve(f.ctx, f.r, name, follow)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return &info{name: path.Base(name), a: a}, nil
}

// Open implements fs.FS.
func (f *filesystem) Open(name string) (fs.File, error) {
	in, err := f.stat("open", name, true)
	if err != nil {
		return nil, err
	}
	of := &openFile{f: f, name: name, info: in}
	if in.a.IsRegular() {
		if of.h, err = f.open(in.a.Ino); err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	if in.a.IsDir() {
		return &openDir{openFile: of}, nil
	}
	return of, nil
}

// Stat implements fs.StatFS.
func (f *filesystem) Stat(name string) (fs.FileInfo, error) {
	in, err := f.stat("stat", name, true)
	if err != nil {
		return nil, err
	}
	return in, nil
}

// Lstat implements fs.ReadLinkFS.
func (f *filesystem) Lstat(name string) (fs.FileInfo, error) {
	in, err := f.stat("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return in, nil
}

// ReadLink implements fs.ReadLinkFS.
func (f *filesystem) ReadLink(name string) (string, error) {
	in, err := f.stat("readlink", name, false)
	if err != nil {
		return "", err
	}
	target, err := f.r.Readlink(f.ctx, in.a.Ino)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *filesystem) ReadDir(name string) ([]fs.DirEntry, error) {
	in, err := f.stat("readdir", name, true)
	if err != nil {
		return nil, err
	}
	list := []fs.DirEntry{}
	err = f.r.ReadDir(f.ctx, in.a.Ino, "", func(e DirEntry) error {
		list = append(list, &dirEntry{f: f, e: e})
		return nil
	})
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return list, nil
}

type openFile struct {
	f    *filesystem
	name string
	info *info
	h    readCloserAt // nil for what is no regular file
	off  int64
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info, nil }

func (o *openFile) Read(p []byte) (int, error) {
	n, err := o.ReadAt(p, o.off)
	o.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (o *openFile) ReadAt(p []byte, off int64) (int, error) {
	if o.h == nil {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrInvalid}
	}
	n, err := o.h.ReadAt(o.f.ctx, p, off)
	if err != nil {
		return n, &fs.PathError{Op: "read", Path: o.name, Err: err}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (o *openFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.off
	case io.SeekEnd:
		offset += o.info.a.Size
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: o.name, Err: fs.ErrInvalid}
	}
	o.off = offset
	return offset, nil
}

func (o *openFile) Close() error {
	if o.h == nil {
		return nil
	}
	if err := o.h.Close(); err != nil {
		return &fs.PathError{Op: "close", Path: o.name, Err: err}
	}
	return nil
}

type openDir struct {
	*openFile
	list []fs.DirEntry
	read bool
}

// ReadDir implements fs.ReadDirFile.
func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !o.read {
		list, err := o.f.ReadDir(o.name)
		if err != nil {
			return nil, err
		}
		o.list, o.read = list, true
	}
	if n <= 0 {
		rest := o.list
		o.list = nil
		return rest, nil
	}
	if len(o.list) == 0 {
		return nil, io.EOF
	}
	part := o.list[:min(n, len(o.list))]
	o.list = o.list[len(part):]
	return part, nil
}

type dirEntry struct {
	f *filesystem
	e DirEntry
}

func (d *dirEntry) Name() string      { return d.e.Name }
func (d *dirEntry) IsDir() bool       { return d.e.Type == TypeDir }
func (d *dirEntry) Type() fs.FileMode { return FileMode(d.e.Type).Type() }
func (d *dirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d *dirEntry) Info() (fs.FileInfo, error) {
	a, err := d.f.r.Stat(d.f.ctx, d.e.Ino)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: d.e.Name, Err: err}
	}
	return &info{name: d.e.Name, a: a}, nil
}

type info struct {
	name string
	a    Attr
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.a.Size }
func (i *info) Mode() fs.FileMode  { return FileMode(i.a.Mode) }
func (i *info) ModTime() time.Time { return time.Unix(0, i.a.Mtime) }
func (i *info) IsDir() bool        { return i.a.IsDir() }
func (i *info) Sys() any           { return &i.a }
func (i *info) String() string     { return fs.FormatFileInfo(i) }

// FileMode turns an st_mode into Go's form.
func FileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for _, b := range modeBits {
		if mode&b.mask == b.bits {
			m |= b.mode
		}
	}
	return m
}

// UnixMode is the reverse of FileMode.
func UnixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	if m.Type() == 0 {
		mode |= TypeRegular
	}
	for _, b := range modeBits {
		if b.mode != 0 && (b.mask != TypeMask && m&b.mode != 0 || b.mask == TypeMask && m.Type() == b.mode) {
			mode |= b.bits
		}
	}
	return mode
}

var modeBits = []struct {
	mask, bits uint32
	mode       fs.FileMode
}{
	{TypeMask, TypeDir, fs.ModeDir},
	{TypeMask, TypeSymlink, fs.ModeSymlink},
	{TypeMask, TypeFIFO, fs.ModeNamedPipe},
	{TypeMask, TypeSocket, fs.ModeSocket},
	{TypeMask, TypeBlock, fs.ModeDevice},
	{TypeMask, TypeChar, fs.ModeDevice | fs.ModeCharDevice},
	{ModeSetUID, ModeSetUID, fs.ModeSetuid},
	{ModeSetGID, ModeSetGID, fs.ModeSetgid},
	{ModeSticky, ModeSticky, fs.ModeSticky},
}
