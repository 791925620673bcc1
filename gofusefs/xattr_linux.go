package gofusefs

import (
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// notSupported is the answer for attributes that a view does not keep.
const notSupported = fuse.Status(unix.ENOTSUP)

// fits puts value into dest, which is as large as the caller's buffer, and returns
// how large it is. A caller that gives no buffer asks for that alone.
func fits(dest, value []byte) (uint32, fuse.Status) {
	if len(value) > len(dest) {
		return uint32(len(value)), fuse.ERANGE
	}
	return uint32(copy(dest, value)), fuse.OK
}

// GetXAttr reads an extended attribute.
func (b *vaultFS) GetXAttr(_ <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if !posix.XattrSupported(name) {
		return 0, notSupported
	}
	var value []byte
	status := b.do(func() (err error) {
		value, err = b.v.GetXattr(b.own, engine.Ino(h.NodeId), name)
		return ofNode(err)
	})
	if status != fuse.OK {
		return 0, status
	}
	return fits(dest, value)
}

// ListXAttr lists the names of extended attributes, each with a zero byte after it.
func (b *vaultFS) ListXAttr(_ <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	var list []byte
	status := b.do(func() error {
		names, err := b.v.ListXattr(b.own, engine.Ino(h.NodeId))
		for _, name := range names {
			list = append(append(list, name...), 0)
		}
		return ofNode(err)
	})
	if status != fuse.OK {
		return 0, status
	}
	return fits(dest, list)
}

// SetXAttr sets an extended attribute.
func (b *vaultFS) SetXAttr(_ <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	if !posix.XattrSupported(name) {
		return notSupported
	}
	var how engine.XattrFlags
	switch in.Flags {
	case 0:
	case unix.XATTR_CREATE:
		how = engine.XattrCreate
	case unix.XATTR_REPLACE:
		how = engine.XattrReplace
	default:
		return fuse.EINVAL
	}
	return b.change(func() error {
		err := b.v.SetXattr(b.own, engine.Ino(in.NodeId), name, value, how)
		if name == fileCapabilities {
			b.caps.Add(1)
		}
		return ofNode(err)
	})
}

// RemoveXAttr removes an extended attribute.
func (b *vaultFS) RemoveXAttr(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if !posix.XattrSupported(name) {
		return notSupported
	}
	return b.change(func() error { return ofNode(b.v.RemoveXattr(b.own, engine.Ino(h.NodeId), name)) })
}
