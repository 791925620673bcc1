package workspace

import (
	"context"
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

// grepJob is some neighbouring files for a worker. done gets what was found in each of
// those that match, once.
type grepJob struct {
	files []grepFile
	done  chan grepped
}

type grepFile struct {
	path string
	ino  engine.Ino
	size int64
}

type grepped struct {
	found [][]GrepMatch
	err   error
}

const (
	grepAhead    = 64        // so many jobs may be done before the first of them is told of
	grepTogether = 32        // so many small files are read at once
	grepBytes    = 256 << 10 // or so many bytes
)

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
				found, err := s.files(ctx, t, j.files)
				j.done <- grepped{found, err}
			}
		})
	}
	defer workers.Wait()
	walked := make(chan error, 1)
	go func() { // ends with the walk, which ends with ctx
		defer close(order)
		defer close(jobs)
		walked <- grepWalk(ctx, t, top, g, func(files []grepFile) error {
			j := grepJob{files, make(chan grepped, 1)}
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
		r := <-done
		if failed != nil {
			continue
		}
		for _, found := range r.found {
			fn(found)
		}
		if r.err != nil {
			failed = r.err
			cancel()
		}
	}
	if err := <-walked; failed == nil {
		failed = err
	}
	return failed
}

// grepWalk gives the files below top that the globs choose to fn, several at a time.
func grepWalk(ctx context.Context, t tree, top string, g globs, fn func(files []grepFile) error) error {
	var files []grepFile
	var bytes int64
	err := t.Walk(ctx, top, func(p string, a engine.Attr) error {
		if keep, err := g.visit(p, a, path.Clean("/"+top) == path.Clean("/"+p)); !keep {
			return err
		}
		if len(files) == grepTogether || len(files) > 0 && bytes+a.Size > grepBytes {
			if err := fn(files); err != nil {
				return err
			}
			files, bytes = nil, 0
		}
		files = append(files, grepFile{p, a.Ino, a.Size})
		bytes += a.Size
		return nil
	})
	if err == nil && len(files) > 0 {
		err = fn(files)
	}
	return err
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
