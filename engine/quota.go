package engine

import (
	"context"
	"fmt"

	"github.com/agentvfs/avfs/engine/kv"
)

// Quota bounds what a vault may grow to; 0 is no bound. It bounds growth only:
// what is there stays when a smaller quota is set, and a restore or an undo is
// never refused. Forks inherit it.
type Quota struct {
	MaxBytes     int64 `json:"max_bytes,omitempty"`      // of file content
	MaxFiles     int64 `json:"max_files,omitempty"`      // inodes of every type but the top directory
	MaxFileBytes int64 `json:"max_file_bytes,omitempty"` // the size of one file, holes included
}

// QuotaChange says which bounds to set; nil leaves one as it is, 0 removes it.
type QuotaChange struct {
	MaxBytes     *int64 `json:"max_bytes,omitempty"`
	MaxFiles     *int64 `json:"max_files,omitempty"`
	MaxFileBytes *int64 `json:"max_file_bytes,omitempty"`
}

// Limit names a bound of a quota, as errors, envelopes and the command line do.
type Limit string

// The limits of a quota. A megabyte is 1024 * 1024 bytes; where it is not a whole
// number of them, the number has a fraction.
const (
	LimitSize     Limit = "max_size_mb"
	LimitFiles    Limit = "max_files"
	LimitFileSize Limit = "max_file_size_mb"
)

// Usage is what a quota counts. Content counts once, however many names it has;
// holes, names, attributes and history count nothing.
type Usage struct {
	Bytes         int64 `json:"used_bytes"` // content of files, of unlinked open ones too
	Files         int64 `json:"files"`      // inodes but the top directory, unlinked open ones too
	UnlinkedBytes int64 `json:"unlinked_bytes"`
	UnlinkedFiles int64 `json:"unlinked_files"`
}

// Usage tells at once what the vault uses, pending changes included.
func (v *Vault) Usage() Usage {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.usage()
}

// usage is Usage for a caller that holds mu.
func (v *Vault) usage() Usage {
	return Usage{
		Bytes: v.bytes + v.unlinked, Files: v.count + v.orphans,
		UnlinkedBytes: v.unlinked, UnlinkedFiles: v.orphans,
	}
}

// Quota is what bounds the vault.
func (v *Vault) Quota() Quota {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rec.Quota
}

// SetQuota changes the quota, durably, and tells of it in the audit, with the command
// line of e. What the
// vault holds beyond the new quota stays; it can shrink and not grow.
func (v *Vault) SetQuota(ctx context.Context, change QuotaChange, e AuditEntry) (Quota, error) {
	const op = "set quota"
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.open(); err != nil {
		return Quota{}, wrap(err, op, v.Name())
	}
	rec := v.rec
	for _, b := range []struct {
		to   *int64
		from *int64
	}{{&rec.Quota.MaxBytes, change.MaxBytes}, {&rec.Quota.MaxFiles, change.MaxFiles}, {&rec.Quota.MaxFileBytes, change.MaxFileBytes}} {
		switch {
		case b.from == nil:
		case *b.from < 0:
			return v.rec.Quota, wrap(&Error{Kind: Invalid, Err: fmt.Errorf("a limit of %d", *b.from)}, op, rec.Name)
		default:
			*b.to = *b.from
		}
	}
	made := v.entry(ctx, AuditQuotaSet).between(rec.Root, rec.Root)
	made.Argv = e.Argv
	err := v.s.kv.Update(ctx, kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
		if _, err := v.s.putAudit(tx, made); err != nil {
			return err
		}
		if err := putRecord(tx, rec); err != nil {
			return err
		}
		return v.s.putCounters(tx)
	})
	if err != nil {
		return v.rec.Quota, wrap(err, op, rec.Name)
	}
	v.setRecord(rec)
	return rec.Quota, nil
}

// Refusals counts what each limit of a quota has refused since the vault was
// opened.
type Refusals struct{ Size, Files, FileSize uint64 }

// Refusals tells what the quota has refused so far.
func (v *Vault) Refusals() Refusals {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.refused
}

// Since lists the limits that refused something after before was taken.
func (r Refusals) Since(before Refusals) []Limit {
	list := []Limit{}
	if r.Size > before.Size {
		list = append(list, LimitSize)
	}
	if r.Files > before.Files {
		list = append(list, LimitFiles)
	}
	if r.FileSize > before.FileSize {
		list = append(list, LimitFileSize)
	}
	return list
}

