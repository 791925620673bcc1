package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/agentvfs/avfs/engine/kv"
)

// Records outside the tree are JSON objects that people may query. Their last
// member is a checksum over the table, the key and the object without it, so that
// a flipped byte, or a record under the key of another, is noticed.

// sumLength is the length of the member that sealJSON adds.
const sumLength = len(`,"sum":"00000000"}`)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func recordSum(t kv.Table, key, body []byte) uint32 {
	sum := crc32.Update(0, castagnoli, append([]byte(t.Name), 0))
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, body)
}

// sealJSON encodes value, a struct with at least one member, with its checksum.
func sealJSON(t kv.Table, key []byte, value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return sealBody(t, key, body), nil
}

// sealBody adds the checksum to a JSON object.
func sealBody(t kv.Table, key, body []byte) []byte {
	sum := recordSum(t, key, body)
	return fmt.Appendf(body[:len(body)-1], `,"sum":"%08x"}`, sum)
}

// parseJSON decodes what sealJSON wrote.
func parseJSON(t kv.Table, key, b []byte, into any) error {
	damaged := func(err error) error {
		return &Error{Kind: Corrupt, Op: "read", Path: fmt.Sprintf("%s record %x", t.Name, key), Err: err}
	}
	if len(b) < sumLength {
		return damaged(errDecode)
	}
	head, tail := b[:len(b)-sumLength], b[len(b)-sumLength:]
	body := append(append(make([]byte, 0, len(head)+1), head...), '}')
	if string(tail) != fmt.Sprintf(`,"sum":"%08x"}`, recordSum(t, key, body)) {
		return damaged(errors.New("checksum does not match"))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return damaged(err)
	}
	return nil
}

func putJSON(tx kv.Writer, t kv.Table, key []byte, value any) error {
	b, err := sealJSON(t, key, value)
	if err != nil {
		return err
	}
	return tx.Put(t, key, b)
}

func getJSON(tx kv.Reader, t kv.Table, key []byte, into any) (bool, error) {
	b, ok, err := tx.Get(t, key)
	if err != nil || !ok {
		return false, err
	}
	return true, parseJSON(t, key, b, into)
}
