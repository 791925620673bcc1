package workspace

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentvfs/avfs/engine"
)

// Entry describes one file, directory or other inode at a path.
type Entry struct {
	Name    string    `json:"name"`               // U+FFFD stands for bytes that are not UTF-8
	NameB64 string    `json:"name_b64,omitempty"` // the exact bytes where Name is not exact or not plain
	Path    string    `json:"path"`               // likewise
	PathB64 string    `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Type    string    `json:"type"`               // file, dir, symlink, fifo, socket, char, block
	Mode    string    `json:"mode"`               // permission bits in octal
	Size    int64     `json:"size"`               // bytes
	Blocks  int64     `json:"blocks"`
	UID     uint32    `json:"uid"`
	GID     uint32    `json:"gid"`
	Nlink   uint32    `json:"nlink"`
	Ino     uint64    `json:"ino"`
	Mtime   time.Time `json:"mtime"`
	Ctime   time.Time `json:"ctime"`
	Btime   time.Time `json:"btime"`
	Target  string    `json:"target,omitempty"` // of a symbolic link
	Depth   *int      `json:"depth,omitempty"`  // in a tree only: how far below its top
}

// exactly gives a name as UTF-8 and, where that or a line of text could not carry
// it, its bytes in base64.
func exactly(name string) (text, b64 string) {
	text = name
	plain := utf8.ValidString(name)
	if !plain {
		text = strings.ToValidUTF8(name, "\uFFFD")
	}
	if plain && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return text, ""
	}
	return text, base64.StdEncoding.EncodeToString([]byte(name))
}

var typeNames = map[uint32]string{
	engine.TypeDir: "dir", engine.TypeSymlink: "symlink", engine.TypeRegular: "file", engine.TypeFIFO: "fifo",
	engine.TypeSocket: "socket", engine.TypeChar: "char", engine.TypeBlock: "block",
}

// tree is what a path can be looked up in: a vault or a snapshot of one.
type tree interface {
	Resolve(ctx context.Context, p string, follow bool) (engine.Attr, error)
	Stat(ctx context.Context, ino engine.Ino) (engine.Attr, error)
	Readlink(ctx context.Context, ino engine.Ino) (string, error)
	ListXattr(ctx context.Context, ino engine.Ino) ([]string, error)
	GetXattr(ctx context.Context, ino engine.Ino, name string) ([]byte, error)
	ReadDir(ctx context.Context, dir engine.Ino, after string, fn func(engine.DirEntry) error) error
	Walk(ctx context.Context, p string, fn func(path string, a engine.Attr) error) error
}

func entry(ctx context.Context, t tree, p string, a engine.Attr) (Entry, error) {
	e := Entry{
		Type: typeNames[a.Mode&engine.TypeMask], Mode: fmt.Sprintf("%04o", a.Mode&0o7777), Size: a.Size, Blocks: a.Blocks,
		UID: a.UID, GID: a.GID, Nlink: a.Nlink, Ino: uint64(a.Ino),
		Mtime: time.Unix(0, a.Mtime).UTC(), Ctime: time.Unix(0, a.Ctime).UTC(), Btime: time.Unix(0, a.Btime).UTC(),
	}
	clean := path.Clean("/" + p)
	e.Name, e.NameB64 = exactly(path.Base(clean))
	e.Path, e.PathB64 = exactly(clean)
	if a.IsSymlink() {
		target, err := t.Readlink(ctx, a.Ino)
		if err != nil {
			return e, err
		}
		e.Target = strings.ToValidUTF8(target, "\uFFFD")
	}
	return e, nil
}

// PathRequest names paths in a vault, or in one of its states.
type PathRequest struct {
	Vault      string `json:"vault"`
	Checkpoint string `json:"checkpoint,omitempty"` // a state; empty is the present one
	Past       bool   `json:"past,omitempty"`       // a path may be PATH@STATE, unless it exists as it is
	Paths      []Path `json:"paths"`
	Recursive  bool   `json:"recursive,omitempty"`
	Parents    bool   `json:"parents,omitempty"`
	Force      bool   `json:"force,omitempty"`
	Follow     bool   `json:"follow,omitempty"`
	Depth      int    `json:"depth,omitempty"` // of a tree; 0 is no limit
	Mode       uint32 `json:"mode,omitempty"`
}

// OpList lists directories, sorted by name; a path that is no directory lists
// itself.
var OpList = Op[PathRequest, []Entry]{Name: "fs.list", Run: func(ctx context.Context, o *Owner, req PathRequest, _ Streams) ([]Entry, error) {
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return nil, err
	}
	defer l.close()
	list := []Entry{}
	for _, p := range req.Paths {
		in, p, err := l.find(ctx, p)
		if err != nil {
			return nil, err
		}
		if list, err = appendList(ctx, in, list, p); err != nil {
			return nil, err
		}
	}
	return list, nil
}}

func appendList(ctx context.Context, t tree, list []Entry, p string) ([]Entry, error) {
	a, err := t.Resolve(ctx, p, true)
	if err != nil {
		return nil, err
	}
	if !a.IsDir() {
		e, err := entry(ctx, t, p, a)
		return append(list, e), err
	}
	err = t.ReadDir(ctx, a.Ino, "", func(d engine.DirEntry) error {
		child, err := t.Stat(ctx, d.Ino)
		if engine.KindOf(err) == engine.NotFound {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		e, err := entry(ctx, t, path.Join("/", p)+"/"+d.Name, child)
		list = append(list, e)
		return err
	})
	return list, err
}

// OpStat describes paths; links are not followed unless asked.
var OpStat = Op[PathRequest, []Entry]{Name: "fs.stat", Run: func(ctx context.Context, o *Owner, req PathRequest, _ Streams) ([]Entry, error) {
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return nil, err
	}
	defer l.close()
	list := []Entry{}
	for _, p := range req.Paths {
		in, p, err := l.find(ctx, p)
		if err != nil {
			return nil, err
		}
		a, err := in.Resolve(ctx, p, req.Follow)
		if err != nil {
			return nil, err
		}
		e, err := entry(ctx, in, p, a)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}}

// OpTree lists paths with everything below them, a directory before its entries.
var OpTree = Op[PathRequest, []Entry]{Name: "fs.tree", Run: func(ctx context.Context, o *Owner, req PathRequest, _ Streams) ([]Entry, error) {
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return nil, err
	}
	defer l.close()
	list := []Entry{}
	for _, top := range req.Paths {
		t, top, err := l.find(ctx, top)
		if err != nil {
			return nil, err
		}
		base := strings.Count(path.Clean("/"+top), "/")
		if path.Clean("/"+top) == "/" {
			base = 0
		}
		err = t.Walk(ctx, top, func(p string, a engine.Attr) error {
			depth := 0
			if p != "" {
				depth = strings.Count(p, "/") + 1 - base
			}
			e, err := entry(ctx, t, p, a)
			e.Depth = &depth
			list = append(list, e)
			if err == nil && a.IsDir() && req.Depth > 0 && depth >= req.Depth {
				err = engine.SkipDir
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}}

// OpRead writes the content of files to the output stream, one after the other.
var OpRead = Op[PathRequest, Nothing]{Name: "fs.read", Run: func(ctx context.Context, o *Owner, req PathRequest, s Streams) (Nothing, error) {
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return Nothing{}, err
	}
	defer l.close()
	for _, p := range req.Paths {
		in, p, err := l.find(ctx, p)
		if err != nil {
			return Nothing{}, err
		}
		if err := readFile(ctx, in, p, s.out()); err != nil {
			return Nothing{}, err
		}
	}
	return Nothing{}, nil
}}

type fileReader interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Close() error
}

func openFile(ctx context.Context, t tree, p string) (fileReader, error) {
	a, err := t.Resolve(ctx, p, true)
	if err != nil {
		return nil, err
	}
	var f fileReader
	switch t := t.(type) {
	case *engine.Vault:
		f, err = t.Open(ctx, a.Ino, engine.OpenRead)
	case *engine.Snapshot:
		f, err = t.Open(ctx, a.Ino)
	}
	if err != nil {
		return nil, &engine.Error{Kind: engine.KindOf(err), Op: "read", Path: p}
	}
	return f, nil
}

func readFile(ctx context.Context, t tree, p string, w io.Writer) error {
	f, err := openFile(ctx, t, p)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for off := int64(0); err == nil; {
		var n int
		n, err = f.ReadAt(ctx, buf, off)
		if err != nil || n == 0 {
			break
		}
		off += int64(n)
		_, err = w.Write(buf[:n])
	}
	return errors.Join(err, f.Close())
}

// WriteRequest asks to write the input stream to a file.
type WriteRequest struct {
	Vault   string `json:"vault"`
	Path    Path   `json:"path"`
	Append  bool   `json:"append,omitempty"`
	Create  bool   `json:"create,omitempty"`  // fail if the file exists
	Parents bool   `json:"parents,omitempty"` // make missing directories
	Mode    uint32 `json:"mode,omitempty"`    // of a new file
}

// WriteResult says what was written.
type WriteResult struct {
	Path    string `json:"path"`
	PathB64 string `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Bytes   int64  `json:"bytes"`
}

