package engine

import (
	"context"
	"fmt"
	"sort"

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

// Check reads the whole store, past every cache, and reports what is wrong in it.
// Pending changes are committed first; where the disk has no room for them, they are
// left out. An error means that the check itself could
// not go on. GC waits until it ends; nothing else does.
func (s *Store) Check(ctx context.Context, opts *CheckOptions) (CheckReport, error) {
	if opts == nil {
		opts = &CheckOptions{}
	}
	s.care.Lock()
	defer s.care.Unlock()
	c, err := s.check(ctx, *opts)
	return c.report, wrap(err, "check", "")
}

// check is Check for a caller that holds care. It returns a checker with an error,
// too.
func (s *Store) check(ctx context.Context, opts CheckOptions) (*checker, error) {
	c := &checker{
		s: s, opts: opts, report: CheckReport{Findings: []Finding{}}, byProblem: map[string]int{},
		tainted: map[uint64]bool{}, chunkState: map[uint64]error{}, faults: faults{chunks: map[uint64]chunkRef{}},
	}
	return c, c.run(ctx)
}

type checker struct {
	s          *Store
	opts       CheckOptions
	report     CheckReport
	byProblem  map[string]int   // index in report.Findings
	nodes      bitmap           // that were audited
	tainted    map[uint64]bool  // nodes that are damaged or may have damage below
	chunkState map[uint64]error // what was found of each chunk
	faults     faults           // what Repair can look at
}

// faults are findings in the form that Repair needs.
type faults struct {
	rows   []indexFault
	chunks map[uint64]chunkRef
	nodes  []tree.Ref
	usage  []usageFault

	noAuditHead bool // it is damaged or missing
}

// indexFault is a row of the digest index that is damaged or, where id is not 0,
// leads to a chunk that is.
type indexFault struct {
	key []byte
	id  uint64
}

// usageFault says what a vault has more than its record says.
type usageFault struct {
	vault        uint64
	count, bytes int64
}

func (c *checker) add(owner, path, format string, args ...any) {
	f := Finding{Problem: fmt.Sprintf(format, args...), Owners: []string{owner}}
	if path != "" {
		f.Paths = []string{path}
	}
	i, ok := c.byProblem[f.Problem]
	if !ok {
		c.byProblem[f.Problem] = len(c.report.Findings)
		c.report.Findings = append(c.report.Findings, f)
		return
	}
	old := &c.report.Findings[i]
	if old.Owners[len(old.Owners)-1] != owner {
		old.Owners = append(old.Owners, owner)
	} else if path != "" && len(old.Paths) < maxFindingPaths {
		old.Paths = append(old.Paths, path)
	}
}

func (c *checker) run(ctx context.Context) error {
	pinned, err := c.s.pinVaults(ctx, c.s.allVaults())
	live := map[string]vaultRecord{}
	for _, rec := range pinned {
		defer c.s.unpin(rec.Root)
		live[rec.Name] = rec
	}
	if err != nil {
		return err
	}
	if d, ok := kv.As[kv.Verifier](c.s.kv); ok {
		if err := d.Verify(ctx); err != nil {
			if KindOf(err) != Corrupt {
				return err
			}
			c.add("store", "", "database: %v", err)
		}
	}
	if err := c.audit(ctx); err != nil {
		return err
	}
	roots, err := c.roots(ctx, live)
	if err != nil {
		return err
	}
	seen := map[Root]bool{}
	for _, r := range roots {
		c.report.Roots++
		known := seen[r.root]
		seen[r.root] = true
		if known && r.kind != rootLive {
			continue
		}
		sound, err := c.tree(ctx, r)
		if err != nil {
			return err
		}
		switch {
		case !sound:
		case r.kind == rootOutput:
			if err := c.output(ctx, r); err != nil {
				return err
			}
		case r.kind == rootLive || c.opts.History:
			if err := c.structure(ctx, r, live[r.vault]); err != nil {
				return err
			}
		}
	}
	return c.index(ctx)
}

// roots lists what the vaults, checkpoints and timelines refer to. Records that
// cannot be read are findings.
func (c *checker) roots(ctx context.Context, live map[string]vaultRecord) ([]keptRoot, error) {
	var list []keptRoot
	add := func(r keptRoot) error {
		if !r.root.IsZero() {
			list = append(list, r)
		}
		return nil
	}
	bad := func(err error) error {
		c.add("store", "", "%v", err)
		return nil
	}
	names := map[uint64]string{}
	for _, rec := range live {
		names[rec.ID] = rec.Name
		list = append(list, keptRoot{root: rec.Root, kind: rootLive, vault: rec.Name})
		_ = add(keptRoot{root: rec.ForkedFrom, kind: rootForkPoint, vault: rec.Name}) // never fails
		_ = add(keptRoot{root: rec.Noted, kind: rootNoted, vault: rec.Name})          // likewise
		rec.Lineage.roots(func(r Root) { _ = add(keptRoot{root: r, kind: rootLineage, vault: rec.Name}) })
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].kind < list[j].kind || list[i].kind == list[j].kind && list[i].vault < list[j].vault
	})
	err := c.s.kv.View(ctx, func(tx kv.Reader) error {
		if err := eachStoredRoot(tx, func(keptRoot) error { return nil }, bad); err != nil {
			return err
		}
		for _, t := range rowTables() {
			if err := eachRowRoot(tx, t, names, nil, add, bad); err != nil {
				return err
			}
		}
		return tx.Scan(tableNotes, nil, nil, func(k, value []byte) error {
			var n Note
			if err := parseJSON(tableNotes, k, value, &n); err != nil {
				c.add("store", "", "the note %q is damaged", k)
			}
			return nil
		})
	})
	return list, err
}

