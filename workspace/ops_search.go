package workspace

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/search"
)

// SearchRequest asks for the files that match a query best; package search says what a
// query may be.
type SearchRequest struct {
	Vault      string   `json:"vault"`
	Checkpoint string   `json:"checkpoint,omitempty"` // a state; empty is the present one
	Past       bool     `json:"past,omitempty"`       // a path may be PATH@STATE, unless it exists as it is
	Query      string   `json:"query"`
	Paths      []Path   `json:"paths"`
	Globs      []string `json:"globs,omitempty"` // which files: see globs
	Limit      int      `json:"limit,omitempty"` // at most so many files; 0 is 10
	Lines      int      `json:"lines,omitempty"` // at most so many lines of each file
	// IndexBytes is how much text may be indexed before the search; with more to do
	// the answer is Behind. 0 is no bound.
	IndexBytes int64 `json:"index_bytes,omitempty"`
}

// SearchResult lists the files that match best, the best first.
type SearchResult struct {
	Query string      `json:"query"` // as it was understood
	Files []SearchHit `json:"files"`
	More  bool        `json:"more"`           // other files match, too
	Note  string      `json:"note,omitempty"` // what there is to know about the index
}

// SearchHit is a file that matches. Scores compare within one result only.
type SearchHit struct {
	Path    string       `json:"path"`               // U+FFFD stands for bytes that are not UTF-8
	PathB64 string       `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Score   float64      `json:"score"`
	Lines   []SearchLine `json:"lines"` // that match best, in order
}

// SearchLine is a line with something that matches.
type SearchLine struct {
	Line  int           `json:"line"`  // counted from 1
	Text  string        `json:"text"`  // what is near the first match, where the line is long
	Spans []search.Span `json:"spans"` // of Text that match
}

// SearchAnswer is a result, or the word that more has to be indexed before there is one.
type SearchAnswer struct {
	SearchResult
	Behind bool `json:"behind,omitempty"`
}

// memoryIndexBytes bounds the text in an index that is in memory.
const memoryIndexBytes = 256 << 20

// OpSearch brings the index of the store up to date and searches it.
var OpSearch = Op[SearchRequest, SearchAnswer]{Name: "fs.search", Run: func(ctx context.Context, o *Owner, req SearchRequest, s Streams) (SearchAnswer, error) {
	q, err := search.Parse(req.Query)
	if err != nil {
		return SearchAnswer{}, &engine.Error{Kind: engine.Invalid, Op: "search", Path: req.Query, Err: err}
	}
	g, err := newGlobs(req.Globs)
	if err != nil {
		return SearchAnswer{}, err
	}
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return SearchAnswer{}, err
	}
	defer l.close()
	scopes, err := l.scopes(ctx, req.Paths, g)
	if err != nil {
		return SearchAnswer{}, err
	}
	if err := o.searching.take(ctx); err != nil {
		return SearchAnswer{}, err
	}
	defer o.searching.give()
	res, err := o.search(ctx, q, scopes, req, s)
	if unusable(err) {
		if err := o.renewIndex(ctx); err != nil {
			return SearchAnswer{}, err
		}
		res, err = o.search(ctx, q, scopes, req, s)
		res.Note = "the search index was damaged and was made anew"
	}
	return res, err
}}

// search searches all scopes. The caller has the turn.
func (o *Owner) search(ctx context.Context, q *search.Query, scopes []scope, req SearchRequest, s Streams) (SearchAnswer, error) {
	res := SearchAnswer{SearchResult: SearchResult{Query: q.String(), Files: []SearchHit{}}}
	note, err := o.openIndex(ctx)
	if err != nil {
		return res, err
	}
	res.Note = note
	var hits []search.Hit
	for _, in := range scopes {
		res.Behind, err = o.updateIndex(ctx, in.snap, req.IndexBytes, s)
		if err != nil || res.Behind {
			return res, err
		}
		found, more, err := o.searching.index.Search(ctx, in.snap, q, search.Options{Limit: req.Limit, Lines: req.Lines, Keep: in.keep})
		if err != nil {
			return res, err
		}
		hits, res.More = append(hits, found...), res.More || more
	}
	if len(scopes) > 1 {
		slices.SortStableFunc(hits, func(a, b search.Hit) int {
			switch {
			case a.Score > b.Score:
				return -1
			case a.Score < b.Score:
				return 1
			}
			return 0
		})
	}
	if req.Limit > 0 && len(hits) > req.Limit {
		hits, res.More = hits[:req.Limit], true
	}
	if o.searching.unkept != nil {
		res.Note = fmt.Sprintf("the search index cannot be kept, so each search reads all files: %v", o.searching.unkept)
	}
	for _, h := range hits {
		res.Files = append(res.Files, publicHit(h))
	}
	return res, nil
}

// updateIndex indexes what is new in a state; behind says that this is more than
// maxBytes.
func (o *Owner) updateIndex(ctx context.Context, snap *engine.Snapshot, maxBytes int64, s Streams) (behind bool, err error) {
	if o.searching.index.Overgrown() {
		if err := o.renewIndex(ctx); err != nil {
			return false, err
		}
	}
	opts := &search.UpdateOptions{MaxBytes: maxBytes}
	memory := o.searching.unkept != nil
	if memory && (maxBytes == 0 || maxBytes > memoryIndexBytes) {
		opts.MaxBytes = memoryIndexBytes
	}
	if s.Progress != nil {
		opts.Progress = func(files, bytes int64) { s.progress(Progress{Files: files, Bytes: bytes}) }
	}
	rep, err := o.searching.index.Update(ctx, snap, opts)
	if err == nil && rep.Behind && memory && opts.MaxBytes == memoryIndexBytes {
		err = &engine.Error{Kind: engine.ReadOnly, Op: "search",
			Err: fmt.Errorf("the search index cannot be written, and there is more text than fits in memory (use grep): %w", o.searching.unkept)}
	}
	return rep.Behind, err
}

func publicHit(h search.Hit) SearchHit {
	out := SearchHit{Score: math.Round(h.Score*1000) / 1000, Lines: []SearchLine{}}
	out.Path, out.PathB64 = exactly("/" + h.Path)
	for _, l := range h.Lines {
		out.Lines = append(out.Lines, SearchLine{Line: l.Number, Text: l.Text, Spans: l.Spans})
	}
	return out
}

// scope is a state and what of it is searched.
type scope struct {
	snap *engine.Snapshot
	tops []string // without a leading slash; "" is everything
	globs
}

// scopes finds the paths of a request, those of one state together.
func (l *lookups) scopes(ctx context.Context, paths []Path, g globs) ([]scope, error) {
	var list []scope
	for _, name := range paths {
		in, p, err := l.find(ctx, name)
		if err != nil {
			return nil, err
		}
		snap, ok := in.(*engine.Snapshot)
		if !ok { // the present state
			root, release, err := l.o.state(ctx, l.vault, "")
			if err != nil {
				return nil, err
			}
			l.releases = append(l.releases, release)
			snap = l.o.store.Snapshot(root)
		}
		a, err := snap.Resolve(ctx, p, true)
		if err != nil {
			return nil, err
		}
		tops, err := snap.Paths(ctx, a.Ino)
		if err != nil {
			return nil, err
		}
		if a.Ino == engine.RootIno {
			tops = []string{""}
		} else if clean := strings.Trim(path.Clean("/"+p), "/"); slices.Contains(tops, clean) {
			tops = []string{clean} // of several names the one that was asked for
		}
		i := slices.IndexFunc(list, func(s scope) bool { return s.snap.Root().Same(snap.Root()) })
		if i < 0 {
			i = len(list)
			list = append(list, scope{snap: snap, globs: g})
		}
		list[i].tops = append(list[i].tops, tops...)
	}
	return list, nil
}

// keep reports whether a path is below one of the tops, and is one that the globs
// choose: a top itself was asked for by name.
func (s scope) keep(p string) bool {
	for _, top := range s.tops {
		if p == top {
			return true
		}
		if top != "" && !strings.HasPrefix(p, top+"/") {
			continue
		}
		left := false // out, with a directory below the top or by itself
		for at := len(top) + 1; at <= len(p) && !left; at++ {
			if at == len(p) || p[at] == '/' {
				left = like(s.never, p[:at])
			}
		}
		if !left && (len(s.only) == 0 || like(s.only, p)) {
			return true
		}
	}
	return false
}
