package workspace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentvfs/avfs/engine"
)

// Tags and metadata are user extended attributes, so that they stay with a file
// through everything that keeps those: renames, forks, checkpoints, an export, and
// tools such as cp -a, rsync -X and tar --xattrs.
const (
	tagPrefix  = "user.avfs.tag."
	metaPrefix = "user.avfs.meta."
)

// TagRequest asks to give paths tags, or to take tags away.
type TagRequest struct {
	Vault string   `json:"vault"`
	Tags  []string `json:"tags"`
	Paths []Path   `json:"paths"`
}

// checkLabel rejects what cannot be the name of a tag or of metadata.
func checkLabel(op, prefix, name string) error {
	var err error
	switch {
	case name == "":
		err = errors.New("a name is not empty")
	case len(prefix)+len(name) > engine.MaxXattrName:
		err = fmt.Errorf("a name has at most %d bytes", engine.MaxXattrName-len(prefix))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '=' }):
		err = errors.New("a name is text without '=' and control characters")
	default:
		return nil
	}
	return &engine.Error{Kind: engine.InvalidName, Op: op, Path: name, Err: err}
}

// onTags runs fn for the attribute of every tag at every path. Links are followed:
// an attribute belongs to what they lead to.
func onTags(ctx context.Context, o *Owner, verb string, req TagRequest, fn func(v *engine.Vault, p string, ino engine.Ino, attr string) error) (PathsResult, error) {
	for _, tag := range req.Tags {
		if err := checkLabel(verb, tagPrefix, tag); err != nil {
			return PathsResult{}, err
		}
	}
	return each(ctx, o, verb, PathRequest{Vault: req.Vault, Paths: req.Paths}, func(v *engine.Vault, p string) error {
		a, err := v.Resolve(ctx, p, true)
		if err != nil {
			return err
		}
		for _, tag := range req.Tags {
			if err := fn(v, p, a.Ino, tagPrefix+tag); err != nil {
				return err
			}
		}
		return nil
	})
}

// OpTag gives paths tags. One that a path has already is no error.
var OpTag = Op[TagRequest, PathsResult]{Name: "tag.add", Run: func(ctx context.Context, o *Owner, req TagRequest, _ Streams) (PathsResult, error) {
	return onTags(ctx, o, "tag", req, func(v *engine.Vault, _ string, ino engine.Ino, attr string) error {
		return v.SetXattr(ctx, ino, attr, nil, 0)
	})
}}

// OpUntag takes tags away. One that a path does not have is NotFound.
var OpUntag = Op[TagRequest, PathsResult]{Name: "tag.remove", Run: func(ctx context.Context, o *Owner, req TagRequest, _ Streams) (PathsResult, error) {
	return onTags(ctx, o, "untag", req, func(v *engine.Vault, p string, ino engine.Ino, attr string) error {
		err := v.RemoveXattr(ctx, ino, attr)
		if engine.KindOf(err) == engine.NoAttribute {
			err = &engine.Error{Kind: engine.NotFound, Op: "untag", Path: p, Err: fmt.Errorf("it has no tag %q", strings.TrimPrefix(attr, tagPrefix))}
		}
		return err
	})
}}

