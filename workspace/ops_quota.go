package workspace

import (
	"context"
	"strconv"

	"github.com/agentvfs/avfs/engine"
)

// QuotaDoc says what a vault uses and what bounds it. Sizes of what is used are in
// bytes; limits have the units that their names say.
type QuotaDoc struct {
	Vault string `json:"vault"`
	engine.Usage
	Limits LimitsDoc `json:"limits"`
}

// LimitsDoc lists the limits of a quota under the names that errors and envelopes
// use; nil is no limit.
type LimitsDoc struct {
	MaxSizeMB     *float64 `json:"max_size_mb"`
	MaxBytes      *int64   `json:"max_bytes"` // the same in bytes
	MaxFiles      *int64   `json:"max_files"`
	MaxFileSizeMB *float64 `json:"max_file_size_mb"`
	MaxFileBytes  *int64   `json:"max_file_bytes"` // the same in bytes
}

// OpQuota tells the quota of a vault and what is used of it.
var OpQuota = Op[InVault, QuotaDoc]{Name: "quota",
	Run: func(ctx context.Context, o *Owner, req InVault, _ Streams) (QuotaDoc, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return QuotaDoc{}, err
		}
		return quotaDoc(v), nil
	}}

// QuotaRequest asks for other limits.
type QuotaRequest struct {
	Vault  string             `json:"vault"`
	Change engine.QuotaChange `json:"change"`
}

// OpQuotaSet changes the quota of a vault and notes it in the audit.
var OpQuotaSet = Op[QuotaRequest, QuotaDoc]{Name: "quota.set",
	Run: func(ctx context.Context, o *Owner, req QuotaRequest, _ Streams) (QuotaDoc, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return QuotaDoc{}, err
		}
		entry := engine.AuditEntry{Argv: quotaCommand(req.Change)}
		if _, err := v.SetQuota(ctx, req.Change, entry); err != nil {
			return QuotaDoc{}, err
		}
		return quotaDoc(v), nil
	}}

// quotaCommand is the command line that asks for the change.
func quotaCommand(c engine.QuotaChange) []string {
	argv := []string{"avfs", "quota", "set"}
	for _, f := range []struct {
		name  string
		value *int64
	}{{"--bytes", c.MaxBytes}, {"--files", c.MaxFiles}, {"--file-bytes", c.MaxFileBytes}} {
		if f.value != nil {
			argv = append(argv, f.name, strconv.FormatInt(*f.value, 10))
		}
	}
	return argv
}

func quotaDoc(v *engine.Vault) QuotaDoc {
	q := v.Quota()
	doc := QuotaDoc{Vault: v.Name(), Usage: v.Usage()}
	doc.Limits = LimitsDoc{
		MaxSizeMB: inMB(q.MaxBytes), MaxBytes: limit(q.MaxBytes), MaxFiles: limit(q.MaxFiles),
		MaxFileSizeMB: inMB(q.MaxFileBytes), MaxFileBytes: limit(q.MaxFileBytes),
	}
	return doc
}

// limit is a limit of a quota; nil for none.
func limit(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// inMB is a limit in megabytes; nil for none.
func inMB(n int64) *float64 {
	if n == 0 {
		return nil
	}
	mb := float64(n) / (1 << 20)
	return &mb
}

func quotaOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpQuota)
	add(all, OpQuotaSet)
	return all
}
