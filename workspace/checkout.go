package workspace

import (
	"context"
	"errors"
	"io"
	"path"

	"github.com/agentvfs/avfs/engine"
)

// CheckoutRequest asks to bring a path back from another state.
type CheckoutRequest struct {
	Vault string `json:"vault"`
	Path  Path   `json:"path"` // PATH@STATE
	// To is another place for it, which must be free, or a directory to put it into.
	// Empty is the path itself: it becomes what it was, with everything below it.
	To Path `json:"to,omitempty"`
}

// OpCheckout brings a file, or a directory with everything below it, back from another
// state, as one event.
var OpCheckout = Op[CheckoutRequest, engine.RestoreResult]{Name: "checkout",
	Run: func(ctx context.Context, o *Owner, req CheckoutRequest, s Streams) (engine.RestoreResult, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return engine.RestoreResult{}, err
		}
		p, name, ok := splitPast(string(req.Path))
		if !ok {
			return engine.RestoreResult{}, &engine.Error{Kind: engine.Invalid, Op: "checkout", Path: string(req.Path),
				Err: errors.New("name a path and a state: PATH@STATE")}
		}
		done, err := o.turn(ctx, req.Vault, true, s.Exec)
		if err != nil {
			return engine.RestoreResult{}, err
		}
		defer done()
		root, release, err := o.state(ctx, req.Vault, name)
		if err != nil {
			return engine.RestoreResult{}, err
		}
		defer release()
		from := o.store.Snapshot(root)
		if _, err := from.Resolve(ctx, p, false); err != nil {
			return engine.RestoreResult{}, err
		}
		if err := o.flush(ctx, req.Vault); err != nil {
			return engine.RestoreResult{}, err
		}
		if req.To == "" {
			return v.Restore(ctx, root, &engine.RestoreOptions{Paths: []string{p}, ID: name})
		}
		return o.checkoutTo(ctx, req, from, p)
	}}

// checkoutTo copies a path of another state to a new place.
func (o *Owner) checkoutTo(ctx context.Context, req CheckoutRequest, from *engine.Snapshot, p string) (res engine.RestoreResult, err error) {
	v, err := o.vault(ctx, req.Vault)
	if err != nil {
		return res, err
	}
	to := path.Clean("/" + string(req.To))
	if a, err := v.Resolve(ctx, to, true); err == nil && a.IsDir() {
		to = path.Join(to, path.Base(path.Clean("/"+p)))
	}
	if _, err := v.Resolve(ctx, to, false); engine.KindOf(err) != engine.NotFound {
		if err == nil {
			err = &engine.Error{Kind: engine.Exists, Op: "checkout", Path: to}
		}
		return res, err
	}
	before, err := v.Pin(ctx)
	if err != nil {
		return res, err
	}
	defer v.Unpin(before)
	err = o.edit(ctx, req.Vault, []string{"checkout", string(req.Path), string(req.To)}, func(v *engine.Vault) error {
		c := &copier{from: from, to: v, made: map[engine.Ino]engine.Ino{}}
		return c.copy(ctx, p, to)
	})
	if err != nil {
		return res, err
	}
	if res.Root, err = v.Pin(ctx); err != nil {
		return res, err
	}
	defer v.Unpin(res.Root)
	res.Changes, res.Changed, err = o.store.Diff(ctx, before, res.Root, &engine.DiffOptions{Paths: []string{to}})
	return res, err
}

// copier copies from a past state into a vault. Content that the store has is not
// stored again.
type copier struct {
	from *engine.Snapshot
	to   *engine.Vault
	made map[engine.Ino]engine.Ino // files with several names: there, here
}

// copy makes to what p is in the past state. Nothing is at to.
func (c *copier) copy(ctx context.Context, p, to string) error {
	a, err := c.from.Resolve(ctx, p, false)
	if err != nil {
		return err
	}
	if ino, ok := c.made[a.Ino]; ok && !a.IsDir() {
		return c.to.LinkAt(ctx, ino, to, false)
	}
	if err := c.make(ctx, a, to); err != nil {
		return err
	}
	here, err := c.to.Resolve(ctx, to, false)
	if err != nil {
		return err
	}
	c.made[a.Ino] = here.Ino
	if a.IsDir() {
		err := c.from.ReadDir(ctx, a.Ino, "", func(e engine.DirEntry) error {
			return c.copy(ctx, p+"/"+e.Name, to+"/"+e.Name)
		})
		if err != nil {
			return err
		}
	}
	return c.describe(ctx, a, here.Ino)
}

// make makes an inode of the type of a, with its content.
func (c *copier) make(ctx context.Context, a engine.Attr, to string) error {
	own := engine.Owner{UID: a.UID, GID: a.GID}
	switch {
	case a.IsDir():
		_, err := c.to.MkdirAt(ctx, to, 0o700, own)
		return err
	case a.IsSymlink():
		target, err := c.from.Readlink(ctx, a.Ino)
		if err != nil {
			return err
		}
		return c.to.SymlinkAt(ctx, target, to, own, false)
	case a.IsRegular():
		f, err := c.from.Open(ctx, a.Ino)
		if err != nil {
			return err
		}
		_, err = c.to.WriteFile(ctx, to, &sequential{ctx: ctx, f: f}, &engine.WriteOptions{Perm: 0o600, Owner: &own, Create: true})
		return errors.Join(err, f.Close())
	}
	dir, err := c.to.Resolve(ctx, path.Dir(to), true)
	if err != nil {
		return err
	}
	_, err = c.to.Mknod(ctx, dir.Ino, path.Base(to), a.Mode, a.Rdev, own)
	return err
}

// describe gives an inode the attributes of a.
func (c *copier) describe(ctx context.Context, a engine.Attr, ino engine.Ino) error {
	names, err := c.from.ListXattr(ctx, a.Ino)
	if err != nil {
		return err
	}
	for _, name := range names {
		value, err := c.from.GetXattr(ctx, a.Ino, name)
		if err != nil {
			return err
		}
		if err := c.to.SetXattr(ctx, ino, name, value, 0); err != nil {
			return err
		}
	}
	set := engine.SetAttr{UID: &a.UID, GID: &a.GID, Atime: &a.Atime, Mtime: &a.Mtime}
	if !a.IsSymlink() {
		set.Mode = &a.Mode
	}
	_, err = c.to.SetAttr(ctx, ino, set)
	return err
}

// sequential reads a file of a past state from the start on.
type sequential struct {
	ctx context.Context
	f   *engine.SnapshotFile
	off int64
}

// Read implements io.Reader.
func (r *sequential) Read(p []byte) (int, error) {
	n, err := r.f.ReadAt(r.ctx, p, r.off)
	r.off += int64(n)
	if err == nil && n == 0 && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}
