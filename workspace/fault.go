package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"syscall"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/engine/kv"
)

// Kinds of errors beside those of the engine.
const (
	VersionSkew engine.Kind = "VersionSkew" // the owner of the store is another version of avfs
	OwnerLost   engine.Kind = "OwnerLost"   // the owner of the store ended during the operation
	VaultBusy   engine.Kind = "VaultBusy"   // another command runs in the vault
	NotMounted  engine.Kind = "NotMounted"
	MountMoved  engine.Kind = "MountMoved" // commands run in another mount of the vault by now
	NoMounter   engine.Kind = "FuseUnavailable"
)

// Fault is an error as programs see it, in JSON: a stable kind, a sentence for
// people, and typed details beside them.
type Fault struct {
	Kind    engine.Kind
	Message string
	Details map[string]any
}

// Kinder is implemented by errors that know their kind themselves.
type Kinder interface {
	error
	ErrorKind() engine.Kind
	ErrorDetails() map[string]any
}

// NewFault describes any error; nil for nil.
func NewFault(err error) *Fault {
	if err == nil {
		return nil
	}
	f := &Fault{Kind: kindOf(err), Message: err.Error(), Details: map[string]any{}}
	if err == context.Canceled { // its own text says nothing to people
		f.Message = "interrupted"
	}
	var e *engine.Error
	if errors.As(err, &e) {
		maps.Copy(f.Details, e.Details)
	}
	var locked *kv.LockedError
	if errors.As(err, &locked) {
		f.Details["store"] = locked.Path
		if locked.PID != 0 {
			f.Details["pid"] = locked.PID
		}
	}
	var k Kinder
	if errors.As(err, &k) {
		f.Kind = k.ErrorKind()
		maps.Copy(f.Details, k.ErrorDetails())
	}
	return f
}

// kindOf is engine.KindOf, which does not know what the host's file system says.
func kindOf(err error) engine.Kind {
	kind := engine.KindOf(err)
	switch {
	case kind != engine.Internal:
	case errors.Is(err, syscall.EROFS):
		kind = engine.ReadOnly
	case errors.Is(err, syscall.ENOSPC):
		kind = engine.NoSpace
	}
	return kind
}

// MarshalJSON writes {"error": kind, "message": ...} and the details beside them.
func (f *Fault) MarshalJSON() ([]byte, error) {
	doc := map[string]any{}
	maps.Copy(doc, f.Details)
	doc["error"], doc["message"] = f.Kind, f.Message
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // whoever embeds this decides
	err := e.Encode(doc)
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Fault) UnmarshalJSON(b []byte) error {
	doc := map[string]any{}
	if err := json.Unmarshal(b, &doc); err != nil {
		return err
	}
	kind, _ := doc["error"].(string)
	f.Kind = engine.Kind(kind)
	f.Message, _ = doc["message"].(string)
	delete(doc, "error")
	delete(doc, "message")
	f.Details = doc
	return nil
}

// Err is the fault as an error of the engine.
func (f *Fault) Err() error {
	return &engine.Error{Kind: f.Kind, Err: errors.New(f.Message), Details: f.Details}
}
