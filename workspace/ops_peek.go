package workspace

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// PeekRequest asks for a look at several paths at once.
type PeekRequest struct {
	Vault string `json:"vault"`
	Paths []Path `json:"paths"`
	Bytes int64  `json:"bytes"` // most bytes of one file
	Names int    `json:"names"` // most entries of one directory
}

// Peek is what a path holds. Nothing is there where Type is empty.
type Peek struct {
	Type    string      `json:"type"`              // as in Entry; "symlink" only for one that leads out of the vault
	Real    Path        `json:"real,omitempty"`    // the path without symbolic links
	Data    []byte      `json:"data,omitempty"`    // of a file
	Entries []PeekEntry `json:"entries,omitempty"` // of a directory, sorted by name
	More    bool        `json:"more,omitempty"`    // the limit cut something off
}

// PeekEntry is one entry of a directory. A symbolic link shows as what it leads to.
type PeekEntry struct {
	Name Path   `json:"name"`
	Type string `json:"type"`
	Mode uint32 `json:"mode"` // permission bits
}

// OpPeek looks at paths that may or may not exist: a caller that decides by what is
// there needs one round trip and no order of questions. What a path cannot be
// resolved to is not there; a store that cannot be read is an error.
var OpPeek = Op[PeekRequest, []Peek]{Name: "fs.peek", Run: func(ctx context.Context, o *Owner, req PeekRequest, _ Streams) ([]Peek, error) {
	t, err := o.vault(ctx, req.Vault)
	if err != nil {
		return nil, err
	}
	list := make([]Peek, len(req.Paths))
	for i, p := range req.Paths {
		if list[i], err = peek(ctx, t, string(p), req); err != nil {
			return nil, err
		}
	}
	return list, nil
}}

func peek(ctx context.Context, t tree, p string, req PeekRequest) (Peek, error) {
	a, real, out, err := resolveInside(ctx, t, p)
	switch {
	case out:
		return Peek{Type: "symlink"}, nil
	case absent(err):
		return Peek{}, nil
	case err != nil:
		return Peek{}, err
	}
	got := Peek{Type: typeNames[a.Mode&engine.TypeMask], Real: Path(real)}
	switch {
	case a.IsDir():
		return peekDir(ctx, t, a, got, req.Names)
	case a.Mode&engine.TypeMask == engine.TypeRegular:
		got.More = a.Size > req.Bytes
		got.Data = make([]byte, min(a.Size, req.Bytes))
		f, err := openFile(ctx, t, real)
		if err != nil {
			return got, err
		}
		n, err := f.ReadAt(ctx, got.Data, 0)
		got.Data = got.Data[:n]
		return got, errors.Join(err, f.Close())
	}
	return got, nil
}

func peekDir(ctx context.Context, t tree, a engine.Attr, got Peek, most int) (Peek, error) {
	err := t.ReadDir(ctx, a.Ino, "", func(d engine.DirEntry) error {
		if len(got.Entries) >= most {
			got.More = true
			return nil
		}
		child, _, out, err := resolveInside(ctx, t, path.Join(string(got.Real), d.Name))
		e := PeekEntry{Name: Path(d.Name), Type: typeNames[child.Mode&engine.TypeMask], Mode: child.Mode & 0o7777}
		switch {
		case out:
			e.Type, e.Mode = "symlink", 0o777
		case absent(err):
			return nil
		case err != nil:
			return err
		}
		got.Entries = append(got.Entries, e)
		return nil
	})
	return got, err
}

// absent reports whether err says that there is nothing at a path.
func absent(err error) bool {
	switch engine.KindOf(err) {
	case engine.NotFound, engine.NotDirectory, engine.Loop, engine.NameTooLong, engine.InvalidName:
		return true
	}
	return false
}

// maxPeekLinks bounds the symbolic links on one path, as the kernel does.
const maxPeekLinks = 40

// resolveInside finds what a path leads to, following symbolic links as the kernel
// would in a mount. out reports that one of them leads out of the vault, where
// Resolve would take the vault for the whole world.
func resolveInside(ctx context.Context, t tree, p string) (a engine.Attr, at string, out bool, err error) {
	at = "/"
	rest := splitPath(p)
	links := 0
	if a, err = t.Resolve(ctx, at, false); err != nil {
		return a, at, false, err
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			if at == "/" {
				return a, at, true, nil
			}
			at = path.Dir(at)
		} else {
			at = path.Join(at, name)
		}
		if a, err = t.Resolve(ctx, at, false); err != nil {
			return a, at, false, err
		}
		if !a.IsSymlink() {
			continue
		}
		if links++; links > maxPeekLinks {
			return a, at, false, &engine.Error{Kind: engine.Loop, Op: "peek", Path: p}
		}
		target, err := t.Readlink(ctx, a.Ino)
		if err != nil {
			return a, at, false, err
		}
		if strings.HasPrefix(target, "/") {
			return a, at, true, nil
		}
		at = path.Dir(at)
		rest = append(splitPath(target), rest...)
	}
	return a, at, false, nil
}

// splitPath gives the names of a path, ".." among them.
func splitPath(p string) []string {
	var names []string
	for name := range strings.SplitSeq(p, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}
