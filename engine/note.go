package engine

import (
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
	Kind  string          `json:"kind"` // without '/'
	Name  string          `json:"name"` // unique within the kind
	Vault string          `json:"vault,omitempty"`
	At    time.Time       `json:"at"` // of the last change
	Body  json.RawMessage `json:"body"`
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

// Notes lists the notes of a kind by name.
func (s *Store) Notes(ctx context.Context, kind string) ([]Note, error) {
	list := []Note{}
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		list = list[:0]
		return tx.Scan(tableNotes, []byte(kind+"/"), nil, func(k, value []byte) error {
			var n Note
			if err := parseJSON(tableNotes, k, value, &n); err != nil {
				return err
			}
			list = append(list, n)
			return nil
		})
	})
	return list, wrap(err, "list notes", kind)
}

// ChangeNote replaces a note by what fn makes of it, durably; nil stands for none.
// Nobody else changes it between the two, so of several callers each sees what the one
// before has left. fn may be called more than once. With an audit entry, that is added
// in the same transaction.
func (s *Store) ChangeNote(ctx context.Context, kind, name string, audit *AuditEntry, fn func(old *Note) (*Note, error)) (*Note, error) {
	op := "change " + kind
	if kind == "" || name == "" || strings.Contains(kind, "/") || len(name) > MaxName {
		return nil, &Error{Kind: Invalid, Op: op, Path: name, Err: errors.New("a note has a kind and a name")}
	}
	var now *Note
	change := func(tx kv.Writer) error {
		old, err := getNote(tx, kind, name)
		if err != nil {
			return err
		}
		if now, err = fn(old); err != nil {
			return err
		}
		if now == nil {
			gone := Note{Kind: kind, Name: name}
			if old == nil {
				return nil
			}
			return tx.Delete(tableNotes, gone.key())
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
