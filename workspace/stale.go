package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
)

// StaleSockets lists the sockets in the workspace that nobody listens on: their
// owners were killed. The next owner of the store replaces them.
func (w *Workspace) StaleSockets(ctx context.Context) ([]string, error) {
	stores, err := w.Stores()
	if err != nil {
		return nil, err
	}
	stale := []string{}
	for _, store := range stores {
		c, err := dialSocket(ctx, store)
		if err == nil {
			err = c.Close()
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			stale = append(stale, filepath.Clean(socketPath(store)))
		}
	}
	return stale, ctx.Err()
}
