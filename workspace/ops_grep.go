package workspace

import (
	"context"
	"errors"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/agentvfs/avfs/engine"
)

// GrepRequest asks for the lines that match a regular expression (RE2).
type GrepRequest struct {
	Vault      string   `json:"vault"`
	Checkpoint string   `json:"checkpoint,omitempty"` // a state; empty is the present one
	Pattern    string   `json:"pattern"`
	Fixed      bool     `json:"fixed,omitempty"` // the pattern is a plain text
	IgnoreCase bool     `json:"ignore_case,omitempty"`
	Word       bool     `json:"word,omitempty"` // what matches is no part of a longer word
	Past       bool     `json:"past,omitempty"` // a path may be PATH@STATE, unless it exists as it is
	Paths      []Path   `json:"paths"`
	Globs      []string `json:"globs,omitempty"`  // which files: see globs
	Before     int      `json:"before,omitempty"` // lines of context before a match
	After      int      `json:"after,omitempty"`  // lines of context after a match
}

// GrepMatch is one matching line, or one of the context.
type GrepMatch struct {
	Path    string `json:"path"`               // U+FFFD stands for bytes that are not UTF-8
	PathB64 string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Line    int    `json:"line"`               // counted from 1
	Text    string `json:"text"`
	Context bool   `json:"context,omitempty"` // the line does not match: it is near one that does
}

// GrepFile is a file with matching lines, and how many.
type GrepFile struct {
	Path    string `json:"path"`               // U+FFFD stands for bytes that are not UTF-8
	PathB64 string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Lines   int    `json:"lines"`
}

// OpGrep searches files, and directories with everything below them, in path
// order. Binary files, which have a NUL byte early on, are left out.
var OpGrep = Op[GrepRequest, []GrepMatch]{Name: "fs.grep", Run: func(ctx context.Context, o *Owner, req GrepRequest, _ Streams) ([]GrepMatch, error) {
	matches := []GrepMatch{}
	err := grep(ctx, o, &req, func(found []GrepMatch) { matches = append(matches, found...) })
	return matches, err
}}

// OpGrepFiles is OpGrep for who wants to know only which files match, and how often.
var OpGrepFiles = Op[GrepRequest, []GrepFile]{Name: "fs.grep.files", Run: func(ctx context.Context, o *Owner, req GrepRequest, _ Streams) ([]GrepFile, error) {
	req.Before, req.After = 0, 0
	files := []GrepFile{}
	err := grep(ctx, o, &req, func(found []GrepMatch) {
		files = append(files, GrepFile{Path: found[0].Path, PathB64: found[0].PathB64, Lines: len(found)})
	})
	return files, err
}}

// grep calls fn with what every file has that matches, in path order.
func grep(ctx context.Context, o *Owner, req *GrepRequest, fn func(found []GrepMatch)) error {
	p, err := newPattern(req)
	if err != nil {
		return err
	}
	g, err := newGlobs(req.Globs)
	if err != nil {
		return err
	}
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return err
	}
	defer l.close()
	for _, top := range req.Paths {
		t, top, err := l.find(ctx, top)
		if err != nil {
			return err
		}
		if err := grepTree(ctx, t, top, g, func() *searcher { return &searcher{pattern: p, before: req.Before, after: req.After} }, fn); err != nil {
			return err
		}
	}
	return nil
}

// grepJob is one file for a worker. done gets what was found, once.
type grepJob struct {
	path string
	ino  engine.Ino
	done chan grepped
}

type grepped struct {
	found []GrepMatch
	err   error
}

// grepAhead is how many files may be searched before the first of them is told of.
const grepAhead = 256

// grepTree searches the files below top on all processors. It ends the walk and the
// workers before it returns.
func grepTree(ctx context.Context, t tree, top string, g globs, search func() *searcher, fn func([]GrepMatch)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, order := make(chan grepJob), make(chan chan grepped, grepAhead)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			s := search()
			for j := range jobs {
				found, err := grepFile(ctx, t, j, s)
				j.done <- grepped{found, err}
			}
		})
	}
	defer workers.Wait()
	walked := make(chan error, 1)
	go func() { // ends with the walk, which ends with ctx
		defer close(order)
		defer close(jobs)
		walked <- t.Walk(ctx, top, func(p string, a engine.Attr) error {
			if keep, err := g.visit(p, a, path.Clean("/"+top) == path.Clean("/"+p)); !keep {
				return err
			}
			j := grepJob{path: p, ino: a.Ino, done: make(chan grepped, 1)}
			select {
			case order <- j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			jobs <- j // a worker takes it: they go on until jobs is closed
			return nil
		})
	}()
	var failed error
	for done := range order {
		switch r := <-done; {
		case failed != nil:
		case r.err != nil:
			failed = r.err
			cancel()
		case len(r.found) > 0:
			fn(r.found)
		}
	}
	if err := <-walked; failed == nil {
		failed = err
	}
	return failed
}

// grepFile searches one file. One that was removed meanwhile has nothing.
func grepFile(ctx context.Context, t tree, j grepJob, s *searcher) (found []GrepMatch, err error) {
	f, err := openInode(ctx, t, j.ino)
	if engine.KindOf(err) == engine.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, &engine.Error{Kind: engine.KindOf(err), Op: "read", Path: j.path, Err: err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if found, err = s.file(ctx, f); err != nil {
		return nil, err
	}
	text, b64 := exactly("/" + j.path)
	for i := range found {
		found[i].Path, found[i].PathB64 = text, b64
	}
	return found, nil
}

func openInode(ctx context.Context, t tree, ino engine.Ino) (fileReader, error) {
	if v, ok := t.(*engine.Vault); ok {
		return v.Open(ctx, ino, engine.OpenRead)
	}
	s, ok := t.(*engine.Snapshot)
	if !ok {
		return nil, &engine.Error{Kind: engine.Unsupported, Op: "read"}
	}
	return s.Open(ctx, ino)
}

// globs choose files. A pattern (path.Match) is for names, or for paths from the
// top of the vault if it has a slash. A file must be like one of them, unless there
// is none; one that begins with ! leaves out files and whole directories.
type globs struct{ only, never []string }

func newGlobs(patterns []string) (g globs, err error) {
	for _, p := range patterns {
		glob, never := strings.CutPrefix(p, "!")
		if _, err := path.Match(glob, ""); err != nil {
			return g, &engine.Error{Kind: engine.Invalid, Op: "grep", Path: p, Err: err}
		}
		if never {
			g.never = append(g.never, glob)
		} else {
			g.only = append(g.only, glob)
		}
	}
	return g, nil
}

// visit says whether to search what a walk has found; for a directory that is left
// out the error makes the walk leave out what is below. The top of the walk was asked
// for by name.
func (g globs) visit(p string, a engine.Attr, top bool) (keep bool, err error) {
	switch {
	case !top && like(g.never, p) && a.IsDir():
		return false, engine.SkipDir
	case !a.IsRegular() || !top && like(g.never, p):
		return false, nil
	}
	return top || len(g.only) == 0 || like(g.only, p), nil
}

func like(patterns []string, p string) bool {
	for _, glob := range patterns {
		name := p
		if !strings.Contains(glob, "/") {
			name = path.Base(p)
		}
		if ok, _ := path.Match(strings.TrimPrefix(glob, "/"), name); ok { // newGlobs has seen the pattern
			return true
		}
	}
	return false
}
