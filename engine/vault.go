package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentvfs/avfs/engine/kv"
)

// Vault is one mutable workspace. It may be used by any number of goroutines.
//
// Operations take effect in memory at once, for every reader. They reach the
// database in commits: on Sync and Commit, after a short while, under memory
// pressure, and before a fork, a checkpoint or an exec.
type Vault struct {
	s  *Store
	id uint64

	// eventing is held by whoever makes an event, from before it begins until it has ended,
	// so that what one of them does is in one event, and in no other's. While a command
	// runs, that is for its beginning and its end. It is taken before any lock.
	eventing chan struct{}

	// commitMu is held by whoever replaces the root: commits, forks,
	// checkpoints, restores. It is the first lock to take.
	commitMu sync.Mutex
	replaced []Change   // what watchers are told when commitMu is given back; guarded by it
	recorded uint64     // the event added under commitMu, until pruneRecorded; guarded by it
	running  int        // commands that have begun, can change something, and have not ended; guarded by commitMu
	begun    *OpenEvent // nil if none has; guarded by commitMu
	trimmed  trimmed    // the last time that its history was within its bound; guarded by care

	committed atomic.Uint64 // the newest generation that is committed
	durable   atomic.Uint64 // the newest generation that is committed durably
	hastened  atomic.Bool   // the timer has run out before its time; until the next commit begins

	mu         sync.RWMutex // guards what follows
	rec        vaultRecord  // as persisted; written under commitMu and mu, read under either
	active     *overlay     // changes since the last freeze
	frozen     *overlay     // changes that a commit is persisting; nil when none is
	files      map[Ino]*file
	held       map[uint64]int // chunks that unlinked open files refer to, and how often
	doomed     doomed         // what the next commit may delete
	floorNode  uint64         // what GC is marking, and no commit deletes; 0 otherwise
	floorChunk uint64
	shared     map[uint64]chunkRef // what the next commit must mark as shared; see doubled
	nextIno    uint64
	count      int64 // inodes, the top directory not counted
	bytes      int64 // allocated content of all inodes
	unlinked   int64 // allocated content of unlinked open files, not in bytes
	orphans    int64 // unlinked open files, not in count
	refused    Refusals
	generation uint64 // counts changes
	watchers   []*Watcher
	notes      *notes // of the step under way; nil where nobody is to be told
	timer      *time.Timer
	failed     error  // why the last commit failed; nil after a good one
	failures   uint64 // how many commits have failed
	closed     bool
}

// vaultRecord is the persistent form of a vault.
type vaultRecord struct {
	ID          uint64        `json:"id"`
	Name        string        `json:"name"`
	Parent      string        `json:"parent,omitempty"`
	ForkedFrom  Root          `json:"forked_from"`
	CreatedAt   time.Time     `json:"created_at"`
	Root        Root          `json:"root"`
	Noted       Root          `json:"noted,omitzero"`    // the state that the newest event left
	Session     *MountSession `json:"session,omitempty"` // never modified
	NodeMark    uint64        `json:"node_mark"`         // this tree alone refers to nodes above it
	ChunkMark   uint64        `json:"chunk_mark"`        // likewise for chunks, unless they are shared
	NextIno     uint64        `json:"next_ino"`
	Count       int64         `json:"count"`
	Bytes       int64         `json:"bytes"`
	Checkpoints int           `json:"checkpoints"`
	Quota       Quota         `json:"quota,omitzero"`
	Lineage     *lineage      `json:"lineage,omitempty"`   // never modified
	Retention   *Retention    `json:"retention,omitempty"` // never modified; nil is the store's
}

func newVault(s *Store, rec vaultRecord) *Vault {
	if rec.NextIno == 0 {
		rec.NextIno = inoBase(rec.ID) + 1
	}
	if rec.Noted.IsZero() && !rec.Root.IsZero() { // by a version that did not note it
		rec.Noted, rec.NodeMark, rec.ChunkMark = rec.Root, s.lastNode.Load(), s.lastChunk.Load()
	}
	v := &Vault{
		s: s, eventing: make(chan struct{}, 1), id: rec.ID, rec: rec, nextIno: rec.NextIno, count: rec.Count, bytes: rec.Bytes,
		active: &overlay{}, files: map[Ino]*file{}, held: map[uint64]int{}, shared: map[uint64]chunkRef{}, generation: asOpened,
	}
	v.committed.Store(asOpened)
	return v
}

// asOpened is the generation of a vault that nothing has changed yet. It counts
// as committed, but not as durable: the process before may have left it to the
// operating system.
const asOpened = 1

func putRecord(tx kv.Writer, rec vaultRecord) error {
	return putJSON(tx, tableVaults, kv.ID(rec.ID), rec)
}

// Name is the vault's name.
func (v *Vault) Name() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rec.Name
}

// Store is the store that holds the vault.
func (v *Vault) Store() *Store { return v.s }

// Info describes the vault; pending changes count, but are not in Root.
func (v *Vault) Info() VaultInfo {
	v.mu.RLock()
	info := VaultInfo{
		ID: v.id, Name: v.rec.Name, Parent: v.rec.Parent, Ancestors: lineageOf(v.rec).names(), CreatedAt: v.rec.CreatedAt, Root: v.rec.Root,
		Files: v.count, Bytes: v.bytes + v.unlinked, Checkpoints: v.rec.Checkpoints,
	}
	ancestors := lineageOf(v.rec).Ancestors
	v.mu.RUnlock()
	if len(ancestors) > 0 {
		info.ParentGone = !v.s.hasVault(ancestors[0].Vault)
	}
	return info
}

