package engine

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// The tables of a store. DESIGN.md describes what they hold.
var (
	tableMeta        = kv.Table{Name: "meta", Text: true}
	tableVaults      = kv.Table{Name: "vaults", IDs: true, Text: true}
	tableNodes       = kv.Table{Name: "nodes", IDs: true}
	tableChunks      = kv.Table{Name: "chunks", IDs: true}
	tableDigests     = kv.Table{Name: "digests"}
	tableCheckpoints = kv.Table{Name: "checkpoints", Text: true}
	tableTimeline    = kv.Table{Name: "timeline", Text: true}
	tableUnfinished  = kv.Table{Name: "unfinished", Text: true}
	tableOutputs     = kv.Table{Name: "outputs", Text: true}
	tableNotes       = kv.Table{Name: "notes", Text: true}
	tableAudit       = kv.Table{Name: "audit", IDs: true, Text: true}
)

// Tables lists the tables that a back end must open for the engine.
func Tables() []kv.Table {
	return []kv.Table{tableMeta, tableVaults, tableNodes, tableChunks, tableDigests, tableCheckpoints, tableTimeline, tableUnfinished, tableOutputs, tableNotes, tableAudit}
}

// rowTables lists the tables whose rows belong to a vault and name roots that must
// stay. Their keys are those of rowKey.
func rowTables() []kv.Table {
	return []kv.Table{tableCheckpoints, tableTimeline, tableUnfinished, tableOutputs}
}

// FormatVersion is the version of everything that the engine writes.
const FormatVersion = 4

// Options tunes a store. The zero value and nil are the defaults.
type Options struct {
	// Clock gives file and event times; nil is time.Now.
	Clock func() time.Time
	// CommitInterval is how long a change may wait for a relaxed commit; 0
	// is one second, negative turns the timer off.
	CommitInterval time.Duration
	// DirtyBytes is how much unsaved file content, in bytes, makes writers
	// wait for a commit; one begins at half of it. 0 is 32 MiB.
	DirtyBytes int64
	// CacheBytes bounds the cached nodes and chunks, each, in bytes; 0 is 32 MiB.
	CacheBytes int64
	// Retention is the rule of vaults that have none of their own; nil is
	// DefaultRetention.
	Retention *Retention
}

const (
	defaultInterval   = time.Second
	defaultDirtyBytes = 32 << 20
	defaultCacheBytes = 32 << 20
)

func (o *Options) orDefault() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.CommitInterval == 0 {
		opts.CommitInterval = defaultInterval
	}
	if opts.DirtyBytes == 0 {
		opts.DirtyBytes = defaultDirtyBytes
	}
	if opts.CacheBytes == 0 {
		opts.CacheBytes = defaultCacheBytes
	}
	return opts
}

// Store is one database with a family of vaults. It may be used by any number of
// goroutines.
type Store struct {
	kv     kv.Store
	opts   Options
	nodes  *nodeStore
	chunks *chunkStore

	// The newest ids handed out; a commit persists them with what uses them.
	lastNode, lastChunk, lastVault, lastCheckpoint, lastEvent, lastOutput atomic.Uint64

	deadOutput uint64 // outputs up to this one are over, whatever their rows say; set at open

	lastUnfinished atomic.Uint64 // need only be new among the records that are there
	left           []*Unfinished // by the process that had the store before; set at open

	collectedBytes atomic.Int64 // of the store after the last GC; kept with the ids

	dirty   atomic.Int64 // bytes of unsaved content over all vaults
	untaken atomic.Int64 // of dirty, what the last commit to begin did not take; see grown
	buffers sync.Pool    // of *[]byte with copyBytes bytes
	space   spaceGuard

	// The locks of a store and its vaults are taken in this order: care, a
	// vault's commitMu, making, sweep, mu, a vault's mu. None is taken inside a
	// transaction of the database, which may itself wait for readers to end.

	care   sync.Mutex   // held by GC and Check, which each want the store for themselves
	making sync.Mutex   // held while a vault is made and while the store closes
	sweep  sync.RWMutex // held shared by whoever moves a root, alone by GC for moments

	mu     sync.Mutex // guards what follows
	vaults map[string]*Vault
	pins   map[Root]int // roots that are in use and need be in no record
	closed bool
}

