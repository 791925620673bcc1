package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Checkpoint is a named root that stays until it is deleted. Sizes are in bytes.
type Checkpoint struct {
	ID      string    `json:"id"`
	VaultID uint64    `json:"vault_id"`
	Name    string    `json:"name,omitempty"`
	Message string    `json:"message,omitempty"`
	Auto    bool      `json:"auto"` // made by avfs before something risky
	At      time.Time `json:"at"`
	Root    Root      `json:"root"`
	Files   int64     `json:"files"`
	Bytes   int64     `json:"bytes"`
	// Seq is the least number that an event can have that came after, in any vault of the
	// store; 0 in a checkpoint that was made before there was such a number.
	Seq uint64 `json:"seq,omitempty"`
}

// checkpointRow is a checkpoint as it is stored. Its key says the rest.
type checkpointRow struct {
	Checkpoint
	ID      string `json:"id,omitempty"`       // never there
	VaultID uint64 `json:"vault_id,omitempty"` // likewise
	Auto    bool   `json:"auto,omitempty"`
}

func checkpointRowOf(cp Checkpoint) checkpointRow {
	return checkpointRow{Checkpoint: cp, Auto: cp.Auto}
}

// checkpoint is the checkpoint of a row, which has that key.
func (r checkpointRow) checkpoint(key []byte) (Checkpoint, error) {
	cp := r.Checkpoint
	if len(key) != 16 {
		return cp, &Error{Kind: Corrupt, Op: "read", Path: fmt.Sprintf("%s record %x", tableCheckpoints.Name, key), Err: errDecode}
	}
	cp.VaultID, cp.ID, cp.Auto = kv.ParseID(key[:8]), checkpointID(kv.ParseID(key[8:])), r.Auto
	return cp, nil
}

func putCheckpoint(tx kv.Writer, vault, seq uint64, cp Checkpoint) error {
	return putJSON(tx, tableCheckpoints, rowKey(vault, seq), checkpointRowOf(cp))
}

// CheckpointOptions describes a new checkpoint.
type CheckpointOptions struct {
	Name    string // unique in the vault; may be empty
	Message string
	Auto    bool
}

// Checkpoint keeps the present state under a new id. Its cost does not depend on
// the number of files.
func (v *Vault) Checkpoint(ctx context.Context, opts CheckpointOptions) (Checkpoint, error) {
	v.commitMu.Lock() // which keeps others from taking the name
	defer v.commitMu.Unlock()
	if err := v.checkCheckpointName(ctx, opts.Name); err != nil {
		return Checkpoint{}, err
	}
	cp, keep := v.newCheckpoint(opts)
	e := v.entry(ctx, AuditCheckpointSave)
	e.Subject = cp.label()
	err := v.commitLocked(ctx, commitRequest{})
	if err == nil {
		err = v.keepPresent(ctx, kv.Durable, func(tx kv.Writer, rec *vaultRecord) error {
			if err := keep(tx, rec); err != nil {
				return err
			}
			_, err := v.s.putAudit(tx, e.between(rec.Root, rec.Root))
			return err
		})
	}
	return *cp, wrap(err, "checkpoint", v.Name())
}

// label is the id, with the name if there is one.
func (cp *Checkpoint) label() string { return strings.TrimRight(cp.ID+" "+cp.Name, " ") }

// newCheckpoint is a checkpoint, and what a transaction has to do to keep the present
// root under it, which completes the checkpoint.
func (v *Vault) newCheckpoint(opts CheckpointOptions) (cp *Checkpoint, keep func(tx kv.Writer, rec *vaultRecord) error) {
	seq := v.s.lastCheckpoint.Add(1)
	cp = &Checkpoint{
		ID: checkpointID(seq), VaultID: v.id, Name: opts.Name, Message: secrets.Text(opts.Message), Auto: opts.Auto,
		At: v.s.opts.Clock().UTC(),
	}
	return cp, func(tx kv.Writer, rec *vaultRecord) error {
		rec.Checkpoints++
		cp.Root, cp.Files, cp.Bytes, cp.Seq = rec.Root, rec.Count, rec.Bytes, v.s.nextEvent()
		return putCheckpoint(tx, v.id, seq, *cp)
	}
}

