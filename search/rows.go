package search

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// The tables of an index; the package comment describes their rows.
func metaTable() kv.Table     { return kv.Table{Name: "meta"} }
func contentsTable() kv.Table { return kv.Table{Name: "contents"} }
func numbersTable() kv.Table  { return kv.Table{Name: "numbers", IDs: true} }
func placesTable() kv.Table   { return kv.Table{Name: "places"} }
func nodesTable() kv.Table    { return kv.Table{Name: "nodes"} }
func docsTable() kv.Table     { return kv.Table{Name: "docs"} }
func blocksTable() kv.Table   { return kv.Table{Name: "blocks"} }

// Tables lists what the database of an index has to have.
func Tables() []kv.Table {
	return []kv.Table{metaTable(), contentsTable(), numbersTable(), placesTable(), nodesTable(), docsTable(), blocksTable()}
}

// format is the version of the rows.
const format = 1

// state is the row that says what counts.
type state struct {
	Format      int       `json:"format"`
	NextNumber  uint32    `json:"next_number"`
	NextSegment uint64    `json:"next_segment"`
	Segments    []segment `json:"segments"`
	Rows        int64     `json:"rows"` // of contents, places and nodes
	Base        int64     `json:"base"` // Rows when the first update was done
}

// segment describes the postings of some texts.
type segment struct {
	ID    uint64 `json:"id"`
	Texts uint32 `json:"texts"`
	Words int64  `json:"words"` // in all texts
	Bytes int64  `json:"bytes"` // of its rows
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// row is one row that is to be put.
type row struct {
	table      kv.Table
	key, value []byte
}

// sealed makes a row whose value ends in a checksum.
func sealed(t kv.Table, key, value []byte) row {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return row{t, key, binary.BigEndian.AppendUint32(value, sum)}
}

// unseal checks a value and takes the checksum off.
func unseal(t kv.Table, key, value []byte) ([]byte, error) {
	if n := len(value) - 4; n >= 0 {
		body := value[:n]
		if crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body) == binary.BigEndian.Uint32(value[n:]) {
			return body, nil
		}
	}
	return nil, damaged(t, key)
}

func damaged(t kv.Table, key []byte) error {
	return fmt.Errorf("search index: row %x of %s: %w", key, t.Name, kv.ErrCorrupt)
}

func stateKey() []byte { return []byte("state") }

func stateRow(st state) (row, error) {
	b, err := json.Marshal(st)
	return sealed(metaTable(), stateKey(), b), err
}

// readState reads the state; ok is false in an index that is new.
func readState(tx kv.Reader) (st state, ok bool, err error) {
	raw, ok, err := tx.Get(metaTable(), stateKey())
	if err != nil || !ok {
		return st, false, err
	}
	b, err := unseal(metaTable(), stateKey(), raw)
	if err != nil {
		return st, false, err
	}
	if err := json.Unmarshal(b, &st); err != nil || st.Format != format {
		return st, false, damaged(metaTable(), stateKey())
	}
	return st, true, nil
}

func contentRow(id engine.ContentID, number uint32) row {
	return sealed(contentsTable(), id[:], binary.AppendUvarint(nil, uint64(number)))
}

func numberRow(number uint32, id engine.ContentID) row {
	return sealed(numbersTable(), kv.ID(uint64(number)), append([]byte{}, id[:]...))
}

func placeRow(number uint32, ino engine.Ino) row {
	key := binary.BigEndian.AppendUint64(kv.ID(uint64(number)), uint64(ino))
	return row{placesTable(), key, nil}
}

// findNumber looks up the number of a content; 0 if it has none.
func findNumber(tx kv.Reader, id engine.ContentID) (uint32, error) {
	raw, ok, err := tx.Get(contentsTable(), id[:])
	if err != nil || !ok {
		return 0, err
	}
	b, err := unseal(contentsTable(), id[:], raw)
	if err != nil {
		return 0, err
	}
	n, size := binary.Uvarint(b)
	if size != len(b) || n == 0 || n > 1<<32-1 {
		return 0, damaged(contentsTable(), id[:])
	}
	return uint32(n), nil
}

// findContent looks up what a number stands for.
func findContent(tx kv.Reader, number uint32) (id engine.ContentID, err error) {
	key := kv.ID(uint64(number))
	raw, ok, err := tx.Get(numbersTable(), key)
	if err != nil {
		return id, err
	}
	if !ok {
		return id, damaged(numbersTable(), key)
	}
	b, err := unseal(numbersTable(), key, raw)
	if err == nil && len(b) != len(id) {
		err = damaged(numbersTable(), key)
	}
	copy(id[:], b)
	return id, err
}

// findPlaces lists the inodes that have had a content.
func findPlaces(tx kv.Reader, number uint32) (inos []engine.Ino, err error) {
	prefix := kv.ID(uint64(number))
	err = tx.Scan(placesTable(), prefix, nil, func(key, _ []byte) error {
		if len(key) != 16 {
			return damaged(placesTable(), key)
		}
		inos = append(inos, engine.Ino(binary.BigEndian.Uint64(key[8:])))
		return nil
	})
	return inos, err
}

// docsPart is how many texts one row of docs describes.
const docsPart = 4096

const docBytes = 5

// doc is what a segment knows of a text.
type doc struct {
	number uint32
	length byte // of so many words, as lengthCode makes it
}

func partKey(seg uint64, part uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, seg), part)
}

// docRows describes the texts of a segment.
func docRows(seg uint64, docs []doc) (rows []row) {
	for part := uint32(0); len(docs) > 0; part++ {
		n := min(len(docs), docsPart)
		value := make([]byte, 0, n*docBytes+4)
		for _, d := range docs[:n] {
			value = append(binary.BigEndian.AppendUint32(value, d.number), d.length)
		}
		rows = append(rows, sealed(docsTable(), partKey(seg, part), value))
		docs = docs[n:]
	}
	return rows
}

// readDocs reads what docRows made.
func readDocs(tx kv.Reader, seg segment) ([]doc, error) {
	docs := make([]doc, 0, seg.Texts)
	prefix := binary.BigEndian.AppendUint64(nil, seg.ID)
	err := tx.Scan(docsTable(), prefix, nil, func(key, value []byte) error {
		b, err := unseal(docsTable(), key, value)
		if err != nil {
			return err
		}
		for ; len(b) >= docBytes; b = b[docBytes:] {
			docs = append(docs, doc{binary.BigEndian.Uint32(b), b[4]})
		}
		return nil
	})
	if err == nil && len(docs) != int(seg.Texts) {
		err = damaged(docsTable(), prefix)
	}
	return docs, err
}
