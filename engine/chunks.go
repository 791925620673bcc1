package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

var errMissing = errors.New("record is missing")

// A stored chunk is a byte that says how its content is encoded, a checksum, and the
// encoded content. The checksum is a CRC-32C over the first 16 bytes of the content's
// digest, the encoding and the encoded content: a read finds damage, and a record in
// the place of another, by looking at the encoded bytes once. The digest itself takes
// longer to compute than all the rest of a read; Check does, when it reads content.
const (
	chunkRaw  = 2
	chunkS2   = 3 // github.com/klauspost/compress/s2, block format
	chunkHead = 5 // bytes before the encoded content
)

// chunkStore holds file content by digest. A chunk id never changes its content.
//
// The index row of a digest holds the chunk's id and whether it is shared: found
// a second time by its digest. A chunk that is not shared, and is younger than
// the newest pin of the one tree that refers to it, is deleted as soon as that
// tree drops it; every other one waits for GC.
type chunkStore struct {
	kv     kv.Store
	cache  *cache[content]
	next   *atomic.Uint64 // the last chunk id handed out
	packed sync.Pool      // of *[]byte to compress into
	claims claims
}

// content is that of a chunk, with its digest. data is never modified.
type content struct {
	digest tree.Digest
	data   []byte
}

func newChunkStore(s kv.Store, cacheBytes int64, next *atomic.Uint64) (*chunkStore, error) {
	cache, err := newCache[content](cacheBytes)
	if err != nil {
		return nil, err
	}
	return &chunkStore{kv: s, cache: cache, next: next, packed: sync.Pool{New: func() any { return new([]byte) }}}, nil
}

// get returns the content of a chunk, verified by its checksum. The slice is shared:
// callers do not modify it.
func (c *chunkStore) get(ctx context.Context, ref chunkRef) ([]byte, error) {
	if data := c.known(ref); data != nil {
		return data, nil
	}
	data, err := c.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	c.keep(ref, data)
	return data, nil
}

// known is the content of a chunk that is in memory, nil if it is not.
func (c *chunkStore) known(ref chunkRef) []byte {
	if known, ok := c.cache.get(ref.id); ok && known.digest == ref.digest && len(known.data) == ref.length {
		return known.data
	}
	return nil
}

// keep puts the content of a chunk, which must not change any more, in the cache.
func (c *chunkStore) keep(ref chunkRef, data []byte) {
	c.cache.put(ref.id, content{ref.digest, data}, cap(data))
}

// load reads a chunk past the cache and verifies it by its checksum.
func (c *chunkStore) load(ctx context.Context, ref chunkRef) (data []byte, err error) {
	err = c.record(ctx, ref.id, func(rec []byte) error {
		data, err = c.decode(rec, ref, nil)
		return err
	})
	return data, err
}

// loadInto is load into p, which is as long as the chunk.
func (c *chunkStore) loadInto(ctx context.Context, ref chunkRef, p []byte) error {
	return c.record(ctx, ref.id, func(rec []byte) error {
		data, err := c.decode(rec, ref, p)
		if err == nil && &data[0] != &p[0] {
			copy(p, data)
		}
		return err
	})
}

// record shows fn the record of a chunk. What is wrong with the record is damage of
// the store.
func (c *chunkStore) record(ctx context.Context, id uint64, fn func(rec []byte) error) error {
	return c.kv.View(ctx, func(tx kv.Reader) error { return recordIn(tx, id, fn) })
}

// recordIn is record in a transaction of the caller.
func recordIn(tx kv.Reader, id uint64, fn func(rec []byte) error) error {
	rec, ok, err := tx.Get(tableChunks, kv.ID(id))
	switch {
	case err != nil:
	case !ok:
		err = errMissing
	default:
		err = fn(rec)
	}
	return asDamage(err, id)
}

// present reports whether a chunk is stored, without a look at its content.
func (c *chunkStore) present(ctx context.Context, id uint64) error {
	return c.record(ctx, id, func([]byte) error { return nil })
}

// proven reports whether the content of a chunk has its digest.
func (c *chunkStore) proven(ctx context.Context, ref chunkRef) error {
	return c.record(ctx, ref.id, func(rec []byte) error { return c.prove(rec, ref) })
}

// prove verifies the record of a chunk by its checksum and its digest.
func (c *chunkStore) prove(rec []byte, ref chunkRef) error {
	data, err := c.decode(rec, ref, nil)
	if err == nil {
		err = ref.describes(data)
	}
	return err
}

// verify reports whether a chunk is stored and, with content, whether it has the
// digest sum.
func (c *chunkStore) verify(ctx context.Context, id uint64, sum [sha256.Size]byte, content bool) error {
	if !content {
		return c.present(ctx, id)
	}
	return c.record(ctx, id, func(rec []byte) error {
		data, err := c.unpack(rec, nil)
		if err == nil && sha256.Sum256(data) != sum {
			err = errChecksum
		}
		return err
	})
}

