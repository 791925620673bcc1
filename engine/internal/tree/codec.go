package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

const (
	version    = 1
	headerSize = 4 // version, level, count
	crcSize    = 4
	idSize     = 8
	digestSize = len(Digest{})

	// entryOverhead is the most that the three lengths of an entry take.
	entryOverhead = 3 * 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the id under which a record is stored and then the record,
// so that a record found under another id is damage too.
func checksum(id uint64, body []byte) uint32 {
	var b [idSize]byte
	binary.LittleEndian.PutUint64(b[:], id)
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, body)
}

func digestOf(content []byte) Digest {
	sum := sha256.Sum256(content)
	return Digest(sum[:digestSize])
}

// encoder builds the record of one node.
type encoder struct {
	rec  []byte
	prev []byte
}

func newEncoder(level, count, size int) *encoder {
	rec := make([]byte, headerSize, size)
	rec[0], rec[1] = version, byte(level)
	binary.LittleEndian.PutUint16(rec[2:], uint16(count))
	return &encoder{rec: rec}
}

// add appends an entry; in a branch the value is the digest of the child.
func (e *encoder) add(key, value []byte) {
	shared := commonPrefix(e.prev, key)
	e.rec = binary.AppendUvarint(e.rec, uint64(shared))
	e.rec = binary.AppendUvarint(e.rec, uint64(len(key)-shared))
	e.rec = binary.AppendUvarint(e.rec, uint64(len(value)))
	e.rec = append(e.rec, key[shared:]...)
	e.rec = append(e.rec, value...)
	e.prev = key
}

// seal ends the record with the ids of the children and the checksum.
func (e *encoder) seal(id uint64, children []item) (Ref, []byte) {
	ref := Ref{ID: id, Digest: digestOf(e.rec)}
	for i := range children {
		e.rec = binary.LittleEndian.AppendUint64(e.rec, children[i].ref.ID)
	}
	e.rec = binary.LittleEndian.AppendUint32(e.rec, checksum(id, e.rec))
	return ref, e.rec
}

// commonPrefix returns how many leading bytes a and b share.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:])
		if x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// uvarintLen returns how many bytes x takes as a varint.
func uvarintLen(x int) int {
	return (bits.Len64(uint64(x)|1) + 6) / 7
}

// Decode reads the record of the node that want names. It verifies the
// checksum, the structure and the digest; a failure is a *CorruptError. The node
// does not alias data.
func Decode(data []byte, want Ref) (*Node, error) {
	n, reason := decode(data, want)
	if reason != "" {
		return nil, &CorruptError{Ref: want, Reason: reason}
	}
	return n, nil
}

func decode(data []byte, want Ref) (*Node, string) {
	if len(data) < headerSize+crcSize || len(data) > MaxRecord {
		return nil, "record has an impossible length"
	}
	body := data[:len(data)-crcSize]
	if binary.LittleEndian.Uint32(data[len(body):]) != checksum(want.ID, body) {
		return nil, "wrong checksum"
	}
	if body[0] != version {
		return nil, "unknown version"
	}
	level, count := body[1], int(binary.LittleEndian.Uint16(body[2:]))
	content := body
	if level > 0 {
		if count*idSize > len(body)-headerSize {
			return nil, "too short for its children"
		}
		content = body[:len(body)-count*idSize]
	}
	if digestOf(content) != want.Digest {
		return nil, "wrong digest"
	}
	d := decoder{level: level, count: count, entries: content[headerSize:]}
	total, reason := d.measure()
	if reason != "" {
		return nil, reason
	}
	n := &Node{level: level, size: len(data)}
	n.buf, n.off = d.fill(total)
	if level > 0 {
		return n, n.readIDs(body[len(content):])
	}
	return n, ""
}

func (n *Node) readIDs(b []byte) string {
	n.ids = make([]uint64, len(b)/idSize)
	for i := range n.ids {
		n.ids[i] = binary.LittleEndian.Uint64(b[i*idSize:])
		if n.ids[i] == 0 {
			return "child without an id"
		}
	}
	return ""
}

// decoder reads the entries of a record in two passes: measure proves them
// sound, fill copies them without further checks.
type decoder struct {
	level   byte
	count   int
	entries []byte
}

// lengths splits the three lengths off the front of b.
func lengths(b []byte) (shared, suffix, value int, rest []byte, ok bool) {
	if shared, b, ok = takeUvarint(b); !ok {
		return
	}
	if suffix, b, ok = takeUvarint(b); !ok {
		return
	}
	value, rest, ok = takeUvarint(b)
	return
}

// takeUvarint splits a varint of at most three bytes in its shortest form off
// the front of b.
func takeUvarint(b []byte) (int, []byte, bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return int(b[0]), b[1:], true
	}
	x, n := binary.Uvarint(b)
	if n <= 0 || n > 3 || b[n-1] == 0 {
		return 0, nil, false
	}
	return int(x), b[n:], true
}

// measure checks every entry and returns the sum of key and value lengths.
func (d *decoder) measure() (total int, reason string) {
	if d.count == 0 {
		return 0, "no entries"
	}
	b, prevLen := d.entries, 0
	var key [MaxKey]byte
	for i := range d.count {
		shared, suffix, value, rest, ok := lengths(b)
		if !ok || suffix+value > len(rest) {
			return 0, "truncated entry"
		}
		if shared > prevLen || shared+suffix > MaxKey {
			return 0, "impossible key length"
		}
		if reason := d.checkValue(value); reason != "" {
			return 0, reason
		}
		if reason := d.checkKey(i, key[shared:prevLen], rest[:suffix]); reason != "" {
			return 0, reason
		}
		prevLen = shared + copy(key[shared:], rest[:suffix])
		total += prevLen + value
		b = rest[suffix+value:]
	}
	if len(b) != 0 {
		return 0, "bytes after the last entry"
	}
	return total, ""
}

func (d *decoder) checkValue(size int) string {
	if d.level > 0 && size != digestSize {
		return "child without a digest"
	}
	if size > MaxValue {
		return "value too long"
	}
	return ""
}

// checkKey proves that a key is above the one before it and that the shared
// prefix is as long as it can be. prev is what the previous key has after that
// prefix, so one byte decides both.
func (d *decoder) checkKey(i int, prev, suffix []byte) string {
	switch {
	case i == 0 && d.level > 0:
		if len(suffix) != 0 {
			return "first child with a separator"
		}
	case len(suffix) == 0:
		return "empty or repeated key"
	case len(prev) > 0 && suffix[0] <= prev[0]:
		return "keys out of order"
	}
	return ""
}

// fill copies entries that measure found sound.
func (d *decoder) fill(total int) ([]byte, []uint32) {
	buf := make([]byte, 0, total)
	off := make([]uint32, 1, 2*d.count+1)
	b, prev := d.entries, 0
	for range d.count {
		shared, suffix, value, rest, _ := lengths(b)
		start := len(buf)
		buf = append(buf, buf[prev:prev+shared]...)
		buf = append(buf, rest[:suffix]...)
		off = append(off, uint32(len(buf)))
		buf = append(buf, rest[suffix:suffix+value]...)
		off = append(off, uint32(len(buf)))
		b, prev = rest[suffix+value:], start
	}
	return buf, off
}

// separator returns the shortest key that is above low and not above high. It
// is a copy, so that a branch does not keep whole leaves alive.
func separator(low, high []byte) []byte {
	return bytes.Clone(high[:commonPrefix(low, high)+1])
}
