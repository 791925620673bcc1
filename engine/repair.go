package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentvfs/avfs/engine/internal/tree"
	"github.com/agentvfs/avfs/engine/kv"
)

// RepairAction is one thing that Repair did, in sentences for people.
type RepairAction struct {
	Problem string `json:"problem"`
	Action  string `json:"action"`
}

// RepairReport says what was repaired and, in the check, what could not be. Only
// a store without findings is collected.
type RepairReport struct {
	Repaired []RepairAction `json:"repaired"`
	CheckReport
	Collected *GCReport `json:"collected,omitempty"`
}

// maxRepairPasses bounds how often Repair looks again. A healed node uncovers what
// is below it, so a pass per level of a tree is needed, and no more.
const maxRepairPasses = 16

// Repair checks the store and mends what it can prove: a record, a node or a chunk
// is replaced by a copy that has its digest, an index row that leads nowhere goes,
// a wrong count is counted anew, and garbage is collected. What is lost it leaves
// as it is: reading it stays an error, the rest stays readable, and writing the
// same content again heals it. Each step is a durable transaction of its own that
// is right by itself, so Repair may be ended at any moment and run again.
//
// It checks all there is to check, content and history too: a store that it finds
// sound is sound.
func (s *Store) Repair(ctx context.Context) (RepairReport, error) {
	s.care.Lock()
	defer s.care.Unlock()
	r := &repairer{s: s, rep: RepairReport{Repaired: []RepairAction{}}}
	opts := CheckOptions{ReadData: true, History: true}
	err := r.run(ctx, opts)
	if KindOf(err) == Corrupt {
		err = r.onlyName(ctx, opts, err)
	}
	return r.rep, wrap(err, "repair", "")
}

// onlyName reports what a check finds in a database that is damaged so that it
// cannot be changed, which cause says.
func (r *repairer) onlyName(ctx context.Context, opts CheckOptions, cause error) error {
	c, err := r.s.check(ctx, opts)
	if err != nil {
		return errors.Join(cause, err)
	}
	r.rep.CheckReport = c.report
	r.rep.Findings = append(r.rep.Findings, Finding{Problem: "the database cannot be mended: " + cause.Error(), Owners: []string{}})
	return nil
}

type repairer struct {
	s   *Store
	rep RepairReport
}

// did notes a repair that is done.
func (r *repairer) did(problem, format string, args ...any) {
	r.rep.Repaired = append(r.rep.Repaired, RepairAction{problem, fmt.Sprintf(format, args...)})
}

func (r *repairer) run(ctx context.Context, opts CheckOptions) error {
	if err := r.records(ctx); err != nil {
		return err
	}
	for range maxRepairPasses {
		before := len(r.rep.Repaired)
		c, err := r.s.check(ctx, opts)
		r.rep.CheckReport = c.report
		if err != nil {
			return err
		}
		if len(c.report.Findings) == 0 {
			break
		}
		if err := r.mend(ctx, &c.faults); err != nil {
			return err
		}
		if len(r.rep.Repaired) == before {
			return nil
		}
	}
	if len(r.rep.Findings) > 0 {
		return nil
	}
	r.rep.Collected = &GCReport{}
	return r.s.collect(ctx, r.rep.Collected)
}

func (r *repairer) mend(ctx context.Context, f *faults) error {
	if err := r.nodes(ctx, f.nodes); err != nil {
		return err
	}
	if err := r.chunks(ctx, f.chunks); err != nil {
		return err
	}
	if err := r.rows(ctx, f.rows); err != nil {
		return err
	}
	if err := r.usage(ctx, f.usage); err != nil {
		return err
	}
	if f.noAuditHead {
		return r.auditHead(ctx)
	}
	return nil
}

// auditHead puts the head of the audit at the newest entry that is there, and adds an
// entry that says so: that there was no other behind it cannot be proved any more.
func (r *repairer) auditHead(ctx context.Context) error {
	e := AuditEntry{Kind: AuditRepair, Subject: "the head of the audit was damaged", Action: auditAllow, Status: auditDone}
	e = e.by(actorOf(ctx))
	chain, wrote := newChainCheck(nil), false
	err := chain.run(ctx, r.s.kv)
	if err == nil && chain.noHead {
		err = r.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
			_, err := readAuditHead(tx)
			if wrote = KindOf(err) == Corrupt; !wrote {
				return err
			}
			if err := putJSON(tx, tableMeta, metaAudit, chain.head); err != nil {
				return err
			}
			_, err = r.s.putAudit(tx, e)
			return err
		})
	}
	if err == nil && wrote {
		r.did("the head of the audit was damaged", "set to the newest entry, %d; whether there were others behind it cannot be told", chain.head.Seq)
	}
	return err
}