// asDamage marks what is wrong with a chunk itself as corruption.
func asDamage(err error, id uint64) error {
	if errors.Is(err, errMissing) || errors.Is(err, errDecode) {
		return &Error{Kind: Corrupt, Op: "read chunk", Path: fmt.Sprint(id), Err: err}
	}
	return err
}

// unpack returns the content of a record, whatever its checksum: in buf if it fits
// there, else in a slice of its own.
func (c *chunkStore) unpack(rec, buf []byte) ([]byte, error) {
	if len(rec) < chunkHead {
		return nil, fmt.Errorf("chunk record of %d bytes: %w", len(rec), errDecode)
	}
	return expand(rec[0], rec[chunkHead:], buf)
}

// expand undoes an encoding. No content is longer than a chunk.
func expand(encoding byte, packed, buf []byte) ([]byte, error) {
	n, err := len(packed), error(nil)
	if encoding == chunkS2 {
		n, err = s2.DecodedLen(packed)
	}
	if err != nil || n > ChunkSize {
		return nil, fmt.Errorf("chunk of %d bytes: %w", n, errDecode)
	}
	if len(buf) < n {
		buf = make([]byte, n)
	}
	switch encoding {
	case chunkRaw:
		copy(buf, packed)
	case chunkS2:
		if _, err := s2.Decode(buf[:n], packed); err != nil {
			return nil, fmt.Errorf("%w: %w", errDecode, err)
		}
	default:
		return nil, fmt.Errorf("unknown chunk encoding %d: %w", encoding, errDecode)
	}
	return buf[:n], nil
}

var errChecksum = fmt.Errorf("checksum does not match: %w", errDecode)

// decode is unpack for a chunk that ref describes, verified by its checksum.
func (c *chunkStore) decode(rec []byte, ref chunkRef, buf []byte) ([]byte, error) {
	if len(rec) >= chunkHead && binary.BigEndian.Uint32(rec[1:]) != chunkCRC(ref.digest, rec) {
		return nil, errChecksum
	}
	data, err := c.unpack(rec, buf)
	if err == nil && len(data) != ref.length {
		err = fmt.Errorf("chunk of %d bytes where %d belong: %w", len(data), ref.length, errDecode)
	}
	return data, err
}

// chunkCRC is the checksum of a whole record.
func chunkCRC(digest tree.Digest, rec []byte) uint32 {
	crc := crc32.Update(crc32.Checksum(digest[:], castagnoli), castagnoli, rec[:1])
	return crc32.Update(crc, castagnoli, rec[chunkHead:])
}

// describes returns an error unless data has the digest and the length of a chunk.
func (ref chunkRef) describes(data []byte) error {
	if sum := sha256.Sum256(data); len(data) != ref.length || tree.Digest(sum[:16]) != ref.digest {
		return errChecksum
	}
	return nil
}

// encode makes the record of a chunk, compressed where that saves at least a
// sixteenth.
func (c *chunkStore) encode(digest tree.Digest, data []byte) []byte {
	buf := c.packed.Get().(*[]byte)
	defer c.packed.Put(buf)
	if n := s2.MaxEncodedLen(len(data)); len(*buf) < n {
		*buf = make([]byte, n)
	}
	encoding, packed := byte(chunkS2), s2.Encode(*buf, data)
	if len(packed) > len(data)-len(data)/16 {
		encoding, packed = chunkRaw, data
	}
	rec := make([]byte, chunkHead, chunkHead+len(packed))
	rec[0] = encoding
	rec = append(rec, packed...)
	binary.BigEndian.PutUint32(rec[1:], chunkCRC(digest, rec))
	return rec
}

// stored is one chunk on its way into the store.
type stored struct {
	data   []byte
	sum    [sha256.Size]byte
	ref    chunkRef
	reused bool   // ref names a chunk that was there before, or twice in this commit
	heal   bool   // the reused chunk is damaged: rec takes its place
	was    []byte // the record of a reused chunk, until it is compared
	rec    []byte // encoded; nil while reused and sound
}

// indexRow is the value of the digest index: the id, the shared flag, and a
// CRC-32C over them and the key.
func indexRow(sum []byte, id uint64, shared bool) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, indexRowLength), id)
	if shared {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return binary.BigEndian.AppendUint32(b, indexCRC(sum, b))
}

const indexRowLength = 13

func indexCRC(sum, row []byte) uint32 {
	return crc32.Update(crc32.Checksum(sum, castagnoli), castagnoli, row[:9])
}

// parseIndexRow reports not ok for a damaged row. The index only saves space: its
// readers go on as if the row were not there, and Check names it.
func parseIndexRow(sum, b []byte) (id uint64, shared, ok bool) {
	if len(b) != indexRowLength || b[8] > 1 || binary.BigEndian.Uint32(b[9:]) != indexCRC(sum, b) {
		return 0, false, false
	}
	return binary.BigEndian.Uint64(b), b[8] == 1, true
}

// lookup finds a chunk by its digest.
func lookup(tx kv.Reader, sum []byte) (id uint64, shared, ok bool, err error) {
	row, ok, err := tx.Get(tableDigests, sum)
	if err != nil || !ok {
		return 0, false, false, err
	}
	id, shared, ok = parseIndexRow(sum, row)
	return id, shared, ok, nil
}

