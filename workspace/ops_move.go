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
	// Exclude lists what is left out, relative to Source, with what is below it.
	Exclude []Path `json:"exclude,omitempty"`
	Update  bool   `json:"update,omitempty"` // leave files as they are that look unchanged
}

// ImportResult says what was imported.
type ImportResult struct {
	transfer.Report
	Event uint64 `json:"event,omitempty"` // its entry in the timeline
}

// OpImport imports a tree durably, as one event of the timeline.
var OpImport = Op[ImportRequest, ImportResult]{Name: "import", Long: true,
	Run: func(ctx context.Context, o *Owner, req ImportRequest, s Streams) (ImportResult, error) {
		opts := &transfer.ImportOptions{Progress: forward(s), Update: req.Update, Exclude: excluding(req.Exclude)}
		return o.importAs(ctx, req.Vault, s, []string{string(req.Source), string(req.Dest)}, func(v *engine.Vault) (transfer.Report, error) {
			return transfer.Import(ctx, v, string(req.Source), string(req.Dest), opts)
		}, func(v *engine.Vault, ev engine.Event, err error) error {
			return noteOrigin(context.WithoutCancel(ctx), v, ev, req, err)
		})
	}}

// noteOrigin keeps where a directory was imported from, for a later apply, unless the
// import was cut short, or is part of a running command and so has no event.
func noteOrigin(ctx context.Context, v *engine.Vault, ev engine.Event, req ImportRequest, err error) error {
	var partial *transfer.PartialError
	if ev.Seq == 0 || err != nil && !errors.As(err, &partial) {
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

// importAs runs fn, which imports something, and keeps what it did as one event. note,
// if it is not nil, is told of the event and of how fn ended.
func (o *Owner) importAs(ctx context.Context, vault string, s Streams, command []string,
	fn func(v *engine.Vault) (transfer.Report, error), note func(v *engine.Vault, ev engine.Event, err error) error) (ImportResult, error) {
	v, err := o.vault(ctx, vault)
	if err != nil {
		return ImportResult{}, err
	}
	done, err := o.turn(ctx, vault, true, s.Exec)
	if err != nil {
		return ImportResult{}, err
	}
	defer done()
	if err := o.flush(ctx, vault); err != nil {
		return ImportResult{}, err
	}
	begun, err := v.BeginEvent(ctx, engine.Event{Cause: engine.CauseImport, Command: command})
	if err != nil {
		return ImportResult{}, err
	}
	defer begun.Drop() // should fn panic
	rep, err := fn(v)
	ev, rerr := begun.End(engine.WithFailure(context.WithoutCancel(ctx), err))
	if rerr == nil && note != nil {
		rerr = note(v, ev, err)
	}
	res := ImportResult{Report: rep, Event: ev.Seq}
	return res, withDetails(errors.Join(err, rerr), res)
}

// excluding leaves out paths; nil leaves out nothing.
func excluding(paths []Path) func(rel string, isDir bool) bool {
	if len(paths) == 0 {
		return nil
	}
	out := make(map[string]bool, len(paths))
	for _, p := range paths {
		out[string(p)] = true
	}
	return func(rel string, _ bool) bool { return out[rel] }
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
	add(all, OpImportTar)
	add(all, OpExportTar)
	add(all, OpExport)
	return all
}
