package workspace

import (
	"context"
	"errors"
	"path"
	"strings"

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
			return v.Restore(ctx, root, &engine.RestoreOptions{Paths: []string{p}, ID: name, Bounded: strings.HasPrefix(name, "vault:")})
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
	return v.CopyFrom(ctx, from.Root(), p, to, []string{"checkout", string(req.Path), string(req.To)})
}
