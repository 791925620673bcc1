package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

var errMissing = errors.New("record is missing")

// Encodings of a stored chunk, its first byte.
const (
	chunkRaw  = 0
	chunkZstd = 1
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
	enc    *zstd.Encoder
	dec    *zstd.Decoder
	claims claims
}

// content is that of a chunk, with the digest that it was verified against. data is
// never modified.
type content struct {
	digest tree.Digest
	data   []byte
}

func newChunkStore(s kv.Store, cacheBytes int64, next *atomic.Uint64) (*chunkStore, error) {
	cache, err := newCache[content](cacheBytes)
	if err != nil {
		return nil, err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(ChunkSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(4*ChunkSize), zstd.WithDecoderConcurrency(0))
	if err != nil {
		return nil, err
	}
	return &chunkStore{kv: s, cache: cache, next: next, enc: enc, dec: dec}, nil
}

func (c *chunkStore) close() {
	c.dec.Close()
}

// get returns the content of a chunk, verified against its digest. The slice is
// shared: callers do not modify it.
func (c *chunkStore) get(ctx context.Context, ref chunkRef) ([]byte, error) {
	if known, ok := c.cache.get(ref.id); ok && known.digest == ref.digest && len(known.data) == ref.length {
		return known.data, nil
	}
	data, err := c.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	c.keep(ref, data)
	return data, nil
}

// keep puts the content of a chunk, which must not change any more, in the cache.
func (c *chunkStore) keep(ref chunkRef, data []byte) {
	c.cache.put(ref.id, content{ref.digest, data}, cap(data))
}

// load reads and verifies a chunk past the cache.
func (c *chunkStore) load(ctx context.Context, ref chunkRef) (data []byte, err error) {
	err = c.kv.View(ctx, func(tx kv.Reader) error {
		rec, ok, err := tx.Get(tableChunks, kv.ID(ref.id))
		if err != nil {
			return err
		}
		if !ok {
			return errMissing
		}
		data, err = c.decode(rec, ref)
		return err
	})
	return data, asDamage(err, ref.id)
}

// present reports whether a chunk is stored, without a look at its content.
func (c *chunkStore) present(ctx context.Context, id uint64) error {
	err := c.kv.View(ctx, func(tx kv.Reader) error {
		_, ok, err := tx.Get(tableChunks, kv.ID(id))
		if err == nil && !ok {
			err = errMissing
		}
		return err
	})
	return asDamage(err, id)
}

// verify reports whether a chunk is stored and, with content, whether it has the
// digest sum.
func (c *chunkStore) verify(ctx context.Context, id uint64, sum [sha256.Size]byte, content bool) error {
	if !content {
		return c.present(ctx, id)
	}
	err := c.kv.View(ctx, func(tx kv.Reader) error {
		rec, ok, err := tx.Get(tableChunks, kv.ID(id))
		if err != nil {
			return err
		}
		if !ok {
			return errMissing
		}
		data, err := c.unpack(rec, 0)
		if err == nil && sha256.Sum256(data) != sum {
			err = fmt.Errorf("checksum does not match: %w", errDecode)
		}
		return err
	})
	return asDamage(err, id)
}

// asDamage marks what is wrong with a chunk itself as corruption.
func asDamage(err error, id uint64) error {
	if errors.Is(err, errMissing) || errors.Is(err, errDecode) {
		return &Error{Kind: Corrupt, Op: "read chunk", Path: fmt.Sprint(id), Err: err}
	}
	return err
}

// unpack returns the content of a record as a copy. length is what is expected, as
// a hint.
func (c *chunkStore) unpack(rec []byte, length int) ([]byte, error) {
	if len(rec) == 0 {
		return nil, fmt.Errorf("empty chunk record: %w", errDecode)
	}
	switch rec[0] {
	case chunkRaw:
		return append(make([]byte, 0, len(rec)-1), rec[1:]...), nil
	case chunkZstd:
		data, err := c.dec.DecodeAll(rec[1:], make([]byte, 0, length))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDecode, err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("unknown chunk encoding %d: %w", rec[0], errDecode)
}

// decode is unpack for a chunk that ref describes, verified.
func (c *chunkStore) decode(rec []byte, ref chunkRef) ([]byte, error) {
	data, err := c.unpack(rec, ref.length)
	if err != nil {
		return nil, err
	}
	if len(data) != ref.length {
		return nil, fmt.Errorf("chunk of %d bytes where %d belong: %w", len(data), ref.length, errDecode)
	}
	if sum := sha256.Sum256(data); tree.Digest(sum[:16]) != ref.digest {
		return nil, fmt.Errorf("checksum does not match: %w", errDecode)
	}
	return data, nil
}

// sampleBytes is how much of a large chunk shows whether it can be compressed.
const sampleBytes = 4 << 10

// encode compresses data where that saves at least a sixteenth. What does not
// become smaller in samples is left alone.
func (c *chunkStore) encode(data []byte) []byte {
	if len(data) > 8*sampleBytes {
		var buf [sampleBytes + 512]byte
		small := 0
		for _, at := range []int{0, len(data) / 2, len(data) - sampleBytes} {
			small += len(c.enc.EncodeAll(data[at:at+sampleBytes], buf[:0]))
		}
		if small > 3*sampleBytes-3*sampleBytes/32 {
			return append(append(make([]byte, 0, len(data)+1), chunkRaw), data...)
		}
	}
	rec := append(make([]byte, 0, len(data)/2+64), chunkZstd)
	rec = c.enc.EncodeAll(data, rec)
	if len(rec) <= len(data)-len(data)/16 {
		return rec
	}
	return append(append(make([]byte, 0, len(data)+1), chunkRaw), data...)
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
			p.heal = !c.holds(p.was, p.data)
			p.was = nil
		}
		if !p.reused || p.heal {
			p.rec = c.encode(p.data)
		}
	})
	return nil
}

// holds reports whether a record has the content data. What is stored already is
// not trusted until it is read: new content heals a chunk that is damaged.
func (c *chunkStore) holds(rec, data []byte) bool {
	if len(rec) > 0 && rec[0] == chunkRaw {
		return bytes.Equal(rec[1:], data)
	}
	have, err := c.unpack(rec, len(data))
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
		rec = c.encode(p.data)
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