// audit checks that the audit is whole.
func (c *checker) audit(ctx context.Context) error {
	chain := newChainCheck(nil)
	if err := chain.run(ctx, c.s.kv); err != nil {
		return err
	}
	for _, f := range chain.rep.Findings {
		c.add("store", "", "audit: %s", f.Problem)
	}
	c.faults.noAuditHead = chain.noHead
	return nil
}

// index checks that the digest index leads to chunks that are there and are what
// it says.
func (c *checker) index(ctx context.Context) error {
	var from []byte
	for more := true; more; {
		more = false
		type row struct {
			sum [32]byte
			id  uint64
		}
		var batch []row
		err := c.s.kv.View(ctx, func(tx kv.Reader) error {
			return tx.Scan(tableDigests, nil, from, func(k, value []byte) error {
				if len(batch) == sweepBatch {
					more = true
					from = append([]byte(nil), k...)
					return kv.Stop
				}
				id, _, ok := parseIndexRow(k, value)
				if !ok || len(k) != 32 {
					c.add("store", "", "digest index: the row of %x is damaged", k)
					c.faults.rows = append(c.faults.rows, indexFault{key: append([]byte(nil), k...)})
					return nil
				}
				batch = append(batch, row{[32]byte(k), id})
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, r := range batch {
			err, known := c.chunkState[r.id]
			if !known {
				err = c.s.chunks.verify(ctx, r.id, r.sum, c.opts.ReadData)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil && KindOf(err) != Corrupt {
				return err
			}
			if err == nil || known { // what is known was reported with its files
				continue
			}
			if still, lookErr := c.indexed(ctx, r.sum, r.id); lookErr != nil {
				return lookErr
			} else if still {
				c.add("store", "", "digest index: chunk %d: %v", r.id, err)
				c.faults.rows = append(c.faults.rows, indexFault{r.sum[:], r.id})
			}
		}
	}
	return nil
}

// indexed reports whether the index still leads from sum to id: a commit may have
// dropped both meanwhile.
func (c *checker) indexed(ctx context.Context, sum [32]byte, id uint64) (still bool, err error) {
	err = c.s.kv.View(ctx, func(tx kv.Reader) error {
		now, _, ok, err := lookup(tx, sum[:])
		still = ok && now == id
		return err
	})
	return still, err
}

// tree checks the nodes of a root that were not checked before, and again those
// with damage below, so that each owner is named.
func (c *checker) tree(ctx context.Context, r keptRoot) (sound bool, err error) {
	a := &auditor{src: c.s.nodes}
	var damaged []tree.Damage
	enter := func(ref tree.Ref) (bool, error) {
		if c.nodes.add(ref.ID) {
			c.report.Nodes++
			return true, nil
		}
		return c.tainted[ref.ID], nil
	}
	err = tree.Audit(ctx, a, r.root.ref, enter, func(d tree.Damage) error {
		if KindOf(d.Err) != Corrupt {
			return d.Err
		}
		c.tainted[d.Ref.ID] = true
		for _, f := range a.stack {
			c.tainted[f.id] = true
		}
		damaged = append(damaged, d)
		c.faults.nodes = append(c.faults.nodes, d.Ref)
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, d := range damaged {
		paths := c.pathsOf(ctx, r.root, d)
		c.add(r.owner(), "", "%v: %s", d.Err, rangeText(d))
		for _, p := range paths {
			c.add(r.owner(), p, "%v: %s", d.Err, rangeText(d))
		}
	}
	return len(damaged) == 0, nil
}

// auditor reads nodes past the cache and knows the way to the present one.
type auditor struct {
	src   *nodeStore
	stack []auditFrame
}

type auditFrame struct {
	id    uint64
	level int
}

// Node implements tree.Source.
func (a *auditor) Node(ctx context.Context, ref tree.Ref) (*tree.Node, error) {
	n, err := a.src.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	for len(a.stack) > 0 && a.stack[len(a.stack)-1].level <= n.Level() {
		a.stack = a.stack[:len(a.stack)-1]
	}
	a.stack = append(a.stack, auditFrame{ref.ID, n.Level()})
	return n, nil
}

// rangeText says which inodes a damaged node held.
func rangeText(d tree.Damage) string {
	text := func(k []byte, open string) string {
		ino, _, _, err := splitKey(append(append([]byte(nil), k...), make([]byte, keyHead)...))
		if k == nil || err != nil {
			return open
		}
		return fmt.Sprint(uint64(ino))
	}
	return "entries of inodes from " + text(d.Low, "the first") + " to " + text(d.High, "the last") + " are lost"
}

// pathsOf finds paths in the rest of the tree that lead into what a damaged node
// held.
func (c *checker) pathsOf(ctx context.Context, root Root, d tree.Damage) []string {
	var low, high [8]byte
	copy(low[:], d.Low)
	if copy(high[:], d.High); d.High == nil {
		high = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	from, to := Ino(kv.ParseID(low[:])), Ino(kv.ParseID(high[:]))
	finder := newPathFinder(view{src: c.s.nodes, root: root.ref})
	var paths []string
	spy := leafSpy{src: c.s.nodes, visit: func(n *tree.Node) {
		for i := range n.Len() {
			dir, kind, suffix, err := splitKey(n.Key(i))
			if err != nil || kind != kindDirent || len(paths) == maxFindingPaths {
				continue
			}
			if e, err := decodeDirent(n.Value(i)); err == nil && e.ino >= from && e.ino <= to {
				p, err := finder.join(ctx, name{dir, string(suffix)})
				if err != nil {
					p = "?/" + string(suffix) // the way to it is lost too
				}
				paths = append(paths, p)
			}
		}
	}}
	// What the audit reports was reported before.
	if err := tree.Audit(ctx, spy, root.ref, nil, func(tree.Damage) error { return nil }); err != nil {
		return nil
	}
	return paths
}

// leafSpy shows every leaf that is read.
type leafSpy struct {
	src   tree.Source
	visit func(*tree.Node)
}

// Node implements tree.Source.
func (s leafSpy) Node(ctx context.Context, ref tree.Ref) (*tree.Node, error) {
	n, err := s.src.Node(ctx, ref)
	if err == nil && n.IsLeaf() {
		s.visit(n)
	}
	return n, err
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
			c.add(r.owner(), c.pathOf(ctx, &find, ino), "inode %d: %v", ino, err)
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
			c.add(r.owner(), "", "inode %d has entries but no record", ino)
			continue
		}
		c.report.Inodes++
		count++
		bytes += in.n.alloc
		c.inode(ctx, r, &find, ino, in)
	}
	if r.kind == rootLive && (count-1 != rec.Count || bytes != rec.Bytes) {
		c.add(r.owner(), "", "usage says %d inodes and %d bytes where there are %d and %d", rec.Count, rec.Bytes, count-1, bytes)
		c.faults.usage = append(c.faults.usage, usageFault{rec.ID, count - 1 - rec.Count, bytes - rec.Bytes})
	}
	return nil
}

// output checks the chunks of what a command printed.
func (c *checker) output(ctx context.Context, r keptRoot) error {
	w := view{src: c.s.nodes, root: r.root.ref}
	return w.scan(ctx, nil, nil, func(k, value []byte) error {
		ino, kind, _, err := splitKey(k)
		var ref chunkRef
		if err == nil {
			ref, err = decodeChunkRef(value)
		}
		if err != nil || kind != kindChunk {
			c.add(r.owner(), "", "stream %d: %v", ino, fail(Corrupt, "check", "chunk entry"))
			return nil
		}
		if err := c.chunk(ctx, ref); err != nil {
			if KindOf(err) != Corrupt {
				return err
			}
			c.add(r.owner(), "", "chunk %d: %v", ref.id, err)
			c.faults.chunks[ref.id] = ref
		}
		return nil
	})
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
			if KindOf(err) != Corrupt {
				return err
			}
			c.add(r.owner(), c.pathOf(ctx, find, ino), "chunk %d: %v", ref.id, err)
			c.faults.chunks[ref.id] = ref
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
		err = c.s.chunks.proven(ctx, ref)
	} else {
		err = c.s.chunks.present(ctx, ref.id)
	}
	if err != nil && KindOf(err) != Corrupt {
		return err
	}
	c.chunkState[ref.id] = err
	return err
}

// inode checks one inode against what refers to it.
func (c *checker) inode(ctx context.Context, r keptRoot, find *pathFinder, ino Ino, in *seenInode) {
	bad := func(format string, args ...any) {
		c.add(r.owner(), c.pathOf(ctx, find, ino), "inode %d: %s", ino, fmt.Sprintf(format, args...))
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