// admitBytes refuses delta more bytes of content over the quota. Like its
// siblings it is for a caller that holds mu and has changed nothing yet; what
// does not grow is never refused.
func (v *Vault) admitBytes(delta int64) error {
	limit, total := v.rec.Quota.MaxBytes, v.bytes+v.unlinked+delta
	if limit == 0 || delta <= 0 || total <= limit {
		return nil
	}
	v.refused.Size++
	return overQuota(LimitSize, megabytes(total), megabytes(limit), fmt.Sprintf("%d bytes in all, and %d are allowed", total, limit))
}

// admitFiles refuses delta more inodes over the quota.
func (v *Vault) admitFiles(delta int64) error {
	limit, total := v.rec.Quota.MaxFiles, v.count+v.orphans+delta
	if limit == 0 || delta <= 0 || total <= limit {
		return nil
	}
	v.refused.Files++
	return overQuota(LimitFiles, float64(total), float64(limit), fmt.Sprintf("%d files, and %d are allowed", total, limit))
}

// admitSize refuses a file that grows from one size to another over the quota.
func (v *Vault) admitSize(from, to int64) error {
	limit := v.rec.Quota.MaxFileBytes
	if limit == 0 || to <= from || to <= limit {
		return nil
	}
	v.refused.FileSize++
	return overQuota(LimitFileSize, megabytes(to), megabytes(limit), fmt.Sprintf("a file of %d bytes, and %d are allowed", to, limit))
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

func overQuota(limit Limit, requested, allowed float64, text string) error {
	return &Error{
		Kind: QuotaExceeded, Err: fmt.Errorf("quota exceeded: %s", text),
		Details: map[string]any{"type": string(limit), "requested": requested, "limit": allowed},
	}
}

// admitEntry refuses what Ingest would add over the quota. old is the inode that
// gives way, nil for none; what it frees counts.
func (v *Vault) admitEntry(e *Entry, old *inode, oldIno Ino) error {
	if e.Link != 0 {
		return nil
	}
	bytes, files := int64(0), int64(1)
	for _, c := range e.Content {
		bytes += int64(len(c.Data))
	}
	if f := v.files[oldIno]; old != nil && old.nlink <= 1 && (f == nil || f.handles == 0) {
		bytes -= old.alloc
		files--
	}
	if err := v.admitSize(0, e.Size); err != nil {
		return err
	}
	if err := v.admitFiles(files); err != nil {
		return err
	}
	return v.admitBytes(bytes)
}

// admitCopy refuses a copy of src over the file old, 0 for none, that would not
// fit: known beforehand, it does not cost the content of old.
func (v *Vault) admitCopy(ctx context.Context, src, old Ino) error {
	return v.change(ctx, "copy", "", func() error {
		n, err := v.inodeOf(ctx, src)
		if err != nil {
			return err
		}
		was := &inode{}
		if old != 0 {
			if was, err = v.inodeOf(ctx, old); err != nil {
				return err
			}
		}
		if err := v.admitSize(was.size, n.size); err != nil {
			return err
		}
		return v.admitBytes(n.alloc - was.alloc)
	})
}

// bounded is the room for content, in bytes, and for files that the quota leaves
// of what there is. The caller holds mu.
func (v *Vault) bounded(bytes, files int64) (int64, int64) {
	u, q := v.usage(), v.rec.Quota
	if q.MaxBytes > 0 {
		bytes = min(bytes, max(q.MaxBytes-u.Bytes, 0))
	}
	if q.MaxFiles > 0 {
		files = min(files, max(q.MaxFiles-u.Files, 0))
	}
	return bytes, files
}

// admitAllocate refuses an Allocate that the quota leaves no room for. Holes
// that it makes need none.
func (v *Vault) admitAllocate(n *inode, off, length int64, mode uint32) error {
	if mode&AllocKeepSize == 0 {
		if err := v.admitSize(n.size, off+length); err != nil {
			return err
		}
	}
	if mode&^AllocKeepSize != 0 {
		return nil
	}
	return v.admitBytes(length - n.alloc)
}