// counters is the persistent form of the ids handed out, and of the size of the
// store after the last GC.
type counters struct {
	Node       uint64 `json:"node"`
	Chunk      uint64 `json:"chunk"`
	Vault      uint64 `json:"vault"`
	Checkpoint uint64 `json:"checkpoint"`
	Event      uint64 `json:"event"`
	Output     uint64 `json:"output,omitempty"`
	Collected  int64  `json:"collected_bytes,omitempty"`
}

var (
	metaFormat   = []byte("format")
	metaCounters = []byte("counters")
)

// Create formats an empty database and takes it over: Close closes it.
func Create(ctx context.Context, db kv.Store, opts *Options) (*Store, error) {
	err := db.Update(ctx, kv.Durable, func(tx kv.Writer) error {
		if _, ok, err := tx.Get(tableMeta, metaFormat); err != nil || ok {
			if ok {
				err = fail(Exists, "create", "store")
			}
			return err
		}
		if err := putJSON(tx, tableMeta, metaCounters, counters{}); err != nil {
			return err
		}
		if err := putJSON(tx, tableMeta, metaAudit, auditHead{}); err != nil {
			return err
		}
		return tx.Put(tableMeta, metaFormat, strconv.AppendInt(nil, FormatVersion, 10))
	})
	if err != nil {
		return nil, wrap(err, "create", "store")
	}
	return Open(ctx, db, opts)
}

// Open opens a formatted database and takes it over: Close closes it. On an
// error the caller keeps the database.
func Open(ctx context.Context, db kv.Store, opts *Options) (*Store, error) {
	s := &Store{kv: db, opts: opts.orDefault(), vaults: map[string]*Vault{}, pins: map[Root]int{}}
	s.space.db = db
	var err error
	if s.nodes, err = newNodeStore(db, s.opts.CacheBytes); err != nil {
		return nil, err
	}
	if s.chunks, err = newChunkStore(db, s.opts.CacheBytes, &s.lastChunk); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		return nil, wrap(err, "open", "store")
	}
	return s, nil
}

// load reads the format, the counters and every vault's record.
func (s *Store) load(ctx context.Context) error {
	return s.kv.View(ctx, func(tx kv.Reader) error {
		format, ok, err := tx.Get(tableMeta, metaFormat)
		switch {
		case err != nil:
			return err
		case !ok:
			return fail(NotStore, "", "")
		case string(format) != strconv.Itoa(FormatVersion):
			return &Error{Kind: NotStore, Err: fmt.Errorf("format %q is not known to this version, which reads %d", format, FormatVersion)}
		}
		var c counters
		if ok, err := getJSON(tx, tableMeta, metaCounters, &c); err != nil {
			return err
		} else if !ok {
			return &Error{Kind: Corrupt, Op: "read", Path: "counters", Err: errMissing}
		}
		s.lastNode.Store(c.Node)
		s.lastChunk.Store(c.Chunk)
		s.lastVault.Store(c.Vault)
		s.lastCheckpoint.Store(c.Checkpoint)
		s.lastEvent.Store(c.Event)
		s.lastOutput.Store(c.Output)
		s.deadOutput = c.Output
		s.collectedBytes.Store(c.Collected)
		err = tx.Scan(tableVaults, nil, nil, func(k, value []byte) error {
			var rec vaultRecord
			if err := parseJSON(tableVaults, k, value, &rec); err != nil {
				return err
			}
			s.vaults[rec.Name] = newVault(s, rec)
			return nil
		})
		if err != nil {
			return err
		}
		return s.loadUnfinished(tx)
	})
}

// putCounters persists the ids handed out so far.
func (s *Store) putCounters(tx kv.Writer) error {
	return putJSON(tx, tableMeta, metaCounters, counters{
		Node: s.lastNode.Load(), Chunk: s.lastChunk.Load(), Vault: s.lastVault.Load(),
		Checkpoint: s.lastCheckpoint.Load(), Event: s.lastEvent.Load(), Output: s.lastOutput.Load(),
		Collected: s.collectedBytes.Load(),
	})
}

