package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
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
	kv    kv.Store
	cache *lru.Cache[uint64, []byte] // decoded content; slices are never modified
	next  *atomic.Uint64             // the last chunk id handed out
	enc   *zstd.Encoder
	dec   *zstd.Decoder
}

func newChunkStore(s kv.Store, cacheBytes int64, next *atomic.Uint64) (*chunkStore, error) {
	cache, err := lru.New[uint64, []byte](int(max(cacheBytes/ChunkSize, 16)))
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
	if data, ok := c.cache.Get(ref.id); ok {
		return data, nil
	}
	data, err := c.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	c.cache.Add(ref.id, data)
	return data, nil
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
	if err != nil && (errors.Is(err, errMissing) || errors.Is(err, errDecode)) {
		err = &Error{Kind: Corrupt, Op: "read chunk", Path: fmt.Sprint(ref.id), Err: err}
	}
	return data, err
}

func (c *chunkStore) decode(rec []byte, ref chunkRef) ([]byte, error) {
	if len(rec) == 0 {
		return nil, fmt.Errorf("empty chunk record: %w", errDecode)
	}
	var data []byte
	switch rec[0] {
	case chunkRaw:
		data = append(make([]byte, 0, len(rec)-1), rec[1:]...)
	case chunkZstd:
		var err error
		data, err = c.dec.DecodeAll(rec[1:], make([]byte, 0, ref.length))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDecode, err)
		}
	default:
		return nil, fmt.Errorf("unknown chunk encoding %d: %w", rec[0], errDecode)
	}
	if len(data) != ref.length {
		return nil, fmt.Errorf("chunk of %d bytes where %d belong: %w", len(data), ref.length, errDecode)
	}
	if sum := sha256.Sum256(data); tree.Digest(sum[:16]) != ref.digest {
		return nil, fmt.Errorf("checksum does not match: %w", errDecode)
	}
	return data, nil
}

// encode compresses data where that saves at least a sixteenth.
func (c *chunkStore) encode(data []byte) []byte {
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
	rec    []byte // encoded; nil while reused
}

// digest index row: id, then the shared flag.
func indexRow(id uint64, shared bool) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 9), id)
	if shared {
		return append(b, 1)
	}
	return append(b, 0)
}

func parseIndexRow(b []byte) (id uint64, shared bool, err error) {
	if len(b) != 9 || b[8] > 1 {
		return 0, false, &Error{Kind: Corrupt, Op: "decode", Path: "digest index", Err: errDecode}
	}
	return binary.BigEndian.Uint64(b), b[8] == 1, nil
}

// prepare hashes, looks up and compresses a group of pages and gives each an id.
// seen holds what earlier groups of the same commit stored.
func (c *chunkStore) prepare(ctx context.Context, group []*stored, seen map[[sha256.Size]byte]uint64) error {
	parallel(len(group), func(i int) { group[i].sum = sha256.Sum256(group[i].data) })
	err := c.kv.View(ctx, func(tx kv.Reader) error {
		for _, p := range group {
			p.ref = chunkRef{digest: tree.Digest(p.sum[:16]), length: len(p.data)}
			p.reused = false
			if id, ok := seen[p.sum]; ok {
				p.ref.id, p.reused = id, true
				continue
			}
			row, ok, err := tx.Get(tableDigests, p.sum[:])
			if err != nil {
				return err
			}
			if ok {
				if p.ref.id, _, err = parseIndexRow(row); err != nil {
					return err
				}
				p.reused = true
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
		if p := group[i]; !p.reused {
			p.rec = c.encode(p.data)
		}
	})
	return nil
}

// write puts a prepared group into the store. It may run more than once.
func (c *chunkStore) write(tx kv.Writer, group []*stored) error {
	for _, p := range group {
		row, ok, err := tx.Get(tableDigests, p.sum[:])
		if err != nil {
			return err
		}
		switch {
		case ok && p.reused:
			id, shared, err := parseIndexRow(row)
			if err != nil {
				return err
			}
			if id == p.ref.id && !shared {
				err = tx.Put(tableDigests, p.sum[:], indexRow(id, true))
			} else if id != p.ref.id {
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
			if err := tx.Put(tableDigests, p.sum[:], indexRow(p.ref.id, p.reused)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensure puts the chunk's record where it is not stored.
func (c *chunkStore) ensure(tx kv.Writer, p *stored) error {
	if p.reused {
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
	var sum []byte
	shared := false
	err := tx.Scan(tableDigests, ref.digest[:], nil, func(k, row []byte) error {
		id, s, err := parseIndexRow(row)
		if err != nil || id != ref.id {
			return err
		}
		sum, shared = append([]byte(nil), k...), s
		return kv.Stop
	})
	if err != nil || shared || sum == nil {
		return err // without an index row it may have been stored twice: GC knows
	}
	if err := tx.Delete(tableDigests, sum); err != nil {
		return err
	}
	return tx.Delete(tableChunks, kv.ID(ref.id))
}
