package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Note is a small record that a program keeps in a store, beside the vaults: found by
// kind and name, read and replaced as a whole, and part of a backup. The engine does
// not look into it.
type Note struct {
	Kind  string `json:"kind"` // without '/'
	Name  string `json:"name"` // unique within the kind
	Vault string `json:"vault,omitempty"`
	// VaultID is the vault that the note goes with, which has to be there; 0: it stays.
	VaultID uint64          `json:"vault_id,omitempty"`
	At      time.Time       `json:"at"` // of the last change
	Body    json.RawMessage `json:"body"`
}

// MaxNote bounds the body of a note, in bytes.
const MaxNote = 512 << 10

func (n *Note) key() []byte { return []byte(n.Kind + "/" + n.Name) }

// Note finds a note; nil if there is none.
func (s *Store) Note(ctx context.Context, kind, name string) (*Note, error) {
	var found *Note
	err := s.kv.View(ctx, func(tx kv.Reader) (err error) {
		found, err = getNote(tx, kind, name)
		return err
	})
	return found, wrap(err, "read "+kind, name)
}

func getNote(tx kv.Reader, kind, name string) (*Note, error) {
	n := Note{Kind: kind, Name: name}
	ok, err := getJSON(tx, tableNotes, n.key(), &n)
	if err != nil || !ok {
		return nil, err
	}
	return &n, nil
}

// Notes lists the notes of a kind by name, and the names of those that are damaged,
// which stand in nobody's way.
func (s *Store) Notes(ctx context.Context, kind string) (list []Note, damaged []string, err error) {
	err = s.kv.View(ctx, func(tx kv.Reader) error {
		list, damaged = []Note{}, nil
		return tx.Scan(tableNotes, []byte(kind+"/"), nil, func(k, value []byte) error {
			var n Note
			switch err := parseJSON(tableNotes, k, value, &n); {
			case err == nil:
				list = append(list, n)
			case KindOf(err) == Corrupt:
				damaged = append(damaged, string(k[len(kind)+1:]))
			default:
				return err
			}
			return nil
		})
	})
	return list, damaged, wrap(err, "list notes", kind)
}

// ChangeNote replaces a note by what fn makes of it, durably; nil stands for none.
// Nobody else changes it between the two, so of several callers each sees what the one
// before has left. fn may be called more than once. A damaged note is nil to it, and
// can so be replaced or removed. With an audit entry, that is added in the same
// transaction.
func (s *Store) ChangeNote(ctx context.Context, kind, name string, audit *AuditEntry, fn func(old *Note) (*Note, error)) (*Note, error) {
	op := "change " + kind
	if kind == "" || name == "" || strings.Contains(kind, "/") || len(name) > MaxName {
		return nil, &Error{Kind: Invalid, Op: op, Path: name, Err: errors.New("a note has a kind and a name")}
	}
	var now *Note
	change := func(tx kv.Writer) error {
		old, err := getNote(tx, kind, name)
		damaged := KindOf(err) == Corrupt
		if err != nil && !damaged {
			return err
		}
		if now, err = fn(old); err != nil {
			return err
		}
		if now == nil {
			gone := Note{Kind: kind, Name: name}
			if old == nil && !damaged {
				return nil
			}
			return tx.Delete(tableNotes, gone.key())
		}
		if err := vaultThere(tx, now); err != nil {
			return err
		}
		now.Kind, now.Name, now.At = kind, name, s.opts.Clock().UTC()
		if len(now.Body) > MaxNote {
			return &Error{Kind: FileTooLarge, Err: errors.New("a note is at most 512 KiB")}
		}
		return putJSON(tx, tableNotes, now.key(), now)
	}
	var err error
	if audit != nil {
		_, err = s.appendAudit(ctx, *audit, change)
	} else {
		err = s.kv.Update(ctx, kv.Durable|kv.Reclaim, change)
	}
	return now, wrap(err, op, name)
}

// vaultThere fails where the vault that a note goes with is deleted: nothing would delete
// the note.
func vaultThere(tx kv.Reader, n *Note) error {
	if n.VaultID == 0 {
		return nil
	}
	_, ok, err := tx.Get(tableVaults, kv.ID(n.VaultID))
	if err == nil && !ok {
		err = &Error{Kind: VaultNotFound, Path: n.Vault}
	}
	return err
}

// deleteNotes deletes up to limit notes of a vault and reports whether more are left.
// Those of versions that did not note the vault's id are found by its name. A damaged
// one is left for a check to find.
func deleteNotes(tx kv.Writer, id uint64, name string, limit int) (more bool, err error) {
	var keys [][]byte
	err = tx.Scan(tableNotes, nil, nil, func(k, value []byte) error {
		var n Note
		if parseJSON(tableNotes, k, value, &n) != nil || n.VaultID != id && (n.VaultID != 0 || n.Vault != name) {
			return nil
		}
		if more = len(keys) == limit; more {
			return kv.Stop
		}
		keys = append(keys, bytes.Clone(k))
		return nil
	})
	for _, k := range keys {
		if err == nil {
			err = tx.Delete(tableNotes, k)
		}
	}
	return more, err
}

// sweepNotes deletes the notes of vaults that are deleted: those that a deletion did not
// get to, and those of versions that left them. Of the latter only the name of the vault
// is known.
func (s *Store) sweepNotes(ctx context.Context, last uint64, vaults map[uint64]bool) (dead int64, err error) {
	ownerless := func(k, value []byte) bool {
		var n Note
		switch {
		case parseJSON(tableNotes, k, value, &n) != nil:
			return false
		case n.VaultID != 0:
			return n.VaultID <= last && !vaults[n.VaultID]
		case n.Vault == "":
			return false
		}
		_, err := s.Vault(ctx, n.Vault)
		return KindOf(err) == VaultNotFound
	}
	err = s.eachRow(ctx, tableNotes, ownerless, func(keys [][]byte) error {
		dead += int64(len(keys))
		return s.deleteKeys(ctx, tableNotes, keys)
	})
	return dead, err
}
