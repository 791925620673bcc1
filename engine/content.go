package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/agentvfs/avfs/engine/internal/tree"
)

// ContentID names what a regular file holds. Files with equal ids hold equal bytes, in
// every vault and in every store. A hole and zeros that were written are different
// content. The id of an empty file is zero.
type ContentID [16]byte

// NodeID names a piece of a state with everything below it. Equal ids mean equal
// inodes, names and content ids, in every store.
type NodeID [16]byte

// Content returns the id of the content of the regular file ino, and its size in bytes.
// It reads no content.
func (p *Snapshot) Content(ctx context.Context, ino Ino) (id ContentID, sizeBytes int64, err error) {
	n, err := p.w.inode(ctx, ino)
	switch {
	case err != nil:
		return id, 0, wrap(err, "identify", "")
	case !n.isRegular():
		return id, 0, fail(Unsupported, "identify", "")
	case n.size == 0:
		return id, 0, nil
	}
	sum := sha256.New()
	buf := binary.BigEndian.AppendUint64(make([]byte, 0, 32), uint64(n.size))
	sum.Write(buf)
	err = p.w.scan(ctx, key(ino, kindChunk), nil, func(k, value []byte) error {
		c, err := decodeChunkRef(value)
		if err != nil {
			return err
		}
		buf = append(append(buf[:0], k[keyHead:]...), c.digest[:]...)
		sum.Write(binary.BigEndian.AppendUint64(buf, uint64(c.length)))
		return nil
	})
	if err != nil {
		return id, 0, wrap(err, "identify", "")
	}
	copy(id[:], sum.Sum(buf[:0]))
	return id, n.size, nil
}

// Paths lists the paths of an inode, without a leading slash: one for each of its
// names, none where the state has no such inode.
func (p *Snapshot) Paths(ctx context.Context, ino Ino) ([]string, error) {
	find := newPathFinder(p.w)
	_, names, err := find.inode(ctx, ino)
	if err != nil {
		return nil, wrap(err, "find path", "")
	}
	paths := make([]string, 0, len(names))
	for _, nm := range names {
		path, err := find.join(ctx, nm)
		if err != nil {
			return nil, wrap(err, "find path", "")
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// WalkFiles visits the pieces of a state, larger ones before those in them, and calls
// visit with the regular files that are wholly or partly in a smallest one, which may
// be none. Before it looks into a piece it asks enter, which may decline it with all
// below it: so who remembers the pieces that it has seen finds what is new at a cost
// proportional to that. A file in several pieces is passed once for each, in a row.
func (p *Snapshot) WalkFiles(ctx context.Context, enter func(NodeID) (bool, error), visit func(files []Ino) error) error {
	err := tree.Walk(ctx, p.s.nodes, p.w.root,
		func(ref tree.Ref) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			return enter(NodeID(ref.Digest))
		},
		func(_ tree.Ref, n *tree.Node) error {
			if !n.IsLeaf() {
				return nil
			}
			files, err := filesIn(n)
			if err != nil {
				return err
			}
			return visit(files)
		})
	return wrap(err, "walk", "")
}

// filesIn lists the regular files of whose record or content a leaf has something.
func filesIn(n *tree.Node) ([]Ino, error) {
	var files []Ino
	for i := range n.Len() {
		ino, kind, _, err := splitKey(n.Key(i))
		if err != nil {
			return nil, err
		}
		if len(files) > 0 && files[len(files)-1] == ino {
			continue
		}
		switch kind {
		case kindInode:
			rec, err := decodeInode(n.Value(i))
			if err != nil {
				return nil, err
			}
			if rec.isRegular() {
				files = append(files, ino)
			}
		case kindChunk:
			files = append(files, ino)
		}
	}
	return files, nil
}
