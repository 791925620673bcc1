package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// nodeStore reads tree nodes through a cache. A node id never changes its
// content, so a cached node is always right.
type nodeStore struct {
	kv    kv.Store
	cache *cache[*tree.Node]
	reads atomic.Int64 // nodes asked for, cached or not
}

func newNodeStore(s kv.Store, cacheBytes int64) (*nodeStore, error) {
	cache, err := newCache[*tree.Node](cacheBytes)
	if err != nil {
		return nil, err
	}
	return &nodeStore{kv: s, cache: cache}, nil
}

// Node implements tree.Source.
func (s *nodeStore) Node(ctx context.Context, ref tree.Ref) (*tree.Node, error) {
	s.reads.Add(1)
	if n, ok := s.cache.get(ref.ID); ok {
		return n, nil
	}
	node, err := s.load(ctx, ref)
	if err == nil {
		s.cache.put(ref.ID, node, node.MemSize())
	}
	return node, err
}

// load reads a node past the cache.
func (s *nodeStore) load(ctx context.Context, ref tree.Ref) (*tree.Node, error) {
	var node *tree.Node
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		data, ok, err := tx.Get(tableNodes, kv.ID(ref.ID))
		if err != nil {
			return err
		}
		if !ok {
			return &Error{Kind: Corrupt, Op: "read node", Path: fmt.Sprint(ref.ID), Err: errMissing}
		}
		node, err = tree.Decode(data, ref)
		if err != nil {
			return &Error{Kind: Corrupt, Op: "read node", Path: fmt.Sprint(ref.ID), Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}