// hasVault reports whether there is a vault with that id.
func (s *Store) hasVault(id uint64) bool {
	return slices.ContainsFunc(s.allVaults(), func(v *Vault) bool { return v.id == id })
}

// view is the live state. The caller holds mu and uses the view under it.
func (v *Vault) view() view {
	return view{src: v.s.nodes, over: [2]*overlay{v.active, v.frozen}, root: v.rec.Root.ref}
}

// viewOf is the state in which ino lives: that of an unlinked open file is apart
// from the tree.
func (v *Vault) viewOf(ino Ino) view {
	if f := v.files[ino]; f != nil && f.orphan != nil {
		return view{src: v.s.nodes, over: [2]*overlay{f.orphan}}
	}
	return v.view()
}

// put records a change of one of ino's entries; a nil value deletes it. The
// caller holds mu.
func (v *Vault) put(ino Ino, key, value []byte) {
	if v.notes != nil {
		v.notes.add(key)
	}
	if f := v.files[ino]; f != nil && f.orphan != nil {
		v.putApart(f, string(key), value)
		return
	}
	v.active.Set(string(key), value)
	v.touch()
}

// touch notes that there is something to commit. The caller holds mu.
func (v *Vault) touch() {
	v.generation++
	if v.generation-v.committed.Load() == 2*maxPending && !v.closed {
		// Changes that do not wait for room, such as removals, pile up.
		v.stopTimer()
		v.timer = time.AfterFunc(0, v.commitInBackground)
	}
	v.arm()
}

// arm starts the timer of the next relaxed commit unless it runs. The caller
// holds mu.
func (v *Vault) arm() {
	if v.timer == nil && v.s.opts.CommitInterval > 0 && !v.closed {
		v.timer = time.AfterFunc(v.s.opts.CommitInterval, v.commitInBackground)
	}
}

// grown is how many of the dirty bytes have come since a commit last took what it takes.
// What it leaves, of unlinked open files and of other vaults, is no reason for another.
func (s *Store) grown(dirty int64) int64 {
	left := s.untaken.Load()
	if dirty < left {
		s.untaken.CompareAndSwap(left, dirty)
		return 0
	}
	return dirty - left
}

// hasten has the next relaxed commit begin now. One that failed is not hurried.
func (v *Vault) hasten() {
	if v.hastened.Load() || v.s.opts.CommitInterval <= 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.generation == v.committed.Load() || v.closed || v.failed != nil || v.hastened.Swap(true) {
		return
	}
	v.stopTimer()
	v.timer = time.AfterFunc(0, v.commitInBackground)
}

// inodeOf returns the record of ino, linked or not. The caller holds mu.
func (v *Vault) inodeOf(ctx context.Context, ino Ino) (*inode, error) {
	return v.viewOf(ino).inode(ctx, ino)
}

func (v *Vault) putInode(ino Ino, n *inode) { v.put(ino, inodeKey(ino), n.encode()) }

// read runs fn under the read lock.
func (v *Vault) read(op, path string, fn func() error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.closed {
		return fail(Closed, op, path)
	}
	return wrap(fn(), op, path)
}

// change runs fn under the write lock, and then tells who watches. fn checks
// everything before it changes anything: there is no way back.
func (v *Vault) change(ctx context.Context, op, path string, fn func() error) error {
	var n notes
	defer func() { n.tell(ctx) }() // when the lock is given back
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return fail(Closed, op, path)
	}
	v.note(ctx, &n)
	defer func() { v.notes = nil }()
	return wrap(fn(), op, path)
}

// open returns an error when the vault is closed.
func (v *Vault) open() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.closed {
		return fail(Closed, "", "")
	}
	return nil
}

// StatFS describes the vault as a file system. The free space is that of the
// disk that holds the store, or what the quota leaves, if that is less.
func (v *Vault) StatFS(_ context.Context) (StatFS, error) {
	const block = 4096
	free, known := v.s.space.available()
	if !known {
		free = 1 << 40
	}
	free = max(free-2*kv.Reserve, 0)
	v.mu.RLock()
	defer v.mu.RUnlock()
	u := v.usage()
	used := (u.Bytes + block - 1) / block
	free, files := v.bounded(free, 1<<30)
	return StatFS{
		BlockSize: block, Blocks: used + free/block, BlocksFree: free / block,
		Files: u.Files + files, FilesFree: files, NameMax: MaxName,
	}, nil
}

// retire closes the vault for good unless files are open in it. The caller holds
// commitMu until the vault is deleted or revived.
func (v *Vault) retire() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return fail(VaultNotFound, "", "")
	}
	for _, f := range v.files {
		if f.handles > 0 {
			return fail(Busy, "", "")
		}
	}
	v.closed = true
	v.stopTimer()
	return nil
}

// revive undoes retire.
func (v *Vault) revive() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = false
	if v.generation != v.committed.Load() {
		v.arm()
	}
}

// discard forgets the pending changes of a vault that is no more.
func (v *Vault) discard() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	v.stopTimer()
	for _, f := range v.files {
		v.dropDirty(f)
	}
}

func (v *Vault) stopTimer() {
	if v.timer != nil {
		v.timer.Stop()
		v.timer = nil
	}
}

// close refuses further work and commits durably.
func (v *Vault) close() error {
	v.commitMu.Lock()
	defer v.commitMu.Unlock()
	v.mu.Lock()
	done := v.closed
	v.closed = true
	v.stopTimer()
	v.mu.Unlock()
	if done {
		return nil
	}
	return v.commitAll()
}
