package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
	"github.com/agentvfs/avfs/engine/kv/faultkv"
	"github.com/agentvfs/avfs/engine/kv/memkv"
)

// world is a vault and an index over it.
type world struct {
	t     *testing.T
	store *engine.Store
	vault *engine.Vault
	index *Index
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := engine.Create(t.Context(), memkv.New(engine.Tables()...), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		rep, err := store.Check(context.Background(), &engine.CheckOptions{ReadData: true, History: true})
		if err = errors.Join(err, store.Close()); err != nil || len(rep.Findings) > 0 {
			t.Errorf("the store in the end: %v, %v", rep.Findings, err)
		}
	})
	v, err := store.CreateVault(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: store, vault: v, index: newIndex(t, memkv.New(Tables()...))}
}

func newIndex(t *testing.T, db kv.Store) *Index {
	t.Helper()
	x, err := Open(t.Context(), db, kv.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		if _, err := w.vault.MkdirAll(w.t.Context(), path[:i], 0o755, engine.Owner{}); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.vault.WriteFile(w.t.Context(), path, strings.NewReader(text), nil); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) snapshot(v *engine.Vault) *engine.Snapshot {
	w.t.Helper()
	snap, err := v.Snapshot(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return snap
}

// update brings the index up to date with a vault.
func (w *world) update(v *engine.Vault) Report {
	w.t.Helper()
	rep, err := w.index.Update(w.t.Context(), w.snapshot(v), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return rep
}

// find lists the paths that match, sorted.
func (w *world) find(snap *engine.Snapshot, query string) []string {
	w.t.Helper()
	var paths []string
	for _, h := range w.hits(snap, query, Options{Limit: 10_000}) {
		paths = append(paths, h.Path)
	}
	slices.Sort(paths)
	return paths
}

func (w *world) hits(snap *engine.Snapshot, query string, opts Options) []Hit {
	w.t.Helper()
	q, err := Parse(query)
	if err != nil {
		w.t.Fatal(err)
	}
	hits, _, err := w.index.Search(w.t.Context(), snap, q, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return hits
}

// want checks what a query finds in the vault as it is.
func (w *world) want(query string, paths ...string) {
	w.t.Helper()
	w.update(w.vault)
	if got := w.find(w.snapshot(w.vault), query); !slices.Equal(got, paths) {
		w.t.Errorf("%s finds %q, want %q", query, got, paths)
	}
}

func TestWords(t *testing.T) {
	w := newWorld(t)
	w.write("/a.go", "func readHTTPBody(r *http.Request) {}\n")
	w.write("/b.py", "def read_http_body(req):\n    return utf8String\n")
	w.write("/c.txt", "Read the HTTP\nbody of it. Gr\u00fc\u00dfe aus \u041c\u043e\u0441\u043a\u0432\u0430, \u6771\u4eac\u90fd\n")
	w.write("/d.txt", "body http\n")
	w.write("/bin", "http body\x00\n")
	w.write("/empty", "")
	for _, tc := range []struct {
		query string
		want  []string
	}{
		{"readHTTPBody", []string{"a.go", "b.py"}},
		{"READ_HTTP_BODY", []string{"a.go", "b.py"}},
		{"readhttpbody", []string{"a.go", "b.py"}},
		{"httpBody", []string{"a.go", "b.py", "c.txt"}},
		{`"http body"`, []string{"a.go", "b.py", "c.txt"}},
		{`"body http"`, []string{"d.txt"}},
		{"http body", []string{"a.go", "b.py", "c.txt", "d.txt"}},
		{"http -read", []string{"d.txt"}},
		{`http -"http body"`, []string{"d.txt"}},
		{"http.Request", []string{"a.go"}},
		{"requ*", []string{"a.go"}},
		{"req*", []string{"a.go", "b.py"}},
		{`"http bo"*`, []string{"a.go", "b.py", "c.txt"}},
		{"utf8", []string{"b.py"}},
		{"string", []string{"b.py"}},
		{"gr\u00dc\u00dfe", []string{"c.txt"}},
		{"\u043c\u043e\u0441\u043a*", []string{"c.txt"}},
		{"\u6771\u4eac", []string{"c.txt"}},
		{"\u4eac\u6771", nil},
		{"nothing", nil},
		{"bod", nil},
	} {
		w.want(tc.query, tc.want...)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]error{
		"": errEmpty, " ... ": errEmpty, "-x": errOnlyNot, `"x`: errQuote, "*": errPrefix,
		strings.Repeat("x ", 33): errClauses, strings.Repeat("x", 65): errLong, `a "b c" d* -e`: nil,
	} {
		q, err := Parse(text)
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
		if err == nil && q.String() != `a "b c" d* -e` {
			t.Errorf("%q is understood as %q", text, q)
		}
	}
}

// TestLines checks which lines are shown, and what of them.
func TestLines(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x\u00fc", 500) + " needle " + strings.Repeat("\u00fcx", 500)
	w.write("/f", "needle\nhay\nneedle in hay\nHayNeedle\n"+long+"\n\xff needle \xff\n")
	w.update(w.vault)
	hits := w.hits(w.snapshot(w.vault), "needle hay", Options{Lines: 2})
	if len(hits) != 1 || len(hits[0].Lines) != 2 {
		t.Fatalf("%+v", hits)
	}
	for i, want := range []Line{
		{3, "needle in hay", []Span{{0, 6}, {10, 13}}},
		{4, "HayNeedle", []Span{{0, 3}, {3, 9}}},
	} {
		got := hits[0].Lines[i]
		if got.Number != want.Number || got.Text != want.Text || !slices.Equal(got.Spans, want.Spans) {
			t.Errorf("line %d is %+v, want %+v", i, got, want)
		}
	}
	for _, l := range w.hits(w.snapshot(w.vault), "needle", Options{Lines: 9})[0].Lines {
		s := l.Spans[0]
		if got := strings.ToLower(l.Text[s.From:s.To]); got != "needle" || len(l.Text) > shownBytes+6 || strings.ToValidUTF8(l.Text, "") != l.Text {
			t.Errorf("line %d: %q of %q", l.Number, got, l.Text)
		}
	}
}

// TestRank checks that the file which is more about the words comes first, that a rare
// word counts more, and that files with equal content are all found.
func TestRank(t *testing.T) {
	w := newWorld(t)
	w.write("/much", "needle needle needle hay\n")
	w.write("/little", "needle "+strings.Repeat("hay ", 200)+"\n")
	w.write("/copy", "needle needle needle hay\n")
	for i := range 20 {
		w.write(fmt.Sprintf("/hay/%02d", i), "hay "+strings.Repeat("straw ", i+1))
	}
	w.update(w.vault)
	hits := w.hits(w.snapshot(w.vault), "needle", Options{Limit: 5})
	var got []string
	for _, h := range hits {
		got = append(got, h.Path)
	}
	if !slices.Equal(got, []string{"copy", "much", "little"}) || hits[0].Score != hits[1].Score {
		t.Errorf("ranked %q", got)
	}
	if got := w.hits(w.snapshot(w.vault), "hay", Options{Limit: 3, Keep: func(p string) bool { return strings.HasPrefix(p, "hay/1") }}); len(got) != 3 || got[0].Path != "hay/10" {
		t.Errorf("below hay: %+v", got)
	}
	q, _ := Parse("hay")
	if _, more, err := w.index.Search(t.Context(), w.snapshot(w.vault), q, Options{Limit: 3}); err != nil || !more {
		t.Errorf("more is %v, %v", more, err)
	}
}

// TestStates checks that what an index has of one state is right for every other, and
// that an update costs what is new.
func TestStates(t *testing.T) {
	w := newWorld(t)
	for i := range 300 {
		w.write(fmt.Sprintf("/d/f%03d", i), fmt.Sprintf("common number%d\n", i))
	}
	if rep := w.update(w.vault); rep.Read != 300 || rep.Files < 300 {
		t.Errorf("the first update: %+v", rep)
	}
	if rep := w.update(w.vault); rep != (Report{}) {
		t.Errorf("an update with nothing new: %+v", rep)
	}
	before := w.snapshot(w.vault)
	fork, err := w.store.Fork(t.Context(), "main", "fork")
	if err != nil {
		t.Fatal(err)
	}
	if rep := w.update(fork); rep != (Report{}) {
		t.Errorf("an update for a fork: %+v", rep)
	}
	main := w.vault
	w.vault = fork
	w.write("/d/f007", "common changed\n")
	w.write("/d/new", "common number8\n")
	if err := fork.Remove(t.Context(), "/d/f009"); err != nil {
		t.Fatal(err)
	}
	if err := fork.Move(t.Context(), "/d", "/moved"); err != nil {
		t.Fatal(err)
	}
	if rep := w.update(fork); rep.Read != 1 || rep.Files > 200 {
		t.Errorf("an update after few changes: %+v", rep)
	}
	w.want("changed", "moved/f007")
	w.want("number7")
	w.want("number9")
	w.want("number8", "moved/f008", "moved/new")
	w.vault = main
	w.want("changed")
	w.want("number7", "d/f007")
	w.want("number9", "d/f009")
	w.write("/d/f007", "other\n")
	w.want("number7")
	if got := w.find(before, "number7"); !slices.Equal(got, []string{"d/f007"}) {
		t.Errorf("the past has %q", got)
	}
	w.write("/d/f007", "common number7\n")
	w.want("number7", "d/f007")
}

// random changes the vault a little.
func (w *world) random(r *rand.Rand) {
	words := []string{"alpha", "Beta", "gammaDelta", "eps_zeta", "eta", "theta9"}
	for range 1 + r.IntN(5) {
		var text strings.Builder
		for range r.IntN(12) {
			text.WriteString(words[r.IntN(len(words))] + []string{" ", "\n", "."}[r.IntN(3)])
		}
		w.write(fmt.Sprintf("/%d/%d", r.IntN(3), r.IntN(20)), text.String())
	}
}

// naive is what a query of one word has to find.
func (w *world) naive(snap *engine.Snapshot, parts ...string) (paths []string) {
	w.t.Helper()
	var buf []byte
	err := snap.Walk(w.t.Context(), "/", func(p string, a engine.Attr) error {
		if !a.IsRegular() {
			return nil
		}
		text, err := readText(w.t.Context(), snap, a.Ino, &buf)
		var all []string
		for s := (scanner{text: text}); s.next(); {
			for _, part := range s.atoms {
				all = append(all, string(s.part(part)))
			}
		}
		if strings.Contains(" "+strings.Join(all, " ")+" ", " "+strings.Join(parts, " ")+" ") {
			paths = append(paths, p)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

func (w *world) checkNaive(snap *engine.Snapshot) {
	w.t.Helper()
	for query, parts := range map[string][]string{
		"alpha": {"alpha"}, "gammaDelta": {"gamma", "delta"}, `"eta theta9"`: {"eta", "theta9"}, "zeta": {"zeta"}, `"delta eps"`: {"delta", "eps"},
	} {
		if got, want := w.find(snap, query), w.naive(snap, parts...); !slices.Equal(got, want) {
			w.t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
}

// TestRandom compares searches in random states with reading everything, and bounds the
// number of segments.
func TestRandom(t *testing.T) {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(1, 2))
	var past []*engine.Snapshot
	for range 60 {
		w.random(r)
		w.update(w.vault)
		past = append(past, w.snapshot(w.vault))
		w.checkNaive(past[r.IntN(len(past))])
		if n := len(w.index.state.Segments); n > 10 {
			t.Fatalf("there are %d segments", n)
		}
	}
	if len(w.index.state.Segments) == 60 {
		t.Error("nothing was merged: the test has lost its point")
	}
}

// TestKilled opens the index as a kill leaves it after every transaction of several
// updates, and as a power cut may. The next update completes it.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	db := memkv.New(Tables()...)
	w.index = newIndex(t, db)
	var left []*memkv.Store
	db.OnCommit(func(n int) { left = append(left, db.Clone(memkv.ProcessDeath, 0)) })
	r := rand.New(rand.NewPCG(3, 4))
	for range 12 {
		w.random(r)
		w.update(w.vault)
	}
	snap := w.snapshot(w.vault)
	if len(left) < 30 {
		t.Fatalf("there were %d transactions only", len(left))
	}
	for i, db := range left {
		if testing.Short() && i%3 > 0 {
			continue
		}
		w.index = newIndex(t, db)
		if _, err := w.index.Update(t.Context(), snap, nil); err != nil {
			t.Fatalf("after transaction %d: %v", i, err)
		}
		w.checkNaive(snap)
		w.checkSegments()
	}
}

// checkSegments fails where the index has rows of segments that it does not list.
func (w *world) checkSegments() {
	w.t.Helper()
	if len(w.index.state.Segments) == 0 {
		return
	}
	known := map[uint64]bool{}
	for _, s := range w.index.state.Segments {
		known[s.ID] = true
	}
	err := w.index.db.View(w.t.Context(), func(tx kv.Reader) error {
		return tx.Scan(blocksTable(), nil, nil, func(key, _ []byte) error {
			if !known[kv.ParseID(key[:8])] {
				return fmt.Errorf("a row of segment %d is left", kv.ParseID(key[:8]))
			}
			return nil
		})
	})
	if err != nil {
		w.t.Error(err)
	}
}

// TestFaults fails every call of an update, as a full disk does, and tries again.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(5, 6))
	for _, op := range []faultkv.Op{faultkv.View, faultkv.Update, faultkv.Get, faultkv.Scan, faultkv.Put, faultkv.Delete, faultkv.Commit, faultkv.AfterCommit} {
		for n := 1; ; n += 1 + n/3 {
			db := faultkv.Wrap(memkv.New(Tables()...), faultkv.Config{Scribble: true})
			w.index = newIndex(t, db)
			w.random(r)
			w.update(w.vault)
			w.random(r)
			snap := w.snapshot(w.vault)
			db.Arm(faultkv.Rule{Op: op, N: n, Err: kv.ErrNoSpace})
			_, err := w.index.Update(t.Context(), snap, nil)
			reached := db.Calls(op) >= n
			db.Arm()
			if reached && !errors.Is(err, kv.ErrNoSpace) || !reached && err != nil {
				t.Fatalf("call %d of kind %d failed: %v", n, op, err)
			}
			if _, err := w.index.Update(t.Context(), snap, nil); err != nil {
				t.Fatalf("again after call %d of kind %d: %v", n, op, err)
			}
			w.checkNaive(snap)
			if !reached {
				break
			}
		}
	}
}

// TestDamage changes one byte of every value: a search and an update are right, or say
// that the index is damaged.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	db := memkv.New(Tables()...)
	w.index = newIndex(t, db)
	r := rand.New(rand.NewPCG(7, 8))
	w.random(r)
	w.update(w.vault)
	w.random(r)
	snap := w.snapshot(w.vault)
	old := db.Clone(memkv.ProcessDeath, 0)
	noticed := 0
	for _, tb := range Tables() {
		var keys, values [][]byte
		err := old.View(t.Context(), func(tx kv.Reader) error {
			return tx.Scan(tb, nil, nil, func(k, v []byte) error {
				if len(v) > 0 {
					keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			db := old.Clone(memkv.ProcessDeath, 0)
			values[i][r.IntN(len(values[i]))] ^= byte(1 + r.IntN(255))
			err := db.Update(t.Context(), kv.Relaxed, func(tx kv.Writer) error { return tx.Put(tb, k, values[i]) })
			if err != nil {
				t.Fatal(err)
			}
			if w.damaged(db, snap) {
				noticed++
			}
		}
	}
	if noticed < 5 {
		t.Errorf("damage was noticed %d times only", noticed)
	}
}

// damaged updates and searches a damaged index, and reports whether that failed.
func (w *world) damaged(db kv.Store, snap *engine.Snapshot) bool {
	w.t.Helper()
	check := func(err error) bool {
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			w.t.Fatalf("damage is reported as %v", err)
		}
		return err != nil
	}
	x, err := Open(w.t.Context(), db, kv.Relaxed)
	if check(err) {
		return true
	}
	w.index = x
	if _, err := x.Update(w.t.Context(), snap, nil); check(err) {
		return true
	}
	q, err := Parse("alpha")
	if err != nil {
		w.t.Fatal(err)
	}
	hits, _, err := x.Search(w.t.Context(), snap, q, Options{Limit: 1000})
	if check(err) {
		return true
	}
	if want := w.naive(snap, "alpha"); len(hits) != len(want) {
		w.t.Errorf("a damaged index finds %d files, want %d", len(hits), len(want))
	}
	return false
}

// TestBehind checks that a bounded update ends, keeps what it did, and gets done.
func TestBehind(t *testing.T) {
	w := newWorld(t)
	for i := range 400 {
		w.write(fmt.Sprintf("/f%03d", i), strings.Repeat(fmt.Sprintf("word%d ", i), 100))
	}
	snap := w.snapshot(w.vault)
	var read int64
	for behind, rounds := true, 0; behind; rounds++ {
		rep, err := w.index.Update(t.Context(), snap, &UpdateOptions{MaxBytes: 50_000})
		if err != nil || rounds > 50 {
			t.Fatalf("round %d: %+v, %v", rounds, rep, err)
		}
		if rounds == 0 && !rep.Behind {
			t.Fatalf("the first round did everything: %+v", rep)
		}
		behind, read = rep.Behind, read+rep.Read
	}
	if read != 400 {
		t.Errorf("%d contents were read, want 400", read)
	}
	w.want("word123", "f123")
}

// TestManyTexts checks postings that fill several blocks, alone and merged.
func TestManyTexts(t *testing.T) {
	db := memkv.New(Tables()...)
	x := newIndex(t, db)
	const texts = 50_000
	for id := range uint64(2) {
		var l list
		l.prev = -1
		var docs []doc
		for at := range uint32(texts) {
			l.last, l.count = at, 1+at%1000
			l.settle()
			docs = append(docs, doc{at + 1, 3})
		}
		b := &batch{x: x}
		w := &blockWriter{seg: id + 1, put: func(r row) error { return b.put(t.Context(), r) }}
		for _, e := range []struct {
			term     string
			postings []byte
		}{{"common", l.buf}, {"commoner", appendPosting(nil, -1, 7, 1)}} {
			if err := w.add([]byte(e.term), e.postings); err != nil {
				t.Fatal(err)
			}
		}
		next := x.state
		next.NextSegment++
		next.Segments = append(next.Segments, segment{ID: id + 1, Texts: texts, Bytes: 1})
		if err := errors.Join(w.flush(0), b.flush(t.Context()), x.commit(t.Context(), docRows(id+1, docs), next)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(seg segment, term string, prefix bool, want int) {
		t.Helper()
		n, sum := 0, 0
		err := db.View(t.Context(), func(tx kv.Reader) error {
			return findTerms(tx, seg, []byte(term), prefix, func(at, count uint32) { n++; sum += int(count) })
		})
		if err != nil || n != want || term == "common" && !prefix && sum != want/1000*500_500 {
			t.Errorf("%s in segment %d: %d texts, %d times, want %d, %v", term, seg.ID, n, sum, want, err)
		}
	}
	check(x.state.Segments[0], "common", false, texts)
	check(x.state.Segments[0], "common", true, texts+1)
	check(x.state.Segments[1], "commoner", false, 1)
	check(x.state.Segments[1], "commo", false, 0)
	if err := x.merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(x.state.Segments) != 1 {
		t.Fatalf("merged into %+v", x.state.Segments)
	}
	check(x.state.Segments[0], "common", false, 2*texts)
	check(x.state.Segments[0], "c", true, 2*texts+2)
}

// TestOvergrown checks that an index which grows by what comes and goes is told from one
// of a vault that is searched again and again.
func TestOvergrown(t *testing.T) {
	w := newWorld(t)
	w.index.floor = 100
	for i := range 50 {
		w.write(fmt.Sprintf("/f%d", i), fmt.Sprintf("word%d", i))
	}
	for range 20 {
		w.update(w.vault)
	}
	if w.index.Overgrown() {
		t.Fatalf("overgrown from the beginning: %+v", w.index.state)
	}
	rounds := 0
	for ; !w.index.Overgrown() && rounds < 200; rounds++ {
		if err := w.vault.RemoveAll(t.Context(), "/f0"); err != nil {
			t.Fatal(err)
		}
		w.write("/f0", "word0") // of the same content, another inode
		w.update(w.vault)
	}
	if rounds < 10 || rounds == 200 {
		t.Errorf("overgrown after %d rounds: %+v", rounds, w.index.state)
	}
}
