package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
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
)

// Tables lists the tables that a back end must open for the engine.
func Tables() []kv.Table {
	return []kv.Table{tableMeta, tableVaults, tableNodes, tableChunks, tableDigests, tableCheckpoints, tableTimeline}
}

// FormatVersion is the version of everything that the engine writes.
const FormatVersion = 1

// Options tunes a store. The zero value and nil are the defaults.
type Options struct {
	// Clock gives file and event times; nil is time.Now.
	Clock func() time.Time
	// CommitInterval is how long a change may wait for a relaxed commit; 0
	// is one second, negative turns the timer off.
	CommitInterval time.Duration
	// DirtyBytes is how much unsaved file content, in bytes, starts a
	// commit; 0 is 32 MiB.
	DirtyBytes int64
	// CacheBytes bounds the cached nodes and chunks, each, in bytes; 0 is 32 MiB.
	CacheBytes int64
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
	lastNode, lastChunk, lastVault, lastCheckpoint, lastEvent atomic.Uint64

	dirty atomic.Int64 // bytes of unsaved content over all vaults
	space spaceGuard

	// sweep is held shared by every commit and alone by GC.
	sweep sync.RWMutex

	mu     sync.Mutex // guards what follows
	vaults map[string]*Vault
	closed bool
}

// counters is the persistent form of the ids handed out.
type counters struct {
	Node       uint64 `json:"node"`
	Chunk      uint64 `json:"chunk"`
	Vault      uint64 `json:"vault"`
	Checkpoint uint64 `json:"checkpoint"`
	Event      uint64 `json:"event"`
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
		return putJSON(tx, tableMeta, metaFormat, FormatVersion)
	})
	if err != nil {
		return nil, wrap(err, "create", "store")
	}
	return Open(ctx, db, opts)
}

// Open opens a formatted database and takes it over: Close closes it. On an
// error the caller keeps the database.
func Open(ctx context.Context, db kv.Store, opts *Options) (*Store, error) {
	s := &Store{kv: db, opts: opts.orDefault(), vaults: map[string]*Vault{}}
	s.space.init(db)
	var err error
	if s.nodes, err = newNodeStore(db, s.opts.CacheBytes); err != nil {
		return nil, err
	}
	if s.chunks, err = newChunkStore(db, s.opts.CacheBytes, &s.lastChunk); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		s.chunks.close()
		return nil, wrap(err, "open", "store")
	}
	return s, nil
}

// load reads the format, the counters and every vault's record.
func (s *Store) load(ctx context.Context) error {
	return s.kv.View(ctx, func(tx kv.Reader) error {
		version := 0
		if ok, err := getJSON(tx, tableMeta, metaFormat, &version); err != nil {
			return err
		} else if !ok {
			return fail(NotStore, "", "")
		}
		if version != FormatVersion {
			return &Error{Kind: NotStore, Err: fmt.Errorf("format %d is not known to this version, which reads %d", version, FormatVersion)}
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
		return tx.Scan(tableVaults, nil, nil, func(k, value []byte) error {
			var rec vaultRecord
			if err := json.Unmarshal(value, &rec); err != nil {
				return &Error{Kind: Corrupt, Op: "read", Path: fmt.Sprintf("vault %d", kv.ParseID(k)), Err: err}
			}
			s.vaults[rec.Name] = newVault(s, rec)
			return nil
		})
	})
}

// putCounters persists the ids handed out so far.
func (s *Store) putCounters(tx kv.Writer) error {
	return putJSON(tx, tableMeta, metaCounters, counters{
		Node: s.lastNode.Load(), Chunk: s.lastChunk.Load(), Vault: s.lastVault.Load(),
		Checkpoint: s.lastCheckpoint.Load(), Event: s.lastEvent.Load(),
	})
}

// Close commits every vault durably and closes the database. It returns the first
// failure; the database is closed all the same. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	vaults := make([]*Vault, 0, len(s.vaults))
	for _, v := range s.vaults {
		vaults = append(vaults, v)
	}
	s.mu.Unlock()
	var errs []error
	for _, v := range vaults {
		if err := v.close(); err != nil {
			errs = append(errs, fmt.Errorf("vault %s: %w", v.Name(), err))
		}
	}
	if err := s.kv.Close(); err != nil {
		errs = append(errs, err)
	}
	s.chunks.close()
	return errors.Join(errs...)
}

// Unwrap gives the database, for its optional abilities (kv.As).
func (s *Store) Unwrap() kv.Store { return s.kv }

