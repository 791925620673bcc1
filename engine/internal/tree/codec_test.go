package tree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// encodeNode returns the record of a node as given, however wrong.
func encodeNode(id uint64, level int, keys []string, values [][]byte, ids ...uint64) (Ref, []byte) {
	e := newEncoder(level, len(keys), NodeSize)
	for i, key := range keys {
		e.add([]byte(key), values[i])
	}
	children := make([]item, len(ids))
	for i := range ids {
		children[i].ref.ID = ids[i]
	}
	return e.seal(id, children)
}

func twoLeaves() (refs [2]Ref, recs [2][]byte) {
	refs[0], recs[0] = encodeNode(7, 0,
		[]string{"\x00\x00\x01\x01", "\x00\x00\x01\x02a", "\x00\x00\x01\x02abc", "\x00\x00\x02\x01"},
		[][]byte{[]byte("one"), {}, []byte("three"), bytes.Repeat([]byte{0xee}, 130)})
	refs[1], recs[1] = encodeNode(1<<40, 0, []string{"z"}, [][]byte{{1}})
	return refs, recs
}

func sampleBranch() (Ref, []byte) {
	refs, _ := twoLeaves()
	return encodeNode(9, 1, []string{"", "\x00\x00\x03", "\x00\x01"},
		[][]byte{refs[0].Digest[:], refs[1].Digest[:], refs[0].Digest[:]}, refs[0].ID, refs[1].ID, 8)
}

var update = flag.Bool("update", false, "rewrite the golden file")

// TestGolden pins records and the roots of fixed operations. A difference is a
// change of the format: it needs a new version, not a new golden file.
func TestGolden(t *testing.T) {
	var b strings.Builder
	_, leaves := twoLeaves()
	_, branch := sampleBranch()
	for i, rec := range [][]byte{leaves[0], leaves[1], branch} {
		fmt.Fprintf(&b, "record %s %x\n", []string{"leaf", "leaf", "branch"}[i], rec)
	}
	s := newMemStore()
	var root Ref
	line := func(what string) {
		fmt.Fprintf(&b, "root %d %s %s\n", root.ID, root.Digest, what)
	}
	line("empty")
	root = s.apply(t, root, put("hello", "world"))
	line("hello")
	root = s.apply(t, root, numbers(0, 20_000)...)
	line("bulk")
	for i := range 300 {
		root = s.apply(t, root, numbers(i*i*100, i*i*100+3)...)
	}
	line("inserts")
	root = s.apply(t, root, put("large", strings.Repeat("x", 70_000)))
	line("large")
	for i := 0; i < 20_000; i += 10 {
		root = s.apply(t, root, del(numberKey(i)), del(numberKey(i+3)), put(numberKey(i+4), "short"))
	}
	line("deletes")
	s.check(t, root)
	const file = "testdata/golden.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// The worked example fixes each byte of the smallest leaf, independently of the
// encoder.
func TestRecordBytes(t *testing.T) {
	ref, rec := encodeNode(5, 0, []string{"ab", "ac"}, [][]byte{{0x11}, {}})
	want, err := hex.DecodeString("01000200" + "000201" + "6162" + "11" + "010100" + "63")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rec[:len(rec)-4], want) {
		t.Errorf("%x", rec)
	}
	if ref.Digest != digestOf(want) || binary.LittleEndian.Uint32(rec[len(want):]) != checksum(5, want) {
		t.Error("digest or checksum do not cover what they should")
	}
}

func TestDecode(t *testing.T) {
	ref, rec := sampleBranch()
	n, err := Decode(rec, ref)
	if err != nil {
		t.Fatal(err)
	}
	clear(rec)
	refs, _ := twoLeaves()
	if n.Level() != 1 || n.IsLeaf() || n.Len() != 3 || n.RecordSize() != len(rec) || n.MemSize() < len(rec)/2 {
		t.Error("wrong measures")
	}
	if n.Child(0) != refs[0] || n.Child(1) != refs[1] || string(n.Key(2)) != "\x00\x01" {
		t.Error("wrong children")
	}
}

