package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine/internal/tree"
)

// The keys of a tree are (inode u64 big-endian, kind byte, suffix). DESIGN.md
// describes them and the values.
const (
	kindInode  byte = 1
	kindDirent byte = 2
	kindXattr  byte = 3
	kindChunk  byte = 4
	kindLink   byte = 5
)

const keyHead = 9 // inode and kind

func key(ino Ino, kind byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 24), uint64(ino)), kind)
}

func inodeKey(ino Ino) []byte { return key(ino, kindInode) }

func direntKey(dir Ino, name string) []byte { return append(key(dir, kindDirent), name...) }

func xattrKey(ino Ino, name string) []byte { return append(key(ino, kindXattr), name...) }

func chunkKey(ino Ino, index int64) []byte {
	return binary.BigEndian.AppendUint64(key(ino, kindChunk), uint64(index))
}

func linkKey(ino, dir Ino, name string) []byte {
	return append(binary.BigEndian.AppendUint64(key(ino, kindLink), uint64(dir)), name...)
}

// splitKey takes a key apart. The suffix aliases k.
func splitKey(k []byte) (ino Ino, kind byte, suffix []byte, err error) {
	if len(k) < keyHead {
		return 0, 0, nil, fmt.Errorf("tree key of %d bytes: %w", len(k), errDecode)
	}
	return Ino(binary.BigEndian.Uint64(k)), k[8], k[keyHead:], nil
}

var errDecode = errors.New("malformed record")

// inode is the record of one inode.
type inode struct {
	mode, uid, gid, rdev       uint32
	nlink                      uint32
	size                       int64 // files: bytes; directories: number of entries; links: length of the target
	alloc                      int64 // bytes of allocated content, holes not counted
	atime, mtime, ctime, btime int64 // ns
	target                     string
	parent                     Ino    // while nlink is 1, and for directories
	name                       string // likewise
}

func (n *inode) isDir() bool     { return n.mode&TypeMask == TypeDir }
func (n *inode) isRegular() bool { return n.mode&TypeMask == TypeRegular }

func (n *inode) attr(ino Ino) Attr {
	a := Attr{
		Ino: ino, Mode: n.mode, UID: n.uid, GID: n.gid, Nlink: n.nlink, Rdev: n.rdev,
		Size: n.size, Blocks: (n.alloc + 4095) / 4096 * 8, Content: n.alloc,
		Atime: n.atime, Mtime: n.mtime, Ctime: n.ctime, Btime: n.btime,
	}
	if n.isDir() {
		a.Size = dirSize
		a.Blocks = dirSize / 512
	}
	return a
}

const dirSize = 4096 // what stat says of every directory

// Flags of an encoded inode record.
const (
	inodeHasAlloc  = 1 << 0 // alloc differs from size
	inodeHasRdev   = 1 << 1
	inodeHasTarget = 1 << 2
	inodeHasParent = 1 << 3
)

// flags says which fields a record has.
func (n *inode) flags() byte {
	var flags byte
	if n.alloc != n.size {
		flags |= inodeHasAlloc
	}
	if n.rdev != 0 {
		flags |= inodeHasRdev
	}
	if n.target != "" {
		flags |= inodeHasTarget
	}
	if n.parent != 0 {
		flags |= inodeHasParent
	}
	return flags
}

// encode writes a record: flags, then unsigned varints, times as zigzag varints,
// all but the modification time relative to it because they are mostly equal.
func (n *inode) encode() []byte {
	flags := n.flags()
	b := make([]byte, 0, 48+len(n.target)+len(n.name))
	b = append(b, flags)
	for _, u := range [...]uint64{uint64(n.mode), uint64(n.uid), uint64(n.gid), uint64(n.nlink), uint64(n.size)} {
		b = binary.AppendUvarint(b, u)
	}
	if flags&inodeHasAlloc != 0 {
		b = binary.AppendUvarint(b, uint64(n.alloc))
	}
	for _, t := range [...]int64{n.mtime, n.ctime - n.mtime, n.atime - n.mtime, n.btime - n.mtime} {
		b = binary.AppendVarint(b, t)
	}
	if flags&inodeHasRdev != 0 {
		b = binary.AppendUvarint(b, uint64(n.rdev))
	}
	if flags&inodeHasTarget != 0 {
		b = binary.AppendUvarint(b, uint64(len(n.target)))
		b = append(b, n.target...)
	}
	if flags&inodeHasParent != 0 {
		b = binary.AppendUvarint(b, uint64(n.parent))
		b = append(b, n.name...)
	}
	return b
}