// OpWrite writes the input stream to a file, durably, when all of it is there.
var OpWrite = Op[WriteRequest, WriteResult]{Name: "fs.write", In: true, Run: func(ctx context.Context, o *Owner, req WriteRequest, s Streams) (WriteResult, error) {
	clean := path.Clean("/" + string(req.Path))
	res := WriteResult{}
	res.Path, res.PathB64 = exactly(clean)
	v, err := o.vault(ctx, req.Vault)
	if err != nil {
		return res, err
	}
	if err := req.possible(ctx, v); err != nil {
		return res, err
	}
	in, size, done, err := o.gather(ctx, v, s.in())
	if err != nil {
		return res, err
	}
	err = o.edit(ctx, req.Vault, []string{"write", res.Path}, func(v *engine.Vault) (err error) {
		if req.Parents {
			if _, err := v.MkdirAll(ctx, path.Dir(clean), 0o755, owner()); err != nil {
				return err
			}
		}
		res.Bytes, err = v.WriteFile(ctx, string(req.Path), in, &engine.WriteOptions{Perm: req.Mode, Append: req.Append, Create: req.Create, Size: size})
		return err
	})
	return res, errors.Join(err, done())
}}

// possible refuses what cannot be written as things are, before any input is read.
func (req *WriteRequest) possible(ctx context.Context, v *engine.Vault) error {
	refuse := func(k engine.Kind) error {
		return &engine.Error{Kind: k, Op: "write", Path: string(req.Path)}
	}
	a, err := v.Resolve(ctx, string(req.Path), true)
	switch {
	case err == nil && a.IsDir():
		return refuse(engine.IsDirectory)
	case err == nil && req.Create:
		return refuse(engine.Exists)
	case engine.KindOf(err) != engine.NotFound || req.Parents:
		return nil
	}
	up, err := v.Resolve(ctx, path.Dir(path.Clean("/"+string(req.Path))), true)
	if err == nil && !up.IsDir() {
		return refuse(engine.NotDirectory)
	}
	if engine.KindOf(err) == engine.NotFound {
		return refuse(engine.NotFound)
	}
	return err
}

