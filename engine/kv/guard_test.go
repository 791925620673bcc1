package kv

import (
	"bytes"
	"errors"
	"testing"
)

var (
	tIDs  = Table{Name: "ids", IDs: true}
	tBlob = Table{Name: "blobs"}
	tText = Table{Name: "text", Text: true}
)

// guards returns the tables of these tests.
func guards(t *testing.T) Tables {
	t.Helper()
	ts, err := NewTables([]Table{tIDs, tBlob, tText})
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// TestGuardFailureSticks checks that a function which overlooks a failure of the
// database cannot commit what is left of its transaction.
func TestGuardFailureSticks(t *testing.T) {
	g := guards(t).Writer()
	first, second := errors.New("first"), errors.New("second")
	if err := g.Fail(first); err != first {
		t.Errorf("Fail returned %v", err)
	}
	if err := g.Fail(second); err != second {
		t.Errorf("Fail returned %v", err)
	}
	for name, err := range map[string]error{
		"Get": g.Get(tBlob, []byte("k")), "Put": g.Put(tBlob, []byte("k"), nil), "Delete": g.Delete(tBlob, []byte("k")),
		"BeginScan": g.BeginScan(tBlob), "Finish": g.Finish(),
	} {
		if !errors.Is(err, first) {
			t.Errorf("%s after a failure: %v, want the first one", name, err)
		}
	}
	if err := g.Get(tBlob, []byte("k")); !errors.Is(err, ErrTxDone) {
		t.Errorf("Get after Finish: %v, want ErrTxDone", err)
	}
}

// TestGuardRefusalsDoNotStick checks that a refused call leaves the transaction usable
// and costs nothing of its size.
func TestGuardRefusalsDoNotStick(t *testing.T) {
	g := guards(t).Writer()
	refused := map[error]error{
		g.Put(tBlob, nil, nil):                              ErrLimit,
		g.Put(tBlob, []byte("k"), make([]byte, MaxValue+1)): ErrLimit,
		g.Put(tText, []byte("k"), []byte{0xff}):             ErrLimit,
		g.Put(tIDs, ID(0), nil):                             ErrLimit,
		g.Delete(Table{Name: "none"}, []byte("k")):          ErrNoTable,
	}
	for err, want := range refused {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if err := g.BeginScan(tIDs); err != nil {
		t.Fatal(err)
	}
	if err := g.Put(tIDs, ID(1), nil); !errors.Is(err, ErrMutating) {
		t.Errorf("Put under a scan: %v, want ErrMutating", err)
	}
	g.EndScan()
	if bytes, ops := g.Size(); bytes != 0 || ops != 0 {
		t.Errorf("refused calls count %d bytes and %d operations", bytes, ops)
	}
	if err := errors.Join(g.Put(tIDs, ID(1), []byte("abc")), g.Delete(tBlob, []byte("key")), g.Finish()); err != nil {
		t.Error(err)
	}
	if bytes, ops := g.Size(); bytes != 8+3+3 || ops != 2 {
		t.Errorf("the size is %d bytes and %d operations, want 14 and 2", bytes, ops)
	}
}

// TestGuardReader checks that a read transaction takes no change.
func TestGuardReader(t *testing.T) {
	g := guards(t).Reader()
	if err := g.Put(tBlob, []byte("k"), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Put: %v, want ErrReadOnly", err)
	}
	if err := g.Delete(tBlob, []byte("k")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Delete: %v, want ErrReadOnly", err)
	}
}

// TestPrefixEnd checks the bound above all keys with a prefix.
func TestPrefixEnd(t *testing.T) {
	for _, tc := range []struct{ prefix, want string }{
		{"", ""}, {"a", "b"}, {"a\xff", "b"}, {"\xff\xff", ""}, {"\x00", "\x01"}, {"a\x00", "a\x01"}, {"\xfe\xff\xff", "\xff"},
	} {
		prefix := []byte(tc.prefix)
		if got := PrefixEnd(prefix); string(got) != tc.want {
			t.Errorf("PrefixEnd(%q) = %q, want %q", tc.prefix, got, tc.want)
		}
		if !bytes.Equal(prefix, []byte(tc.prefix)) {
			t.Errorf("PrefixEnd changed %q to %q", tc.prefix, prefix)
		}
	}
}
