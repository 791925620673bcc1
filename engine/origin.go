package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// HostOrigin says that a directory of the host was imported into a vault.
type HostOrigin struct {
	Source string    `json:"source"` // the host's directory
	Dest   string    `json:"dest"`   // the directory in the vault
	At     time.Time `json:"at"`
	Root   Root      `json:"root"` // the state with which the host's directory agreed
	// Applied is the state of which some changes were brought back last, without all.
	Applied Root `json:"applied,omitzero"`
	// Earlier are those of which that was so before, the newest last.
	Earlier []Root `json:"applied_earlier,omitempty"` // never modified
	presence
}

// maxApplied bounds how many states an import knows of which some changes were brought
// back since all were; the newest count.
const maxApplied = 16

// AppliedStates lists the states of which some changes were brought back since all
// were, the newest first.
func (o HostOrigin) AppliedStates() []Root {
	list := slices.Clone(o.Earlier)
	if !o.Applied.IsZero() {
		list = append(list, o.Applied)
	}
	slices.Reverse(list)
	return list
}

// applied is the import after changes up to root were brought back: all, or some.
func (o HostOrigin) applied(root Root, all bool) HostOrigin {
	if all {
		o.Root, o.Applied, o.Earlier = root, Root{}, nil
		return o
	}
	earlier := slices.DeleteFunc(o.AppliedStates(), func(r Root) bool { return r == root })
	earlier = earlier[:min(len(earlier), maxApplied-1)]
	slices.Reverse(earlier)
	o.Applied, o.Earlier = root, earlier
	return o
}

// maxOrigins bounds how many imports a vault knows of; the newest count.
const maxOrigins = 16

// NoteOrigin keeps, for a later apply, that the event ev imported the directory source
// of the host to dest. Forks inherit it. An undo or a restore of an older state takes it
// away, and a redo brings it back. An event without a number, as an import has that is part
// of a running command, is Invalid: no state says whether it has that import.
func (v *Vault) NoteOrigin(ctx context.Context, ev Event, source, dest string) error {
	const op = "note import"
	if ev.Seq == 0 {
		return wrap(&Error{Kind: Invalid, Err: errors.New("the import has no event of its own")}, op, v.Name())
	}
	o := HostOrigin{Source: source, Dest: dest, At: ev.At, Root: ev.After, presence: presence{Seq: ev.Seq, Since: ev.After.ref.ID}}
	return wrap(v.editOrigins(ctx, func(list []HostOrigin) []HostOrigin {
		if list = append(list, o); len(list) > maxOrigins {
			list = slices.DeleteFunc(list, func(o HostOrigin) bool { return !o.now() })
		}
		return list[max(0, len(list)-maxOrigins):]
	}), op, v.Name())
}

// NoteApplied keeps that changes up to the state root, which is pinned, were brought
// back to where o came from: all of them, or some.
func (v *Vault) NoteApplied(ctx context.Context, o HostOrigin, root Root, all bool) error {
	return wrap(v.editOrigins(ctx, func(list []HostOrigin) []HostOrigin {
		for i := range list {
			if list[i].Seq == o.Seq && list[i].Source == o.Source {
				list[i] = list[i].applied(root, all)
			}
		}
		return list
	}), "note apply", v.Name())
}

// editOrigins changes the list of imports in the vault's record.
func (v *Vault) editOrigins(ctx context.Context, edit func([]HostOrigin) []HostOrigin) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return err
	}
	rec := v.rec
	l := *lineageOf(rec)
	l.Origins = edit(slices.Clone(l.Origins))
	rec.Lineage = &l
	err := v.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error { return putRecord(tx, rec) })
	if err == nil {
		v.setRecord(rec)
	}
	return err
}

// Origins lists the directories of the host that were imported into the vault's state, the
// newest last.
func (v *Vault) Origins() []HostOrigin {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(lineageOf(v.rec).Origins), func(o HostOrigin) bool { return !o.in(v.rec.Root) })
}
