package engine

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache keeps the values used last, up to a sum of their sizes. It may be used by
// any number of goroutines.
type cache[V any] struct {
	mu    sync.Mutex // guards the rest
	lru   *simplelru.LRU[uint64, sized[V]]
	bytes int64
	limit int64
}

type sized[V any] struct {
	value V
	bytes int64
}

// entryBytes is about what the cache itself needs for an entry.
const entryBytes = 128

func newCache[V any](limitBytes int64) (*cache[V], error) {
	c := &cache[V]{limit: limitBytes}
	evicted := func(_ uint64, e sized[V]) { c.bytes -= e.bytes }
	var err error
	c.lru, err = simplelru.NewLRU(int(max(limitBytes/entryBytes, 1)), evicted)
	return c, err
}

func (c *cache[V]) get(id uint64) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.lru.Get(id)
	return e.value, ok
}

// put adds a value of the size; what is larger than a quarter of the cache stays out.
func (c *cache[V]) put(id uint64, value V, bytes int) {
	size := int64(bytes) + entryBytes
	if size > c.limit/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(id)
	c.bytes += size
	c.lru.Add(id, sized[V]{value, size})
	for c.bytes > c.limit {
		c.lru.RemoveOldest()
	}
}
