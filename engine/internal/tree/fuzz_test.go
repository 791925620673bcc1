package tree

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
)

// FuzzDecode feeds garbage, as it is and sealed so that only its structure is
// wrong. What decodes must encode to the same bytes.
func FuzzDecode(f *testing.F) {
	_, leaves := twoLeaves()
	_, branch := sampleBranch()
	for _, rec := range [][]byte{nil, leaves[0], leaves[1], branch} {
		f.Add(rec)
	}
	f.Fuzz(func(t *testing.T, rec []byte) {
		if _, err := Decode(rec, Ref{ID: 3}); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		ref, sealed := reseal(rec)
		n, err := Decode(sealed, ref)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		e := newEncoder(n.Level(), n.Len(), len(rec))
		var children []item
		for i := range n.Len() {
			e.add(n.Key(i), n.Value(i))
			if !n.IsLeaf() {
				children = append(children, item{ref: n.Child(i)})
			}
		}
		if again, data := e.seal(ref.ID, children); again != ref || !bytes.Equal(data, sealed) {
			t.Fatalf("%x decodes to what encodes as %x", sealed, data)
		}
	})
}

// FuzzApply reads batches from bytes: two bytes of key and one that says what
// to do, where 0xff in front ends a batch.
func FuzzApply(f *testing.F) {
	f.Add([]byte("abcdefghi\xffabcdef\xff"))
	f.Add(bytes.Repeat([]byte{1, 2, 3, 0xff, 5, 6, 200, 0xff}, 40))
	f.Add([]byte(strings.Repeat("0123456789\xf0\xf1\xf2", 60)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newMemStore()
		s.shape = shape{node: 320, min: 320 / 3}
		now := snapshot{model: map[string]string{}}
		for len(data) > 0 {
			var batch map[string]Change
			batch, data = fuzzBatch(data)
			next := snapshot{model: maps.Clone(now.model)}
			for k, c := range batch {
				if c.Delete {
					delete(next.model, k)
				} else {
					next.model[k] = string(c.Value)
				}
			}
			next.root = s.apply(t, now.root, sorted(batch)...)
			s.check(t, next.root)
			if !maps.Equal(s.dump(t, next.root), next.model) {
				t.Fatal("the tree differs from the model")
			}
			compareDead(t, s, now.root, next.root)
			compareDiff(t, s, now, next)
			s.drop()
			now = next
		}
	})
}

func fuzzBatch(data []byte) (map[string]Change, []byte) {
	batch := map[string]Change{}
	for len(data) >= 3 && data[0] != 0xff {
		key := string(data[:2])
		if data[1]%4 == 0 {
			key += strings.Repeat("s", int(data[1])/8)
		}
		size := []int{0, 1, 5, 20, 40, 90, 120, 9000}[data[2]>>2&7]
		c := put(key, strings.Repeat("v", size+int(data[2]&3)))
		c.Delete = data[2] >= 160
		batch[key] = c
		data = data[3:]
	}
	if len(data) < 3 {
		return batch, nil
	}
	return batch, data[1:]
}
