package gofusefs

import (
	"errors"
	"math"

	"github.com/agentvfs/avfs/engine"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// openMode translates the flags of open(2). O_APPEND and O_TRUNC do not matter
// without the right to write.
func openMode(flags uint32) engine.OpenMode {
	mode := engine.OpenRead
	switch flags & unix.O_ACCMODE {
	case unix.O_WRONLY:
		mode = engine.OpenWrite
	case unix.O_RDWR:
		mode = engine.OpenRead | engine.OpenWrite
	}
	if mode&engine.OpenWrite == 0 {
		return mode
	}
	if flags&unix.O_APPEND != 0 {
		mode |= engine.OpenAppend
	}
	if flags&unix.O_TRUNC != 0 {
		mode |= engine.OpenTruncate
	}
	return mode
}

// opened gives the kernel a handle. It keeps the content that it has of the file,
// because it is told of every change. It need not ask at a close that has nothing to
// report: to a reader none has, to a writer only in trouble. A commit that fails later
// makes the next write fail instead, once.
func (b *vaultFS) opened(out *fuse.OpenOut, file *engine.File, mode engine.OpenMode) {
	writes := mode&engine.OpenWrite != 0
	h := &handle{ino: file.Ino(), file: file, append: mode&engine.OpenAppend != 0, writes: writes, quiet: !writes || b.v.Untroubled()}
	out.Fh = b.handles.add(h)
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	if h.quiet {
		out.OpenFlags |= fuse.FOPEN_NOFLUSH
	}
}

// Create creates and opens a file in one step.
func (b *vaultFS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	mode := openMode(in.Flags)
	return b.change(func() error {
		seen := b.changes.Load()
		file, a, err := b.v.Create(b.own, engine.Ino(in.NodeId), name, in.Mode&^engine.TypeMask, owner(&in.InHeader), mode, in.Flags&unix.O_EXCL != 0)
		if err != nil {
			return err
		}
		b.entry(&out.EntryOut, a, seen)
		b.opened(&out.OpenOut, file, mode)
		return nil
	})
}

// Tmpfile creates and opens a file without a name (O_TMPFILE). The kernel lets a
// program link it only if the program has asked for a file that can be linked.
// Nothing stays of a file that the kernel is not told of.
func (b *vaultFS) Tmpfile(_ <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	mode := openMode(in.Flags)
	return b.change(func() error {
		seen := b.changes.Load()
		file, a, err := b.v.CreateNameless(b.own, engine.Ino(in.NodeId), in.Mode&^engine.TypeMask, owner(&in.InHeader), mode)
		if err != nil {
			return err
		}
		b.entry(&out.EntryOut, a, seen)
		if err := b.keepNameless(a.Ino); err != nil {
			b.nodes.forget(a.Ino, 1)
			return errors.Join(err, file.Close())
		}
		b.opened(&out.OpenOut, file, mode)
		return nil
	})
}

// Open opens a file. The kernel has checked permissions, and opens FIFOs and
// sockets without us.
func (b *vaultFS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	mode := openMode(in.Flags)
	if b.readOnly && mode&engine.OpenWrite != 0 {
		return fuse.EROFS
	}
	return b.do(func() error {
		file, err := b.v.Open(b.own, engine.Ino(in.NodeId), mode)
		if err != nil {
			return ofNode(err)
		}
		if mode&engine.OpenTruncate != 0 {
			err = b.dropCapabilities(file.Ino())
			if err == nil && in.Mode&fuse.OPEN_KILL_SUIDGID != 0 {
				err = b.dropSetID(file.Ino())
			}
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
		b.opened(out, file, mode)
		return nil
	})
}

// Read fills p from an offset on; fewer bytes mean the end of the file.
func (b *vaultFS) Read(_ <-chan struct{}, in *fuse.ReadIn, p []byte) (result fuse.ReadResult, status fuse.Status) {
	status = b.do(func() error {
		h, err := b.handles.file(in.Fh)
		if err != nil {
			return err
		}
		n, err := h.file.ReadAt(b.own, p, int64(in.Offset))
		if err == nil { // the library takes a result for success, whatever the status says
			result = fuse.ReadResultData(p[:n])
		}
		return err
	})
	return result, status
}

// Write writes p at an offset. A part that was written before an error counts; the
// rest brings the error back. Of a page of a mapping nothing brings back the rest, so
// it is written whole or not.
func (b *vaultFS) Write(_ <-chan struct{}, in *fuse.WriteIn, p []byte) (written uint32, status fuse.Status) {
	n, mapped := 0, in.WriteFlags&fuse.WRITE_CACHE != 0
	status = b.change(func() error {
		h, err := b.handles.file(in.Fh)
		if err != nil {
			return err
		}
		if n, err = b.writeTo(h, in, p); err != nil && mapped {
			n = 0
			b.lose(h.ino, err)
		}
		return err
	})
	if n > 0 {
		return uint32(n), fuse.OK
	}
	return 0, status
}

// writeTo is Write by the kind of write.
func (b *vaultFS) writeTo(h *handle, in *fuse.WriteIn, p []byte) (int, error) {
	if err := b.dropForWrite(h, in.WriteFlags); err != nil {
		return 0, err
	}
	mapped := in.WriteFlags&fuse.WRITE_CACHE != 0
	if h.quiet && !mapped {
		if nth, err := b.v.Failed(); err != nil && h.told.Swap(nth) != nth {
			return 0, err
		}
	}
	switch {
	case !h.append:
		return h.file.WriteAt(b.own, p, int64(in.Offset))
	case mapped:
		return b.writePage(h, p, int64(in.Offset))
	default:
		return b.appendTo(h, p, int64(in.Offset))
	}
}

// writePage writes at an offset although the handle appends: the kernel writes the
// pages of a shared mapping back through any writable handle of the file.
func (b *vaultFS) writePage(h *handle, p []byte, off int64) (n int, err error) {
	plain, err := b.v.Open(b.own, h.ino, engine.OpenWrite)
	if err != nil {
		return 0, err
	}
	n, err = plain.WriteAt(b.own, p, off)
	return n, errors.Join(err, plain.Close())
}

// appendTo writes at the end of the file. The kernel believes the end to be at off,
// and keeps the bytes there; if somebody outside the mount was faster, it must drop
// them.
func (b *vaultFS) appendTo(h *handle, p []byte, off int64) (n int, err error) {
	n, err = h.file.WriteAt(b.own, p, off)
	a, serr := h.file.Stat(b.own)
	if serr == nil && a.Size != off+int64(n) {
		b.changes.Add(1)
		go b.notifier.inode(&b.nodes, h.ino) // ends when the kernel has our answer to this write
	}
	return n, err
}

// Flush is called at every close(2) of a file that was opened for writing in trouble,
// which returns what it returns; see opened.
func (b *vaultFS) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return b.withFile(in.Fh, func(f *engine.File) error { return f.Flush(b.own) })
}

// Fsync makes everything written to the file survive power loss.
func (b *vaultFS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return b.withFile(in.Fh, func(f *engine.File) error { return f.Sync(b.own) })
}

func (b *vaultFS) withFile(fh uint64, fn func(f *engine.File) error) fuse.Status {
	return b.do(func() error {
		h, err := b.handles.file(fh)
		if err == nil {
			err = fn(h.file)
		}
		return err
	})
}

// Release gives a handle back. No program waits for it, so a failure is kept for
// the end of the mount.
func (b *vaultFS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	b.do(func() error {
		if h := b.handles.remove(in.Fh); h != nil {
			b.svc.Fault(h.file.Close())
		}
		return nil
	})
}

// Fallocate makes, zeroes or punches a range.
func (b *vaultFS) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return b.change(func() error {
		h, err := b.handles.file(in.Fh)
		if err != nil {
			return err
		}
		if err := b.dropForWrite(h, 0); err != nil {
			return err
		}
		return h.file.Allocate(b.own, int64(in.Offset), int64(in.Length), in.Mode)
	})
}