// CreateVault makes an empty vault.
func (s *Store) CreateVault(ctx context.Context, name string) (*Vault, error) {
	now := s.now()
	rec := vaultRecord{Name: name, CreatedAt: s.opts.Clock().UTC()}
	v, err := s.addVault(ctx, rec, func(tx kv.Writer, v *Vault) error { return nil })
	if err != nil {
		return nil, wrap(err, "create vault", name)
	}
	top := &inode{mode: TypeDir | 0o755, nlink: 2, atime: now, mtime: now, ctime: now, btime: now}
	top.uid, top.gid = currentOwner()
	v.mu.Lock()
	v.put(RootIno, inodeKey(RootIno), top.encode())
	v.mu.Unlock()
	if _, err := v.Commit(ctx, true); err != nil {
		return nil, errors.Join(wrap(err, "create vault", name), s.DeleteVault(context.WithoutCancel(ctx), name))
	}
	return v, nil
}

// addVault persists rec under a new id, with what more writes in the same
// transaction, and registers the vault.
func (s *Store) addVault(ctx context.Context, rec vaultRecord, more func(kv.Writer, *Vault) error) (*Vault, error) {
	if err := CheckVaultName(rec.Name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fail(Closed, "", "")
	}
	if _, ok := s.vaults[rec.Name]; ok {
		return nil, fail(VaultExists, "", "")
	}
	rec.ID = s.lastVault.Add(1)
	if rec.ID >= 1<<23 {
		return nil, fail(TooManyLinks, "", "")
	}
	v := newVault(s, rec)
	err := s.kv.Update(ctx, kv.Durable, func(tx kv.Writer) error {
		if err := more(tx, v); err != nil {
			return err
		}
		if err := putRecord(tx, v.rec); err != nil {
			return err
		}
		return s.putCounters(tx)
	})
	if err != nil {
		return nil, err
	}
	s.vaults[rec.Name] = v
	return v, nil
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

// Vaults describes every vault, sorted by name. Pending changes count.
func (s *Store) Vaults(_ context.Context) ([]VaultInfo, error) {
	s.mu.Lock()
	vaults := make([]*Vault, 0, len(s.vaults))
	for _, v := range s.vaults {
		vaults = append(vaults, v)
	}
	s.mu.Unlock()
	infos := make([]VaultInfo, 0, len(vaults))
	for _, v := range vaults {
		infos = append(infos, v.Info())
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	return infos, nil
}

// DeleteVault removes a vault with its checkpoints and its timeline. Forks of it
// stay. A vault with open files is Busy.
func (s *Store) DeleteVault(ctx context.Context, name string) error {
	v, err := s.Vault(ctx, name)
	if err != nil {
		return err
	}
	if err := v.retire(); err != nil {
		return wrap(err, "delete vault", name)
	}
	if err := s.deleteRecords(ctx, v.id); err != nil {
		v.revive()
		return wrap(err, "delete vault", name)
	}
	s.mu.Lock()
	delete(s.vaults, name)
	s.mu.Unlock()
	return nil
}

// deleteBatch is how many rows one transaction deletes.
const deleteBatch = 10_000

// deleteRecords deletes a vault's record and then, in transactions of bounded
// size, its checkpoints and timeline. Rows that a crash leaves behind belong to
// no vault and are swept by GC.
func (s *Store) deleteRecords(ctx context.Context, vault uint64) error {
	const mode = kv.Durable | kv.Reclaim
	err := s.kv.Update(ctx, mode, func(tx kv.Writer) error {
		return tx.Delete(tableVaults, kv.ID(vault))
	})
	for _, t := range []kv.Table{tableCheckpoints, tableTimeline} {
		for more := true; more && err == nil; {
			err = s.kv.Update(ctx, mode, func(tx kv.Writer) error {
				var err error
				more, err = deletePrefix(tx, t, kv.ID(vault), deleteBatch)
				return err
			})
		}
	}
	return err
}

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

func putJSON(tx kv.Writer, t kv.Table, key []byte, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.Put(t, key, b)
}

func getJSON(tx kv.Reader, t kv.Table, key []byte, into any) (bool, error) {
	b, ok, err := tx.Get(t, key)
	if err != nil || !ok {
		return false, err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, &Error{Kind: Corrupt, Op: "read", Path: t.Name, Err: err}
	}
	return true, nil
}

// inoBase is the inode number below the first that a vault hands out.
func inoBase(vault uint64) uint64 { return vault << 40 }
