package gofusefs

import (
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// nodeShards divides the table, so that requests in parallel seldom meet.
const nodeShards = 16

// nodeTable counts how often the kernel has been told of each inode, less what it
// has forgotten: an inode that is not in it is none that the kernel could know.
type nodeTable struct{ shards [nodeShards]*nodeShard }

type nodeShard struct {
	mu    sync.Mutex // guards nodes
	nodes map[engine.Ino]node
}

type node struct {
	count  uint64
	keeper *engine.File // what a file without a name lives on for; nil where none is needed
}

func newNodeTable() nodeTable {
	var t nodeTable
	for i := range t.shards {
		t.shards[i] = &nodeShard{nodes: map[engine.Ino]node{}}
	}
	return t
}

func (t *nodeTable) shard(ino engine.Ino) *nodeShard { return t.shards[ino%nodeShards] }

// told notes that an answer tells the kernel of an inode.
func (t *nodeTable) told(ino engine.Ino) {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[ino]
	n.count++
	s.nodes[ino] = n
}

// forget takes n off the count of an inode. With the last of it the keeper is
// nobody's any more, and the caller closes it.
func (t *nodeTable) forget(ino engine.Ino, times uint64) (keeper *engine.File) {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[ino]
	if n.count <= times {
		delete(s.nodes, ino)
		return n.keeper
	}
	n.count -= times
	s.nodes[ino] = n
	return nil
}

// keep keeps a file until the kernel has forgotten its inode. It is false if the
// kernel has, or somebody keeps it already.
func (t *nodeTable) keep(file *engine.File) bool {
	s := t.shard(file.Ino())
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.nodes[file.Ino()]
	if !ok || n.keeper != nil {
		return false
	}
	n.keeper = file
	s.nodes[file.Ino()] = n
	return true
}

// knows reports whether the kernel may know an inode. It knows the top directory
// without being told.
func (t *nodeTable) knows(ino engine.Ino) bool {
	if ino == engine.RootIno {
		return true
	}
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[ino].count > 0
}

// drain empties the table and returns what was kept.
func (t *nodeTable) drain() []*engine.File {
	var files []*engine.File
	for _, s := range t.shards {
		s.mu.Lock()
		for _, n := range s.nodes {
			if n.keeper != nil {
				files = append(files, n.keeper)
			}
		}
		clear(s.nodes)
		s.mu.Unlock()
	}
	return files
}

// Forget is called when the kernel drops an inode.
func (b *vaultFS) Forget(ino, times uint64) {
	if !b.svc.Enter() {
		return
	}
	defer b.svc.Leave()
	if keeper := b.nodes.forget(engine.Ino(ino), times); keeper != nil {
		b.svc.Fault(keeper.Close())
	}
}

// keepRemoved keeps a file whose last name has been taken away, or given to another. A
// program may have found the file by that name a moment ago and open it next, which no
// native file system refuses. So a file without a name lives on until the kernel has
// forgotten it. It is nil if the kernel did not know the file.
func (b *vaultFS) keepRemoved(file *engine.File) {
	if file != nil && !b.nodes.keep(file) {
		b.svc.Fault(file.Close())
	}
}

// keepNameless keeps a file that was made without a name for as long as the kernel
// knows it: a program may hold it by a descriptor that is no handle (O_PATH).
func (b *vaultFS) keepNameless(ino engine.Ino) error {
	file, err := b.v.Open(b.own, ino, engine.OpenRead)
	if err == nil && !b.nodes.keep(file) {
		err = file.Close()
	}
	return err
}
