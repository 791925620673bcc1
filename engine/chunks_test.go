package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/agentvfs/avfs/engine/internal/tree"
)

func testChunk(data []byte) (chunkRef, []byte, *chunkStore) {
	c, err := newChunkStore(nil, 1<<20, new(atomic.Uint64))
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(data)
	ref := chunkRef{id: 1, digest: tree.Digest(sum[:16]), length: len(data)}
	return ref, c.encode(ref.digest, data), c
}

func testContents() map[string][]byte {
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 3000)
	_, _ = random.Read(noise) // never fails
	full := make([]byte, ChunkSize)
	_, _ = random.Read(full)
	return map[string][]byte{
		"one byte": {7}, "text": bytes.Repeat([]byte("some text "), 300), "noise": noise, "whole chunk of noise": full,
		"whole chunk of zeros": make([]byte, ChunkSize),
	}
}

// TestChunkRecord changes each bit of a record, in a long one of some 500 of its bytes,
// cuts it off there, and puts it in the place of another. No read may take it.
func TestChunkRecord(t *testing.T) {
	for name, data := range testContents() {
		ref, rec, c := testChunk(data)
		if got, err := c.decode(rec, ref, nil); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s comes back as %d bytes, %v", name, len(got), err)
		}
		if len(rec) > len(data)+chunkHead {
			t.Errorf("%s takes %d bytes", name, len(rec))
		}
		other := ref
		other.digest[15]++
		if _, err := c.decode(rec, other, nil); err == nil {
			t.Errorf("the record of %s passes for another", name)
		}
		step := max(1, len(rec)/500)
		for i := 0; i < len(rec); i += step {
			for bit := range 8 {
				rec[i] ^= 1 << bit
				if _, err := c.decode(rec, ref, nil); err == nil {
					t.Errorf("%s: bit %d of byte %d does not matter", name, bit, i)
				}
				rec[i] ^= 1 << bit
			}
			if _, err := c.decode(rec[:i], ref, nil); err == nil {
				t.Errorf("%s: %d bytes are enough", name, i)
			}
		}
	}
}

// TestChunkDigest gives a record other content under the right checksum. Only the
// digest tells.
func TestChunkDigest(t *testing.T) {
	ref, _, c := testChunk([]byte("content"))
	rec := c.encode(ref.digest, []byte("another"))
	if _, err := c.decode(rec, ref, nil); err != nil {
		t.Errorf("the checksum does not match: %v", err)
	}
	if c.prove(rec, ref) == nil {
		t.Error("content with another digest is proven")
	}
}

func TestGoldenChunk(t *testing.T) {
	ref, rec, c := testChunk([]byte("content"))
	wantHex(t, "raw chunk", rec, "02"+"b7ca5f65"+"636f6e74656e74")
	if _, err := c.decode(rec, ref, nil); err != nil {
		t.Error(err)
	}
	text := bytes.Repeat([]byte("ab"), 50)
	ref, rec, c = testChunk(text)
	if rec[0] != chunkS2 {
		t.Errorf("100 bytes of repeated text have the encoding %d", rec[0])
	}
	// Another version of the library may compress in another way, but must read this.
	old, err := hex.DecodeString("03" + "74c80bd3" + "640461621102150052")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.decode(old, ref, nil); err != nil || !bytes.Equal(got, text) {
		t.Errorf("a compressed chunk comes back as %q, %v", got, err)
	}
}