// put writes one record durably unless good, which looks at what is there now,
// says that it is right already. It reports whether it wrote.
func (r *repairer) put(ctx context.Context, t kv.Table, key, value []byte, good func(now []byte) bool) (wrote bool, err error) {
	err = r.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
		now, ok, err := tx.Get(t, key)
		if wrote = err == nil && !(ok && good(now)); !wrote {
			return err
		}
		return tx.Put(t, key, value)
	})
	return wrote && err == nil, err
}

// rows deletes index rows that are damaged or lead to damage that nothing else
// refers to. The index only saves space.
func (r *repairer) rows(ctx context.Context, list []indexFault) error {
	for _, f := range list {
		removed := false
		err := r.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
			removed = false
			row, ok, err := tx.Get(tableDigests, f.key)
			if err != nil || !ok {
				return err
			}
			if id, _, sound := parseIndexRow(f.key, row); sound && len(f.key) == sha256.Size && id != f.id {
				return nil // replaced meanwhile
			}
			removed = true
			return tx.Delete(tableDigests, f.key)
		})
		if err != nil {
			return err
		}
		if !removed {
			continue
		}
		r.did(fmt.Sprintf("digest index: the row of %x was wrong", f.key), "removed; it only saves space")
	}
	return nil
}

// usage counts vaults anew. What changed since the check counts on top.
func (r *repairer) usage(ctx context.Context, list []usageFault) error {
	for _, v := range r.s.allVaults() {
		for _, f := range list {
			if v.id != f.vault {
				continue
			}
			if err := v.recount(ctx, f.count, f.bytes); err != nil {
				return err
			}
			r.did("the usage of vault "+v.Name()+" was wrong", "counted anew: %+d files, %+d bytes", f.count, f.bytes)
		}
	}
	return nil
}

// recount adds to the vault's counts.
func (v *Vault) recount(ctx context.Context, count, bytes int64) error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return err
	}
	rec := v.rec
	rec.Count += count
	rec.Bytes += bytes
	err := v.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error { return putRecord(tx, rec) })
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rec = rec
	v.count += count
	v.bytes += bytes
	return nil
}