// TaggedPath is a path with its tags, in order.
type TaggedPath struct {
	Path    string   `json:"path"`               // U+FFFD stands for bytes that are not UTF-8
	PathB64 string   `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Type    string   `json:"type"`
	Tags    []string `json:"tags"`
}

// OpTagged lists the paths with a tag below some, in path order.
var OpTagged = Op[PathRequest, []TaggedPath]{Name: "tag.list", Run: func(ctx context.Context, o *Owner, req PathRequest, _ Streams) ([]TaggedPath, error) {
	l, err := o.at(ctx, req.Vault, req.Checkpoint, req.Past)
	if err != nil {
		return nil, err
	}
	defer l.close()
	list := []TaggedPath{}
	for _, top := range req.Paths {
		in, top, err := l.find(ctx, top)
		if err != nil {
			return nil, err
		}
		err = in.Walk(ctx, top, func(p string, a engine.Attr) error {
			tags, err := tagsOf(ctx, in, a.Ino)
			if len(tags) > 0 {
				tagged := TaggedPath{Type: typeNames[a.Mode&engine.TypeMask], Tags: tags}
				tagged.Path, tagged.PathB64 = exactly(path.Clean("/" + p))
				list = append(list, tagged)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}}

// attrsOf lists the names of the attributes that begin with a prefix, without it
// and in order.
func attrsOf(ctx context.Context, t tree, ino engine.Ino, prefix string) ([]string, error) {
	all, err := t.ListXattr(ctx, ino)
	if engine.KindOf(err) == engine.NotFound {
		return nil, nil // removed meanwhile
	}
	var names []string
	for _, name := range all {
		if name, ok := strings.CutPrefix(name, prefix); ok && name != "" {
			names = append(names, strings.ToValidUTF8(name, "\uFFFD"))
		}
	}
	slices.Sort(names)
	return names, err
}

func tagsOf(ctx context.Context, t tree, ino engine.Ino) ([]string, error) {
	return attrsOf(ctx, t, ino, tagPrefix)
}

// MetaRequest asks for the metadata of a path, after changing it.
type MetaRequest struct {
	Vault string            `json:"vault"`
	Past  bool              `json:"past,omitempty"` // the path may be PATH@STATE, unless it exists as it is
	Path  Path              `json:"path"`
	Set   map[string]string `json:"set,omitempty"`
	Unset []string          `json:"unset,omitempty"`
}

// Meta is what is noted about a path.
type Meta struct {
	Path    string            `json:"path"`               // U+FFFD stands for bytes that are not UTF-8
	PathB64 string            `json:"path_b64,omitempty"` // the exact bytes where Path is not exact or not plain
	Tags    []string          `json:"tags"`
	Meta    map[string]string `json:"meta"`
}

// OpMeta reads the metadata of a path. Links are followed.
var OpMeta = Op[MetaRequest, Meta]{Name: "meta.get", Run: func(ctx context.Context, o *Owner, req MetaRequest, _ Streams) (Meta, error) {
	l, err := o.at(ctx, req.Vault, "", req.Past)
	if err != nil {
		return Meta{}, err
	}
	defer l.close()
	in, p, err := l.find(ctx, req.Path)
	if err != nil {
		return Meta{}, err
	}
	return metaOf(ctx, in, p)
}}

// OpSetMeta changes the metadata of a path, as one edit, and returns all of it.
var OpSetMeta = Op[MetaRequest, Meta]{Name: "meta.set", Run: func(ctx context.Context, o *Owner, req MetaRequest, _ Streams) (res Meta, err error) {
	for name := range req.Set {
		if err := checkLabel("meta", metaPrefix, name); err != nil {
			return res, err
		}
	}
	err = o.edit(ctx, req.Vault, []string{"meta", string(req.Path)}, func(v *engine.Vault) error {
		a, err := v.Resolve(ctx, string(req.Path), true)
		if err != nil {
			return err
		}
		for name, value := range req.Set {
			if err := v.SetXattr(ctx, a.Ino, metaPrefix+name, []byte(value), 0); err != nil {
				return err
			}
		}
		for _, name := range req.Unset {
			if err := v.RemoveXattr(ctx, a.Ino, metaPrefix+name); err != nil && engine.KindOf(err) != engine.NoAttribute {
				return err
			}
		}
		res, err = metaOf(ctx, v, string(req.Path))
		return err
	})
	return res, err
}}

func metaOf(ctx context.Context, t tree, p string) (Meta, error) {
	m := Meta{Tags: []string{}, Meta: map[string]string{}}
	m.Path, m.PathB64 = exactly(path.Clean("/" + p))
	a, err := t.Resolve(ctx, p, true)
	if err != nil {
		return m, err
	}
	tags, err := tagsOf(ctx, t, a.Ino)
	if err != nil {
		return m, err
	}
	m.Tags = append(m.Tags, tags...)
	names, err := attrsOf(ctx, t, a.Ino, metaPrefix)
	if err != nil {
		return m, err
	}
	for _, name := range names {
		value, err := t.GetXattr(ctx, a.Ino, metaPrefix+name)
		if err != nil {
			return m, err
		}
		m.Meta[name] = strings.ToValidUTF8(string(value), "\uFFFD")
	}
	return m, nil
}

func lookOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpTouch)
	add(all, OpLink)
	add(all, OpFind)
	add(all, OpUsage)
	add(all, OpGrepFiles)
	add(all, OpSearch)
	add(all, OpTag)
	add(all, OpUntag)
	add(all, OpTagged)
	add(all, OpMeta)
	add(all, OpSetMeta)
	return all
}
