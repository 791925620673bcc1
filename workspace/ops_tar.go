package workspace

import (
	"context"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
)

// ImportTarRequest asks to bring a tar archive, which is the input stream, into a
// vault.
type ImportTarRequest struct {
	Vault string `json:"vault"`
	From  string `json:"from"` // what it is, for the timeline
	Dest  Path   `json:"dest"` // path in the vault
}

// OpImportTar imports an archive durably, as one event of the timeline.
var OpImportTar = Op[ImportTarRequest, ImportResult]{Name: "import.tar", Long: true, In: true,
	Run: func(ctx context.Context, o *Owner, req ImportTarRequest, s Streams) (ImportResult, error) {
		return o.importAs(ctx, req.Vault, s, []string{req.From, string(req.Dest)}, func(v *engine.Vault) (transfer.Report, error) {
			return transfer.ImportTar(ctx, v, s.in(), string(req.Dest), &transfer.ImportOptions{Progress: forward(s)})
		}, nil)
	}}

// OpExportTar writes a tree to the output stream, as a tar archive. It exports one
// state, even while others write to the vault. Dest and Overwrite are not used.
var OpExportTar = Op[ExportRequest, transfer.Report]{Name: "export.tar", Long: true,
	Run: func(ctx context.Context, o *Owner, req ExportRequest, s Streams) (transfer.Report, error) {
		root, unpin, err := o.state(ctx, req.Vault, req.Checkpoint)
		if err != nil {
			return transfer.Report{}, err
		}
		defer unpin()
		rep, err := transfer.ExportTar(ctx, o.store.Snapshot(root), string(req.Source), s.out(), &transfer.ExportOptions{Progress: forward(s)})
		return rep, withDetails(err, rep)
	}}
