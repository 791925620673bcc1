package gofusefs

import (
	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/internal/posix"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A program that is changed must not keep the privileges that somebody gave it as
// it was. Natively the kernel sees to that. Here it leaves it to us, because it
// would have to ask at every write whether there is something to take away
// (CAP_HANDLE_KILLPRIV_V2); it says when the writer has no right to keep set-id bits.

// fileCapabilities is the attribute that gives a program capabilities.
const fileCapabilities = "security.capability"

// dropSetID takes the set-id bits off an inode.
func (b *vaultFS) dropSetID(ino engine.Ino) error {
	a, err := b.v.Stat(b.own, ino)
	if err != nil {
		return err
	}
	if mode := posix.WithoutSetID(a.Mode); a.IsRegular() && mode != a.Mode {
		_, err = b.v.SetAttr(b.own, ino, engine.SetAttr{Mode: &mode})
	}
	return err
}

// dropCapabilities takes file capabilities off an inode.
func (b *vaultFS) dropCapabilities(ino engine.Ino) error {
	err := b.v.RemoveXattr(b.own, ino, fileCapabilities)
	if engine.KindOf(err) == engine.NoAttribute {
		return nil
	}
	return err
}

// dropForWrite takes capabilities off before a write through h. It looks once for
// each handle, and again after anybody may have given some.
func (b *vaultFS) dropForWrite(h *handle, flags uint32) error {
	if flags&fuse.WRITE_KILL_SUIDGID != 0 {
		if err := b.dropSetID(h.ino); err != nil {
			return err
		}
	}
	now := b.caps.Load() + 1
	if h.caps.Load() == now {
		return nil
	}
	if err := b.dropCapabilities(h.ino); err != nil {
		return err
	}
	h.caps.Store(now)
	return nil
}

// dropWith adds to a change of attributes what it takes off: a new owner takes
// everything, a new size what a write would.
func (b *vaultFS) dropWith(in *fuse.SetAttrIn, set *engine.SetAttr) error {
	owner := set.UID != nil || set.GID != nil
	if !owner && set.Size == nil {
		return nil
	}
	ino := engine.Ino(in.NodeId)
	if err := b.dropCapabilities(ino); err != nil {
		return err
	}
	if set.Mode != nil || !owner && in.Valid&fuse.FATTR_KILL_SUIDGID == 0 {
		return nil
	}
	a, err := b.v.Stat(b.own, ino)
	if err != nil {
		return err
	}
	// FIFOs, sockets and devices lose the bits as well; what they mean on a
	// directory is no privilege.
	if mode := posix.WithoutSetID(a.Mode); !a.IsDir() && mode != a.Mode {
		set.Mode = &mode
	}
	return nil
}
