package search

import (
	"container/heap"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// Hit is a file that matches.
type Hit struct {
	Path  string // without a leading slash
	Ino   engine.Ino
	Score float64
	Lines []Line // that match best, in order
}

// Options say what to give of what matches.
type Options struct {
	Limit int                    // at most so many files; 0 is 10
	Lines int                    // at most so many lines of a file
	Keep  func(path string) bool // which paths to give; nil is all
}

// defaultLimit is how many files are given where nobody says how many.
const defaultLimit = 10

// maxTies bounds how many files with the score of the last one are looked at.
const maxTies = 1_000

// Search gives the best matches in a state that Update has indexed, best first, those
// of one score by path. more says that there are others.
func (x *Index) Search(ctx context.Context, snap *engine.Snapshot, q *Query, opts Options) (hits []Hit, more bool, err error) {
	if opts.Limit <= 0 {
		opts.Limit = defaultLimit
	}
	f := &finder{x: x, snap: snap, q: q, opts: opts}
	if err := x.db.View(ctx, func(tx kv.Reader) error { return f.rank(tx) }); err != nil {
		return nil, false, err
	}
	heap.Init(&f.ranked)
	for f.ranked.Len() > 0 {
		c := heap.Pop(&f.ranked).(candidate)
		if n := len(hits); n > opts.Limit && (float64(c.score) < hits[n-1].Score || n > opts.Limit+maxTies) {
			break
		}
		found, err := f.files(ctx, c)
		if err != nil {
			return nil, false, err
		}
		hits = append(hits, found...)
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		if a.Score != b.Score {
			if a.Score > b.Score {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	if len(hits) > opts.Limit {
		hits, more = hits[:opts.Limit], true
	}
	for i := range hits {
		if err := f.lines(ctx, &hits[i]); err != nil {
			return nil, false, err
		}
	}
	return hits, more, nil
}

// candidate is a text that matches as far as the index can tell.
type candidate struct {
	score  float32
	unsure bool // whether the parts stand together shows the text alone
	number uint32
}

// candidates is a heap with the best one on top.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].score > c[j].score || c[i].score == c[j].score && c[i].number < c[j].number
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(v any)   { *c = append(*c, v.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// finder is one search under way.
type finder struct {
	x      *Index
	snap   *engine.Snapshot
	q      *Query
	opts   Options
	ranked candidates
	buf    []byte
}

// counts is what one segment has of one clause, by text.
type counts struct {
	times []uint32 // that the clause may match; 0 is not at all
	sure  []bool   // nil where all are
}

// count looks a clause up in a segment.
func (c *clause) count(tx kv.Reader, seg segment) (counts, error) {
	n := counts{times: make([]uint32, seg.Texts)}
	if c.word != nil {
		err := findTerms(tx, seg, c.word, c.prefix, func(at, count uint32) { n.times[at] += count })
		if err != nil || c.exact() {
			return n, err
		}
	}
	n.sure = make([]bool, seg.Texts)
	for at, count := range n.times {
		n.sure[at] = count > 0
	}
	all := make([]uint32, seg.Texts)
	for i, part := range c.parts {
		one := make([]uint32, seg.Texts)
		err := findTerms(tx, seg, part, c.prefix && i == len(c.parts)-1, func(at, count uint32) { one[at] += count })
		if err != nil {
			return n, err
		}
		for at, count := range one {
			if i > 0 {
				count = min(count, all[at])
			}
			all[at] = count
		}
	}
	for at, count := range all {
		n.times[at] = max(n.times[at], count)
	}
	return n, nil
}

// The constants of BM25 that are usual.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// rank finds the candidates.
func (f *finder) rank(tx kv.Reader) error {
	var texts, words float64
	for _, seg := range f.x.state.Segments {
		texts += float64(seg.Texts)
		words += float64(seg.Words)
	}
	having := make([]float64, len(f.q.must))
	found := make([][]counts, len(f.x.state.Segments))
	for i, seg := range f.x.state.Segments {
		for j := range f.q.must {
			n, err := f.q.must[j].count(tx, seg)
			if err != nil {
				return err
			}
			for _, times := range n.times {
				if times > 0 {
					having[j]++
				}
			}
			found[i] = append(found[i], n)
		}
	}
	weights := make([]float64, len(having))
	for j, n := range having {
		weights[j] = math.Log1p((texts - n + 0.5) / (n + 0.5))
	}
	for i, seg := range f.x.state.Segments {
		if err := f.rankSegment(tx, seg, found[i], weights, words/max(1, texts)); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) rankSegment(tx kv.Reader, seg segment, found []counts, weights []float64, usual float64) error {
	docs, err := readDocs(tx, seg)
	if err != nil {
		return err
	}
	never := make([]bool, seg.Texts)
	unsure := false // of what must not match
	for i := range f.q.not {
		c := &f.q.not[i]
		if !c.exact() {
			unsure = true
			continue
		}
		err := findTerms(tx, seg, c.word, c.prefix, func(at, _ uint32) { never[at] = true })
		if err != nil {
			return err
		}
	}
	for at, d := range docs {
		c := candidate{number: d.number, unsure: unsure}
		matches := !never[at]
		score := 0.0
		for j := range found {
			times := float64(found[j].times[at])
			if matches = matches && times > 0; !matches {
				break
			}
			c.unsure = c.unsure || found[j].sure != nil && !found[j].sure[at]
			norm := saturation * (1 - lengthPart + lengthPart*lengthOf(d.length)/max(1, usual))
			score += weights[j] * times * (saturation + 1) / (times + norm)
		}
		if matches {
			c.score = float32(score)
			f.ranked = append(f.ranked, c)
		}
	}
	return nil
}

// files lists the files of the state that are a candidate's.
func (f *finder) files(ctx context.Context, c candidate) (hits []Hit, err error) {
	var id engine.ContentID
	var inos []engine.Ino
	err = f.x.db.View(ctx, func(tx kv.Reader) (err error) {
		if id, err = findContent(tx, c.number); err == nil {
			inos, err = findPlaces(tx, c.number)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	checked := !c.unsure
	for _, ino := range inos {
		now, _, err := f.snap.Content(ctx, ino)
		if engine.KindOf(err) == engine.NotFound || err == nil && now != id {
			continue
		}
		if err != nil {
			return nil, err
		}
		paths, err := f.snap.Paths(ctx, ino)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if f.opts.Keep != nil && !f.opts.Keep(path) {
				continue
			}
			if !checked { // the content is the same for all
				text, err := readText(ctx, f.snap, ino, &f.buf)
				if err != nil || !f.q.matches(text) {
					return nil, err
				}
				checked = true
			}
			hits = append(hits, Hit{Path: path, Ino: ino, Score: float64(c.score)})
		}
	}
	return hits, nil
}
