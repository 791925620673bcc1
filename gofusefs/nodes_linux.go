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
	mu     sync.Mutex // guards counts
	counts map[engine.Ino]uint64
}

func newNodeTable() nodeTable {
	var t nodeTable
	for i := range t.shards {
		t.shards[i] = &nodeShard{counts: map[engine.Ino]uint64{}}
	}
	return t
}

func (t *nodeTable) shard(ino engine.Ino) *nodeShard { return t.shards[ino%nodeShards] }

// told notes that an answer tells the kernel of an inode.
func (t *nodeTable) told(ino engine.Ino) {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[ino]++
}

// forget takes n off the count of an inode.
func (t *nodeTable) forget(ino engine.Ino, n uint64) {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[ino] <= n {
		delete(s.counts, ino)
		return
	}
	s.counts[ino] -= n
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
	return s.counts[ino] > 0
}

// Forget is called when the kernel drops an inode.
func (b *vaultFS) Forget(node, n uint64) { b.nodes.forget(engine.Ino(node), n) }
