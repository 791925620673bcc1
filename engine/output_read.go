package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// OutputInfo says what is kept of what a command printed.
type OutputInfo struct {
	ExecID  string         `json:"exec_id"`
	Vault   string         `json:"vault"`
	At      time.Time      `json:"at"` // when the command began
	Streams []StreamOutput `json:"streams"`
	Ended   bool           `json:"ended"`         // false: it runs, or the record of its end was lost
	Cut     string         `json:"cut,omitempty"` // why not all is kept; empty: all is
}

func (r *outputRecord) info(vault string) OutputInfo {
	return OutputInfo{ExecID: r.ID, Vault: vault, At: r.At, Streams: slices.Clone(r.Streams), Ended: r.Ended, Cut: r.Cut}
}

// Stream is what is kept of a stream; a command that printed nothing to it has one
// without bytes.
func (i *OutputInfo) Stream(name string) StreamOutput {
	for _, s := range i.Streams {
		if s.Name == name {
			return s
		}
	}
	return StreamOutput{Name: name}
}

// KeptOutput is the output of a command, for reading. Close it.
type KeptOutput struct {
	OutputInfo
	s     *Store
	root  Root
	tails [][]byte // what follows the chunks of each stream
}

// Output finds what is kept of the output of an exec, in any vault of the store. An
// empty exec is the newest of the vault of that name. It is NotFound where nothing is
// kept.
func (s *Store) Output(ctx context.Context, vault, exec string) (*KeptOutput, error) {
	const op = "find output"
	names, prefix := map[uint64]string{}, []byte(nil)
	for _, v := range s.allVaults() {
		name := v.Name()
		names[v.id] = name
		if exec == "" && name == vault {
			prefix = kv.ID(v.id)
		}
	}
	if exec == "" && prefix == nil {
		return nil, fail(VaultNotFound, op, vault)
	}
	s.sweep.RLock() // nothing is swept between the look and the pin
	defer s.sweep.RUnlock()
	var found *KeptOutput
	err := s.kv.View(ctx, func(tx kv.Reader) error {
		found = nil
		return eachOutput(tx, prefix, func(_ []byte, rec *outputRecord) error {
			name, ok := names[rec.VaultID]
			if !ok || exec != "" && rec.ID != exec {
				return nil
			}
			found = &KeptOutput{OutputInfo: rec.info(name), s: s, root: rec.Root, tails: rec.Tails}
			return kv.Stop
		})
	})
	if err != nil {
		return nil, wrap(err, op, exec)
	}
	if found == nil {
		return nil, &Error{Kind: NotFound, Op: op, Path: exec, Err: fmt.Errorf("nothing is kept")}
	}
	s.pin(found.root)
	return found, nil
}

// eachOutput calls fn for the records of outputs below prefix, those of a vault
// newest first.
func eachOutput(tx kv.Reader, prefix []byte, fn func(key []byte, rec *outputRecord) error) error {
	return tx.Scan(tableOutputs, prefix, nil, func(k, value []byte) error {
		var rec outputRecord
		if err := parseJSON(tableOutputs, k, value, &rec); err != nil {
			return err
		}
		return fn(k, &rec)
	})
}

// Close lets the store forget the output when it is due.
func (k *KeptOutput) Close() { k.s.unpin(k.root) }

// WriteTo writes the bytes from up to, and without, to of what is kept of a stream.
func (k *KeptOutput) WriteTo(ctx context.Context, w io.Writer, stream string, from, to int64) error {
	i := slices.IndexFunc(k.Streams, func(s StreamOutput) bool { return s.Name == stream })
	if i < 0 {
		return nil
	}
	to = min(to, k.Streams[i].Kept)
	tail := (&outputRecord{Tails: k.tails}).tail(i)
	chunked := k.Streams[i].Kept - int64(len(tail))
	if err := k.writeChunks(ctx, w, i, from, min(to, chunked)); err != nil || to <= max(from, chunked) {
		return err
	}
	_, err := w.Write(tail[max(from, chunked)-chunked : to-chunked])
	return err
}

// writeChunks writes the bytes of a stream that are in chunks.
func (k *KeptOutput) writeChunks(ctx context.Context, w io.Writer, i int, from, to int64) error {
	const op = "read output"
	tree := view{src: k.s.nodes, root: k.root.ref}
	for from < to {
		index := from / ChunkSize
		value, err := tree.get(ctx, chunkKey(Ino(i+1), index))
		if err == nil && value == nil {
			err = &Error{Kind: Corrupt, Err: errMissing}
		}
		if err != nil {
			return wrap(err, op, k.ExecID)
		}
		ref, err := decodeChunkRef(value)
		if err != nil {
			return wrap(err, op, k.ExecID)
		}
		data, err := k.s.chunks.load(ctx, ref)
		if err != nil {
			return wrap(err, op, k.ExecID)
		}
		start := from - index*ChunkSize
		end := min(to-index*ChunkSize, int64(len(data)))
		if start >= end {
			return wrap(&Error{Kind: Corrupt, Err: errMissing}, op, k.ExecID)
		}
		if _, err := w.Write(data[start:end]); err != nil {
			return err
		}
		from += end - start
	}
	return nil
}

// maxOutputBytes bounds what the outputs of a vault may keep in all, in bytes.
const maxOutputBytes = 1 << 30

// oldOutputs lists the outputs that the rule and the cut do not keep, the newest
// first, and those that they do. Those of commands that run stay, with no root of their
// own, since it goes on changing. What is from before the store was opened does not run,
// though its command may have died before its row could say so.
func (v *Vault) oldOutputs(ctx context.Context, rule Retention, c cut) (old [][]byte, kept []past, err error) {
	keep := keeper{rule: rule, now: v.s.opts.Clock().UTC()}
	at := aging()
	var total int64
	err = v.s.kv.View(ctx, func(tx kv.Reader) error {
		return eachOutput(tx, kv.ID(v.id), func(k []byte, rec *outputRecord) error {
			for _, s := range rec.Streams {
				total += s.Kept
			}
			p := past{kind: pastOutput, seq: ^kv.ParseID(k[8:]), at: at(rec.At)}
			switch {
			case !rec.Ended && p.seq > v.s.deadOutput:
				kept = append(kept, p)
			case !keep.keep(rec.At) || total > maxOutputBytes || p.seq <= c.output:
				old = append(old, append([]byte(nil), k...))
			default:
				p.roots = []Root{rec.Root}
				kept = append(kept, p)
			}
			return nil
		})
	})
	return old, kept, err
}

// pruneOutputs applies the vault's rule to its outputs, now and then, where commands
// leave no events that would do it.
func (v *Vault) pruneOutputs(ctx context.Context, seq uint64) error {
	if !pruneDue(seq) {
		return nil
	}
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	old, _, err := v.oldOutputs(ctx, v.retention(), cut{})
	if err != nil {
		return err
	}
	e, rep := v.entry(context.Background(), AuditPrune), PruneReport{}
	rep.Outputs, err = v.dropRows(ctx, tableOutputs, old)
	return errors.Join(err, v.tellPruned(ctx, e, rep))
}