// Lseek finds data and holes; every other seek is the kernel's.
func (b *vaultFS) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	if in.Whence != unix.SEEK_DATA && in.Whence != unix.SEEK_HOLE {
		return fuse.EINVAL
	}
	return b.withFile(in.Fh, func(f *engine.File) error {
		at, err := f.Seek(b.own, int64(in.Offset), in.Whence == unix.SEEK_HOLE)
		out.Offset = uint64(at)
		return err
	})
}

// CopyFileRange copies without the bytes passing through the kernel, and shares what
// both files can have together. A part that was copied before an error counts.
func (b *vaultFS) CopyFileRange(_ <-chan struct{}, in *fuse.CopyFileRangeIn) (written uint32, status fuse.Status) {
	done := int64(0)
	status = b.change(func() error {
		from, err := b.handles.file(in.FhIn)
		if err != nil {
			return err
		}
		to, err := b.handles.file(in.FhOut)
		if err != nil {
			return err
		}
		if err := b.dropForWrite(to, 0); err != nil {
			return err
		}
		length := min(in.Len, math.MaxInt32) // the answer must fit; the kernel asks for no more
		done, err = to.file.CloneRange(b.own, int64(in.OffOut), from.file, int64(in.OffIn), int64(length))
		return err
	})
	if done > 0 {
		return uint32(done), fuse.OK
	}
	return 0, status
}
