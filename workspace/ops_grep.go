package workspace

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// GrepRequest asks for the lines that match a regular expression (RE2).
type GrepRequest struct {
	Vault      string `json:"vault"`
	Checkpoint string `json:"checkpoint,omitempty"` // a state; empty is the present one
	Pattern    string `json:"pattern"`
	Fixed      bool   `json:"fixed,omitempty"` // the pattern is a plain text
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Past       bool   `json:"past,omitempty"` // a path may be PATH@STATE, unless it exists as it is
	Paths      []Path `json:"paths"`
}

// GrepMatch is one matching line.
type GrepMatch struct {
	Path    string `json:"path"`               // U+FFFD stands for bytes that are not UTF-8
	PathB64 string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Line    int    `json:"line"`               // counted from 1
	Text    string `json:"text"`
}

// OpGrep searches files, and directories with everything below them, in path
// order. Binary files, which have a NUL byte early on, are left out.
var OpGrep = Op[GrepRequest, []GrepMatch]{Name: "fs.grep", Run: func(ctx context.Context, o *Owner, req GrepRequest, _ Streams) ([]GrepMatch, error) {
	pattern := req.Pattern
	if req.Fixed {
		pattern = regexp.QuoteMeta(pattern)
	}
	if req.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, &engine.Error{Kind: engine.Invalid, Op: "grep", Path: req.Pattern, Err: err}
	}
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return nil, err
	}
	defer l.close()
	matches := []GrepMatch{}
	for _, top := range req.Paths {
		t, top, err := l.find(ctx, top)
		if err != nil {
			return nil, err
		}
		err = t.Walk(ctx, top, func(p string, a engine.Attr) error {
			if !a.IsRegular() {
				return nil
			}
			found, err := grepFile(ctx, t, p, re)
			matches = append(matches, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return matches, nil
}}

// sniff is how much of a file tells whether it is binary, in bytes.
const sniff = 8 << 10

func grepFile(ctx context.Context, t tree, p string, re *regexp.Regexp) (matches []GrepMatch, err error) {
	f, err := openFile(ctx, t, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := &lines{ctx: ctx, f: f}
	for n := 1; ; n++ {
		line, ok, err := r.next()
		if err != nil || !ok {
			return matches, err
		}
		if n == 1 && bytes.IndexByte(r.buf[:min(len(r.buf), sniff)], 0) >= 0 {
			return nil, nil
		}
		if re.Match(line) {
			m := GrepMatch{Line: n, Text: strings.ToValidUTF8(string(line), "\uFFFD")}
			m.Path, m.PathB64 = exactly("/" + p)
			matches = append(matches, m)
		}
	}
}

// maxLine bounds the line that one match looks at, in bytes; a longer one is cut
// into several.
const maxLine = 1 << 20

// lines reads a file line by line.
type lines struct {
	ctx context.Context // of the operation that reads
	f   fileReader
	off int64
	buf []byte
	eof bool
}

func (r *lines) next() (line []byte, ok bool, err error) {
	for {
		if i := bytes.IndexByte(r.buf, '\n'); i >= 0 {
			line, r.buf = r.buf[:i], r.buf[i+1:]
			return line, true, nil
		}
		if r.eof || len(r.buf) >= maxLine {
			line, r.buf = r.buf, nil
			return line, len(line) > 0, nil
		}
		chunk := make([]byte, 128<<10)
		n, err := r.f.ReadAt(r.ctx, chunk, r.off)
		if err != nil {
			return nil, false, err
		}
		r.off += int64(n)
		r.buf = append(r.buf, chunk[:n]...)
		r.eof = n == 0
	}
}