// Close commits every vault durably and closes the database. It returns the first
// failure; the database is closed all the same. A second Close does nothing.
func (s *Store) Close() error {
	s.making.Lock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.making.Unlock()
		return nil
	}
	s.closed = true
	vaults := make([]*Vault, 0, len(s.vaults))
	for _, v := range s.vaults {
		vaults = append(vaults, v)
	}
	s.mu.Unlock()
	s.making.Unlock() // none is being made, and who wants to, maybe with a commitMu in hand, sees closed
	var errs []error
	for _, v := range vaults {
		if err := v.close(); err != nil {
			errs = append(errs, fmt.Errorf("vault %s: %w", v.Name(), err))
		}
	}
	if err := s.kv.Close(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Unwrap gives the database, for its optional abilities (kv.As).
func (s *Store) Unwrap() kv.Store { return s.kv }

// CreateVault makes an empty vault.
func (s *Store) CreateVault(ctx context.Context, name string) (*Vault, error) {
	now := s.now()
	top := &inode{mode: TypeDir | 0o755, nlink: 2, atime: now, mtime: now, ctime: now, btime: now}
	top.uid, top.gid = currentOwner()
	rec := vaultRecord{Name: name, CreatedAt: s.opts.Clock().UTC()}
	v, err := s.addVault(rec, func(v *Vault) error {
		v.commitMu.Lock()
		defer v.commitMu.Unlock()
		v.mu.Lock()
		v.put(RootIno, inodeKey(RootIno), top.encode())
		v.mu.Unlock()
		return v.commitSwept(ctx, commitRequest{durable: true, pin: true, more: func(tx kv.Writer, rec *vaultRecord) error {
			rec.Noted = rec.Root
			e := v.entry(ctx, AuditVaultCreate)
			e.RootAfter = rec.Root.String()
			_, err := s.putAudit(tx, e)
			return err
		}})
	})
	return v, wrap(err, "create vault", name)
}

// maxVaults bounds the ids of vaults, which are the upper bits of an Ino.
const maxVaults = 1 << 23

// addVault gives rec an id, has persist write the vault's record, and registers
// the vault. The root of rec must be one that stays.
func (s *Store) addVault(rec vaultRecord, persist func(*Vault) error) (*Vault, error) {
	if err := CheckVaultName(rec.Name); err != nil {
		return nil, err
	}
	s.making.Lock()
	defer s.making.Unlock()
	s.sweep.RLock() // GC knows the roots of registered vaults only
	defer s.sweep.RUnlock()
	s.mu.Lock()
	closed, taken := s.closed, s.vaults[rec.Name] != nil
	s.mu.Unlock()
	switch {
	case closed:
		return nil, fail(Closed, "", "")
	case taken:
		return nil, fail(VaultExists, "", "")
	case s.lastVault.Load() >= maxVaults-1:
		return nil, &Error{Kind: Invalid, Err: errors.New("the store has used up its vault numbers")}
	}
	rec.ID = s.lastVault.Add(1)
	v := newVault(s, rec)
	if err := persist(v); err != nil {
		v.discard()
		return nil, errors.Join(err, s.withdraw(rec.ID))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vaults[rec.Name] = v
	return v, nil
}

// withdraw makes sure that a vault whose creation failed does not turn up at the
// next open, since a failed commit may have reached the disk all the same.
func (s *Store) withdraw(vault uint64) error {
	return s.kv.Update(context.Background(), kv.Durable|kv.Reclaim, func(tx kv.Writer) error {
		return tx.Delete(tableVaults, kv.ID(vault))
	})
}

// Vault returns the vault of that name. All callers share one *Vault.
func (s *Store) Vault(_ context.Context, name string) (*Vault, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fail(Closed, "open vault", name)
	}
	v, ok := s.vaults[name]
	if !ok {
		return nil, fail(VaultNotFound, "open vault", name)
	}
	return v, nil
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Vaults describes every vault, sorted by name. Pending changes count.
func (s *Store) Vaults(_ context.Context) ([]VaultInfo, error) {
	vaults := s.allVaults()
	infos := make([]VaultInfo, 0, len(vaults))
	for _, v := range vaults {
		infos = append(infos, v.Info())
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	return infos, nil
}

// DeleteVault removes a vault with its checkpoints, its timeline and its notes. Forks of it
// stay. A vault with open files is Busy. An error after the vault itself is gone
// only means that rows were left for GC.
func (s *Store) DeleteVault(ctx context.Context, name string) error {
	v, err := s.Vault(ctx, name)
	if err != nil {
		return err
	}
	const mode = kv.Durable | kv.Reclaim
	notes := func(tx kv.Writer) (bool, error) { return deleteNotes(tx, v.id, name, deleteBatch) }
	more, err := v.unlist(ctx, mode, notes)
	if err != nil {
		return wrap(err, "delete vault", name)
	}
	v.discard()
	s.mu.Lock()
	delete(s.vaults, name)
	s.mu.Unlock()
	if more {
		err = s.inBatches(ctx, mode, notes)
	}
	for _, t := range rowTables() {
		if err == nil {
			err = s.inBatches(ctx, mode, func(tx kv.Writer) (bool, error) { return deletePrefix(tx, t, kv.ID(v.id), deleteBatch) })
		}
	}
	if err == nil {
		err = s.dropLineage(ctx)
	}
	return wrap(err, "delete vault", name)
}

// unlist retires the vault and deletes its record, and what notes deletes in the same
// transaction. It reports whether notes has left some.
func (v *Vault) unlist(ctx context.Context, mode kv.Mode, notes func(tx kv.Writer) (bool, error)) (more bool, err error) {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	if err := v.retire(); err != nil {
		return false, err
	}
	e := v.entry(ctx, AuditVaultDelete)
	e.RootBefore = v.rec.Root.String()
	err = v.s.kv.Update(ctx, mode, func(tx kv.Writer) error {
		if _, err := v.s.putAudit(tx, e); err != nil {
			return err
		}
		var err error
		if more, err = notes(tx); err != nil {
			return err
		}
		return tx.Delete(tableVaults, kv.ID(v.id))
	})
	if err != nil {
		v.revive()
	}
	return more, err
}

// inBatches calls fn, each time in a transaction of its own, until nothing more is left.
func (s *Store) inBatches(ctx context.Context, mode kv.Mode, fn func(tx kv.Writer) (more bool, err error)) error {
	for more := true; more; {
		err := s.kv.Update(ctx, mode, func(tx kv.Writer) (err error) {
			more, err = fn(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteBatch is how many rows one transaction deletes.
const deleteBatch = 10_000

// deletePrefix deletes up to limit rows and reports whether more are left.
func deletePrefix(tx kv.Writer, t kv.Table, prefix []byte, limit int) (more bool, err error) {
	var keys [][]byte
	err = tx.Scan(t, prefix, nil, func(k, _ []byte) error {
		if len(keys) == limit {
			more = true
			return kv.Stop
		}
		keys = append(keys, append([]byte(nil), k...))
		return nil
	})
	for _, k := range keys {
		if err == nil {
			err = tx.Delete(t, k)
		}
	}
	return more, err
}

// CheckVaultName rejects what is not a plain name: 1 to 100 letters, digits,
// dots, dashes and underscores, beginning with a letter or digit, and none of
// the device names of Windows. A name is never a path.
func CheckVaultName(name string) error {
	bad := func(why string) error {
		return &Error{Kind: InvalidName, Op: "vault name", Path: fmt.Sprintf("%q", name), Err: errors.New(why)}
	}
	if name == "" || len(name) > 100 {
		return bad("a name has 1 to 100 characters")
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '-' && c != '_') {
			return bad("a name has letters, digits, '.', '-' and '_' only and begins with a letter or digit")
		}
	}
	if name[len(name)-1] == '.' {
		return bad("a name does not end in a dot")
	}
	if isDeviceName(name) {
		return bad("the name is reserved on Windows")
	}
	return nil
}

// now is the time in nanoseconds.
func (s *Store) now() int64 { return s.opts.Clock().UnixNano() }

// inoBase is the inode number below the first that a vault hands out.
func inoBase(vault uint64) uint64 { return vault << 40 }
