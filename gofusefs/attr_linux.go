package gofusefs

import (
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// fillAttr translates an inode's attributes.
func fillAttr(out *fuse.Attr, a engine.Attr) {
	*out = fuse.Attr{
		Ino: uint64(a.Ino), Size: uint64(a.Size), Blocks: uint64(a.Blocks), Mode: a.Mode, Nlink: a.Nlink,
		Owner: fuse.Owner{Uid: a.UID, Gid: a.GID}, Rdev: a.Rdev, Blksize: posix.BlockSize,
	}
	out.Atime, out.Atimensec = split(a.Atime)
	out.Mtime, out.Mtimensec = split(a.Mtime)
	out.Ctime, out.Ctimensec = split(a.Ctime)
}

// split is posix.SplitTime in the kernel's types. It takes the seconds for signed.
func split(ns int64) (sec uint64, nsec uint32) {
	s, rest := posix.SplitTime(ns)
	return uint64(s), uint32(rest)
}

// nanoseconds is the reverse of split.
func nanoseconds(sec uint64, nsec uint32) *int64 {
	ns := int64(sec)*1e9 + int64(nsec)
	return &ns
}

// GetAttr is stat and fstat of what the kernel does not know. An inode without a
// name answers as long as a handle is open.
func (b *vaultFS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return b.do(func() error {
		seen := b.changes.Load()
		a, err := b.v.Stat(b.own, engine.Ino(in.NodeId))
		if err != nil {
			return ofNode(err)
		}
		fillAttr(&out.Attr, a)
		out.SetTimeout(b.keepFor(seen))
		return nil
	})
}

// Statx is GetAttr with the time of birth. The kernel asks for nothing else by it.
func (b *vaultFS) Statx(_ <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	return b.do(func() error {
		seen := b.changes.Load()
		a, err := b.v.Stat(b.own, engine.Ino(in.NodeId))
		if err != nil {
			return ofNode(err)
		}
		out.Statx = fuse.Statx{
			Mask: unix.STATX_BASIC_STATS | unix.STATX_BTIME, Blksize: posix.BlockSize,
			Nlink: a.Nlink, Uid: a.UID, Gid: a.GID, Mode: uint16(a.Mode), Ino: uint64(a.Ino),
			Size: uint64(a.Size), Blocks: uint64(a.Blocks),
			RdevMajor: unix.Major(uint64(a.Rdev)), RdevMinor: unix.Minor(uint64(a.Rdev)),
		}
		out.Atime.Sec, out.Atime.Nsec = split(a.Atime)
		out.Mtime.Sec, out.Mtime.Nsec = split(a.Mtime)
		out.Ctime.Sec, out.Ctime.Nsec = split(a.Ctime)
		out.Btime.Sec, out.Btime.Nsec = split(a.Btime)
		out.SetTimeout(b.keepFor(seen))
		return nil
	})
}

// SetAttr changes mode, owner, size or times.
func (b *vaultFS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return b.change(func() error {
		seen := b.changes.Load()
		set := wanted(in, time.Now().UnixNano())
		if err := b.dropWith(in, &set); err != nil {
			return ofNode(err)
		}
		a, err := b.setAttr(in, set)
		if err != nil {
			return ofNode(err)
		}
		fillAttr(&out.Attr, a)
		out.SetTimeout(b.keepFor(seen))
		return nil
	})
}

// setAttr sets attributes of the inode, by its handle where the kernel has one.
func (b *vaultFS) setAttr(in *fuse.SetAttrIn, set engine.SetAttr) (engine.Attr, error) {
	if in.Valid&fuse.FATTR_FH != 0 {
		if h, err := b.handles.file(in.Fh); err == nil {
			return h.file.SetAttr(b.own, set)
		}
	}
	return b.v.SetAttr(b.own, engine.Ino(in.NodeId), set)
}

// wanted is what a request asks for.
func wanted(in *fuse.SetAttrIn, now int64) (set engine.SetAttr) {
	if mode, ok := in.GetMode(); ok {
		set.Mode = &mode
	}
	if in.Valid&fuse.FATTR_UID != 0 {
		set.UID = &in.Uid
	}
	if in.Valid&fuse.FATTR_GID != 0 {
		set.GID = &in.Gid
	}
	if in.Valid&fuse.FATTR_SIZE != 0 {
		size := int64(in.Size)
		set.Size = &size
	}
	switch {
	case in.Valid&fuse.FATTR_ATIME_NOW != 0:
		set.Atime = &now
	case in.Valid&fuse.FATTR_ATIME != 0:
		set.Atime = nanoseconds(in.Atime, in.Atimensec)
	}
	switch {
	case in.Valid&fuse.FATTR_MTIME_NOW != 0:
		set.Mtime = &now
	case in.Valid&fuse.FATTR_MTIME != 0:
		set.Mtime = nanoseconds(in.Mtime, in.Mtimensec)
	}
	return set
}
