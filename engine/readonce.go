package engine

import (
	"context"

	"github.com/agentvfs/avfs/engine/kv"
)

// Once is a part of a regular file that ReadOnce reads.
type Once struct {
	Ino  Ino
	Off  int64  // from which byte of the file on
	Buf  []byte // takes what is read
	N    int    // how much that was: less than Buf has room for only at the end of the file
	Err  error  // why nothing was read; NotFound where the file is gone
	plan []fetch
}

// ReadOnce reads parts of several files, which costs less than a handle for each. It is
// for who looks at many files once: what it reads from the store is not kept in memory.
// All that is read is held by one transaction, so it should be small.
func (v *Vault) ReadOnce(ctx context.Context, list []Once) {
	for i := range list {
		r := &list[i]
		r.N, r.plan = 0, nil
		r.Err = v.read("read", "", func() (err error) {
			if r.Off < 0 {
				return fail(Invalid, "", "")
			}
			r.N, r.plan, err = v.planRead(ctx, v.known(r.Ino), r.Buf, r.Off)
			return err
		})
	}
	v.s.fetchOnce(ctx, list)
	for i := range list {
		r := &list[i]
		if KindOf(r.Err) != Corrupt {
			continue
		}
		// A commit may have deleted what was planned: as for a handle, it is read
		// again under the lock.
		r.Err = v.read("read", "", func() (err error) {
			r.N, err = v.readPart(ctx, v.known(r.Ino), r.Buf, r.Off)
			return err
		})
	}
}

// known is what is in memory about ino, which may be nothing. The caller holds mu for
// reading.
func (v *Vault) known(ino Ino) *file {
	if f := v.files[ino]; f != nil {
		return f
	}
	return &file{ino: ino}
}

// ReadOnce is that of a vault, in a state that does not change.
func (p *Snapshot) ReadOnce(ctx context.Context, list []Once) {
	for i := range list {
		r := &list[i]
		r.N, r.plan, r.Err = 0, nil, nil
		n, err := p.w.inode(ctx, r.Ino)
		switch {
		case err != nil:
			r.Err = wrap(err, "read", "")
		case !n.isRegular():
			r.Err = fail(Unsupported, "read", "")
		case r.Off < 0:
			r.Err = fail(Invalid, "read", "")
		case r.Off < n.size:
			r.N = int(min(int64(len(r.Buf)), n.size-r.Off))
			r.Err = wrap(pieces(r.Buf[:r.N], r.Off, func(index int64, in int, part []byte) (err error) {
				r.plan, err = p.s.planChunk(ctx, p.w, r.Ino, index, in, part, r.plan)
				return err
			}), "read", "")
		}
	}
	p.s.fetchOnce(ctx, list)
}

// fetchOnce reads what the plans of list say, in one transaction.
func (s *Store) fetchOnce(ctx context.Context, list []Once) {
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		for i := range list {
			r := &list[i]
			for _, f := range r.plan {
				if r.Err == nil {
					r.Err = wrap(s.chunks.readInto(tx, f), "read", "")
				}
			}
			r.plan = nil
		}
		return ctx.Err()
	})
	if err != nil {
		for i := range list {
			list[i].Err = wrap(err, "read", "")
		}
	}
}

// readInto reads a part of a chunk past the cache.
func (c *chunkStore) readInto(tx kv.Reader, f fetch) error {
	return recordIn(tx, f.ref.id, func(rec []byte) error {
		var buf []byte
		whole := f.in == 0 && len(f.part) >= f.ref.length
		if whole {
			buf = f.part[:f.ref.length]
		}
		data, err := c.decode(rec, f.ref, buf)
		switch {
		case err != nil:
			return err
		case whole && &data[0] == &buf[0]:
			clear(f.part[len(data):])
		default:
			copyTail(f.part, data, f.in)
		}
		return nil
	})
}