// PathsResult lists the paths that an operation made or removed.
type PathsResult struct {
	Paths []Path `json:"paths"`
}

// each runs fn for every path, as one edit with the name of verb.
func each(ctx context.Context, o *Owner, verb string, req PathRequest, fn func(v *engine.Vault, p string) error) (PathsResult, error) {
	res := PathsResult{Paths: []Path{}}
	paths := texts(req.Paths)
	err := o.edit(ctx, req.Vault, append([]string{verb}, paths...), func(v *engine.Vault) error {
		for _, p := range paths {
			if err := fn(v, p); err != nil {
				return err
			}
			res.Paths = append(res.Paths, Path(path.Clean("/"+p)))
		}
		return nil
	})
	return res, err
}

// OpMkdir makes directories.
var OpMkdir = Op[PathRequest, PathsResult]{Name: "fs.mkdir", Run: func(ctx context.Context, o *Owner, req PathRequest, _ Streams) (PathsResult, error) {
	mode := req.Mode
	if mode == 0 {
		mode = 0o755
	}
	return each(ctx, o, "mkdir", req, func(v *engine.Vault, p string) error {
		if req.Parents {
			_, err := v.MkdirAll(ctx, p, mode, owner())
			return err
		}
		_, err := v.MkdirAt(ctx, p, mode, owner())
		return err
	})
}}