// checkCheckpointName rejects names that are taken or could be mistaken for an id.
func (v *Vault) checkCheckpointName(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if _, ok := parseCheckpointID(name); ok || len(name) > MaxName || strings.ContainsAny(name, "\x00\n/@") {
		return &Error{Kind: InvalidName, Op: "checkpoint name", Path: fmt.Sprintf("%q", name),
			Err: errors.New("a name has no '/', '@' or line break and does not look like an id")}
	}
	_, err := v.FindCheckpoint(ctx, name)
	if err == nil {
		return fail(CheckpointExists, "checkpoint", name)
	}
	if KindOf(err) == CheckpointNotFound {
		return nil
	}
	return err
}

func checkpointID(seq uint64) string { return "c" + strconv.FormatUint(seq, 10) }

func parseCheckpointID(id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, "c")
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 10, 63)
	return seq, err == nil && seq > 0
}

// rowKey is the key of a row that belongs to a vault and is ordered by seq.
func rowKey(vault, seq uint64) []byte { return append(kv.ID(vault), kv.ID(seq)...) }

// Checkpoints lists the vault's checkpoints, oldest first.
func (v *Vault) Checkpoints(ctx context.Context) ([]Checkpoint, error) {
	list := []Checkpoint{}
	err := v.s.kv.View(ctx, func(tx kv.Reader) error {
		list = list[:0]
		return tx.Scan(tableCheckpoints, kv.ID(v.id), nil, func(k, value []byte) error {
			var row checkpointRow
			if err := parseJSON(tableCheckpoints, k, value, &row); err != nil {
				return err
			}
			cp, err := row.checkpoint(k)
			list = append(list, cp)
			return err
		})
	})
	return list, wrap(err, "list checkpoints", v.Name())
}

// FindCheckpoint finds a checkpoint of the vault by id or by name.
func (v *Vault) FindCheckpoint(ctx context.Context, idOrName string) (Checkpoint, error) {
	if seq, ok := parseCheckpointID(idOrName); ok {
		var cp Checkpoint
		found := false
		err := v.s.kv.View(ctx, func(tx kv.Reader) (err error) {
			var row checkpointRow
			key := rowKey(v.id, seq)
			if found, err = getJSON(tx, tableCheckpoints, key, &row); err == nil {
				cp, err = row.checkpoint(key)
			}
			return err
		})
		if err == nil && !found {
			err = fail(CheckpointNotFound, "find checkpoint", idOrName)
		}
		return cp, wrap(err, "find checkpoint", idOrName)
	}
	list, err := v.Checkpoints(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	for _, cp := range list {
		if cp.Name == idOrName && idOrName != "" {
			return cp, nil
		}
	}
	return Checkpoint{}, fail(CheckpointNotFound, "find checkpoint", idOrName)
}

// DeleteCheckpoint deletes a checkpoint by id or name; GC frees what only it kept.
func (v *Vault) DeleteCheckpoint(ctx context.Context, idOrName string) error {
	cp, err := v.FindCheckpoint(ctx, idOrName)
	if err != nil {
		return err
	}
	seq, _ := parseCheckpointID(cp.ID)
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return wrap(err, "delete checkpoint", idOrName)
	}
	rec := v.rec
	e := v.entry(ctx, AuditCheckpointDelete).between(rec.Root, rec.Root)
	e.Subject = cp.label()
	err = v.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
		if _, ok, err := tx.Get(tableCheckpoints, rowKey(v.id, seq)); err != nil || !ok {
			if err == nil {
				err = fail(CheckpointNotFound, "", "")
			}
			return err
		}
		rec = v.rec
		rec.Checkpoints--
		if err := tx.Delete(tableCheckpoints, rowKey(v.id, seq)); err != nil {
			return err
		}
		if _, err := v.s.putAudit(tx, e); err != nil {
			return err
		}
		return putRecord(tx, rec)
	})
	if err != nil {
		return wrap(err, "delete checkpoint", idOrName)
	}
	v.setRecord(rec)
	return nil
}
