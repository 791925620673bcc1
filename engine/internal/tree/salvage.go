package tree

import "encoding/binary"

// Content returns the digest of what a record holds, of whose checksum and ids it
// takes no notice, and whether it may be a record at all.
func Content(data []byte) (Digest, bool) {
	content, _, ok := split(data)
	if !ok {
		return Digest{}, false
	}
	return digestOf(content), true
}

// Salvage reads a record with a wrong checksum, or one that is stored under another
// id, if it has the content that digest names. Nothing vouches for the ids of the
// children: the caller makes sure that each of them leads to its digest.
func Salvage(data []byte, digest Digest) (*Node, bool) {
	content, ids, ok := split(data)
	if !ok || digestOf(content) != digest {
		return nil, false
	}
	d := decoder{level: data[1], count: int(binary.LittleEndian.Uint16(data[2:])), entries: content[headerSize:]}
	total, reason := d.measure()
	if reason != "" {
		return nil, false
	}
	n := &Node{level: d.level, size: len(data)}
	n.buf, n.off = d.fill(total)
	if len(ids) > 0 && n.readIDs(ids) != "" {
		return nil, false
	}
	return n, true
}

// split takes a record apart.
func split(data []byte) (content, ids []byte, ok bool) {
	if len(data) < headerSize+crcSize || len(data) > MaxRecord || data[0] != version {
		return nil, nil, false
	}
	body := data[:len(data)-crcSize]
	if body[1] == 0 {
		return body, nil, true
	}
	size := int(binary.LittleEndian.Uint16(body[2:])) * idSize
	if size > len(body)-headerSize {
		return nil, nil, false
	}
	return body[:len(body)-size], body[len(body)-size:], true
}

// Record encodes n for storing it under id.
func (n *Node) Record(id uint64) []byte {
	e := newEncoder(n.Level(), n.Len(), n.size)
	for i := range n.Len() {
		e.add(n.Key(i), n.Value(i))
	}
	for _, child := range n.ids {
		e.rec = binary.LittleEndian.AppendUint64(e.rec, child)
	}
	return binary.LittleEndian.AppendUint32(e.rec, checksum(id, e.rec))
}