// prepare hashes, looks up and compresses a group of pages and gives each an id.
// seen holds what earlier groups of the same commit stored. The caller holds sweep
// shared until what it found is in a tree.
func (c *chunkStore) prepare(ctx context.Context, group []*stored, seen map[[sha256.Size]byte]uint64) error {
	parallel(len(group), func(i int) { group[i].sum = sha256.Sum256(group[i].data) })
	err := c.kv.View(ctx, func(tx kv.Reader) error {
		for _, p := range group {
			p.ref = chunkRef{digest: tree.Digest(p.sum[:16]), length: len(p.data)}
			p.reused, p.heal, p.was = false, false, nil
			if id, ok := seen[p.sum]; ok {
				p.ref.id, p.reused = id, true
				continue
			}
			var err error
			if p.ref.id, _, p.reused, err = lookup(tx, p.sum[:]); err != nil {
				return err
			}
			if p.reused {
				c.claims.add(p.ref.id)
				rec, _, err := tx.Get(tableChunks, kv.ID(p.ref.id))
				if err != nil {
					return err
				}
				p.was = append([]byte{}, rec...)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range group {
		if id, ok := seen[p.sum]; ok && !p.reused {
			p.ref.id, p.reused = id, true
		}
		if !p.reused {
			p.ref.id = c.next.Add(1)
		}
		seen[p.sum] = p.ref.id
	}
	parallel(len(group), func(i int) {
		p := group[i]
		if p.was != nil {
			p.heal = !c.holds(p.was, p.ref, p.data)
			p.was = nil
		}
		if !p.reused || p.heal {
			p.rec = c.encode(p.ref.digest, p.data)
		}
	})
	return nil
}

// holds reports whether the record of a chunk has the content data. What is stored
// already is not trusted until it is read: new content heals a chunk that is damaged.
func (c *chunkStore) holds(rec []byte, ref chunkRef, data []byte) bool {
	have, err := c.decode(rec, ref, nil)
	return err == nil && bytes.Equal(have, data)
}

// write puts a prepared group into the store. It may run more than once.
func (c *chunkStore) write(tx kv.Writer, group []*stored) error {
	for _, p := range group {
		id, shared, ok, err := lookup(tx, p.sum[:])
		if err != nil {
			return err
		}
		switch {
		case ok && p.reused:
			if id == p.ref.id && !shared {
				err = tx.Put(tableDigests, p.sum[:], indexRow(p.sum[:], id, true))
			}
			if err == nil && (id != p.ref.id || p.heal) {
				err = c.ensure(tx, p)
			}
			if err != nil {
				return err
			}
		case ok: // another vault stored the same content meanwhile: keep both
			if err := tx.Put(tableChunks, kv.ID(p.ref.id), p.rec); err != nil {
				return err
			}
		default: // new, or dropped since it was looked up
			if err := c.ensure(tx, p); err != nil {
				return err
			}
			if err := tx.Put(tableDigests, p.sum[:], indexRow(p.sum[:], p.ref.id, p.reused)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensure puts the chunk's record where it is not stored, or damaged.
func (c *chunkStore) ensure(tx kv.Writer, p *stored) error {
	if p.reused && !p.heal {
		if _, ok, err := tx.Get(tableChunks, kv.ID(p.ref.id)); err != nil || ok {
			return err
		}
	}
	rec := p.rec
	if rec == nil {
		rec = c.encode(p.ref.digest, p.data)
	}
	return tx.Put(tableChunks, kv.ID(p.ref.id), rec)
}

// drop deletes a chunk that no tree refers to any more, unless it is shared.
func (c *chunkStore) drop(tx kv.Writer, ref chunkRef) error {
	sum, shared, err := rowOf(tx, ref)
	if err != nil || shared || sum == nil {
		return err // without an index row it may have been stored twice: GC knows
	}
	if err := tx.Delete(tableDigests, sum); err != nil {
		return err
	}
	return tx.Delete(tableChunks, kv.ID(ref.id))
}

// share marks a chunk as one that may have several references. Without an index row
// that leads to it nothing deletes it but GC, and it needs no mark.
func (c *chunkStore) share(tx kv.Writer, ref chunkRef) error {
	sum, shared, err := rowOf(tx, ref)
	if err != nil || shared || sum == nil {
		return err
	}
	return tx.Put(tableDigests, sum, indexRow(sum, ref.id, true))
}

// rowOf finds the index row that leads to a chunk; sum is nil where none does.
func rowOf(tx kv.Reader, ref chunkRef) (sum []byte, shared bool, err error) {
	err = tx.Scan(tableDigests, ref.digest[:], nil, func(k, row []byte) error {
		id, s, ok := parseIndexRow(k, row)
		if !ok || id != ref.id {
			return nil
		}
		sum, shared = append([]byte(nil), k...), s
		return kv.Stop
	})
	return sum, shared, err
}