// reader takes a record apart and remembers the first thing that did not fit.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint(limit uint64) uint64 {
	u, n := binary.Uvarint(r.b)
	if n <= 0 || u > limit {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return u
}

func (r *reader) varint() int64 {
	i, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return i
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) err(what string) error {
	if !r.bad {
		return nil
	}
	return &Error{Kind: Corrupt, Op: "decode", Path: what, Err: errDecode}
}

const maxU32, maxI64 = 1<<32 - 1, 1<<63 - 1

func decodeInode(b []byte) (*inode, error) {
	r := reader{b: b}
	n := &inode{}
	flags := r.byte()
	n.mode = uint32(r.uvarint(maxU32))
	n.uid = uint32(r.uvarint(maxU32))
	n.gid = uint32(r.uvarint(maxU32))
	n.nlink = uint32(r.uvarint(maxU32))
	n.size = int64(r.uvarint(maxI64))
	n.alloc = n.size
	if flags&inodeHasAlloc != 0 {
		n.alloc = int64(r.uvarint(maxI64))
	}
	n.mtime = r.varint()
	n.ctime = n.mtime + r.varint()
	n.atime = n.mtime + r.varint()
	n.btime = n.mtime + r.varint()
	if flags&inodeHasRdev != 0 {
		n.rdev = uint32(r.uvarint(maxU32))
	}
	if flags&inodeHasTarget != 0 {
		n.target = string(r.bytes(r.uvarint(MaxTarget)))
	}
	if flags&inodeHasParent != 0 {
		n.parent = Ino(r.uvarint(maxI64))
		n.name = string(r.bytes(uint64(len(r.b))))
	}
	if len(r.b) != 0 || flags != n.flags() {
		r.bad = true
	}
	return n, r.err("inode record")
}

// dirent is the value of a directory entry.
type dirent struct {
	ino Ino
	typ uint32
}

func (d dirent) encode() []byte {
	b := append(make([]byte, 0, 8), byte(d.typ>>12))
	return binary.AppendUvarint(b, uint64(d.ino))
}

func decodeDirent(b []byte) (dirent, error) {
	r := reader{b: b}
	d := dirent{typ: uint32(r.byte()) << 12}
	d.ino = Ino(r.uvarint(maxI64))
	if len(r.b) != 0 || d.typ&^TypeMask != 0 {
		r.bad = true
	}
	return d, r.err("directory entry")
}

// chunkRef is the value of a chunk entry: which stored chunk holds the bytes,
// what they are, and how many of them there are.
type chunkRef struct {
	id     uint64
	digest tree.Digest // the first 16 bytes of the content's SHA-256
	length int         // bytes, 1 to ChunkSize
}

func (c chunkRef) encode() []byte {
	b := append(make([]byte, 0, 28), c.digest[:]...)
	b = binary.AppendUvarint(b, uint64(c.length))
	return binary.AppendUvarint(b, c.id)
}

func decodeChunkRef(b []byte) (chunkRef, error) {
	var c chunkRef
	r := reader{b: b}
	copy(c.digest[:], r.bytes(uint64(len(c.digest))))
	c.length = int(r.uvarint(ChunkSize))
	c.id = r.uvarint(maxI64)
	if len(r.b) != 0 || c.length == 0 {
		r.bad = true
	}
	return c, r.err("chunk entry")
}
