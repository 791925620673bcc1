package gofusefs

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agentvfs/avfs/engine"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// requestKey marks the context of a request of some mount.
type requestKey struct{}

// stall bounds how long a request of one mount waits until another has told the
// kernel. The kernel may want, for each of the two, what the request of the other
// holds: a directory in which a name is being made, a page that is being written.
// Then one has to answer first.
const stall = 20 * time.Millisecond

// changedOutside makes the kernel forget what others have changed. It returns when
// the kernel has, so that whoever changed something can count on its being seen;
// for a request of another mount see stall.
func (b *vaultFS) changedOutside(ctx context.Context, changes []engine.Change) {
	b.changes.Add(1)
	b.caps.Add(1)
	if ctx.Value(requestKey{}) == nil {
		b.notifier.tell(&b.nodes, changes)
		return
	}
	told := make(chan struct{})
	go func() { // ends when the kernel lets go of what the request holds
		defer close(told)
		b.notifier.tell(&b.nodes, changes)
	}()
	select {
	case <-told:
	case <-time.After(stall):
	}
}

// notifier tells the kernel what to forget. It is called with no lock held that a
// request could wait for: the kernel answers when requests that use the same
// directory or page are answered.
type notifier struct {
	srv atomic.Pointer[fuse.Server] // nil until the kernel has said hello
}

// tell makes the kernel forget what changed. An error of the kernel means that it
// does not know it, or that the mount is going.
func (n *notifier) tell(nodes *nodeTable, changes []engine.Change) {
	srv := n.srv.Load()
	if srv == nil {
		return
	}
	for _, c := range changes {
		switch {
		case c.Name == "":
			n.inode(nodes, c.Ino)
		case nodes.knows(c.Ino):
			srv.EntryNotify(uint64(c.Ino), c.Name)
		}
	}
}

// retries is how often, a millisecond apart, the kernel is told again of an inode
// that it must have been told of but does not know.
const retries = 10

// inode makes the kernel forget attributes and content of an inode. If it does not
// know the inode, an answer that tells it of the old state may be on its way, or it
// has just forgotten the inode and we are about to hear of it.
func (n *notifier) inode(nodes *nodeTable, ino engine.Ino) {
	srv := n.srv.Load()
	for range retries {
		if srv == nil || !nodes.knows(ino) || srv.InodeNotify(uint64(ino), 0, 0) != fuse.ENOENT {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// writeBack has the kernel hand over what programs have written to mappings, and
// waits for it, which syncfs does not on Linux 6.16 and later. Only a file that is open
// for writing has such mappings; a mapping holds its file open. All else that the kernel
// keeps of the content of such a file goes with it, and is read again when it is asked
// for. The error is the first of a page that the vault has not taken since the last
// call; the kernel tells us of none.
func (b *vaultFS) writeBack() error {
	for _, ino := range b.handles.written() {
		b.notifier.inode(&b.nodes, ino)
	}
	return b.lost.take()
}
