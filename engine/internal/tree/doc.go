// Package tree is an immutable copy-on-write B+tree over numbered nodes. It is a
// pure data structure: a Source reads nodes, a Sink takes new ones.
//
// # Shape
//
// Keys have 1 to MaxKey bytes and compare bytewise; values have 0 to MaxValue
// bytes. Entries stand in leaves, all on level 0. A branch on level n has one or
// more children on level n-1 and, for every child but the first, a separator:
// the keys of child i are at or above separator i and below separator i+1. A
// separator is the shortest key that divides its neighbours at the time of the
// split.
//
// A record is at most NodeSize bytes long, unless an entry of more than MinNode
// bytes prevents a division, and at least MinNode bytes, unless it is the root or
// the last node of its level. The last may be small because appends fill nodes
// and leave the rest to it. A root that is a branch has at least two children.
//
// # Identity
//
// An id names one content for ever; nothing is overwritten in place. The digest
// of a node covers its keys and values, or its separators and the digests of its
// children, so that it vouches for everything below. It does not cover ids:
// Apply decides by keys and sizes only, and the same operations give the same
// digests in every store. Equal digests mean equal entries; the converse does not
// hold, since the shape depends on history.
//
// # Record, version 1
//
// Fixed-width integers are little-endian. Varints are unsigned LEB128 as in
// encoding/binary, in their shortest form.
//
//	offset    size  field
//	0         1     version: 1
//	1         1     level: 0 for a leaf
//	2         2     count: number of entries or children, at least 1
//	4         ...   count entries
//	          8*n   branch only: the ids of the n = count children, none zero
//	end-4     4     CRC-32C of the node's own id (8 bytes) followed by the
//	                record up to here
//
// An entry is
//
//	varint    shared: length of the longest prefix in common with the key
//	          before it in the record; 0 for the first
//	varint    length of the rest of the key
//	varint    length of the value
//	...       rest of the key
//	...       value
//
// In a leaf the value is the caller's. In a branch the key is the separator,
// empty for the first child, and the value is the 16-byte digest of the child.
// Keys strictly increase, so that the encoding of a node is unique.
//
// The digest of a node is the first 16 bytes of the SHA-256 of the record from
// offset 0 to the end of the entries, without ids and checksum. The checksum
// protects the ids as well, and notices a record that is found under the id of
// another.
package tree
