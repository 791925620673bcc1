package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine/kv"
)

// scanTests are the rules of order, scans and slices.
var scanTests = []storeTest{
	{"ByteOrder", "tree keys are compared bytewise; any other collation would hide files", (*storeSuite).testByteOrder},
	{"ScanAgainstModel", "prefix and lower bound meet in many ways, and each wrong one loses or invents keys", (*storeSuite).testScanModel},
	{"ScanStops", "a scan that cannot stop early reads a whole table for its first key", (*storeSuite).testScanStops},
	{"ScanIsStable", "gc scans for long while the store changes; its result must be one moment", (*storeSuite).testScanStable},
	{"ScanNested", "a scan's function looks other things up, in the same table too", (*storeSuite).testScanNested},
	{"ErrMutating", "changing a table under its scan differs on every database, so nobody may rely on it", (*storeSuite).testMutating},
	{"SlicesLastTheirTransaction", "the engine decodes in place; a slice that changes early is wrong data", (*storeSuite).testSlicesLast},
	{"PutCopiesItsSlices", "the engine encodes into one buffer again and again", (*storeSuite).testPutCopies},
}

func (s *storeSuite) testByteOrder(t *testing.T) {
	st := s.create(t)
	want := []string{
		"\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "A", "B", "a", "a\x00", "a\x00b", "a ", "aa",
		"b", "\x7f", "\x80", "\xc3\xa4", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff",
	}
	shuffled := slices.Clone(want)
	rand.New(rand.NewSource(1)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	for _, tb := range []kv.Table{tblBlob, tblNames} {
		update(t, st, func(w kv.Writer) error {
			for _, k := range shuffled {
				if err := w.Put(tb, []byte(k), nil); err != nil {
					return err
				}
			}
			return nil
		})
		view(t, st, func(r kv.Reader) error {
			keys, err := keysOf(r, tb, nil, nil)
			if !slices.Equal(keys, want) {
				t.Errorf("table %s: order %q, want %q", tb.Name, keys, want)
			}
			return err
		})
	}
}

func (s *storeSuite) testScanModel(t *testing.T) {
	st := s.create(t)
	rnd := rand.New(rand.NewSource(2))
	// A small alphabet with both extremes makes prefixes meet often.
	blobKey := func(maxLen int) []byte {
		k := make([]byte, rnd.Intn(maxLen+1))
		for i := range k {
			k[i] = []byte{0x00, 0x01, 'a', 0xfe, 0xff}[rnd.Intn(5)]
		}
		return k
	}
	model := map[string][]string{}
	update(t, st, func(w kv.Writer) error {
		for range 400 {
			k := append(blobKey(4), []byte{0x00, 'a', 0xff}[rnd.Intn(3)])
			id := kv.ID(uint64(rnd.Int63()>>(rnd.Intn(8)*8)) | 1)
			model[tblBlob.Name] = append(model[tblBlob.Name], string(k))
			model[tblIDs.Name] = append(model[tblIDs.Name], string(id))
			if err := errors.Join(w.Put(tblBlob, k, k), w.Put(tblIDs, id, id)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, tb := range []kv.Table{tblBlob, tblIDs} {
		keys := model[tb.Name]
		slices.Sort(keys)
		keys = slices.Compact(keys)
		view(t, st, func(r kv.Reader) error {
			for range 1500 {
				prefix, from := blobKey(3), blobKey(9)
				if rnd.Intn(2) == 0 { // bounds near keys that exist
					k := keys[rnd.Intn(len(keys))]
					prefix = []byte(k[:rnd.Intn(len(k)+1)])
				}
				if rnd.Intn(2) == 0 {
					from = append([]byte(keys[rnd.Intn(len(keys))]), blobKey(1)...)
				}
				got, err := keysOf(r, tb, prefix, from)
				if err != nil {
					return err
				}
				if want := modelScan(keys, prefix, from); !slices.Equal(got, want) {
					return fmt.Errorf("table %s, prefix %x, from %x: %x, want %x", tb.Name, prefix, from, got, want)
				}
			}
			return nil
		})
	}
}

// modelScan is what a scan over sorted keys must pass.
func modelScan(keys []string, prefix, from []byte) (out []string) {
	for _, k := range keys {
		if strings.HasPrefix(k, string(prefix)) && k >= string(from) {
			out = append(out, k)
		}
	}
	return out
}

func (s *storeSuite) testScanStops(t *testing.T) {
	st := s.create(t)
	fill(t, st, tblIDs, 100)
	view(t, st, func(r kv.Reader) error {
		n := 0
		err := r.Scan(tblIDs, nil, kv.ID(50), func(k, _ []byte) error {
			if n++; n == 3 {
				return kv.Stop
			}
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("stopped scan: %v after %d keys, want nil after 3", err, n)
		}
		err = r.Scan(tblIDs, nil, nil, func(_, _ []byte) error { return errOwn })
		if err != errOwn {
			t.Errorf("failed scan returned %#v, want the caller's error unchanged", err)
		}
		keys, err := keysOf(r, tblIDs, nil, kv.ID(98))
		if len(keys) != 3 {
			t.Errorf("a scan after a stopped one passed %d keys, want 3", len(keys))
		}
		return err
	})
}

// fill puts the ids 1 to n with a value that says the id.
func fill(t *testing.T, st kv.Store, tb kv.Table, n uint64) {
	t.Helper()
	update(t, st, func(w kv.Writer) error {
		for id := uint64(1); id <= n; id++ {
			if err := w.Put(tb, kv.ID(id), fmt.Appendf(nil, "value %d", id)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *storeSuite) testScanStable(t *testing.T) {
	st := s.create(t)
	const n = 2000
	fill(t, st, tblIDs, n)
	view(t, st, func(r kv.Reader) error {
		seen := uint64(0)
		err := r.Scan(tblIDs, nil, nil, func(k, v []byte) error {
			seen++
			if id := kv.ParseID(k); id != seen || string(v) != fmt.Sprintf("value %d", id) {
				return fmt.Errorf("key %d of the scan is %d = %q", seen, id, v)
			}
			if seen%200 != 1 {
				return nil
			}
			return st.Update(t.Context(), kv.Relaxed, func(w kv.Writer) error {
				return errors.Join(w.Delete(tblIDs, kv.ID(seen+1)), w.Put(tblIDs, kv.ID(seen+2), []byte("new")),
					w.Put(tblIDs, kv.ID(n+seen), nil))
			})
		})
		if seen != n {
			t.Errorf("the scan passed %d keys, want %d", seen, n)
		}
		return err
	})
}

func (s *storeSuite) testScanNested(t *testing.T) {
	st := s.create(t)
	fill(t, st, tblIDs, 10)
	check := func(r kv.Reader) error {
		var pairs int
		err := r.Scan(tblIDs, nil, nil, func(k, v []byte) error {
			outerKey, outerValue := string(k), string(v)
			err := r.Scan(tblIDs, nil, k, func(k2, _ []byte) error {
				pairs++
				_, _, err := r.Get(tblIDs, k2)
				return err
			})
			if string(k) != outerKey || string(v) != outerValue {
				return fmt.Errorf("an inner scan changed the outer one's slices to %x = %q", k, v)
			}
			return err
		})
		if pairs != 55 {
			t.Errorf("nested scans passed %d pairs, want 55", pairs)
		}
		return err
	}
	view(t, st, check)
	update(t, st, func(w kv.Writer) error { return check(w) })
}

func (s *storeSuite) testMutating(t *testing.T) {
	st := s.create(t)
	fill(t, st, tblIDs, 20)
	update(t, st, func(w kv.Writer) error {
		n := 0
		err := w.Scan(tblIDs, nil, nil, func(k, v []byte) error {
			n++
			wantErr(t, "Put under a scan", w.Put(tblIDs, k, v), kv.ErrMutating)
			wantErr(t, "Delete under a scan", w.Delete(tblIDs, k), kv.ErrMutating)
			// Another table is free, also with an inner scan in between.
			return errors.Join(w.Put(tblBlob, k, v), w.Scan(tblOther, nil, nil, func(_, _ []byte) error { return nil }))
		})
		if n != 20 {
			t.Errorf("the scan passed %d keys, want 20", n)
		}
		return errors.Join(err, w.Put(tblIDs, kv.ID(21), nil)) // allowed again
	})
	view(t, st, func(r kv.Reader) error {
		ids, err := keysOf(r, tblIDs, nil, nil)
		blobs, err2 := keysOf(r, tblBlob, nil, nil)
		if len(ids) != 21 || len(blobs) != 20 {
			t.Errorf("%d ids and %d copies, want 21 and 20", len(ids), len(blobs))
		}
		return errors.Join(err, err2)
	})
}

func (s *storeSuite) testSlicesLast(t *testing.T) {
	st := s.create(t)
	big := bytes.Repeat([]byte("b"), 200<<10)
	update(t, st, func(w kv.Writer) error {
		return errors.Join(w.Put(tblIDs, kv.ID(1), []byte("one")), w.Put(tblIDs, kv.ID(2), big),
			w.Put(tblBlob, []byte("k"), []byte("three")))
	})
	err := st.Update(context.Background(), kv.Relaxed, func(w kv.Writer) error {
		one, _, err1 := w.Get(tblIDs, kv.ID(1))
		two, _, err2 := w.Get(tblIDs, kv.ID(2))
		three, _, err3 := w.Get(tblBlob, []byte("k"))
		err := errors.Join(err1, err2, err3)
		for id := uint64(1); id < 300; id++ {
			err = errors.Join(err, w.Put(tblIDs, kv.ID(id), bytes.Repeat([]byte{byte(id)}, 3000)))
		}
		err = errors.Join(err, w.Delete(tblIDs, kv.ID(1)), w.Delete(tblIDs, kv.ID(2)), w.Delete(tblBlob, []byte("k")))
		_, scanErr := keysOf(w, tblIDs, nil, nil)
		if string(one) != "one" || !bytes.Equal(two, big) || string(three) != "three" {
			t.Errorf("results of Get changed under later calls: %.10q, %.10q, %.10q", one, two, three)
		}
		return errors.Join(err, scanErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	update(t, st, func(w kv.Writer) error {
		return w.Scan(tblIDs, nil, kv.ID(100), func(k, v []byte) error {
			key, value := string(k), string(v)
			err := w.Put(tblBlob, k, v)
			_, _, getErr := w.Get(tblIDs, kv.ID(200))
			if string(k) != key || string(v) != value {
				t.Errorf("slices of a scan changed during its function")
			}
			return errors.Join(err, getErr)
		})
	})
}

func (s *storeSuite) testPutCopies(t *testing.T) {
	st := s.create(t)
	key, value := []byte("key 0"), []byte("value 0")
	id := kv.ID(1)
	update(t, st, func(w kv.Writer) error {
		for i := range 10 {
			key[4], value[6], id[7] = '0'+byte(i), '0'+byte(i), byte(i+1)
			if err := errors.Join(w.Put(tblBlob, key, value), w.Put(tblIDs, id, value), w.Put(tblText, id, value)); err != nil {
				return err
			}
			copy(key, "xxxxx")
			copy(value, "xxxxxxx")
			copy(key, "key ")
			copy(value, "value ")
		}
		del := []byte("key 3")
		err := w.Delete(tblBlob, del)
		del[4] = '5'
		return err
	})
	for i := range 10 {
		want := fmt.Appendf(nil, "value %d", i)
		wantValue(t, st, tblIDs, kv.ID(uint64(i+1)), want)
		wantValue(t, st, tblText, kv.ID(uint64(i+1)), want)
		if i == 3 {
			wantNone(t, st, tblBlob, []byte("key 3"))
		} else {
			wantValue(t, st, tblBlob, fmt.Appendf(nil, "key %d", i), want)
		}
	}
}
