package workspace

import (
	"context"

	"github.com/agentvfs/avfs/engine"
)

// PathLogRequest asks for the history of one path.
type PathLogRequest struct {
	Vault   string `json:"vault"`
	Path    Path   `json:"path"`
	Limit   int    `json:"limit,omitempty"`   // of the events; 0 is none
	Changes int    `json:"changes,omitempty"` // of the changes listed with each event; 0 is no limit
}

// PathLogResult is the history of one path, newest event first.
type PathLogResult struct {
	Events []engine.PathEvent `json:"events"`
	Origin engine.Origin      `json:"origin"`
	Parent string             `json:"parent,omitempty"` // of a fork: where it came from
}

// OpPathLog lists the events that changed a path or something below it.
var OpPathLog = Op[PathLogRequest, PathLogResult]{Name: "log.path",
	Run: func(ctx context.Context, o *Owner, req PathLogRequest, _ Streams) (PathLogResult, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return PathLogResult{}, err
		}
		if err := o.flush(ctx, req.Vault); err != nil {
			return PathLogResult{}, err
		}
		log, err := v.PathLog(ctx, string(req.Path), &engine.PathLogOptions{Limit: req.Limit, Changes: req.Changes})
		return PathLogResult{Events: log.Events, Origin: log.Origin, Parent: v.Info().Parent}, err
	}}

func versionOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpPathLog)
	add(all, OpCheckout)
	return all
}
