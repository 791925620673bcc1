package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// ImportRequest asks to bring a host directory or file into a vault.
type ImportRequest struct {
	Vault  string `json:"vault"`
	Source Path   `json:"source"` // absolute path on the host
	Dest   Path   `json:"dest"`   // path in the vault
}

// ImportResult says what was imported.
type ImportResult struct {
	transfer.Report
	Event uint64 `json:"event,omitempty"` // its entry in the timeline
}

// OpImport imports a tree durably, as one event of the timeline.
var OpImport = Op[ImportRequest, ImportResult]{Name: "import", Long: true,
	Run: func(ctx context.Context, o *Owner, req ImportRequest, s Streams) (ImportResult, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return ImportResult{}, err
		}
		done, err := o.turn(ctx, req.Vault, true, s.Exec)
		if err != nil {
			return ImportResult{}, err
		}
		defer done()
		if err := o.flush(ctx, req.Vault); err != nil {
			return ImportResult{}, err
		}
		before, err := v.Pin(ctx)
		if err != nil {
			return ImportResult{}, err
		}
		rep, err := transfer.Import(ctx, v, string(req.Source), string(req.Dest), &transfer.ImportOptions{Progress: forward(s)})
		ev, rerr := v.Record(context.WithoutCancel(ctx), engine.Event{
			Cause: engine.CauseImport, Command: []string{string(req.Source), string(req.Dest)}, Before: before,
		})
		if rerr != nil {
			v.Unpin(before)
		} else {
			rerr = noteOrigin(context.WithoutCancel(ctx), v, ev, req, err)
		}
		res := ImportResult{Report: rep, Event: ev.Seq}
		return res, withDetails(errors.Join(err, rerr), res)
	}}

// noteOrigin keeps where a directory was imported from, for a later apply, unless the
// import was cut short.
func noteOrigin(ctx context.Context, v *engine.Vault, ev engine.Event, req ImportRequest, err error) error {
	var partial *transfer.PartialError
	if err != nil && !errors.As(err, &partial) {
		return nil
	}
	real, err := filepath.EvalSymlinks(string(req.Source))
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil || !info.IsDir() {
		return err
	}
	return v.NoteOrigin(ctx, ev, real, string(req.Dest))
}

// withDetails adds what was done all the same to a failure, for programs.
func withDetails(err error, done any) error {
	if err == nil {
		return nil
	}
	details := map[string]any{}
	b, jerr := json.Marshal(done)
	if jerr == nil {
		jerr = json.Unmarshal(b, &details)
	}
	return &engine.Error{Kind: engine.KindOf(err), Err: errors.Join(err, jerr), Details: details}
}

// ExportRequest asks to write a tree of a vault to the host.
type ExportRequest struct {
	Vault      string `json:"vault"`
	Checkpoint string `json:"checkpoint,omitempty"` // a state; empty is the present one
	Since      string `json:"since,omitempty"`      // only what is not as it was in this state
	Source     Path   `json:"source"`               // path in the vault
	Dest       Path   `json:"dest"`                 // absolute path on the host
	Overwrite  bool   `json:"overwrite,omitempty"`
}

// OpExport writes a tree to the host. It exports one state, even while others
// write to the vault.
var OpExport = Op[ExportRequest, transfer.Report]{Name: "export", Long: true,
	Run: func(ctx context.Context, o *Owner, req ExportRequest, s Streams) (transfer.Report, error) {
		root, unpin, err := o.state(ctx, req.Vault, req.Checkpoint)
		if err != nil {
			return transfer.Report{}, err
		}
		defer unpin()
		opts := &transfer.ExportOptions{Progress: forward(s), Overwrite: req.Overwrite}
		if req.Since != "" {
			if opts.Only, err = o.changedSince(ctx, req, root); err != nil {
				return transfer.Report{}, err
			}
		}
		rep, err := transfer.Export(ctx, o.store.Snapshot(root), string(req.Source), string(req.Dest), opts)
		return rep, withDetails(err, rep)
	}}

func forward(s Streams) func(transfer.Progress) {
	return func(p transfer.Progress) {
		s.progress(Progress{Files: p.Files, Bytes: p.Bytes, TotalFiles: p.TotalFiles, TotalBytes: p.TotalBytes, Path: p.Path})
	}
}

func moveOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpImport)
	add(all, OpExport)
	return all
}
