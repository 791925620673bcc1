package engine

import (
	"context"
	"sync/atomic"
)

// Snapshot reads one immutable state. It may be used by any number of goroutines
// for as long as something keeps its root: a checkpoint, a timeline entry, or the
// vault it was taken from, until Unpin.
type Snapshot struct {
	s *Store
	w view
}

// Snapshot gives the state that root names.
func (s *Store) Snapshot(root Root) *Snapshot {
	return &Snapshot{s: s, w: view{src: s.nodes, root: root.ref}}
}

// Snapshot commits what is pending and gives the state as it is now. It stays
// whole while the store is open.
func (v *Vault) Snapshot(ctx context.Context) (*Snapshot, error) {
	root, err := v.Pin(ctx)
	if err != nil {
		return nil, err
	}
	return v.s.Snapshot(root), nil
}

// Pin commits what is pending and keeps the present root, with everything that it
// refers to, until Unpin or until the store is closed, also when the vault is
// deleted.
func (v *Vault) Pin(ctx context.Context) (Root, error) {
	rec, err := v.pinRecord(ctx)
	return rec.Root, wrap(err, "commit", v.Name())
}

// pinRecord is Pin with everything that goes with the root.
func (v *Vault) pinRecord(ctx context.Context) (vaultRecord, error) {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.commitLocked(ctx, commitRequest{pin: true}); err != nil {
		return vaultRecord{}, err
	}
	v.s.pin(v.rec.Root)
	return v.rec, nil
}

// pinSaved is pinRecord without what is pending: it pins the root of the newest
// commit.
func (v *Vault) pinSaved() (vaultRecord, error) {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return vaultRecord{}, err
	}
	rec := v.pinned()
	v.setRecord(rec)
	v.s.pin(rec.Root)
	return rec, nil
}

// Unpin takes one Pin of root back.
func (v *Vault) Unpin(root Root) { v.s.unpin(root) }

// Hold keeps root, with everything that it refers to, until release is called or the
// store is closed. It does not ask whether it is there still: the caller makes sure,
// after the call, that what it got root from is.
func (s *Store) Hold(root Root) (release func()) {
	s.pin(root)
	return func() { s.unpin(root) }
}

// Root is the state's root.
func (p *Snapshot) Root() Root { return Root{p.w.root} }

// Lookup finds name in directory dir.
func (p *Snapshot) Lookup(ctx context.Context, dir Ino, name string) (Attr, error) {
	ino, n, err := p.w.lookup(ctx, dir, name)
	if err != nil {
		return Attr{}, wrap(err, "lookup", name)
	}
	return n.attr(ino), nil
}

// Stat describes an inode.
func (p *Snapshot) Stat(ctx context.Context, ino Ino) (Attr, error) {
	n, err := p.w.inode(ctx, ino)
	if err != nil {
		return Attr{}, wrap(err, "stat", "")
	}
	return n.attr(ino), nil
}

// ReadDir calls fn for the entries of dir that come after the name after, in name
// order. kv.Stop from fn ends it early.
func (p *Snapshot) ReadDir(ctx context.Context, dir Ino, after string, fn func(DirEntry) error) error {
	return wrap(p.w.readDir(ctx, dir, after, fn), "read directory", "")
}

// Readlink returns the target of a symbolic link.
func (p *Snapshot) Readlink(ctx context.Context, ino Ino) (string, error) {
	t, err := p.w.readlink(ctx, ino)
	return t, wrap(err, "read link", "")
}

// GetXattr returns an extended attribute; NoAttribute where there is none.
func (p *Snapshot) GetXattr(ctx context.Context, ino Ino, name string) ([]byte, error) {
	b, err := p.w.xattr(ctx, ino, name)
	return append([]byte{}, b...), wrap(err, "get attribute", name)
}

// ListXattr lists the names of the extended attributes in byte order.
func (p *Snapshot) ListXattr(ctx context.Context, ino Ino) ([]string, error) {
	names, err := p.w.xattrs(ctx, ino)
	return names, wrap(err, "list attributes", "")
}

// Open opens the regular file ino for reading.
func (p *Snapshot) Open(ctx context.Context, ino Ino) (*SnapshotFile, error) {
	n, err := p.w.inode(ctx, ino)
	switch {
	case err != nil:
		return nil, wrap(err, "open", "")
	case n.isDir():
		return nil, fail(IsDirectory, "open", "")
	case !n.isRegular():
		return nil, fail(Unsupported, "open", "")
	}
	return &SnapshotFile{p: p, ino: ino, size: n.size}, nil
}

// SnapshotFile reads a file of a snapshot.
type SnapshotFile struct {
	p      *Snapshot
	ino    Ino
	size   int64
	closed atomic.Bool
}

// ReadAt reads up to len(p) bytes at off; fewer only at the end of the file.
func (f *SnapshotFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	switch {
	case f.closed.Load():
		return 0, fail(BadHandle, "read", "")
	case off < 0:
		return 0, fail(Invalid, "read", "")
	case off >= f.size:
		return 0, nil
	}
	p = p[:min(int64(len(p)), f.size-off)]
	var rest []fetch
	err := pieces(p, off, func(index int64, in int, part []byte) (err error) {
		rest, err = f.p.s.planChunk(ctx, f.p.w, f.ino, index, in, part, rest)
		return err
	})
	if err == nil {
		err = f.p.s.fetch(ctx, rest, len(p))
	}
	if err != nil {
		return 0, wrap(err, "read", "")
	}
	return len(p), nil
}

// Close releases the handle.
func (f *SnapshotFile) Close() error {
	if f.closed.Swap(true) {
		return fail(BadHandle, "close", "")
	}
	return nil
}

// pinVaults pins the newest root of each of the vaults, with what is pending where
// the disk has room for it, and returns their records. Those that are deleted
// meanwhile are left out. After an error the caller unpins what was pinned.
func (s *Store) pinVaults(ctx context.Context, vaults []*Vault) (list []vaultRecord, err error) {
	for _, v := range vaults {
		rec, err := v.pinRecord(ctx)
		if KindOf(err) == NoSpace {
			rec, err = v.pinSaved()
		}
		if KindOf(err) == Closed && ctx.Err() == nil && !s.isClosed() {
			continue
		}
		if err != nil {
			return list, err
		}
		list = append(list, rec)
	}
	return list, nil
}
