package engine

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// Kind classifies an error. It is stable: programs match on it, the mount chooses
// an errno by it and the command line an exit code.
type Kind string

// The kinds of errors that the engine returns.
const (
	NotFound           Kind = "NotFound"
	Exists             Kind = "Exists"
	NotDirectory       Kind = "NotDirectory"
	IsDirectory        Kind = "IsDirectory"
	NotEmpty           Kind = "NotEmpty"
	Invalid            Kind = "Invalid"
	NameTooLong        Kind = "NameTooLong"
	InvalidName        Kind = "InvalidName"
	TooManyLinks       Kind = "TooManyLinks"
	NoSpace            Kind = "NoSpace"
	QuotaExceeded      Kind = "QuotaExceeded"
	FileTooLarge       Kind = "FileTooLarge"
	ReadOnly           Kind = "ReadOnly"
	Stale              Kind = "Stale"
	Corrupt            Kind = "Corrupt"
	Busy               Kind = "Busy"
	Locked             Kind = "Locked"
	Unsupported        Kind = "Unsupported"
	NoAttribute        Kind = "NoAttribute"
	AttributeTooLarge  Kind = "AttributeTooLarge"
	Loop               Kind = "Loop"
	NoData             Kind = "NoData"
	Permission         Kind = "Permission"
	BadHandle          Kind = "BadHandle"
	Closed             Kind = "Closed"
	VaultNotFound      Kind = "VaultNotFound"
	VaultExists        Kind = "VaultExists"
	CheckpointNotFound Kind = "CheckpointNotFound"
	CheckpointExists   Kind = "CheckpointExists"
	EventNotFound      Kind = "EventNotFound"
	NothingToUndo      Kind = "NothingToUndo"
	NothingToRedo      Kind = "NothingToRedo"
	Drift              Kind = "Drift"
	Conflict           Kind = "Conflict"
	NoAncestor         Kind = "NoAncestor"
	NotStore           Kind = "NotStore"
	Interrupted        Kind = "Interrupted"
	Internal           Kind = "Internal"
)

// Error is the one error type of the engine: what failed, on what, and why.
type Error struct {
	Kind    Kind
	Op      string         // the operation, such as "rename"
	Path    string         // the path, name or vault it was asked for; may be empty
	Err     error          // the cause; may be nil
	Details map[string]any // typed facts for programs; may be nil
}

// Error is a sentence for people: operation, object and reason.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteByte(' ')
	}
	if e.Path != "" {
		b.WriteString(e.Path)
	}
	if b.Len() > 0 {
		s := strings.TrimRight(b.String(), " ")
		b.Reset()
		b.WriteString(s)
		b.WriteString(": ")
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(e.Kind.text())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is lets errors.Is match the errors of package io/fs.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.Kind == NotFound || e.Kind == VaultNotFound || e.Kind == CheckpointNotFound || e.Kind == EventNotFound
	case fs.ErrExist:
		return e.Kind == Exists || e.Kind == VaultExists || e.Kind == CheckpointExists
	case fs.ErrPermission:
		return e.Kind == Permission || e.Kind == ReadOnly
	case fs.ErrInvalid:
		return e.Kind == Invalid || e.Kind == InvalidName
	case fs.ErrClosed:
		return e.Kind == Closed || e.Kind == BadHandle
	}
	return false
}

var kindTexts = map[Kind]string{
	NotFound:           "no such file or directory",
	Exists:             "already exists",
	NotDirectory:       "not a directory",
	IsDirectory:        "is a directory",
	NotEmpty:           "directory is not empty",
	Invalid:            "invalid argument",
	NameTooLong:        "name is too long (at most 255 bytes)",
	InvalidName:        "invalid name",
	TooManyLinks:       "too many links",
	NoSpace:            "no space left on device",
	QuotaExceeded:      "quota exceeded",
	FileTooLarge:       "file is too large",
	ReadOnly:           "read-only",
	Stale:              "the file was replaced by a restore",
	Corrupt:            "stored data is damaged",
	Busy:               "in use",
	Locked:             "the store is in use by another process",
	Unsupported:        "not supported",
	NoAttribute:        "no such attribute",
	AttributeTooLarge:  "attribute is too large",
	Loop:               "too many levels of symbolic links",
	NoData:             "no data at or after the offset",
	Permission:         "not permitted",
	BadHandle:          "the handle is closed or opened for another use",
	Closed:             "closed",
	VaultNotFound:      "no such vault",
	VaultExists:        "a vault of this name exists",
	CheckpointNotFound: "no such checkpoint",
	CheckpointExists:   "a checkpoint of this name exists",
	EventNotFound:      "no such event",
	NothingToUndo:      "nothing to undo",
	NothingToRedo:      "nothing to redo",
	Drift:              "files changed since",
	Conflict:           "both sides changed the same",
	NoAncestor:         "no common ancestor",
	NotStore:           "not an avfs store",
	Interrupted:        "interrupted",
}

func (k Kind) text() string {
	if s, ok := kindTexts[k]; ok {
		return s
	}
	return string(k)
}

// KindOf classifies any error: "" for nil, the kind of an *Error in its chain,
// the matching kind of a storage or context error, Internal for the rest.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Kind != Internal {
		return e.Kind
	}
	for _, m := range foreignKinds {
		if errors.Is(err, m.err) {
			return m.kind
		}
	}
	return Internal
}

var foreignKinds = []struct {
	err  error
	kind Kind
}{
	{kv.ErrNoSpace, NoSpace},
	{kv.ErrLocked, Locked},
	{kv.ErrCorrupt, Corrupt},
	{tree.ErrCorrupt, Corrupt},
	{kv.ErrNotStore, NotStore},
	{kv.ErrClosed, Closed},
	{kv.ErrReadOnly, ReadOnly},
	{context.Canceled, Interrupted},
	{context.DeadlineExceeded, Interrupted},
	{fs.ErrNotExist, NotFound},
	{fs.ErrExist, Exists},
	{fs.ErrPermission, Permission},
}

// fail makes an error of a kind without a deeper cause.
func fail(k Kind, op, path string) error { return &Error{Kind: k, Op: op, Path: path} }

// wrap gives err an operation and a path, once.
func wrap(err error, op, path string) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Op != "" || e.Path != "" {
			return err
		}
		return &Error{Kind: e.Kind, Op: op, Path: path, Err: e.Err, Details: e.Details}
	}
	return &Error{Kind: KindOf(err), Op: op, Path: path, Err: err, Details: detailsOf(err)}
}

// detailsOf are the facts about a failure of the database that programs may want.
func detailsOf(err error) map[string]any {
	space, ok := errors.AsType[*kv.SpaceError](err)
	if !ok {
		return nil
	}
	d := map[string]any{"free_bytes": space.Free, "needed_bytes": space.Need}
	if space.Path != "" {
		d["store"] = space.Path
	}
	return d
}
