package workspace

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// TouchRequest asks to set times of paths, which are made where they are missing.
type TouchRequest struct {
	Vault     string     `json:"vault"`
	Paths     []Path     `json:"paths"`
	NoCreate  bool       `json:"no_create,omitempty"` // what is missing is left out
	Time      *time.Time `json:"time,omitempty"`      // nil is now
	Reference Path       `json:"reference,omitempty"` // take the times of this path instead
	Access    bool       `json:"access,omitempty"`    // set the access time; neither of the two is both
	Modify    bool       `json:"modify,omitempty"`    // set the modification time
}

// OpTouch sets times. Symbolic links are followed. Without a time both times are
// the same moment for all paths.
var OpTouch = Op[TouchRequest, PathsResult]{Name: "fs.touch", Run: func(ctx context.Context, o *Owner, req TouchRequest, _ Streams) (PathsResult, error) {
	if req.Time == nil {
		now := time.Now()
		req.Time = &now
	}
	return each(ctx, o, "touch", PathRequest{Vault: req.Vault, Paths: req.Paths}, func(v *engine.Vault, p string) error {
		set, err := req.times(ctx, v)
		if err != nil {
			return err
		}
		a, err := v.Resolve(ctx, p, true)
		switch {
		case engine.KindOf(err) == engine.NotFound && req.NoCreate:
			return nil
		case engine.KindOf(err) == engine.NotFound:
			if _, err = v.WriteFile(ctx, p, eof{}, &engine.WriteOptions{Append: true}); err == nil {
				a, err = v.Resolve(ctx, p, true)
			}
		}
		if err == nil {
			_, err = v.SetAttr(ctx, a.Ino, set)
		}
		return err
	})
}}

// times are the attributes that a touch sets.
func (req *TouchRequest) times(ctx context.Context, v *engine.Vault) (set engine.SetAttr, err error) {
	atime := req.Time.UnixNano()
	mtime := atime
	if req.Reference != "" {
		a, err := v.Resolve(ctx, string(req.Reference), true)
		if err != nil {
			return set, err
		}
		atime, mtime = a.Atime, a.Mtime
	}
	if req.Access || !req.Modify {
		set.Atime = &atime
	}
	if req.Modify || !req.Access {
		set.Mtime = &mtime
	}
	return set, nil
}

// LinkRequest asks for further names of files, or for symbolic links to texts:
// several in a directory, or one at a new path.
type LinkRequest struct {
	Vault    string `json:"vault"`
	From     []Path `json:"from"`
	To       Path   `json:"to"`
	Symbolic bool   `json:"symbolic,omitempty"`
	Force    bool   `json:"force,omitempty"` // a file that is in the way is replaced
}

// OpLink makes links. The target of a symbolic link is kept byte for byte and need
// not exist.
var OpLink = Op[LinkRequest, PathsResult]{Name: "fs.link", Run: func(ctx context.Context, o *Owner, req LinkRequest, _ Streams) (PathsResult, error) {
	res := PathsResult{Paths: []Path{}}
	command := append(append([]string{"ln"}, texts(req.From)...), string(req.To))
	err := o.edit(ctx, req.Vault, command, func(v *engine.Vault) error {
		pairs, err := targets(ctx, v, CopyRequest{From: req.From, To: req.To})
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := req.link(ctx, v, p[0], p[1]); err != nil {
				return err
			}
			res.Paths = append(res.Paths, Path(path.Clean("/"+p[1])))
		}
		return nil
	})
	return res, err
}}

func (req *LinkRequest) link(ctx context.Context, v *engine.Vault, from, to string) error {
	if req.Symbolic {
		return v.SymlinkAt(ctx, from, to, owner(), req.Force)
	}
	a, err := v.Resolve(ctx, strings.TrimRight(from, "/"), false)
	if err != nil {
		return err
	}
	return v.LinkAt(ctx, a.Ino, to, req.Force)
}
