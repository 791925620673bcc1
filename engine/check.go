package engine

import (
	"context"
	"fmt"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// CheckOptions says how thoroughly to check. The zero value and nil check every
// node and reference, and the file system structure of every vault.
type CheckOptions struct {
	ReadData bool // read every chunk and compare its digest
	History  bool // check the file system structure of checkpoints and timelines too
}

// Finding is one thing that is wrong, and what it touches.
type Finding struct {
	Problem string   `json:"problem"`
	Owners  []string `json:"owners"`          // vaults, checkpoints, timeline entries
	Paths   []string `json:"paths,omitempty"` // in the first owner; at most maxFindingPaths
}

// CheckReport is the result of a check. A store without findings is sound.
type CheckReport struct {
	Findings []Finding `json:"findings"`
	Roots    int       `json:"roots"`
	Nodes    int64     `json:"nodes"`
	Chunks   int64     `json:"chunks"`
	Inodes   int64     `json:"inodes"`
}

const maxFindingPaths = 20

// Check reads the whole store and reports what is wrong in it. Pending changes are
// committed first. An error means that the check itself could not go on.
func (s *Store) Check(ctx context.Context, opts *CheckOptions) (CheckReport, error) {
	if opts == nil {
		opts = &CheckOptions{}
	}
	c := &checker{s: s, opts: *opts, report: CheckReport{Findings: []Finding{}}, chunkState: map[uint64]error{}}
	err := c.run(ctx)
	return c.report, wrap(err, "check", "")
}

type checker struct {
	s          *Store
	opts       CheckOptions
	report     CheckReport
	nodes      bitmap
	chunkState map[uint64]error // what was found of each chunk
}

func (c *checker) add(owner, path, format string, args ...any) {
	f := Finding{Problem: fmt.Sprintf(format, args...), Owners: []string{owner}}
	if path != "" {
		f.Paths = []string{path}
	}
	for i := range c.report.Findings {
		old := &c.report.Findings[i]
		if old.Problem != f.Problem {
			continue
		}
		if old.Owners[len(old.Owners)-1] != owner {
			old.Owners = append(old.Owners, owner)
		} else if path != "" && len(old.Paths) < maxFindingPaths {
			old.Paths = append(old.Paths, path)
		}
		return
	}
	c.report.Findings = append(c.report.Findings, f)
}

func (c *checker) run(ctx context.Context) error {
	c.s.mu.Lock()
	var vaults []*Vault
	for _, v := range c.s.vaults {
		vaults = append(vaults, v)
	}
	c.s.mu.Unlock()
	records := map[uint64]vaultRecord{}
	for _, v := range vaults {
		root, err := v.Pin(ctx)
		if err != nil {
			return err
		}
		defer v.Unpin(root)
		v.commitMu.Lock()
		records[v.id] = v.rec
		v.commitMu.Unlock()
	}
	if d, ok := kv.As[kv.Verifier](c.s.kv); ok {
		if err := d.Verify(ctx); err != nil {
			if KindOf(err) != Corrupt {
				return err
			}
			c.add("store", "", "database: %v", err)
		}
	}
	roots, err := c.s.keptRoots(ctx)
	if err != nil {
		return err
	}
	seen := map[Root]bool{}
	for _, r := range roots {
		c.report.Roots++
		sound, err := c.tree(ctx, r, seen[r.root])
		if err != nil {
			return err
		}
		structure := r.live || c.opts.History
		if sound && structure && (r.live || !seen[r.root]) {
			if err := c.structure(ctx, r, records[r.vault]); err != nil {
				return err
			}
		}
		seen[r.root] = true
	}
	return nil
}

// tree checks the nodes of a root that were not checked before.
func (c *checker) tree(ctx context.Context, r keptRoot, known bool) (sound bool, err error) {
	if known {
		return true, nil
	}
	enter := func(ref tree.Ref) (bool, error) { return c.nodes.add(ref.ID), nil }
	err = tree.Walk(ctx, c.s.nodes, r.root.ref, enter, func(tree.Ref, *tree.Node) error {
		c.report.Nodes++
		return nil
	})
	if KindOf(err) == Corrupt {
		c.add(r.owner, "", "%v", err)
		return false, nil
	}
	if err == nil {
		err = tree.Check(ctx, c.s.nodes, r.root.ref)
		if err != nil && ctx.Err() == nil {
			c.add(r.owner, "", "%v", err)
			return false, nil
		}
	}
	return err == nil, err
}

// seenInode is what a scan finds out about one inode.
type seenInode struct {
	n       *inode
	entries int64  // of a directory
	subdirs uint32 // of a directory
	names   []name // directory entries that lead here
	links   []name // link entries
	alloc   int64  // bytes in chunks
	end     int64  // of the last chunk
}

// structure checks that one state is a file system.
func (c *checker) structure(ctx context.Context, r keptRoot, rec vaultRecord) error {
	w := view{src: c.s.nodes, root: r.root.ref}
	inos := map[Ino]*seenInode{}
	at := func(ino Ino) *seenInode {
		if inos[ino] == nil {
			inos[ino] = &seenInode{}
		}
		return inos[ino]
	}
	find := newPathFinder(w)
	err := w.scan(ctx, nil, nil, func(k, value []byte) error {
		ino, kind, suffix, err := splitKey(k)
		if err == nil {
			err = c.entry(ctx, r, &find, at, ino, kind, suffix, value)
		}
		if KindOf(err) == Corrupt {
			c.add(r.owner, c.pathOf(ctx, &find, ino), "inode %d: %v", ino, err)
			err = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	var count, bytes int64
	for ino, in := range inos {
		if in.n == nil {
			c.add(r.owner, "", "inode %d has entries but no record", ino)
			continue
		}
		c.report.Inodes++
		count++
		bytes += in.n.alloc
		c.inode(ctx, r, &find, ino, in)
	}
	if r.live && (count-1 != rec.Count || bytes != rec.Bytes) {
		c.add(r.owner, "", "usage says %d inodes and %d bytes where there are %d and %d", rec.Count, rec.Bytes, count-1, bytes)
	}
	return nil
}

// entry sorts one entry under its inode.
func (c *checker) entry(ctx context.Context, r keptRoot, find *pathFinder, at func(Ino) *seenInode, ino Ino, kind byte, suffix, value []byte) error {
	in := at(ino)
	switch kind {
	case kindInode:
		n, err := decodeInode(value)
		in.n = n
		return err
	case kindDirent:
		d, err := decodeDirent(value)
		if err != nil {
			return err
		}
		in.entries++
		if d.typ == TypeDir {
			in.subdirs++
		}
		child := at(d.ino)
		child.names = append(child.names, name{ino, string(suffix)})
	case kindLink:
		if len(suffix) < 9 {
			return fail(Corrupt, "check", "link entry")
		}
		in.links = append(in.links, name{Ino(kv.ParseID(suffix[:8])), string(suffix[8:])})
	case kindXattr:
	case kindChunk:
		ref, err := decodeChunkRef(value)
		if err != nil || len(suffix) != 8 {
			return fail(Corrupt, "check", "chunk entry")
		}
		index := int64(kv.ParseID(suffix))
		in.alloc += int64(ref.length)
		in.end = index*ChunkSize + int64(ref.length)
		if err := c.chunk(ctx, ref); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.add(r.owner, c.pathOf(ctx, find, ino), "chunk %d: %v", ref.id, err)
		}
	default:
		return fail(Corrupt, "check", fmt.Sprintf("entry of kind %d", kind))
	}
	return nil
}

// chunk checks that a chunk is stored and, when asked, that it is what it was.
func (c *checker) chunk(ctx context.Context, ref chunkRef) error {
	if err, ok := c.chunkState[ref.id]; ok {
		return err
	}
	c.report.Chunks++
	var err error
	if c.opts.ReadData {
		_, err = c.s.chunks.load(ctx, ref)
	} else {
		err = c.s.kv.View(ctx, func(tx kv.Reader) error {
			_, ok, err := tx.Get(tableChunks, kv.ID(ref.id))
			if err == nil && !ok {
				err = errMissing
			}
			return err
		})
	}
	c.chunkState[ref.id] = err
	return err
}

// inode checks one inode against what refers to it.
func (c *checker) inode(ctx context.Context, r keptRoot, find *pathFinder, ino Ino, in *seenInode) {
	bad := func(format string, args ...any) {
		c.add(r.owner, c.pathOf(ctx, find, ino), "inode %d: %s", ino, fmt.Sprintf(format, args...))
	}
	n := in.n
	if n.isDir() {
		want := 1
		if ino == RootIno {
			want = 0
		}
		if len(in.names) != want {
			bad("directory with %d names", len(in.names))
		}
		if n.size != in.entries || n.nlink != 2+in.subdirs {
			bad("directory says %d entries and %d links, has %d and %d", n.size, n.nlink, in.entries, 2+in.subdirs)
		}
	} else {
		if in.entries > 0 {
			bad("entries in what is no directory")
		}
		if int(n.nlink) != len(in.names) || n.nlink == 0 {
			bad("%d links where %d names lead to it", n.nlink, len(in.names))
		}
	}
	if (in.alloc > 0 || n.alloc > 0) && !n.isRegular() {
		bad("content in what is no file")
	}
	if in.alloc != n.alloc || in.end > n.size && n.isRegular() {
		bad("says %d bytes allocated of %d, has %d up to %d", n.alloc, n.size, in.alloc, in.end)
	}
	if ino != RootIno && !sameNames(in, n) {
		bad("its names and the directories differ")
	}
}

// sameNames compares the directory entries of an inode with what it says itself.
func sameNames(in *seenInode, n *inode) bool {
	own := in.links
	if n.nlink == 1 || n.isDir() {
		own = append([]name{{n.parent, n.name}}, in.links...)
	}
	if len(own) != len(in.names) {
		return false
	}
	set := map[name]bool{}
	for _, nm := range own {
		set[nm] = true
	}
	for _, nm := range in.names {
		if !set[nm] {
			return false
		}
	}
	return true
}

func (c *checker) pathOf(ctx context.Context, find *pathFinder, ino Ino) string {
	_, names, err := find.inode(ctx, ino)
	if err != nil || len(names) == 0 {
		return ""
	}
	p, err := find.join(ctx, names[0])
	if err != nil {
		return ""
	}
	return p
}
