package engine

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// The decoders must take any bytes without a panic, and what they take must come
// back the same.

func FuzzDecodeInode(f *testing.F) {
	for _, g := range goldenInodes {
		f.Add(g.n.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decodeInode(b)
		if err != nil {
			return
		}
		again, err := decodeInode(n.encode())
		if err != nil || *again != *n {
			t.Errorf("%+v became %+v, %v", n, again, err)
		}
	})
}

func FuzzDecodeEntries(f *testing.F) {
	f.Add(dirent{ino: 9, typ: TypeRegular}.encode())
	f.Add(chunkRef{id: 9, length: 10}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := decodeDirent(b); err == nil {
			if again, err := decodeDirent(d.encode()); err != nil || again != d {
				t.Errorf("%+v became %+v, %v", d, again, err)
			}
		}
		if c, err := decodeChunkRef(b); err == nil {
			if again, err := decodeChunkRef(c.encode()); err != nil || again != c {
				t.Errorf("%+v became %+v, %v", c, again, err)
			}
		}
		if _, _, suffix, err := splitKey(b); err == nil && !bytes.HasSuffix(b, suffix) {
			t.Errorf("the suffix of %x is %x", b, suffix)
		}
	})
}

func FuzzParseIndexRow(f *testing.F) {
	f.Add(make([]byte, 32), indexRow(make([]byte, 32), 3, true))
	f.Fuzz(func(t *testing.T, sum, row []byte) {
		id, shared, ok := parseIndexRow(sum, row)
		if ok && !bytes.Equal(indexRow(sum, id, shared), row) {
			t.Errorf("row %x is not what it says", row)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	b, err := sealJSON(tableVaults, kv.ID(1), vaultRecord{ID: 1, Name: "v"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kv.ID(1), b)
	f.Fuzz(func(t *testing.T, key, b []byte) {
		var rec vaultRecord
		if err := parseJSON(tableVaults, key, b, &rec); err != nil && KindOf(err) != Corrupt {
			t.Errorf("%v is %s", err, KindOf(err))
		}
		var root Root
		if err := root.UnmarshalJSON(b); err == nil {
			again, err := root.MarshalJSON()
			var back Root
			if err != nil || back.UnmarshalJSON(again) != nil || back != root {
				t.Errorf("root %s became %s", root, back)
			}
		}
	})
}

func FuzzUnpackChunk(f *testing.F) {
	c, err := newChunkStore(nil, 1<<20, new(atomic.Uint64))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.encode(tree.Digest{}, bytes.Repeat([]byte("ab"), 1000)))
	f.Add(c.encode(tree.Digest{}, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, rec []byte) {
		if data, err := c.unpack(rec, nil); err == nil && len(data) > ChunkSize {
			t.Errorf("%d bytes from a record of %d", len(data), len(rec))
		}
	})
}
