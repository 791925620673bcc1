package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
)

// auditRow is an entry as it is stored. Its members stand for those of the entry with
// the same names; what is as it mostly is, is left out.
type auditRow struct {
	AuditEntry
	Seq        uint64  `json:"seq,omitempty"`    // never there: the key says it
	Action     *string `json:"action,omitempty"` // absent: allow
	Status     *string `json:"status,omitempty"` // absent: completed
	Rule       string  `json:"rule,omitempty"`
	DurationMS int64   `json:"duration_ms,omitempty"`
	Root       string  `json:"root,omitempty"` // before and after, where that is the same
	RootBefore string  `json:"root_before,omitempty"`
	RootAfter  string  `json:"root_after,omitempty"`
	Prev       string  `json:"prev,omitempty"` // never there: the hash of the row before
	Hash       []byte  `json:"hash"`           // in base64, 44 characters
}

// unless is s, or nil where it is what a row leaves out.
func unless(s, usual string) *string {
	if s == usual {
		return nil
	}
	return &s
}

// or is what unless made shorter.
func or(s *string, usual string) string {
	if s == nil {
		return usual
	}
	return *s
}

func auditRowOf(e AuditEntry, hash []byte) auditRow {
	r := auditRow{
		AuditEntry: e, Action: unless(e.Action, auditAllow), Status: unless(e.Status, auditDone), Rule: e.Rule, DurationMS: e.DurationMS, Hash: hash,
	}
	if e.RootBefore == e.RootAfter {
		r.Root = e.RootBefore
	} else {
		r.RootBefore, r.RootAfter = e.RootBefore, e.RootAfter
	}
	return r
}

// entry is the entry of a row, which has that key, but for the hash of the one before.
func (r auditRow) entry(key []byte) AuditEntry {
	e := r.AuditEntry
	e.Seq, e.Hash = kv.ParseID(key), hex.EncodeToString(r.Hash)
	e.Action, e.Status, e.Rule, e.DurationMS = or(r.Action, auditAllow), or(r.Status, auditDone), r.Rule, r.DurationMS
	if e.RootBefore, e.RootAfter = r.RootBefore, r.RootAfter; r.Root != "" {
		e.RootBefore, e.RootAfter = r.Root, r.Root
	}
	return e
}

// auditText is the text of an entry, without its hash. Characters are written as they
// are where JSON allows it, so that other programs write the same.
func auditText(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodeAudit gives an entry, of which Prev is right, its hash and its row. What is not
// UTF-8 in it cannot be stored, and is replaced first: the hash is that of what can be
// read again.
func encodeAudit(e AuditEntry) (AuditEntry, []byte, error) {
	e.Hash = ""
	text, err := auditText(e)
	if err != nil {
		return e, nil, err
	}
	if bytes.Contains(text, []byte(`\ufffd`)) {
		e = AuditEntry{}
		if err := json.Unmarshal(text, &e); err != nil {
			return e, nil, err
		}
		if text, err = auditText(e); err != nil {
			return e, nil, err
		}
	}
	sum := sha256.Sum256(text)
	e.Hash = hex.EncodeToString(sum[:])
	row, err := auditText(auditRowOf(e, sum[:]))
	if err != nil {
		return e, nil, err
	}
	return e, sealBody(tableAudit, kv.ID(e.Seq), row), nil
}

// parseAudit decodes a row. The error for a damaged one has the number of the entry
// among its details, as audit_entry.
func parseAudit(key, row []byte) (AuditEntry, error) {
	var r auditRow
	if err := parseJSON(tableAudit, key, row, &r); err != nil {
		seq := kv.ParseID(key)
		return AuditEntry{}, &Error{Kind: Corrupt, Op: "read", Path: fmt.Sprintf("audit entry %d", seq), Err: errors.Unwrap(err), Details: map[string]any{"audit_entry": seq}}
	}
	return r.entry(key), nil
}
