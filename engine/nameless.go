package engine

import (
	"context"

	"github.com/agentvfs/avfs/engine/kv"
)

// CreateNameless makes a regular file without a name and opens it, as O_TMPFILE
// does. Its group is that of a file made in dir. It counts against the quota, is in
// no listing, commit or diff, and is gone with its last handle, unless Link gives it
// a name before: then it is there whole from one moment on.
func (v *Vault) CreateNameless(ctx context.Context, dir Ino, perm uint32, o Owner, mode OpenMode) (h *File, a Attr, err error) {
	const op = "create"
	if err := v.room(ctx); err != nil {
		return nil, Attr{}, wrap(err, op, "")
	}
	err = v.change(ctx, op, "", func() error {
		d, err := v.view().dir(ctx, dir)
		if err != nil {
			return err
		}
		if err := v.admitFiles(1); err != nil {
			return err
		}
		n := &inode{mode: TypeRegular | perm&^TypeMask}
		v.settleOwner(n, d, o)
		ino := v.newIno()
		f := v.fileOf(ino)
		f.orphan, f.linkable = &overlay{}, true
		v.orphans++
		v.putInode(ino, n)
		h, a = v.handle(ino, mode), n.attr(ino)
		return nil
	})
	return h, a, err
}

// enter moves the file f, which never had a name, into the tree. The caller gives it
// one and puts the record n. What was stored of the content goes along; a commit
// that is storing more of it takes that for a file without a name, so those pages
// are stored again.
func (v *Vault) enter(f *file, n *inode) {
	apart := f.orphan
	f.orphan, f.linkable = nil, false
	v.buryPages(f)
	apart.Scan(func(k string, value []byte) bool {
		_, kind, suffix, err := splitKey([]byte(k))
		if err == nil && kind == kindChunk && f.dirty[int64(kv.ParseID(suffix))] != nil {
			v.hold(k, value, -1) // the page will be stored in its place
			return true
		}
		v.put(f.ino, []byte(k), value)
		v.letGo(k, value)
		return true
	})
	v.orphans--
	v.count++
	v.unlinked -= n.alloc
	v.bytes += n.alloc
}

// letGo is the reverse of hold for a chunk that a file with a name refers to now.
func (v *Vault) letGo(key string, value []byte) {
	if key[keyHead-1] != kindChunk {
		return
	}
	ref, err := decodeChunkRef(value)
	if err != nil {
		return // spill keeps no entry that cannot be decoded
	}
	if v.held[ref.id]--; v.held[ref.id] <= 0 {
		delete(v.held, ref.id)
	}
}
