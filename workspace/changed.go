package workspace

import (
	"context"
	"encoding/base64"
	"path"
	"strings"

	"github.com/agentvfs/avfs/engine"
)

// changedSince tells which paths below the source of an export are not as they were in
// the state that it names, and which directories lead there.
func (o *Owner) changedSince(ctx context.Context, req ExportRequest, root engine.Root) (func(rel string) bool, error) {
	from, release, err := o.state(ctx, req.Vault, req.Since)
	if err != nil {
		return nil, err
	}
	defer release()
	top := strings.TrimPrefix(path.Clean("/"+string(req.Source)), "/")
	a, err := o.store.Snapshot(root).Resolve(ctx, top, false)
	if err != nil {
		return nil, err
	}
	if !a.IsDir() {
		return nil, &engine.Error{Kind: engine.NotDirectory, Op: "export what changed in", Path: string(req.Source)}
	}
	changes, _, err := o.store.Diff(ctx, from, root, &engine.DiffOptions{Paths: []string{top}})
	if err != nil {
		return nil, err
	}
	keep, trees := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		p, err := exactPathOf(c)
		if err != nil {
			return nil, err
		}
		if c.Kind == engine.Deleted {
			continue
		}
		if c.Kind == engine.Renamed && c.Type == "dir" {
			trees[p] = true // what is in it is at a new path, too
		}
		for ; p != "." && !keep[p]; p = path.Dir(p) {
			keep[p] = true
		}
	}
	return func(rel string) bool {
		p := path.Join(top, rel)
		if keep[p] {
			return true
		}
		for p = path.Dir(p); p != "."; p = path.Dir(p) {
			if trees[p] {
				return true
			}
		}
		return false
	}, nil
}

// exactPathOf is the path of a change in its exact bytes.
func exactPathOf(c engine.FileChange) (string, error) {
	if c.PathB64 == "" {
		return c.Path, nil
	}
	b, err := base64.StdEncoding.DecodeString(c.PathB64)
	return string(b), err
}