// OpRemove removes files, and directories with all below them if asked.
var OpRemove = Op[PathRequest, PathsResult]{Name: "fs.remove", Run: func(ctx context.Context, o *Owner, req PathRequest, _ Streams) (PathsResult, error) {
	return each(ctx, o, "rm", req, func(v *engine.Vault, p string) error {
		a, err := v.Resolve(ctx, p, false)
		switch {
		case engine.KindOf(err) == engine.NotFound && req.Force:
			return nil
		case err != nil:
			return err
		case a.IsDir() && !req.Recursive:
			return &engine.Error{Kind: engine.IsDirectory, Op: "remove", Path: p, Err: errors.New("is a directory (use -r)")}
		case a.IsDir():
			return v.RemoveAll(ctx, p)
		}
		return v.Remove(ctx, p)
	})
}}

// CopyRequest asks to copy or move paths: several into a directory, or one to a
// new path.
type CopyRequest struct {
	Vault     string `json:"vault"`
	From      []Path `json:"from"`
	To        Path   `json:"to"`
	Recursive bool   `json:"recursive,omitempty"`
}

// targets pairs every source with its full target.
func targets(ctx context.Context, v *engine.Vault, req CopyRequest) ([][2]string, error) {
	into := string(req.To)
	a, err := v.Resolve(ctx, into, true)
	dir := err == nil && a.IsDir()
	if !dir && (len(req.From) > 1 || strings.HasSuffix(into, "/")) {
		return nil, &engine.Error{Kind: engine.NotDirectory, Op: "copy", Path: into}
	}
	var pairs [][2]string
	for _, from := range texts(req.From) {
		to := into
		if dir {
			to = strings.TrimRight(to, "/") + "/" + path.Base(path.Clean("/"+from))
		}
		pairs = append(pairs, [2]string{from, to})
	}
	return pairs, nil
}

func transferOp(name, verb string, do func(ctx context.Context, v *engine.Vault, from, to string, recursive bool) error) Op[CopyRequest, PathsResult] {
	return Op[CopyRequest, PathsResult]{Name: name, Run: func(ctx context.Context, o *Owner, req CopyRequest, _ Streams) (PathsResult, error) {
		res := PathsResult{Paths: []Path{}}
		command := append(append([]string{verb}, texts(req.From)...), string(req.To))
		err := o.edit(ctx, req.Vault, command, func(v *engine.Vault) error {
			pairs, err := targets(ctx, v, req)
			if err != nil {
				return err
			}
			for _, p := range pairs {
				if err := do(ctx, v, p[0], p[1], req.Recursive); err != nil {
					return err
				}
				res.Paths = append(res.Paths, Path(path.Clean("/"+p[1])))
			}
			return nil
		})
		return res, err
	}}
}

// OpMove renames.
var OpMove = transferOp("fs.move", "mv", func(ctx context.Context, v *engine.Vault, from, to string, _ bool) error {
	return v.Move(ctx, from, to)
})

// OpCopy copies within a vault.
var OpCopy = transferOp("fs.copy", "cp", func(ctx context.Context, v *engine.Vault, from, to string, recursive bool) error {
	return v.Copy(ctx, from, to, recursive)
})

func owner() engine.Owner {
	uid, gid := ids()
	return engine.Owner{UID: uid, GID: gid}
}

func fileOps() map[string]handler {
	all := map[string]handler{}
	for _, op := range []Op[PathRequest, []Entry]{OpList, OpStat, OpTree} {
		add(all, op)
	}
	for _, op := range []Op[PathRequest, PathsResult]{OpMkdir, OpRemove} {
		add(all, op)
	}
	for _, op := range []Op[CopyRequest, PathsResult]{OpMove, OpCopy} {
		add(all, op)
	}
	add(all, OpRead)
	add(all, OpWrite)
	add(all, OpEdit)
	add(all, OpGrep)
	add(all, OpPeek)
	return all
}