// Every byte of a record is protected, the ids of children included.
func TestDecodeNoticesEveryFlip(t *testing.T) {
	branchRef, branch := sampleBranch()
	leafRefs, leaves := twoLeaves()
	for _, c := range []struct {
		ref Ref
		rec []byte
	}{{branchRef, branch}, {leafRefs[0], leaves[0]}} {
		refuse := func(what string, rec []byte, ref Ref) {
			if n, err := Decode(rec, ref); !errors.Is(err, ErrCorrupt) || n != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for i := range c.rec {
			for bit := range 8 {
				bad := bytes.Clone(c.rec)
				bad[i] ^= 1 << bit
				refuse(fmt.Sprintf("byte %d bit %d", i, bit), bad, c.ref)
			}
			refuse(fmt.Sprintf("cut at %d", i), c.rec[:i], c.ref)
		}
		refuse("longer", append(bytes.Clone(c.rec), 0), c.ref)
		refuse("absent", nil, c.ref)
		refuse("too long", make([]byte, MaxRecord+1), c.ref)
		refuse("another id", c.rec, Ref{c.ref.ID + 1, c.ref.Digest})
		other := c.ref
		other.Digest[15] ^= 1
		refuse("another digest", c.rec, other)
	}
}

// reseal gives a record the digest and checksum that make its content count.
func reseal(rec []byte) (Ref, []byte) {
	const id = 3
	if len(rec) < headerSize+crcSize {
		return Ref{ID: id}, rec
	}
	body := rec[:len(rec)-crcSize]
	content := body
	if ids := int(binary.LittleEndian.Uint16(body[2:])) * idSize; body[1] > 0 && ids <= len(body)-headerSize {
		content = body[:len(body)-ids]
	}
	sealed := binary.LittleEndian.AppendUint32(slices.Clone(body), checksum(id, body))
	return Ref{id, digestOf(content)}, sealed
}

// Records that are sealed correctly but make no sense must be refused as well.
func TestDecodeRefusesNonsense(t *testing.T) {
	digest := make([]byte, digestSize)
	leaf := func(count byte, entries ...byte) []byte {
		return append(append([]byte{version, 0, count, 0}, entries...), 0, 0, 0, 0)
	}
	branch := func(keys []string, values [][]byte, ids ...uint64) []byte {
		_, rec := encodeNode(1, 1, keys, values, ids...)
		return rec
	}
	for _, c := range []struct {
		name string
		rec  []byte
		want string
	}{
		{"sound", leaf(2, 0, 1, 1, 'a', 'x', 1, 1, 0, 'b'), ""},
		{"version", []byte{2, 0, 1, 0, 0, 1, 0, 'a', 0, 0, 0, 0}, "unknown version"},
		{"empty", leaf(0), "no entries"},
		{"fewer", leaf(2, 0, 1, 0, 'a'), "truncated entry"},
		{"more", leaf(1, 0, 1, 0, 'a', 1, 1, 0, 'b'), "bytes after the last entry"},
		{"value cut", leaf(1, 0, 1, 9, 'a'), "truncated entry"},
		{"long varint", leaf(1, 0x80, 0, 1, 0, 'a'), "truncated entry"},
		{"huge varint", leaf(1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 'a'), "truncated entry"},
		{"empty key", leaf(1, 0, 0, 0), "empty or repeated key"},
		{"repeated", leaf(2, 0, 1, 0, 'a', 1, 0, 0), "empty or repeated key"},
		{"prefix", leaf(2, 0, 2, 0, 'a', 'b', 1, 0, 0), "empty or repeated key"},
		{"order", leaf(2, 0, 1, 0, 'b', 0, 1, 0, 'a'), "keys out of order"},
		{"short prefix", leaf(2, 0, 2, 0, 'a', 'b', 0, 2, 0, 'a', 'c'), "keys out of order"},
		{"shared first", leaf(1, 1, 1, 0, 'a'), "impossible key length"},
		{"long key", leaf(1, append([]byte{0, 0x81, 8, 0}, make([]byte, MaxKey+1)...)...), "impossible key length"},
		{"long value", leaf(1, append([]byte{0, 1, 0x81, 0x80, 8, 'a'}, make([]byte, MaxValue+1)...)...), "value too long"},
		{"sound branch", branch([]string{"", "b"}, [][]byte{digest, digest}, 1, 2), ""},
		{"separator", branch([]string{"a"}, [][]byte{digest}, 1), "first child with a separator"},
		{"digest", branch([]string{""}, [][]byte{digest[1:]}, 1), "child without a digest"},
		{"id", branch([]string{""}, [][]byte{digest}, 0), "child without an id"},
		{"ids", []byte{version, 1, 9, 0, 0, 0, 0, 0}, "too short for its children"},
	} {
		ref, rec := reseal(c.rec)
		_, err := Decode(rec, ref)
		var corrupt *CorruptError
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if !errors.As(err, &corrupt) || corrupt.Reason != c.want || corrupt.Ref != ref {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestSeparatorIsShortest(t *testing.T) {
	for _, c := range [][3]string{
		{"a", "b", "b"}, {"a", "ab", "ab"}, {"abc", "abd", "abd"}, {"abcx", "abdy", "abd"},
		{"abc", "abcdef", "abcd"}, {"a\xff", "b\x00\x00", "b"},
	} {
		if got := string(separator([]byte(c[0]), []byte(c[1]))); got != c[2] {
			t.Errorf("between %q and %q: %q", c[0], c[1], got)
		}
	}
}

func TestCommonPrefix(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	for range 10_000 {
		a := make([]byte, rnd.IntN(40))
		for i := range a {
			a[i] = byte(rnd.IntN(3) / 2)
		}
		b := bytes.Clone(a[:rnd.IntN(len(a)+1)])
		for range rnd.IntN(9) {
			b = append(b, byte(rnd.IntN(2)))
		}
		n := 0
		for n < len(a) && n < len(b) && a[n] == b[n] {
			n++
		}
		if got := commonPrefix(a, b); got != n {
			t.Fatalf("%x and %x share %d, not %d", a, b, n, got)
		}
	}
}
