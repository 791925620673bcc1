// Package search is full text search with ranking over the files of a store.
//
// # What it promises
//
// An index is a cache beside a store, in a kv.Store of its own. Nothing writes to it
// but Update, which whoever searches calls before; so writing to a vault costs nothing
// more where there is an index. It can be deleted at any moment and is part of no
// backup.
//
// The index is right for any state of any store, also after a restore, a migration or a
// copy of the store: it refers to content and to pieces of states by their digests
// alone. What it finds is looked up in the state that is searched, so a file that has
// changed, moved or gone is never told of as it was.
//
// Update asks the engine for the pieces of a state that it has not seen. It costs what
// differs from all states seen before, and nothing else; a content is read once, however
// many files, forks and checkpoints have it. It may be killed at any moment, or fail on a
// full disk: then the index is as before, or has some contents more. What a killed
// update left is removed by the next.
//
// Each row has a checksum. What is damaged is an error of the kind kv.ErrCorrupt, never
// a result; the caller deletes the index and makes a new one.
//
// # What is found
//
// The first MaxText bytes of each file are indexed. Binary files, which have a NUL byte
// early on, are not. A word is a run of letters, digits and underscores, in any script;
// upper and lower case are the same. A word also counts as its parts, which underscores
// and capitals divide: readHTTPBody and read_http_body are both found by either, by
// http, and by "http body". An ideograph is a word. Words of more than MaxTerm bytes are
// left out. Accents count.
//
// Of a query every clause must match: a word, a "phrase in quotes", or the beginning of
// a word with a star behind it. A clause with a minus before it must not match. Scores
// are BM25 over all contents that the index has, so they compare within one result only.
//
// # Rows
//
//	table     key                             value
//	meta      "state"                         segments and counters, JSON
//	contents  content id (16)                 number of the content, varint
//	numbers   number (8)                      content id (16)
//	places    number (8), inode (8)           empty: the inode has had the content
//	nodes     node id (16)                    empty: everything in the piece is indexed
//	docs      segment (8), part (4)           of each text its number (4) and length (1)
//	blocks    segment (8), term, 0, part (4)  terms up to that one with their postings
//
// A segment is immutable. Its texts have positions from 0; the postings of a term are
// the positions of the texts that have it, and how often. Segments are merged so that
// their number stays logarithmic. Every value but an empty one ends in the CRC-32C of key and
// value. Rows of segments that the state does not list are garbage.
package search