// chunks looks for the content of damaged chunks: in memory, in what is left of
// their records, under other ids by digest, and last in every chunk of the store.
func (r *repairer) chunks(ctx context.Context, damaged map[uint64]chunkRef) error {
	lost := map[tree.Digest][]chunkRef{}
	for _, id := range slices.Sorted(maps.Keys(damaged)) {
		ref := damaged[id]
		data, where, err := r.findContent(ctx, ref)
		switch {
		case err != nil:
			return err
		case data == nil:
			lost[ref.digest] = append(lost[ref.digest], ref)
		default:
			if err := r.healChunk(ctx, ref, data, where); err != nil {
				return err
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return r.searchChunks(ctx, lost)
}

// healChunk stores the content of a chunk again, under its id.
func (r *repairer) healChunk(ctx context.Context, ref chunkRef, data []byte, where string) error {
	c := r.s.chunks
	healed, err := r.put(ctx, tableChunks, kv.ID(ref.id), c.encode(ref.digest, data), func(now []byte) bool {
		return c.prove(now, ref) == nil
	})
	if healed {
		c.keep(ref, data)
		r.did(fmt.Sprintf("chunk %d was damaged", ref.id), "its content was found %s", where)
	}
	return err
}

// findContent looks where no long search is needed; nil if it is not there.
func (r *repairer) findContent(ctx context.Context, ref chunkRef) (data []byte, where string, err error) {
	c := r.s.chunks
	if known := c.known(ref); known != nil && ref.describes(known) == nil {
		return known, "in memory", nil
	}
	err = c.kv.View(ctx, func(tx kv.Reader) error {
		rec, ok, err := tx.Get(tableChunks, kv.ID(ref.id))
		if err != nil {
			return err
		}
		for _, encoding := range []byte{chunkRaw, chunkS2} {
			if !ok || len(rec) < chunkHead {
				break
			}
			if d, err := expand(encoding, rec[chunkHead:], nil); err == nil && ref.describes(d) == nil {
				data, where = d, "in its own record"
				return nil
			}
		}
		return tx.Scan(tableDigests, ref.digest[:], nil, func(k, row []byte) error {
			id, _, ok := parseIndexRow(k, row)
			if !ok {
				return nil
			}
			other, ok, err := tx.Get(tableChunks, kv.ID(id))
			if err != nil || !ok {
				return err
			}
			if d, err := c.unpack(other, nil); err == nil && ref.describes(d) == nil {
				data, where = d, fmt.Sprintf("in chunk %d", id)
				return kv.Stop
			}
			return nil
		})
	})
	return data, where, err
}

// searchBatch is how many records one transaction of a search reads.
const searchBatch = 256

// searchChunks reads every chunk for the content of those that are lost.
func (r *repairer) searchChunks(ctx context.Context, lost map[tree.Digest][]chunkRef) error {
	return r.search(ctx, tableChunks, func() bool { return len(lost) > 0 }, func(id uint64, rec []byte) func() error {
		data, err := r.s.chunks.unpack(rec, nil)
		if err != nil {
			return nil
		}
		sum := sha256.Sum256(data)
		refs := lost[tree.Digest(sum[:16])]
		if len(refs) == 0 || len(data) != refs[0].length {
			return nil
		}
		delete(lost, refs[0].digest)
		return func() error {
			for _, ref := range refs {
				if err := r.healChunk(ctx, ref, data, fmt.Sprintf("in chunk %d", id)); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// search shows the rows of a table to match, for as long as wanted holds, and calls
// what it returns, outside of the transaction.
func (r *repairer) search(ctx context.Context, t kv.Table, wanted func() bool, match func(id uint64, rec []byte) func() error) error {
	var from []byte
	for more := true; more && wanted(); {
		more = false
		var found []func() error
		seen := 0
		err := r.s.kv.View(ctx, func(tx kv.Reader) error {
			return tx.Scan(t, nil, from, func(k, rec []byte) error {
				if seen++; seen > searchBatch {
					more = true
					from = append([]byte(nil), k...)
					return kv.Stop
				}
				if fn := match(kv.ParseID(k), rec); fn != nil {
					found = append(found, fn)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, fn := range found {
			if err := fn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodes looks for other copies of damaged nodes. A tree that was built twice has
// equal nodes under different ids.
func (r *repairer) nodes(ctx context.Context, damaged []tree.Ref) error {
	lost := map[tree.Digest][]tree.Ref{}
	for _, ref := range damaged {
		if list := lost[ref.Digest]; !slices.Contains(list, ref) {
			lost[ref.Digest] = append(list, ref)
		}
	}
	for digest, refs := range lost {
		for _, ref := range refs {
			if n, ok := r.s.nodes.cache.get(ref.ID); ok {
				if err := r.healNode(ctx, ref, n, "in memory"); err != nil {
					return err
				}
				lost[digest] = slices.DeleteFunc(slices.Clone(lost[digest]), func(o tree.Ref) bool { return o == ref })
			}
		}
		if len(lost[digest]) == 0 {
			delete(lost, digest)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return r.search(ctx, tableNodes, func() bool { return len(lost) > 0 }, func(id uint64, rec []byte) func() error {
		digest, ok := tree.Content(rec)
		refs := lost[digest]
		if !ok || len(refs) == 0 {
			return nil
		}
		n, ok := tree.Salvage(rec, digest)
		if !ok {
			return nil
		}
		return func() error {
			if ok, err := r.leadsOn(ctx, n); err != nil || !ok || lost[digest] == nil {
				return err
			}
			delete(lost, digest)
			for _, ref := range refs {
				where := fmt.Sprintf("in node %d", id)
				if id == ref.ID {
					where = "in its own record"
				}
				if err := r.healNode(ctx, ref, n, where); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// leadsOn reports whether every child of a salvaged node is there: nothing else
// vouches for their ids.
func (r *repairer) leadsOn(ctx context.Context, n *tree.Node) (bool, error) {
	for i := range n.Len() {
		if n.IsLeaf() {
			break
		}
		if _, err := r.s.nodes.load(ctx, n.Child(i)); err != nil {
			if KindOf(err) == Corrupt {
				err = nil
			}
			return false, err
		}
	}
	return true, nil
}

func (r *repairer) healNode(ctx context.Context, ref tree.Ref, n *tree.Node, where string) error {
	rec := n.Record(ref.ID)
	if _, err := tree.Decode(rec, ref); err != nil {
		return err
	}
	healed, err := r.put(ctx, tableNodes, kv.ID(ref.ID), rec, func(now []byte) bool {
		_, err := tree.Decode(now, ref)
		return err == nil
	})
	if healed {
		r.did(fmt.Sprintf("node %d was damaged", ref.ID), "its content was found %s", where)
	}
	return err
}

// records looks at the records of checkpoints and timelines whose checksum is
// wrong. One that still names states which are whole, as their digests prove, is
// sealed again, and so is a note that is whole but for a character.
func (r *repairer) records(ctx context.Context) error {
	for _, t := range append(rowTables(), tableNotes) {
		type damage struct{ key, value []byte }
		var list []damage
		err := r.s.kv.View(ctx, func(tx kv.Reader) error {
			list = nil
			return tx.Scan(t, nil, nil, func(k, value []byte) error {
				var body json.RawMessage
				if parseJSON(t, k, value, &body) != nil {
					list = append(list, damage{bytes.Clone(k), bytes.Clone(value)})
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, d := range list {
			if err := r.record(ctx, t, d.key, d.value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *repairer) record(ctx context.Context, t kv.Table, key, value []byte) error {
	sealed, what, err := r.reseal(ctx, t, key, value)
	if err != nil || sealed == nil {
		return err
	}
	wrote, err := r.put(ctx, t, key, sealed, func(now []byte) bool { return !bytes.Equal(now, value) })
	if wrote {
		proof := "the states that it names are whole"
		if t == tableNotes {
			proof = "it is what its key says"
		}
		r.did("the record of "+what+" was damaged", "sealed again: %s; its text may have a wrong character", proof)
	}
	return err
}

// reseal gives a damaged record a new checksum if it proves itself; nil if not.
func (r *repairer) reseal(ctx context.Context, t kv.Table, key, value []byte) (sealed []byte, what string, err error) {
	if len(value) < sumLength {
		return nil, "", nil
	}
	body := append(bytes.Clone(value[:len(value)-sumLength]), '}')
	if t == tableNotes {
		return resealNote(key, body)
	}
	if len(key) != 16 {
		return nil, "", nil
	}
	vault, seq := kv.ParseID(key[:8]), kv.ParseID(key[8:])
	var doc any
	var roots []Root
	switch t {
	case tableCheckpoints:
		var row checkpointRow
		if strictJSON(body, &row) != nil || row.ID != "" || row.VaultID != 0 {
			return nil, "", nil
		}
		doc, roots, what = row, []Root{row.Root}, "checkpoint "+checkpointID(seq)
	case tableUnfinished:
		var rec unfinishedRecord
		if strictJSON(body, &rec) != nil || rec.VaultID != vault {
			return nil, "", nil
		}
		doc, roots, what = rec, []Root{rec.Before}, "the unfinished command "+rec.ID
	case tableOutputs:
		var rec outputRecord
		if strictJSON(body, &rec) != nil || rec.VaultID != vault {
			return nil, "", nil
		}
		doc, what = rec, "the output of exec "+rec.ID
		if !rec.nothing() {
			roots = []Root{rec.Root}
		}
	default:
		var ev Event
		if strictJSON(body, &ev) != nil || ev.VaultID != vault || ev.Seq != ^seq {
			return nil, "", nil
		}
		doc, roots, what = ev, []Root{ev.Before, ev.After}, fmt.Sprintf("timeline entry %d", ev.Seq)
	}
	for _, root := range roots {
		if root.IsZero() {
			return nil, "", nil
		}
		if _, err := r.s.nodes.load(ctx, root.ref); err != nil {
			if KindOf(err) == Corrupt {
				err = nil
			}
			return nil, "", err
		}
	}
	sealed, err = sealJSON(t, key, doc)
	return sealed, what, err
}

// resealNote is reseal for a note. Nothing but its own text can prove one.
func resealNote(key, body []byte) (sealed []byte, what string, err error) {
	var n Note
	if strictJSON(body, &n) != nil || !bytes.Equal(n.key(), key) {
		return nil, "", nil
	}
	sealed, err = sealJSON(tableNotes, key, n)
	return sealed, fmt.Sprintf("the note %q", key), err
}

// strictJSON refuses members that the record does not have: a damaged name must
// not pass for a missing member.
func strictJSON(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one document")
	}
	return nil
}
