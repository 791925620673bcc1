package workspace

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// FindRequest asks for the paths below some that meet every condition. A field
// that is not set is no condition.
type FindRequest struct {
	Vault      string     `json:"vault"`
	Checkpoint string     `json:"checkpoint,omitempty"` // a state; empty is the present one
	Past       bool       `json:"past,omitempty"`       // a path may be PATH@STATE, unless it exists as it is
	Paths      []Path     `json:"paths"`
	Names      []string   `json:"names,omitempty"`     // the name is like one of these patterns (path.Match)
	FoldCase   bool       `json:"fold_case,omitempty"` // upper and lower case are the same in names
	Types      []string   `json:"types,omitempty"`     // one of these, as Entry has them
	MinSize    *int64     `json:"min_size,omitempty"`  // bytes
	MaxSize    *int64     `json:"max_size,omitempty"`  // bytes
	After      *time.Time `json:"after,omitempty"`     // modified later than this
	Before     *time.Time `json:"before,omitempty"`    // modified earlier than this
	Newer      Path       `json:"newer,omitempty"`     // modified later than this path
	Tags       []string   `json:"tags,omitempty"`      // has all of these
	Meta       []string   `json:"meta,omitempty"`      // has all of these, as KEY or KEY=VALUE
	MinDepth   int        `json:"min_depth,omitempty"` // at least so far below its top
	MaxDepth   *int       `json:"max_depth,omitempty"` // at most so far below its top
}

// OpFind lists paths in path order, a directory before what is below it. Symbolic
// links are not followed, and only a file has a size here.
var OpFind = Op[FindRequest, []Entry]{Name: "fs.find", Run: func(ctx context.Context, o *Owner, req FindRequest, _ Streams) ([]Entry, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if req.Newer != "" {
		in, p, err := l.find(ctx, req.Newer)
		if err != nil {
			return nil, err
		}
		a, err := in.Resolve(ctx, p, true)
		if err != nil {
			return nil, err
		}
		if at := time.Unix(0, a.Mtime); req.After == nil || at.After(*req.After) {
			req.After = &at
		}
	}
	list := []Entry{}
	for _, top := range req.Paths {
		in, top, err := l.find(ctx, top)
		if err != nil {
			return nil, err
		}
		err = in.Walk(ctx, top, func(p string, a engine.Attr) error {
			depth := depthBelow(top, p)
			if ok, err := req.meets(ctx, in, p, a, depth); err != nil {
				return err
			} else if ok {
				e, err := entry(ctx, in, p, a)
				if err != nil {
					return err
				}
				list = append(list, e)
			}
			if a.IsDir() && req.MaxDepth != nil && depth >= *req.MaxDepth {
				return engine.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}}

// depthBelow is how far p, as a walk gives it, is below the top of the walk.
func depthBelow(top, p string) int {
	top = path.Clean("/" + top)
	rest := strings.TrimPrefix("/"+p, top)
	if rest == "" {
		return 0
	}
	return strings.Count("/"+strings.TrimPrefix(rest, "/"), "/")
}

// check rejects patterns and types that nothing can have.
func (req *FindRequest) check() error {
	for _, pattern := range req.Names {
		if _, err := path.Match(pattern, ""); err != nil {
			return &engine.Error{Kind: engine.Invalid, Op: "find", Path: pattern, Err: err}
		}
	}
	for _, want := range req.Meta {
		key, _, _ := strings.Cut(want, "=")
		if err := checkLabel("find", metaPrefix, key); err != nil {
			return err
		}
	}
	for _, name := range req.Types {
		known := false
		for _, n := range typeNames {
			known = known || n == name
		}
		if !known {
			return &engine.Error{Kind: engine.Invalid, Op: "find", Path: name, Err: errUnknownType}
		}
	}
	return nil
}

// meets reports whether a path meets the conditions; those that cost most come last.
func (req *FindRequest) meets(ctx context.Context, t tree, p string, a engine.Attr, depth int) (bool, error) {
	if depth < req.MinDepth || len(req.Types) > 0 && !slices.Contains(req.Types, typeNames[a.Mode&engine.TypeMask]) {
		return false, nil
	}
	if req.MinSize != nil || req.MaxSize != nil {
		if !a.IsRegular() || req.MinSize != nil && a.Size < *req.MinSize || req.MaxSize != nil && a.Size > *req.MaxSize {
			return false, nil
		}
	}
	at := time.Unix(0, a.Mtime)
	if req.After != nil && !at.After(*req.After) || req.Before != nil && !at.Before(*req.Before) {
		return false, nil
	}
	if !req.named(path.Base("/" + p)) {
		return false, nil
	}
	return req.labelled(ctx, t, a.Ino)
}

// labelled reports whether an inode has the tags and the metadata that are asked for.
func (req *FindRequest) labelled(ctx context.Context, t tree, ino engine.Ino) (bool, error) {
	for _, want := range req.Meta {
		key, value, compare := strings.Cut(want, "=")
		got, err := t.GetXattr(ctx, ino, metaPrefix+key)
		switch {
		case engine.KindOf(err) == engine.NoAttribute:
			return false, nil
		case err != nil:
			return false, err
		case compare && string(got) != value:
			return false, nil
		}
	}
	if len(req.Tags) == 0 {
		return true, nil
	}
	tags, err := tagsOf(ctx, t, ino)
	for _, want := range req.Tags {
		if !slices.Contains(tags, want) {
			return false, err
		}
	}
	return err == nil, err
}

func (req *FindRequest) named(name string) bool {
	if len(req.Names) == 0 {
		return true
	}
	if req.FoldCase {
		name = strings.ToLower(name)
	}
	for _, pattern := range req.Names {
		if req.FoldCase {
			pattern = strings.ToLower(pattern)
		}
		if ok, _ := path.Match(pattern, name); ok { // check has seen the pattern
			return true
		}
	}
	return false
}
